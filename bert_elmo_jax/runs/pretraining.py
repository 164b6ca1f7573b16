"""One pretraining run, from its config to its report."""

import contextlib
import dataclasses
import functools
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import optax
from ml_collections import ConfigDict

from bert_elmo_jax import optim, train
from bert_elmo_jax.compilation_cache import share_compiled
from bert_elmo_jax.data.corpora.store import open_store
from bert_elmo_jax.data.corpora.toy_corpus import toy_corpus, toy_pairs
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.families import Family, get_family
from bert_elmo_jax.families.family import Inputs, Objective
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import describe_run, is_run_directory
from bert_elmo_jax.optim import Schedule
from bert_elmo_jax.runs.data_facts import DATA, describe_corpora, draw_data
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.initial_state import (
    ROW_SPARSE,
    adopt_config,
    apply_compute,
    build_optimizer,
    build_schedule,
    fill_missing,
    remark_warmup,
)
from bert_elmo_jax.runs.start_run import cost_kept, keep_freed_memory, say
from bert_elmo_jax.runs.teacher import add_teacher, has_teacher, read_teacher, record_teacher, start_teacher
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.parallel import DEVICES
from bert_elmo_jax.train.step import Step

# Fields that may change when a run is resumed: they affect speed and comfort, not the numbers (beyond rounding). Data
# and teacher may have moved; others than before are refused.
FREE = ("data", "teacher", "workers", "mesh", "log_every", "checkpoint_every", "keep")
BEFORE = "before.json"  # the held-out figures of given weights, before the first step


