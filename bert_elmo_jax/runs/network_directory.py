"""The run directory of a task's own network: the encoder that it reads lies in it, and nothing else may be meant by it.

`encoder/` is a run directory of its own, without heads: `load("runs/tagger/encoder")` gives it.
"""

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bert_elmo_jax.inference.model_json import read_facts
from bert_elmo_jax.inference.run_directory import describe_encoder, is_run_directory, write_run_directory
from bert_elmo_jax.inference.word_encoder import word_encoder
from bert_elmo_jax.inference.word_layers import Encoder
from bert_elmo_jax.networks import NetworkConfig


def check_begun(workdir: Path, network: NetworkConfig, labels: Sequence[str], words: str) -> None:
    """Raises where a run directory holds a network of other words or tags: its files are not what they were.

    >>> import tempfile
    >>> from bert_elmo_jax.networks import TaggerConfig
    >>> check_begun(Path(tempfile.mkdtemp()), TaggerConfig(num_tags=2, num_words=9), ("ADV", "NOUN"), "0123")
    """
    if not is_run_directory(workdir):
        return
    facts = read_facts(workdir / "model.json")
    there = (facts["config"], facts["labels"], (facts["tokenizer"] or {}).get("fingerprint"))
    if there != (dataclasses.asdict(network), list(labels), words):
        raise ValueError(
            f"{workdir} was begun with other training data, vectors or encoder (its words, tags or sizes are others): "
            "go on with the same, or choose another run directory"
        )


def keep_encoder(folder: Path, encoder: Encoder) -> dict[str, Any]:
    """Copy an encoder into a folder, unless it is there, and say what it is; another one there is refused.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "encoder"
    >>> keep_encoder(folder, word_encoder("tests/goldens/elmo_tiny"))["family"], is_run_directory(folder)
    ('elmo', True)
    """
    described = describe_encoder(encoder)
    if is_run_directory(folder):
        there = word_encoder(str(folder)).fingerprint
        if there != encoder.fingerprint:
            raise ValueError(
                f"this run was begun with another encoder ({there}, and {encoder.source} is {encoder.fingerprint}): go "
                "on with that one, or choose another run directory"
            )
        return described
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed while it wrote
    asked = {"program": "finetune", "encoder": encoder.source}
    write_run_directory(folder, encoder.config, encoder.params, encoder.reads, run=asked)
    return described
