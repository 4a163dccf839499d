"""The site: pages made of the registry, the records and the guides, and set by Material for MkDocs."""