def pretrain(
    config: ConfigDict,
    workdir: Path,
    *,
    init: str | None = None,
    parallel: str = "jit",
    program: str = "pretrain",
    origin: str | None = None,
) -> int:
    """Start or resume the pretraining run of a directory, and return its exit status: 0, or 75 if it was stopped.

    The parameters come from the first of these that applies: the newest whole checkpoint, the checkpoint before a
    damaged one, the weights of `init`, the seed. `origin` is the model that `init` is a copy of, if it is one.
    """
    check_fields(config)
    keep_freed_memory()
    config = apply_compute(config)
    train.check_average(config.get("average"), config.keep)
    family, workdir = get_family(config.family), Path(workdir)
    if init is None:  # otherwise the sizes come from the given weights
        build_objective(config, family.inputs.vocab_size)  # raises before the data are read, or generated
    first = jax.process_index() == 0
    if first and program == "pretrain":  # the folder of an adaptation has its texts
        train.refuse_other_files(workdir)
    with train.only_process(workdir) if first else contextlib.nullcontext(), cost_kept(workdir, first):
        asked = {"program": program, "init": origin or init, **config.to_dict()}
        added = added_fields(family)
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE, added)
        train.meet("run directory")
        share_compiled()
        mesh = None if parallel == "pmap" else train.make_mesh(**config.mesh)

        # Data, model and objective.
        corpora = load_corpora(config, workdir, family.inputs)
        described = describe_corpora(corpora)
        tokenizer = load_corpus_tokenizer(corpora, family.inputs)
        model, stored = start_model(family, config, init, tokenizer)
        objective = family.objective(config, model)
        teacher = start_teacher(config, workdir, init, tokenizer)
        if teacher is not None:
            objective = add_teacher(objective, config, family, model, teacher)
        params = objective.init(jax.random.key(config.seed))
        if stored is not None:
            params = fill_missing(params, stored, report=not is_run_directory(workdir))
        here = {"process": jax.process_index(), "processes": jax.process_count()}
        here |= family.inputs.split(mesh.shape["data"] * mesh.shape["fsdp"] if mesh else jax.device_count())
        feed: Any = functools.partial(train_batches, corpora, seed=config.seed, workers=config.workers, **here)
        phases = [(phase.steps, feed(phase.examples, phase.rows)) for phase in objective.phases]
        batches: Any = family.inputs.join_phases(phases)
        examples, rows = objective.held_out_examples, config.batch_size
        held_out = functools.partial(eval_batches, corpora, examples, rows, limit=config.eval_batches, **here)

        # The step.
        rate, method, step = build_step(config, objective, axis=None if mesh else DEVICES)
        remarks = remark_warmup(config.optimizer, config.steps)
        for remark in remarks:
            say(remark)
        if first:  # after all checks: a refused run leaves no run.json
            train.same_run(workdir, asked, FREE, added)
            describe_run(workdir, model, params, tokenizer)
            write_json(workdir / DATA, described)
            if teacher is not None:
                record_teacher(workdir, teacher, params, config.init_from_teacher)
            say(f"{workdir}: {config.steps:,} steps of {config.batch_size:,} rows, on {describe_devices()}")
        state = train.new_state(params, method, jax.random.key(config.seed), objective.carry(rows))
        rules = (*family.sharding, *train.RULES)
        kept = objective.constants
        run = train.over_mesh(step, state, mesh, rules, kept) if mesh else train.over_pmap(step, 2, kept)
        alone = {} if mesh else jax.device_put(dict(kept))  # for evaluations, which use one device under pmap
        put: Any = run.put if mesh else lambda batch: {**batch, **alone}
        means = train.make_evaluate(objective.held_out_loss, held_out, put=put, carry=objective.carry(rows))

        # The loop.
        with train.Checkpoints(workdir, keep=config.keep) as checkpoints:
            if first and (halves := checkpoints.discard_unfinished()):
                say(f"removed the unfinished checkpoint of step {', '.join(map(str, halves))}")
            state, found = train.restore(checkpoints, state, run)
            if found is not None:
                for line in found.damaged:
                    say(line)
                batches.restore(found.facts["position"])
                say(f"resuming from step {found.step:,}")
            with contextlib.closing(batches):
                if found is None and init is not None:
                    before = objective.figures(means(run.gather(state)))
                    if first:
                        write_json(workdir / BEFORE, before)
                        say(f"before the first step: {show_figures(before)}")
                peak = train.matmul_rate(model.dtype) * jax.device_count()
                state, stopped = train.train(
                    state, run, batches, run=workdir, checkpoints=checkpoints,
                    schedule=train.Schedule(
                        config.steps, config.log_every, config.eval_every, config.checkpoint_every,
                        config.stop_after_failures,
                    ),
                    evaluate=lambda state: objective.figures(means(state)), score=objective.score, size=objective.size,
                    top_speed=peak / objective.work(params, config.length),
                    extra=jax.jit(lambda step: {"learning_rate": rate(step - 1)}), report=say,
                )  # fmt: skip

        # The mean of the last checkpoints, and the report.
        sections = [suggest_next(workdir, family.inputs), draw_data(described)]
        if stopped is None and (config.get("average") or 1) > 1:
            ended = run.gather(state)
            facts = train.write_average(
                workdir, config.average, lambda mean: objective.figures(means(dataclasses.replace(ended, params=mean)))
            )
            sections.insert(0, describe_average(facts))
            if first:
                say(f"the mean of the last {len(facts['steps'])} checkpoints: {show_figures(facts['figures'])}")
        if stopped is None and config.get("translations"):
            sections = [*add_translations(workdir, config, corpora), *sections]
        if first and stopped is None:
            page = train.write_report(workdir, sections, remarks)
            say(f"{page}: the curves of this run, and what to do with it next")
        return train.STOPPED if stopped else 0


def added_fields(family: Family) -> dict[str, Any]:
    """Return the fields of a config that the first runs of a family did not have, with the values that they meant."""
    added = getattr(family.config, "ADDED", ())
    return {f"model.{name}": getattr(family.config, name) for name in added}


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
        return {folder: float(weight) for folder, _, weight in pairs}
    except ValueError:
        raise ValueError(f"config.data={config.data!r}: expected folders with weights, such as wiki=3,news=1") from None


def load_corpus_tokenizer(corpora: Mapping[str, float], inputs: Inputs) -> Any:
    """Return the tokenizer or word vocabulary of the first corpus."""
    store = open_store(next(iter(corpora)))
    return inputs.load_corpus_tokenizer(store.folder, store.manifest["tokenizer"]["kind"])


