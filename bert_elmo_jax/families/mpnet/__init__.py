"""MPNet."""
