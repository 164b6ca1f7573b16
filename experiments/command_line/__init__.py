"""Flags, help texts and exit statuses of the programs."""
