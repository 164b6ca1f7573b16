"""Sweeps: each file says which runs a paper's table is made of, and what the paper has there."""
