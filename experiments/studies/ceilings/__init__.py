"""Scores of models on the toy world, compared with the best possible scores."""
