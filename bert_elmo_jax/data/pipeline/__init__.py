"""Batches in order: mixtures of corpora, workers, hosts and exact resume."""
