"""BART: an encoder and a decoder, pretrained by repairing damaged texts."""
