"""The Transformer that translates, with its encoder and its decoder."""
