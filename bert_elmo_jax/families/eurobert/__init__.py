"""EuroBERT."""
