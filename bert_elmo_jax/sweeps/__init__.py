"""Sweeps: many runs of the programs, that a paper's table is made of."""
