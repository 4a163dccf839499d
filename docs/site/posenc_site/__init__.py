"""Pages of the site, made of the registry, the records, the figures and the guides."""
