"""Config files; see `--help` of a program with `--config=FILE:RECIPE`."""
