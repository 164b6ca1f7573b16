"""Stored text to the rows of training batches."""
