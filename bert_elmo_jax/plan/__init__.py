"""Ahead-of-time compilation for devices that are not attached."""
