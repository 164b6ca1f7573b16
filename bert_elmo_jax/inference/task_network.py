"""A trained task network: examples in, predictions out."""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from bert_elmo_jax.data.tasks.task import Example, Task
from bert_elmo_jax.data.tasks.word_rows import Layers, count_cut
from bert_elmo_jax.encoders.encoder import Loaded
from bert_elmo_jax.inference.predictions import AnswerOptions, AnswerSpan, Prediction
from bert_elmo_jax.inference.row_outputs import compute_outputs
from bert_elmo_jax.inference.run_directory import StoredModel
from bert_elmo_jax.inference.task_model import Predictor
from bert_elmo_jax.inference.task_networks import NETWORKS, network_name
from bert_elmo_jax.inference.word_encoder import frozen_layers, layer_shape, trained_layers, word_encoder
from bert_elmo_jax.inference.word_layers import Encoder
from bert_elmo_jax.networks import NetworkConfig
from bert_elmo_jax.networks.word_network import Encode
from bert_elmo_jax.text import Lexicon


class TaskNetwork(Predictor, Loaded):
    """A network with its lexicon and the encoder that it reads, if any; made by `load` from a run directory."""

    cut = 0  # the texts that were longer than the words that it reads

    def __init__(
        self,
        config: NetworkConfig,
        params: Mapping[str, Any],
        lexicon: Lexicon,
        source: str,
        task: Task,
        encoder: Encoder | None = None,
    ):
        check_parts(config, lexicon, task, encoder, source)
        self.config, self.lexicon, self.source, self.task, self.encoder = config, lexicon, source, task, encoder
        self._params, self._process = jax.device_put(dict(params)), os.getpid()

    @functools.cached_property
    def network(self) -> Any:
        """The functions of this kind of network."""
        return NETWORKS[network_name(self.config)]

    @functools.cached_property
    def _outputs(self) -> Callable[..., Any]:
        outputs = self.network.outputs(self.config, self.task, build_encode(self.config, self.encoder))
        return jax.jit(outputs)  # compiled once for each shape of batch

    def rows_of(self, examples: Sequence[Example]) -> tuple[Sequence[Any], Callable[..., list[Any]]]:
        """Return the rows of examples, and the function that computes their outputs."""
        layers = build_layers(self.config, self.encoder)
        make = functools.partial(self.network.collate, lexicon=self.lexicon, layers=layers, targets=False)
        rows = self.network.reading_rows(self.task, examples, self.lexicon)
        if self.task.kind == "classification":  # the others read all words
            self.cut += count_cut(examples, self.task.max_length)  # type: ignore[arg-type]
        return rows, functools.partial(
            compute_outputs, functools.partial(self._outputs, self.params), rows, collate=make
        )

    def predictions(
        self, examples: Sequence[Example], rows: Sequence[Any], outputs: Sequence[Any], options: AnswerOptions
    ) -> list[Prediction]:
        """Return the predictions from the outputs of rows."""
        task = self.task
        if options.no_answer is not None:
            task = dataclasses.replace(task, unanswerable=options.no_answer)
        n_best = max(options.n_best, options.top_k or 1)
        predictions = self.network.predictions(task, examples, rows, outputs, n_best)
        if options.top_k is None:
            return predictions
        return [
            dataclasses.replace(answer, n_best=answer.n_best[: options.top_k])
            for answer in predictions
            if isinstance(answer, AnswerSpan)
        ]


def load_network(model: StoredModel, path: str | Path) -> TaskNetwork:
    """Return the network of a run directory, with the encoder in it."""
    assert isinstance(model.tokenizer, Lexicon) and model.task is not None
    encoder = None
    if model.encoder is not None:
        encoder = word_encoder(str(Path(path) / "encoder"))
        if encoder.fingerprint != model.encoder.get("fingerprint"):
            raise ValueError(
                f"{Path(path) / 'encoder'} is another encoder ({encoder.fingerprint}) than the network was made with "
                f"({model.encoder.get('fingerprint')}); copy it again from the run"
            )
    return TaskNetwork(model.config, model.params, model.tokenizer, str(path), model.task, encoder)


def check_parts(config: NetworkConfig, lexicon: Lexicon, task: Task, encoder: Encoder | None, source: str) -> None:
    """Raise if the parts of a network do not belong together."""
    sizes = (0, 0) if encoder is None else layer_shape(encoder)
    if sizes != (config.encoder_layers, config.encoder_width):
        raise ValueError(
            f"{source}: the encoder has layers of {sizes[0]} x {sizes[1]} numbers, the network was made for "
            f"{config.encoder_layers} x {config.encoder_width}; they do not belong together"
        )
    words = (len(lexicon.specials), len(lexicon.words), lexicon.width)
    if words != (config.num_specials, config.num_words, config.word_size):
        raise ValueError(f"{source}: the lexicon and the network's table of words do not belong together")
    network = NETWORKS[network_name(config)]
    made_for = getattr(config, "pairs", network.pairs)
    if task.kind != network.kind or made_for not in (None, task.pairs):
        texts = {None: "", False: " of single texts", True: " of pairs of texts"}
        raise ValueError(
            f"{source}: {config.CALLED} made for {network.kind}{texts[made_for]}, and its task is {task.kind}"
            f"{texts[task.pairs]}; they do not belong together"
        )
    if network.counted is not None and len(task.labels) != getattr(config, network.counted):
        labels = network.counted.removeprefix("num_")
        raise ValueError(f"{source}: {len(task.labels)} {labels}, the network has {getattr(config, network.counted)}")


def build_layers(config: NetworkConfig, encoder: Encoder | None) -> Layers | None:
    """Return the function that adds the encoder's layers to a batch, or its inputs if it is fine-tuned; or None."""
    if encoder is None:
        return None
    return trained_layers(encoder) if config.tuned else frozen_layers(encoder)


def build_encode(config: NetworkConfig, encoder: Encoder | None) -> Encode | None:
    """Return the function of an encoder that is fine-tuned in the network; None for other encoders."""
    return encoder.word_function() if encoder is not None and config.tuned else None
