"""Models for others: a folder with a model card, and its upload."""
