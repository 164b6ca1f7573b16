"""BERT and ELMo in JAX/Flax."""
