"""Families that translate: a source and a target, both read as pieces."""

from pathlib import Path
from typing import ClassVar

from bert_elmo_jax.families.pieces import Pieces


class Pairs(Pieces):
    """The encoder reads pieces as `Pieces` do; the objectives read pair batches of a source and a target."""

    name: ClassVar[str] = "pairs"

    def next_steps(self, run: Path) -> list[tuple[str, str]]:
        """Return a translation."""
        code = f"""from bert_elmo_jax import load
load({str(run)!r}).translate(["One day Junho was in the big office ."])"""
        return [("Its translations, in Python", code)]
