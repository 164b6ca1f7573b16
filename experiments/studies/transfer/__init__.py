"""Ways of transfer: how far layers drift, and how long gradients are."""
