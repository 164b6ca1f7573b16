"""Texts from any family that writes: greedy, drawn, or by beam search, in compiled loops with a memory."""
