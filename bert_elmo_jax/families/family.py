"""The contract of a model family: all that the rest of the package knows about an architecture.

Runs, heads, task networks, encoders, analyses, planning and sweeps use this contract and no family by name.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin, no_type_check

import flax.linen as nn
from flax import struct
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Float32, PRNGKeyArray
from ml_collections import ConfigDict

from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families.documents import DocumentReader
from bert_elmo_jax.generation.decoder import Decoder

Params = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]
# The axes of the mesh for the parameters of `nn.transformer` and of the tables of embeddings.
TRANSFORMER_SHARDING = (
    (r"attention/(query|key|value)/kernel$", PartitionSpec("fsdp", "tensor")),
    (r"attention/(query|key|value)/bias$", PartitionSpec("tensor")),
    (r"attention/output/kernel$", PartitionSpec("tensor", "fsdp")),
    (r"feed_forward/(gate|up)/kernel$", PartitionSpec("fsdp", "tensor")),
    (r"feed_forward/(gate|up)/bias$", PartitionSpec("tensor")),
    (r"feed_forward/down/kernel$", PartitionSpec("tensor", "fsdp")),
    (r"embeddings/(word|position)$", PartitionSpec("tensor", "fsdp")),
)


@no_type_check  # tree operations put other values than arrays of these shapes into it
@struct.dataclass
class Output:
    """The result of a module fed with pieces; fields that were not requested are None.

    `layers` are in the order of the request, and layer 0 is the embeddings. `pooled` is one vector per row, or one per
    entry of `nsp_positions`.
    """

    last: Float[Array, "B T D"]
    layers: Float[Array, "N B T D"] | None = None
    attentions: Float32[Array, "L B A T T"] | None = None
    pooled: Float[Array, "B D"] | Float[Array, "B S D"] | None = None


class Phase(NamedTuple):
    """Consecutive steps of a run whose batches have one shape."""

    steps: int
    rows: int
    examples: Any  # PieceExamples or LanguageModelExamples

    @property
    def tokens(self) -> int:
        """The positions of a row; of both texts, if its examples are pairs."""
        return int(getattr(self.examples, "tokens", self.examples.length))


class Objective(NamedTuple):
    """A pretraining objective for one configuration: the loss (see `train.make_step`), its batches and its figures."""

    init: Callable[[PRNGKeyArray], Params]  # fresh parameters
    loss: Any
    held_out_loss: Any
    coefficients: Mapping[str, float]  # of the terms of the loss
    phases: tuple[Phase, ...]
    work: Callable[[Any, int], float]  # operations per token, from parameters (or their shapes) and a row's length
    figures: Callable[[Mapping[str, float]], dict[str, float]]  # held-out means -> named figures
    score: str  # the figure that selects the best checkpoint
    size: Callable[[Mapping[str, Any]], int]  # tokens in a batch
    carry: Callable[[int], Any] = lambda rows: None  # the state before the first step, for this many rows
    step: Mapping[str, Any] = {}  # further arguments of `train.make_step`
    # Entries of every batch that no step changes, such as a teacher's parameters: on the devices, in no checkpoint.
    constants: Mapping[str, Any] = {}
    # Of an objective of masked pieces: the loss with the terms of `compare(batch, hidden, logits)` added.
    extend: Callable[[Callable[..., Any]], Any] | None = None
    long_steps: int = 0  # the number of last steps that have their own schedule
    width: int | None = None  # of the model, for the schedule `noam`
    held_out: Any = None  # the examples of evaluations; None: the first phase's
    frozen: tuple[str, ...] = ()  # patterns of paths of parameters that no step changes

    @property
    def held_out_examples(self) -> Any:
        """The examples of evaluations."""
        return self.phases[0].examples if self.held_out is None else self.held_out


class WeightFormat(NamedTuple):
    """A foreign weight format of a family: pure maps of names, with the files around them."""

    owner: str  # whose format it is, for messages: "Hugging Face"
    looks_like: str  # its files, for messages: "model.safetensors"
    files: Callable[[Path], list[str]]  # the names of its files in a folder, [] if there is no model
    read_config: Callable[[str | Path], Any]
    read_weights: Callable[..., tuple[Params, Any]]  # (path, config=…) -> (parameters, report)
    write: Callable[..., None] | None = None  # (folder, params, config, labels=…, problem_type=…)
    classifiers: tuple[str, ...] = ()  # heads that an unnamed classifier in a file may be
    is_file: Callable[[Path], bool] = lambda path: False  # True for a single file or prefix of this format
    advice: Callable[[Path], str] = lambda folder: ""  # the problem of a folder that almost has this format
    # For a format name that several families have: the `model_type`s of this family; "" is a missing one.
    model_types: tuple[str, ...] = ()
    model_type: Callable[[Path], str] = lambda folder: ""  # reads it from a folder
    # configuration -> the names of a model's tensors, a `WeightFile`; None for a format without such a table.
    names: Callable[[Any], Any] | None = None


def encoder_depth(path: str) -> int | None:
    """Return the layer of a parameter by its path below `encoder`; None for parts above the last layer.

    A projection of narrow embeddings, `project`, belongs to the embeddings.

    >>> [encoder_depth(path) for path in ("embeddings/word", "layer_3/attention/key/bias", "pooler/bias")]
    [0, 4, None]
    """
    if path.startswith(("embeddings/", "project/", "token/")):
        return 0
    match = re.match(r"(?:forward/|backward/)?layer_(\d+)(?:/|$)", path)
    return int(match[1]) + 1 if match else None


class Head(NamedTuple):
    """A head of a family: how it is made, and what it reads."""

    # configuration -> module; None for a head that only the family's `init` makes. A pretraining head is called with
    # `(hidden, words, positions=None)`, where `words` is the table of word embeddings.
    make: Callable[[Any], nn.Module] | None = None
    tied: bool = False  # it has no parameters of its own, so every model has it
    pooled: bool = False  # it reads pooled vectors alone; a head of pieces: every piece through the pooler
    bias: bool = True  # of the dense layer of a task head


# `pooled` for heads of pieces (tag, span) means that the module takes `pool_pieces`.
TASK_HEADS = {"classify": Head(pooled=True), "choice": Head(pooled=True), "tag": Head(), "span": Head()}
PIECE_HEADS = ("tag", "span")  # task heads that have outputs for every piece


class ModelFields(NamedTuple):
    """Names and types of fields in `model.json`."""

    needed: Mapping[str, str] = {}
    optional: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The way the models of a family read text: `Pieces`, `Words` or `Pairs`, each in a file of its own.

    It decides on tokenizers, batches, the encoder that `load` returns, and the part of `model.json` that depends on
    them. A further way of reading is a further subclass.
    """

    name: ClassVar[str]  # for messages: "pieces"
    tokenizers: ClassVar[str]  # of `prepare_data`, for messages
    toy_tokenizer: ClassVar[str]  # of the toy corpus
    takes_heads: ClassVar[bool]  # task heads read its encoder; otherwise a task network does
    adapts: ClassVar[bool]  # a task network's encoder can first be trained on the texts of the task
    folds_case: ClassVar[bool]  # some of its tokenizers fold case and others do not

    vocab_size: int = 30_522  # of the released models, for planning without data
    # The module keeps the texts of a row apart by `segments`, counts places by `positions`, and takes rows of more than
    # `max_positions` pieces. If False, every text has a row of its own.
    packs: bool = True
    # (configuration, parameters, tokenizer, source) -> what `load` returns; None: the usual one for these inputs.
    encoder: Callable[..., Any] | None = None
    # Further fields of a configuration that are ids of its tokenizer, such as the piece that ends a text.
    special_ids: Callable[[Any], dict[str, Any]] = lambda tokenizer: {}
    reads_vocabulary: Callable[[Any, Sequence[str]], bool] = lambda config, heads: True  # from config and heads
    # How documents are read part by part; None for a family that has no classifier of documents.
    documents: DocumentReader | None = None
    # Of a language model whose layers keep its directions apart: for each direction, the first of its columns and the
    # end of the last.
    directions: Callable[[Any], Mapping[str, tuple[int, int]]] = lambda config: {}

    def find_tokenizer(self, family: "Family", folder: Path, config: Any, lowercase: bool | None) -> Any:
        """Return the tokenizer or vocabulary of a model's folder, or None; raise if it does not fit the model."""
        raise NotImplementedError

    def load_corpus_tokenizer(self, corpus: Path, kind: str) -> Any:
        """Return the tokenizer of a prepared corpus; raise if it is of a `kind` that these models do not read."""
        raise NotImplementedError

    def wrong_corpus(self, corpus: Path, kind: str) -> ValueError:
        """Return the error about a corpus that was prepared with a tokenizer of another kind."""
        return ValueError(
            f"{corpus} was made with {kind}, and this model reads {self.name}: prepare it with "
            f"--tokenizer={self.tokenizers}"
        )

    def make_encoder(
        self, family: "Family", config: Any, params: Mapping[str, Any], tokenizer: Any, source: str
    ) -> Any:
        """Return what `load` returns for a model without a task."""
        assert self.encoder is not None
        return self.encoder(config, params, tokenizer, source)

    def begin_from(
        self, params: Mapping[str, Any], tokenizer: Any, same: bool
    ) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Return the stored parameters that a run on these data can use, and fields of their configuration to change.

        `same` is True if the data were prepared with the model's own vocabulary.
        """
        return params, {}

    def needs_same_vocabulary(self, stored: Any) -> bool:
        """Return True if a stored tokenizer, or None, forbids to train on data with another one."""
        return stored is not None

    def split(self, devices: int) -> dict[str, int]:
        """Return the arguments of `train_batches` for batches that so many devices share."""
        return {}

    def join_phases(self, phases: Sequence[tuple[int, Any]]) -> Any:
        """Return the batches of a run from the number of steps and the batches of each of its phases."""
        from bert_elmo_jax.data.pipeline.batches import Phases  # loading a model does not import it

        return Phases(phases)

    def model_fields(self) -> ModelFields:
        """Return the fields of `model.json` that only these models have."""
        return ModelFields()

    def describe(self, shapes: Shapes) -> dict[str, Any]:
        """Return the values of those fields that the shapes of parameters show."""
        return {}

    def shapes(self, family: "Family", config: Any, fields: Mapping[str, Any], source: str) -> Shapes:
        """Return the shape of every parameter of a model, from the fields of its `model.json`."""
        raise NotImplementedError

    def next_steps(self, run: Path) -> list[tuple[str, str]]:
        """Return the commands that a report suggests after a pretraining, as pairs of a title and code."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)  # equal only to itself, so that it can be a key of caches
