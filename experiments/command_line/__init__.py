"""The command line of the programs."""
