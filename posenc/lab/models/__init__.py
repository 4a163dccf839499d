"""The models that the laboratory trains; positions enter through schemes alone."""
