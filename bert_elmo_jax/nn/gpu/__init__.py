"""Kernels for one GPU, as functions of arrays and parameters; XLA's path in the modules stays the reference."""
