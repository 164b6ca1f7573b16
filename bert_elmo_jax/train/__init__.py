"""Training: it is given models, losses and data as functions, and knows none of them."""