def start_model(
    family: Family, config: ConfigDict, init: str | None, tokenizer: Any
) -> tuple[Any, Mapping[str, Any] | None]:
    """Return the model's configuration, and the parameters of `init`; with another vocabulary without its softmax."""
    asked = dict(config.model)
    if init is None:
        return family.config_for(tokenizer, **asked), None
    stored = read_model(init)
    if stored.kind != family.name:
        raise ValueError(f"--init={init} is not {family.called}; give one, or a config of its family")
    same = stored.tokenizer is not None and stored.tokenizer.fingerprint == tokenizer.fingerprint
    inputs, needed = family.inputs, family.inputs.reads_vocabulary(stored.config, ())
    if needed and not same and inputs.needs_same_vocabulary(stored.tokenizer):
        raise ValueError(
            f"the data was not prepared with the vocabulary of --init={init}: prepare it again with --tokenizer={init}"
        )
    params, fields = inputs.begin_from(stored.params, tokenizer, same)
    return adopt_config(stored.config, {**asked, **fields}), params


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


def build_step(
    config: ConfigDict, objective: Objective, axis: str | None = None
) -> tuple[Schedule, optax.GradientTransformation, Step]:
    """Return the learning rate, the optimizer and the training step of a config; `axis` is the axis of `pmap`."""
    options: Mapping[str, Any] = objective.step
    if config.optimizer.name not in ROW_SPARSE:
        options = {name: value for name, value in options.items() if name != "touched"}
    rate = build_schedule(config.optimizer, config.steps, objective.long_steps, objective.width)
    method = build_optimizer(config.optimizer, rate)
    if (config.get("layer_decay") or 1) != 1:
        method = optax.chain(method, optim.scale_by_depth(config.layer_decay, get_family(config.family).depth_of))
    if objective.frozen:
        method = optim.freeze(method, objective.frozen)
    step = train.make_step(
        objective.loss, method, read_coefficients(config, objective.coefficients), accumulate=config.accumulate,
        carry_axis=2, axis=axis, **options,
    )  # fmt: skip
    return rate, method, step


def read_coefficients(config: ConfigDict, default: Mapping[str, float]) -> dict[str, float]:
    """Return the coefficient of each term of the loss; a sampled term shares it with the term that it estimates."""
    given = config.get("coefficients")
    if not given:
        return dict(default)
    names = {term: term if term in given else term.removesuffix("_sampled") for term in default}
    if not set(names.values()) <= set(given):
        terms = f"the loss has the terms {', '.join(names.values())}: give a number for each term"
        raise ValueError(f"config.coefficients has {', '.join(given)}, but {terms}")
    return {term: float(given[name]) for term, name in names.items()}


def show_figures(figures: Mapping[str, float]) -> str:
    """Return figures as text.

    >>> show_figures({"held_out/accuracy": 0.98765})
    'held_out/accuracy 0.9877'
    """
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())


def add_translations(run: Path, config: ConfigDict, corpora: Mapping[str, float]) -> list[tuple[str, str]]:
    """Translate held-out texts, say and write their scores, and return their section of the report, if any.

    All processes of a run translate, because they read the checkpoint together; the first one writes.
    """
    from bert_elmo_jax.runs.translation_scores import describe_translations, score_held_out, translate_held_out

    texts = translate_held_out(run, config, corpora)
    if texts is None or jax.process_index() > 0:
        return []
    figures = score_held_out(run, config, texts)
    say(f"{len(texts.found):,} held-out texts: {show_figures(figures)}")
    return [describe_translations(texts, figures)]


def describe_average(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return a section of the report, title and HTML: the held-out figures of the mean of the last checkpoints.

    >>> describe_average({"steps": [90, 100], "figures": {"held_out/accuracy": 0.98765}})[1]
    '<p>held_out/accuracy 0.9877. The mean of the checkpoints of steps 90, 100, which load reads.</p>'
    """
    figures = show_figures(facts["figures"])
    steps = ", ".join(map(str, facts["steps"]))
    text = f"{figures}. The mean of the checkpoints of steps {steps}, which load reads."
    return "The mean of the last checkpoints", f"<p>{html.escape(text)}</p>"


def suggest_next(run: Path, inputs: Inputs) -> tuple[str, str]:
    """Return a section of the report, title and HTML: commands that use the pretrained model."""
    steps = inputs.next_steps(run)
    return "What next", "".join(f"<p>{title}:</p><pre>{html.escape(code)}</pre>" for title, code in steps)