class Family:
    """One architecture with its weights and objectives.

    Parameters are `{"encoder": …, head: …}`. `module(config)` is the encoder: for pieces it is called with `tokens,
    types, positions, segments` and the keywords `layers`, `attentions`, `deterministic`, and returns an `Output`. A
    module with a pooler has the field `add_pooler`, and is called with `nsp_positions`, too.
    A configuration is a frozen dataclass with (at least) `vocab_size`, `hidden_size`, `num_layers`, `max_positions`,
    `pad_id` and `dtype`, and for task heads `initializer_range` and `head_dropout`. It has `causal`, True if a piece
    sees only the pieces before it; without, it is False. If not every layer sees whole rows, `pieces_seen(length)`
    returns how many pieces a piece sees, summed over the layers.

    The task heads `classify` and `choice` read `Output.pooled`. If released models have no pooler but a classifier of
    two layers, the module has a pooler with that classifier's activation, and the weight map reads the first layer as
    `encoder/pooler`. A model read without a classifier then has no `pooled`, and fine-tuning starts a fresh pooler. A
    pooler may have no parameters: a causal model's `pooled` is the state of the last piece.
    """

    name: str  # the folder below families/
    called: str  # for messages: "a BERT"
    config: type[Any]
    module: type[nn.Module]
    inputs: Inputs
    objectives: Mapping[str, Callable[[ConfigDict, Any], Objective]]
    heads: Mapping[str, Head] = field(default_factory=dict)  # for pretraining
    task_heads: Mapping[str, Head] = field(default_factory=dict)  # those that differ from `TASK_HEADS`
    formats: Mapping[str, WeightFormat] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    depth_of: Callable[[str], int | None] = encoder_depth
    sharding: Sequence[tuple[str, PartitionSpec]] = ()
    init: Callable[..., Params] | None = None  # (config, key, heads) -> parameters; None: `init_params`
    # False: sentence-transformers pools the states of a decoder, and `sentences` those of the encoder.
    sentence_files: bool = True
    # What writes text with a configuration and its heads; None for a family that does not write.
    decoder: Callable[[Any], Decoder] | None = None

    def build(self, config: Any, *, pooler: bool = False) -> nn.Module:
        """Return the module of a configuration, with the pooler if the family has one."""
        return self.module(config, add_pooler=pooler) if self.pooler else self.module(config)

    @property
    def pooler(self) -> bool:
        """True if the module has a pooler."""
        return "add_pooler" in self.module.__dataclass_fields__

    def causal(self, config: Any) -> bool:
        """Return True if a piece sees only the pieces before it."""
        return getattr(config, "causal", False)

    def head(self, name: str, config: Any) -> nn.Module:
        """Return the module of a pretraining head."""
        make = self.heads[name].make
        assert make is not None, f"the head {name} of {self.called} has no module"
        return make(config)

    def task_head(self, name: str) -> Head:
        """Return the properties of a task head in this family."""
        return self.task_heads.get(name, TASK_HEADS[name])

    def config_for(self, tokenizer: Any, **fields: Any) -> Any:
        """Return a configuration with the vocabulary of a tokenizer."""
        return self.config(**(self.vocabulary_fields(tokenizer) | fields))

    def vocabulary_fields(self, tokenizer: Any) -> dict[str, Any]:
        """Return the fields of a configuration that a tokenizer decides; the `sep` piece ends a text."""
        names = {field.name for field in dataclasses.fields(self.config)}
        ids: dict[str, Any] = {name: getattr(tokenizer, name) for name in ("vocab_size", "pad_id") if name in names}
        if "end_id" in names:
            ids["end_id"] = tokenizer.sep_id
        return ids | dict(self.inputs.special_ids(tokenizer))

    def objective(self, config: ConfigDict, model: Any) -> Objective:
        """Return the objective that a run's config names."""
        name = config.get("objective") or next(iter(self.objectives))
        if name not in self.objectives:
            raise ValueError(f"config.objective={name!r} is not known; use one of {', '.join(self.objectives)}")
        return self.objectives[name](config, model)


