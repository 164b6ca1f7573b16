"""An ELMo reads the task's own texts as a language model first, before its layers go into a network.

As in Peters et al. 2018, section 3.4: an epoch over the training texts, no labels seen; then it is as frozen (or as
tuned) as it would have been. What comes out is a run directory like those of `pretrain_elmo`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from bert_elmo_jax.files import write_text
from bert_elmo_jax.inference.task_networks import NETWORKS
from bert_elmo_jax.inference.read_model import StoredModel, read_model
from bert_elmo_jax.inference.word_encoder import word_encoder
from bert_elmo_jax.data.corpora.prepare import Request, prepare
from bert_elmo_jax.data.corpora.reading import Reading
from bert_elmo_jax.data.corpora.runners import Report, local_runner
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.text import WordVocabulary
from experiments.configs import pretraining as recipes
from experiments.pretrain_elmo import task_of
from bert_elmo_jax.runs.pretraining import pretrain
from bert_elmo_jax.runs.starting_weights import say
from bert_elmo_jax.runs.task_data import Data
from bert_elmo_jax.runs.with_network import NetworkStart

HELD_OUT = 0.05  # of the texts: what the perplexity is measured on
FULL_SOFTMAX = 20_000  # words; of a larger vocabulary the softmax is sampled


def wanted(config: ConfigDict, settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the config asks for it; what cannot be meant is said."""
    for name in (name for setting in settings for name in setting):
        if name.startswith("adapt.") or (name == "encoder" and "adapt" in config and config.adapt.epochs):
            raise ValueError(
                f"--grid names {name}, and all of its runs share one adapted encoder: start a run for each"
            )
    if "adapt" not in config or config.adapt.epochs == 0:
        return False
    if not config.encoder:
        raise ValueError(
            f"config.adapt.epochs={config.adapt.epochs} was asked for without an encoder: give --config.encoder=…"
        )
    if config.adapt.epochs < 0 or config.adapt.batch_size < 1:
        raise ValueError(
            f"config.adapt.epochs={config.adapt.epochs}, config.adapt.batch_size={config.adapt.batch_size}: expected "
            "0 epochs or more, of batches of 1 text or more"
        )
    return True


def adapted(config: ConfigDict, workdir: Path, data: Data, start: NetworkStart) -> tuple[NetworkStart, int]:
    """The start with its encoder adapted in `workdir/adapted`, and an exit status: 0, or that of a stopped run."""
    asked, folder = config.adapt, workdir / "adapted"
    stored = read_model(config.encoder)
    if not isinstance(stored.config, ElmoConfig):
        raise ValueError(
            f"config.adapt.epochs={asked.epochs} is for an ELMo, and {config.encoder} is none; adapt a BERT with "
            "pretrain_bert --init=…, and give its run directory as --config.encoder=…"
        )
    folder.mkdir(parents=True, exist_ok=True)
    texts = write_texts(folder / "texts.txt", NETWORKS[config.network].words(data.task, data.train))
    say(f"the encoder reads {texts:,} texts first, as a language model: {folder}")
    request = Request(
        (str(folder / "texts.txt"),), str(folder / "corpus"), word_rule="whitespace", heldout=HELD_OUT, shards=1,
        tokenizer=words_of(stored, folder / "vocabulary"), vocab_size=50_000, reading=Reading(on_bad="skip"),
    )  # fmt: skip
    manifest = prepare(request, local_runner(1), quiet)
    if not manifest["counts"]["heldout"]["documents"]:
        raise ValueError(
            f"{config.train} has {texts:,} texts, too few to hold any out for the language model's perplexity: leave "
            "config.adapt out, or adapt with pretrain_elmo on more text"
        )
    recipe = recipe_of(config, stored.config, manifest)
    recipe.data = str(folder / "corpus")
    status = pretrain(recipe, folder, config.encoder, task_of, "adapt")
    return (start if status else NetworkStart(word_encoder(str(folder)), start.source)), status


def words_of(stored: StoredModel, folder: Path) -> str:
    """The folder of the words that the weights' softmax knows; "words", for new ones, where it has none of them."""
    assert isinstance(stored.config, ElmoConfig)
    if not isinstance(stored.tokenizer, WordVocabulary) or (
        "lm" not in stored.params and stored.config.input != "words"
    ):
        return "words"
    if not (folder / "words.txt").is_file():
        stored.tokenizer.save(folder)
    return str(folder)


def recipe_of(config: ConfigDict, model: ElmoConfig, manifest: dict) -> ConfigDict:
    """The language model's run: sentences by themselves, as the task has them, and a rate that falls to nothing."""
    counts, asked = manifest["counts"]["train"], config.adapt
    c = recipes.elmo("toy")
    c.model = recipes.model(model)
    c.reading, c.batch_size, c.seed, c.mesh = "sentences", asked.batch_size, config.seed, config.mesh
    rows = counts["sentences"] + counts["words"] // c.length  # long sentences are several rows
    c.steps = max(1, round(asked.epochs * rows / asked.batch_size))
    c.negatives = 0 if manifest["tokenizer"]["vocab_size"] <= FULL_SOFTMAX else c.negatives
    c.optimizer.update({"name": "adamw", "schedule": "linear_after_warmup", "warmup": 0.1})
    c.optimizer.update({"learning_rate": asked.learning_rate, "clip": 1.0, "gradient_scale": 1.0})
    c.eval_every, c.checkpoint_every, c.log_every = max(1, c.steps // 4), max(1, c.steps // 4), config.log_every
    c.stop_after_failures = config.stop_after_failures
    return c


def write_texts(file: Path, texts: Iterable[Sequence[str]]) -> int:
    """Each text a document of one line; how many there are. The same texts leave the file as it is."""
    lines = list(dict.fromkeys(" ".join(words) for words in texts if words))
    text = "\n\n".join(lines) + "\n"
    if not file.is_file() or file.read_bytes() != text.encode():
        write_text(file, text)
    return len(lines)


@contextlib.contextmanager
def quiet(name: str, size: int) -> Iterator[Report]:
    """No bar: texts of a task are prepared in a moment."""
    del name, size
    yield lambda done: None
