"""A task's own network that people use: examples in, predictions out, as of a fine-tuned model."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bert_elmo_jax.api.arguments import check_list, check_whole
from bert_elmo_jax.api.predictions import Prediction, Tags
from bert_elmo_jax.api.read_model import StoredModel
from bert_elmo_jax.api.streaming import BAR_FROM
from bert_elmo_jax.api.task_forward import scores_of
from bert_elmo_jax.api.task_model import to_example
from bert_elmo_jax.api.word_encoder import WordEncoder, frozen_layers, size_of, trained_layers, word_encoder
from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.data.tasks.transitions import legal_transitions
from bert_elmo_jax.data.tasks.word_rows import Layers, WordRow, collate_words, make_word_rows
from bert_elmo_jax.heads.word_layers import word_layers
from bert_elmo_jax.task_models import TaggerConfig, best_tags
from bert_elmo_jax.task_models.tagger import Encode
from bert_elmo_jax.text import Lexicon


class TaskNetwork:
    """A tagger with its words, and the encoder that it reads, if any; made by `load` from its run directory."""

    def __init__(
        self,
        config: TaggerConfig,
        params: Mapping[str, Any],
        lexicon: Lexicon,
        source: str,
        task: Task,
        encoder: WordEncoder | None = None,
    ):
        check_parts(config, lexicon, task, encoder, source)
        self.config, self.lexicon, self.source, self.task, self.encoder = config, lexicon, source, task, encoder
        self.params: dict[str, Any] = jax.tree.map(jnp.asarray, dict(params))
        # Compiled once for each shape of batch.
        self._best = jax.jit(tags_of(config, task, encoder))

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags that it knows."""
        return self.task.labels

    def predict(
        self, inputs: Sequence[Any], *, batch_size: int = 32, n_best: int = 20, progress: bool | None = None
    ) -> list[Prediction]:
        """A prediction for each input: a list of words, or a text that is split at white space.

        Inputs are sorted by length on the way through and come back in order. (`n_best` is for questions.)
        """
        check_list(inputs)
        examples = [to_example(self.task, value, number) for number, value in enumerate(inputs)]
        return self.predict_examples(examples, batch_size=batch_size, n_best=n_best, progress=progress)

    def predict_examples(
        self, examples: Sequence[Example], *, batch_size: int = 32, n_best: int = 20, progress: bool | None = None
    ) -> list[Prediction]:
        """The same for examples as `read_examples` gives them."""
        batch_size = check_whole("batch_size", batch_size, 1)
        check_whole("n_best", n_best, 1)
        sentences: Any = examples
        rows = make_word_rows(sentences, self.lexicon, self.task.labels, labelled=False)
        layers = layers_of(self.config, self.encoder)
        found = scores_of(
            functools.partial(self._best, self.params),
            rows,
            batch_size,
            functools.partial(collate_words, lexicon=self.lexicon, layers=layers, tags=False),
            progress=len(rows) >= BAR_FROM if progress is None else progress,
        )
        return tag_predictions(self.task, rows, found)


def load_network(model: StoredModel, path: str | Path) -> TaskNetwork:
    """The network of a run directory, and the encoder in it."""
    assert isinstance(model.config, TaggerConfig) and isinstance(model.tokenizer, Lexicon) and model.task is not None
    encoder = None
    if model.encoder is not None:
        encoder = word_encoder(str(Path(path) / "encoder"))
        if encoder.fingerprint != model.encoder.get("fingerprint"):
            raise ValueError(
                f"{Path(path) / 'encoder'} is another encoder ({encoder.fingerprint}) than the network was made with "
                f"({model.encoder.get('fingerprint')}); copy it again from the run"
            )
    return TaskNetwork(model.config, model.params, model.tokenizer, str(path), model.task, encoder)


def check_parts(config: TaggerConfig, lexicon: Lexicon, task: Task, encoder: WordEncoder | None, source: str) -> None:
    """Raises where a network's parts do not belong together."""
    given = (0, 0) if encoder is None else size_of(encoder)
    if given != (config.encoder_layers, config.encoder_width):
        raise ValueError(
            f"{source}: the encoder has layers of {given[0]} x {given[1]} numbers, the network was made for "
            f"{config.encoder_layers} x {config.encoder_width}; they do not belong together"
        )
    words = (len(lexicon.specials), len(lexicon.words), lexicon.width)
    if words != (config.num_specials, config.num_words, config.word_size):
        raise ValueError(f"{source}: the lexicon and the network's table of words do not belong together")
    if len(task.labels) != config.num_tags:
        raise ValueError(f"{source}: {len(task.labels)} tags, the network has {config.num_tags}")


def layers_of(config: TaggerConfig, encoder: WordEncoder | None) -> Layers | None:
    """What a batch needs of the encoder: its layers, or what they are made of where it is trained along."""
    if encoder is None:
        return None
    return trained_layers(encoder) if config.tuned else frozen_layers(encoder)


def encode_of(config: TaggerConfig, encoder: WordEncoder | None) -> Encode | None:
    """The encoder as a part of the network, where it is trained along."""
    if encoder is None or not config.tuned:
        return None
    return functools.partial(word_layers, encoder.config)


def tags_of(config: TaggerConfig, task: Task, encoder: WordEncoder | None) -> Any:
    """The function of parameters and a batch that gives tags and their probabilities."""
    legal = legal_transitions(task.labels, config.scheme or None)
    return functools.partial(best_tags, config, legal, encode=encode_of(config, encoder))


def tag_predictions(task: Task, rows: Sequence[WordRow], found: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Any]:
    """What the network said of rows, as people read it.

    >>> row, task = WordRow(0, ("배",), np.array([0], np.int32)), Task("tags", "tags", labels=("ADV", "NOUN"))
    >>> print(tag_predictions(task, [row], [(np.array([1, 0]), np.array([0.9, 0.0]))])[0])
    배/NOUN
    """
    made = []
    for row, (tags, shares) in zip(rows, found):
        chosen = tuple(task.labels[tag] for tag in tags[: row.width])
        made.append(Tags(row.words, chosen, tuple(np.clip(shares[: row.width], 0.0, 1.0).tolist())))
    return made
