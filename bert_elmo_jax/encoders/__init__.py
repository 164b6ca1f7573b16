"""Argument checks, rows and results shared by the encoders of all families."""
