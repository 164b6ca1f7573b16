"""Runs from config to report: pretraining, fine-tuning, adaptation and grids."""
