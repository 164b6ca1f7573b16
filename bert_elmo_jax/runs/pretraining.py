"""One pretraining run, from its config to its report."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import optax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from bert_elmo_jax import optim, train
from bert_elmo_jax.addresses import local_copy
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.data.pipeline.batches import check_rows, eval_batches, train_batches
from bert_elmo_jax.data.pipeline.feeds import check_corpora
from bert_elmo_jax.data.pipeline.windows import check_documents
from bert_elmo_jax.families import Family, get_family
from bert_elmo_jax.families.family import Inputs, Objective, Phase
from bert_elmo_jax.files import write_json
from bert_elmo_jax.heads.sentence_head import SentenceHead
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import describe_run, is_run_directory
from bert_elmo_jax.nn.int8_kernels import refuse_int8
from bert_elmo_jax.optim import Schedule
from bert_elmo_jax.programs import show_program
from bert_elmo_jax.report.language import choose_language
from bert_elmo_jax.runs.data_facts import DATA, check_same_corpora, describe_corpora
from bert_elmo_jax.runs.initial_state import (
    ROW_SPARSE,
    adopt_config,
    build_optimizer,
    build_schedule,
    fill_missing,
    remark_warmup,
)
from bert_elmo_jax.runs.pretraining_end import finish_pretraining
from bert_elmo_jax.runs.recomputation import asks_for_remat, check_remat, choose_remat
from bert_elmo_jax.runs.start_run import read_clock, say
from bert_elmo_jax.runs.teacher import add_teacher, has_teacher, read_teacher, record_teacher, start_teacher
from bert_elmo_jax.runs.trackers import check_trackers
from bert_elmo_jax.runs.train_run import PageOptions, Run, SharedBy, lock_run, place_run, start_config, train_run
from bert_elmo_jax.runs.trainable import Feed, Trainable
from bert_elmo_jax.train.parallel import Rules
from bert_elmo_jax.train.step import Step

# Fields that may change when a run is resumed: they affect speed and comfort, not the numbers (beyond rounding). Data
# and teacher may have moved; others than before are refused. With `average`, `checkpoint_every` must stay.
FREE = ("data", "teacher", "workers", "mesh", "log_every", "checkpoint_every", "keep")
CARRY_ROWS = 2  # the axis of the rows in the state that passes from batch to batch


def pretrain(
    config: ConfigDict,
    workdir: Path,
    *,
    init: str | None = None,
    parallel: SharedBy = "jit",
    program: str = "pretrain",
    origin: str | None = None,
    language: str | None = None,
    command: str = "",
    track: Sequence[str] = (),
) -> int:
    """Start or resume the pretraining run of a directory, and return its exit status: 0, or 75 if it was stopped.

    `origin` is the model that `init` is a copy of, if it is one. The report is in a `language`, en or ko, by default
    the locale's, and shows the `command`. `track` names trackers: mlflow, wandb. See
    `train_run` for the order of events.
    """
    began = read_clock()
    page = PageOptions(choose_language(language), command)
    check_trackers(track)
    config = start_config(config)
    check_remat(config, parallel)
    train.check_average(config.get("average"), config.keep)
    family = get_family(config.family)
    if init is None:  # otherwise the sizes come from the given weights
        # They raise before the data are read, or generated.
        choose_optimizer(config, build_objective(config, family.inputs.vocab_size)[1])
    if jax.process_index() == 0 and program == "pretrain":  # the folder of an adaptation has its texts
        train.refuse_other_files(workdir)
    identity = {"program": program, "init": origin or init, **config.to_dict()}
    # Fields that the first runs of a family did not have, with the values that they meant.
    added = {f"model.{name}": getattr(family.config, name) for name in getattr(family.config, "ADDED", ())}
    averages = (config.get("average") or 1) > 1  # the checkpoints of the mean then depend on their schedule
    free = tuple(name for name in FREE if not (averages and name == "checkpoint_every"))
    run = Run(Path(workdir), identity, free, added, page, tuple(track))
    with lock_run(run, began):
        placement = place_run(config, parallel)
        stopped = train_run(run, placement, build_pretraining(config, run.workdir, init, placement))
    return train.STOPPED if stopped else 0


def build_pretraining(config: ConfigDict, workdir: Path, init: str | None, placement: train.Placement) -> Trainable:
    """Read the data of a config, and return the training of its objective from the weights of `init`, or the seed."""
    family, rows = get_family(config.family), config.batch_size
    corpora = load_corpora(config, workdir, family.inputs)
    for corpus in check_corpora(corpora):
        check_documents(open_store(corpus, "heldout"))  # before the training, which ends with an evaluation
    corpora_facts = describe_corpora(corpora)
    check_same_corpora(workdir, corpora_facts)
    tokenizer = load_corpus_tokenizer(corpora, family.inputs)
    model, stored, sentences = start_model(family, config, init, tokenizer)
    teacher = start_teacher(config, workdir, init, tokenizer)

    def build(model: Any) -> Objective:
        objective = family.objective(config, model)
        return objective if teacher is None else add_teacher(objective, config, family, model, teacher)

    if asks_for_remat(config):
        rules = (*family.sharding, *train.RULES)
        model = choose_remat(model, lambda model: count_bytes(config, build(model), placement.mesh, rules))
    objective = build(model)
    apart = bool(objective.step.get("shared") and family.inputs.split(placement.parts))
    check_phases(objective.phases, config.accumulate, placement, apart)
    check_rows(corpora, objective.held_out_examples, rows)
    params = objective.init(jax.random.key(config.seed))
    if stored is not None:
        report = not is_run_directory(workdir)
        params = fill_missing(params, stored, report)
        if sentences is not None and sentences.shapes():
            sentences = None
            if report:
                say(
                    f"left out: the dense layers of --init={init}, which pretraining does not train, and with them the "
                    "pooling and prompts of its sentence vectors"
                )
    reader = {"process": jax.process_index(), "processes": jax.process_count()} | family.inputs.split(placement.parts)
    batches_of: Any = functools.partial(train_batches, corpora, seed=config.seed, workers=config.workers, **reader)
    phases = [(phase.steps, batches_of(phase.examples, phase.rows)) for phase in objective.phases]
    batches = family.inputs.join_phases(phases)
    held_out = functools.partial(
        eval_batches, corpora, objective.held_out_examples, rows, limit=config.eval_batches, **reader
    )
    rate, method = choose_optimizer(config, objective)

    def describe(workdir: Path) -> None:
        describe_run(workdir, model, params, tokenizer, sentences=sentences)
        write_json(workdir / DATA, corpora_facts)
        if teacher is not None:
            record_teacher(workdir, teacher, params, config.init_from_teacher)

    def open_feed(workdir: Path, parallel: train.Parallel) -> Feed:
        means = train.make_evaluate(
            objective.held_out_loss, held_out, put=parallel.put_held_out, carry=objective.carry(rows)
        )
        return Feed(batches, lambda state: objective.figures(means(state)))

    def top_speed() -> float:
        return train.matmul_rate(model.dtype) * jax.device_count() / objective.work(params, config.length)

    return Trainable(
        summary=f"{config.steps:,} steps of {rows:,} rows",
        params=params,
        seed=config.seed,
        loss=objective.loss,
        coefficients=read_coefficients(config, objective.coefficients),
        optimizer=method,
        rate=rate,
        schedule=train.Schedule(
            config.steps, config.log_every, config.eval_every, config.checkpoint_every, config.stop_after_failures
        ),
        score=objective.score,
        size=objective.size,
        describe=describe,
        open=open_feed,
        finish=functools.partial(finish_pretraining, config, family, objective.score, corpora_facts),
        report_holds="the curves of this run, and what to do with it next",
        step_options=step_options(config, objective),
        carry=objective.carry(rows),
        carry_axis=CARRY_ROWS,
        constants=objective.constants,
        sharding=family.sharding,
        keep=config.keep,
        evaluate_first=init is not None,
        top_speed=top_speed,
        remarks=remark_warmup(config.optimizer, config.steps),
    )


def check_phases(phases: Sequence[Phase], accumulate: int, placement: train.Placement, apart: bool = False) -> None:
    """Raise ValueError if the rows of a phase cannot be split into equal parts, before the first phase begins.

    `apart` is True if each device has a table of the distinct words of its rows, which each part has to belong to.
    """
    parts = placement.parts
    apart = apart or placement.axis is not None  # pmap's devices split their rows
    unit = parts * accumulate if apart else math.lcm(parts, accumulate)
    for number, phase in enumerate(phases, start=1):
        if phase.rows % unit:
            raise ValueError(
                f"phase {number} of {len(phases)} has batches of {phase.rows} rows, which {parts} "
                f"device{'s' if parts > 1 else ''} cannot share in config.accumulate={accumulate} parts: use multiples "
                f"of {unit} for config.batch_size, batch_warmup.rows and long_batch_size"
            )


def load_corpora(config: ConfigDict, workdir: Path, inputs: Inputs) -> dict[str, float]:
    """Return the folders of a config's corpora with their weights; `toyworld` is generated in the run directory.

    The configs of models that translate have a `target_length`; their corpora are pairs.
    """
    if config.data == "toyworld":
        generate = toy_pairs if "target_length" in config else toy_corpus
        return {str(generate(workdir / "toyworld", tokenizer=inputs.toy_tokenizer, **config.toyworld)): 1.0}
    if not config.data:
        raise ValueError("--config.data=… is needed: a folder of prepare_data, several as a=3,b=1, or toyworld")
    pairs = [part.rpartition("=") if "=" in part else (part, "=", "1") for part in str(config.data).split(",")]
    try:
        return {local_copy(folder): float(weight) for folder, _, weight in pairs}
    except ValueError:
        raise ValueError(f"config.data={config.data!r}: expected folders with weights, such as wiki=3,news=1") from None


def load_corpus_tokenizer(corpora: Mapping[str, float], inputs: Inputs) -> Any:
    """Return the tokenizer or word vocabulary of the first corpus."""
    store = open_store(next(iter(corpora)))
    return inputs.load_corpus_tokenizer(store.folder, store.manifest["tokenizer"]["kind"])


def start_model(
    family: Family, config: ConfigDict, init: str | None, tokenizer: Any
) -> tuple[Any, Mapping[str, Any] | None, SentenceHead | None]:
    """Return the model's configuration, and the parameters and the sentence head of `init`.

    With another vocabulary, the parameters lack the softmax.
    """
    if init is None:
        return family.config_for(tokenizer, **config.model), None, None
    stored = read_model(init)
    refuse_int8(stored.params, f"--init={init}")
    if stored.kind != family.name:
        raise ValueError(f"--init={init} is not {family.called}; give one, or a config of its family")
    same = stored.tokenizer is not None and stored.tokenizer.fingerprint == tokenizer.fingerprint
    inputs, needed = family.inputs, family.inputs.reads_vocabulary(stored.config, ())
    if needed and not same and inputs.needs_same_vocabulary(stored.tokenizer):
        again = f"prepare it again with --tokenizer={init}"
        if Path(init).is_file():  # prepare_data reads folders
            convert = f"{show_program('convert')} --from={init} --to=RUN --to_format=run"
            again = f"write a run with `{convert}`, and prepare the data again with --tokenizer=RUN"
        raise ValueError(f"the data was not prepared with the vocabulary of --init={init}: {again}")
    size = getattr(stored.config, "vocab_size", None)
    if needed and stored.tokenizer is None and size is not None and tokenizer.vocab_size > size:
        raise ValueError(
            f"--init={init} has no vocabulary, and embeddings for {size:,} pieces, but the data was prepared with "
            f"{tokenizer.vocab_size:,}: prepare it with the model's own tokenizer"
        )
    if same and size is not None and tokenizer.vocab_size > size:  # only the mask may be missing, see check_sizes
        raise ValueError(
            f"--init={init} has no embedding for {tokenizer.tokens[size]}, which pretraining puts into the texts; "
            f"begin from a model that has one"
        )
    params, fields = inputs.begin_from(stored.params, tokenizer, same)
    return adopt_config(stored.config, {**config.model, **fields}), params, stored.sentences


def build_objective(config: ConfigDict, vocab_size: int | None, *, teacher: bool = False) -> tuple[Family, Objective]:
    """Return family and objective of a config; the vocabulary's size is by default the data's or the released one.

    With `teacher`, the teacher of a config that has one is read, and its terms are added.
    """
    family = get_family(config.family)
    if vocab_size is None and config.data == "toyworld":
        vocab_size = config.toyworld.vocab_size
    elif vocab_size is None and config.data:
        corpora = load_corpora(config, Path(), family.inputs)
        vocab_size = load_corpus_tokenizer(corpora, family.inputs).vocab_size
    model = family.config(vocab_size=vocab_size or family.inputs.vocab_size, **config.model)
    objective = family.objective(config, model)
    if teacher and has_teacher(config):
        objective = add_teacher(objective, config, family, model, read_teacher(config.teacher))
    return family, objective


def list_figures(config: ConfigDict) -> list[str]:
    """Return the names of the held-out figures of a run, from shapes alone."""
    _, objective = build_objective(config, get_family(config.family).inputs.vocab_size)
    rows = config.batch_size
    shapes = objective.held_out_examples.shapes(rows)
    batch = {name: jax.ShapeDtypeStruct(*shape) for name, shape in shapes.items()}
    params = jax.eval_shape(objective.init, jax.random.key(0))
    terms, metrics, _ = jax.eval_shape(
        lambda params, batch: objective.held_out_loss(params, batch, None, objective.carry(rows)), params, batch
    )
    return [*objective.figures(dict.fromkeys([*terms, *metrics], 1.0))]


def choose_optimizer(config: ConfigDict, objective: Objective) -> tuple[Schedule, optax.GradientTransformation]:
    """Return the learning rate and the optimizer of a config."""
    rate = build_schedule(config.optimizer, config.steps, objective.long_steps, objective.width)
    method = build_optimizer(config.optimizer, rate)
    if (config.get("layer_decay") or 1) != 1:
        method = optax.chain(method, optim.scale_by_depth(config.layer_decay, get_family(config.family).depth_of))
    return rate, optim.freeze(method, objective.frozen) if objective.frozen else method


def step_options(config: ConfigDict, objective: Objective) -> dict[str, Any]:
    """Return further arguments of `train.make_step`; only some optimizers leave the untouched rows of tables alone."""
    options = {name: value for name, value in objective.step.items() if name != "touched"}
    if config.optimizer.name in ROW_SPARSE:
        options = dict(objective.step)
    return {"accumulate": config.accumulate, **options}


def build_step(config: ConfigDict, objective: Objective) -> tuple[Schedule, optax.GradientTransformation, Step]:
    """Return the learning rate, the optimizer and the training step of a config, for plans and tests."""
    rate, method = choose_optimizer(config, objective)
    coefficients = read_coefficients(config, objective.coefficients)
    options = step_options(config, objective)
    return rate, method, train.make_step(objective.loss, method, coefficients, carry_axis=CARRY_ROWS, **options)


def build_inputs(
    config: ConfigDict, objective: Objective, phase: Phase, rows: int, mesh: Mesh
) -> tuple[Step, Any, dict[str, jax.ShapeDtypeStruct]]:
    """Return the step of a phase, and the shapes of a state and of a batch of so many rows."""
    _, method, step = build_step(config, objective)
    shapes = phase.examples.shapes(rows, mesh.shape["data"] * mesh.shape["fsdp"])
    state = jax.eval_shape(
        lambda key: train.new_state(objective.init(key), method, key, objective.carry(rows)), jax.random.key(0)
    )
    return step, state, {name: jax.ShapeDtypeStruct(*shape) for name, shape in shapes.items()}


def count_bytes(config: ConfigDict, objective: Objective, mesh: Mesh | None, rules: Rules) -> float:
    """Return the bytes of a device's memory that a training step needs; infinity if its compiler cannot fit it in."""
    from bert_elmo_jax.train.ahead_of_time import TooLarge, compile_step  # other runs compile nothing ahead

    assert mesh is not None  # `check_remat` refuses pmap
    constants = jax.eval_shape(lambda: dict(objective.constants)) if objective.constants else {}
    try:
        return max(
            compile_step(*build_inputs(config, objective, phase, phase.rows, mesh), mesh, rules, constants).total
            for phase in objective.phases
        )
    except TooLarge:
        return math.inf


def read_coefficients(config: ConfigDict, default: Mapping[str, float]) -> dict[str, float]:
    """Return the coefficient of each term of the loss; a sampled term shares it with the term that it estimates.

    >>> read_coefficients(ConfigDict({"coefficients": {"mlm": 1.0, "nsp": 0.5}}), {"mlm": 1.0, "nsp": 1.0})
    {'mlm': 1.0, 'nsp': 0.5}
    >>> read_coefficients(ConfigDict({"coefficients": {"mlm": 1.0, "npm": 0.5}}), {"mlm": 1.0, "nsp": 1.0})
    Traceback (most recent call last):
    ValueError: config.coefficients has mlm, npm, but the loss has the terms mlm, nsp: give a number for each term
    """
    values = config.get("coefficients")
    if not values:
        return dict(default)
    names = {term: term if term in values else term.removesuffix("_sampled") for term in default}
    if not set(names.values()) <= set(values):
        terms = f"the loss has the terms {', '.join(names.values())}: give a number for each term"
        raise ValueError(f"config.coefficients has {', '.join(values)}, but {terms}")
    return {term: float(values[name]) for term, name in names.items()}