def check_choices(config: Any) -> None:
    """Raise if a field of a `Literal` type has another value."""
    for part in dataclasses.fields(config):
        value, allowed = getattr(config, part.name), get_args(part.type)
        if get_origin(part.type) is Literal and value not in allowed:
            hint = did_you_mean(value, allowed)
            raise ValueError(f"{part.name} is {value!r}; it is one of {', '.join(allowed)}{hint}")


def show_config(config: Any) -> str:
    """Return a configuration as text that names fields of `ADDED` only if they are not at their default.

    Fingerprints are made of this text, so files and runs from before such a field keep theirs.
    """
    parts = [part for part in dataclasses.fields(config) if part.name not in config.ADDED]
    parts += [part for part in dataclasses.fields(config) if part not in parts and _is_changed(config, part)]
    shown = ", ".join(f"{part.name}={getattr(config, part.name)!r}" for part in parts)
    return f"{type(config).__name__}({shown})"


def _is_changed(config: Any, part: dataclasses.Field) -> bool:
    return bool(getattr(config, part.name) != part.default)


def choose_preset(name: str, presets: Mapping[str, Any]) -> Any:
    """Return the fields of a named size."""
    if name not in presets:
        raise ValueError(f"There is no preset {name!r}; there are {', '.join(presets)}{did_you_mean(name, presets)}")
    return presets[name]
