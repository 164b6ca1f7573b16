"""`python -m bert_elmo_jax PROGRAM …`; the command `bert-elmo-jax` starts here, too."""

import importlib

from bert_elmo_jax.programs import PACKAGE


def main() -> None:
    """Start a program by its name."""
    importlib.import_module(f"{PACKAGE}.command_line.main").main()


if __name__ == "__main__":
    main()
