"""CoVe."""
