"""Model scores on the toy world beside the best possible scores."""
