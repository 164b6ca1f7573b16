"""Questions about models that are answered once."""
