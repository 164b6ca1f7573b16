"""What a config asks of a training step: all of it that is known without text, tokenizer and weights."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import PRNGKeyArray
from ml_collections import ConfigDict
from optax import GradientTransformation

from bert_elmo_jax import train
from bert_elmo_jax.data.rows.pieces import BertExamples
from bert_elmo_jax.data.rows.masking import Masking
from bert_elmo_jax.data.rows.stream import LanguageModelExamples
from bert_elmo_jax.families.elmo.init_params import init_elmo_params
from bert_elmo_jax.families.bert.init_params import init_params
from bert_elmo_jax.families.bert.loss import bert_loss
from bert_elmo_jax.families.elmo.loss import DIRECTIONS, draw_for, elmo_loss, touched_for
from bert_elmo_jax.families.bert.config import BertConfig
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.families.elmo.model import zero_state
from bert_elmo_jax.optim import Schedule
from bert_elmo_jax.train.step import Step
from bert_elmo_jax.runs import optimisation
from bert_elmo_jax.runs.corpora import corpora_of, tokenizer_of
from bert_elmo_jax.runs.starting_weights import weights_of

# Of the released models: the uncased one, and the one of the 1B-word benchmark.
VOCABULARY = {"bert": 30_522, "elmo": 793_471}


class Phase(NamedTuple):
    """Some steps of a run that have batches of one shape."""

    steps: int
    rows: int
    examples: BertExamples | LanguageModelExamples


class Objective(NamedTuple):
    """What `step_of` makes a step of, and the batches it is for."""

    init: Callable[[PRNGKeyArray], dict[str, Any]]  # fresh parameters
    loss: Any
    held_out_loss: Any
    coefficients: Mapping[str, float]
    phases: tuple[Phase, ...]
    work: Callable[[Any, int], float]  # operations for a token, of parameters (or their shapes) and a row's length
    carry: Callable[[int], Any] = lambda rows: None  # what so many rows hand on before the first step
    step: Mapping[str, Any] = {}

    @property
    def long_steps(self) -> int:
        """How many of the last steps have a schedule of their own."""
        return sum(phase.steps for phase in self.phases[1:])


def bert_objective(config: ConfigDict, model: BertConfig) -> Objective:
    """BERT's: masked words, with pairs where the config has them, in one phase or two."""
    pairs = config.objective in ("nsp", "sop")
    heads = ("mlm", "nsp") if pairs else ("mlm",)
    masking = Masking(config.masking.kind, config.masking.rate, config.masking.predictions, tuple(config.masking.split))

    def phase(steps: int, rows: int, length: int) -> Phase:
        how = (config.short_share, config.short_per, masking, config.sequences, config.copies)
        return Phase(steps, rows, BertExamples(length, config.objective, *how))

    def work(params: Any, length: int) -> float:
        layers = [part for name, part in params["encoder"].items() if name.startswith("layer_")]
        head = weights_of(params["mlm"]) + model.vocab_size * model.hidden_size
        share = masking.places(length) / length  # of the positions that the head sees
        maps = 2 * model.num_layers * model.hidden_size * length
        return 6.0 * (weights_of(layers) + share * head + maps)

    long = round(config.steps * config.long_share)
    phases = [phase(config.steps - long, config.batch_size, config.length)]
    phases += [phase(long, config.long_batch_size or config.batch_size, config.long_length)] if long else []
    loss = bert_loss(model, pairs)
    return Objective(
        lambda key: init_params(model, key, heads, add_pooler=pairs), loss, loss, dict.fromkeys(heads, 1.0),
        tuple(phases), work,
    )  # fmt: skip


def elmo_objective(config: ConfigDict, model: ElmoConfig) -> Objective:
    """ELMo's: the next word in each direction, by the full softmax or a sampled one."""
    assert model.vocab_size is not None
    predicted = len(DIRECTIONS) * (config.negatives or model.vocab_size) * model.width
    options: dict[str, Any] = {"shared": ("characters",)}
    if config.negatives:
        options |= {"draw": draw_for(model, config.negatives), "touched": touched_for(model)}
    examples = LanguageModelExamples(
        config.reading, config.length, model.input, model.max_characters, max(width for width, _ in model.filters)
    )
    streams = config.reading == "streams"
    return Objective(
        lambda key: init_elmo_params(model, key, lm=True),
        elmo_loss(model, sampled=bool(config.negatives)), elmo_loss(model),
        {f"{direction}_sampled" if config.negatives else direction: 0.5 for direction in DIRECTIONS},
        (Phase(config.steps, config.batch_size, examples),),
        lambda params, length: 6.0 * (weights_of([params["encoder"][name] for name in DIRECTIONS]) + predicted),
        lambda rows: zero_state(model, rows) if streams else None, options,
    )  # fmt: skip


def objective_of(config: ConfigDict, vocab_size: int | None) -> Objective:
    """What the config's pretraining program would train, on its data's vocabulary or one of another size."""
    words = "reading" in config
    if vocab_size is None and config.data == "toyworld":
        vocab_size = config.toyworld.vocab_size
    elif vocab_size is None and config.data:
        vocab_size = tokenizer_of(corpora_of(config, Path(), ""), words=words).vocab_size
    size = vocab_size or VOCABULARY["elmo" if words else "bert"]
    if words:
        return elmo_objective(config, ElmoConfig(vocab_size=size, **config.model))
    return bert_objective(config, BertConfig(vocab_size=size, **config.model))


def step_of(
    config: ConfigDict,
    loss: Any,
    coefficients: Mapping[str, float],
    options: Mapping[str, Any],
    long_steps: int,
    axis: str | None = None,
) -> tuple[Schedule, GradientTransformation, Step]:
    """The learning rate, the optimiser, and the step, as the config names them."""
    if config.optimizer.name not in optimisation.ROW_SPARSE:
        options = {name: value for name, value in options.items() if name != "touched"}
    rate = optimisation.learning_rate(config.optimizer, config.steps, long_steps)
    method = optimisation.optimizer(config.optimizer, rate)
    step = train.make_step(loss, method, coefficients, accumulate=config.accumulate, carry_axis=2, axis=axis, **options)
    return rate, method, step
