"""One pretraining run, from its config to its report."""

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.pipeline.batches import eval_batches, train_batches
from bert_elmo_jax.data.pipeline.phases import Phases
from bert_elmo_jax.families import Family, get_family
from bert_elmo_jax.files import write_json
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.inference.run_directory import describe_run, is_run_directory
from bert_elmo_jax.runs.corpora import load_corpora, load_tokenizer_of
from bert_elmo_jax.runs.freed_memory import keep_freed_memory
from bert_elmo_jax.runs.objectives import build_step
from bert_elmo_jax.runs.start_cost import cost_kept
from bert_elmo_jax.runs.starting_weights import adopt_config, fill_missing, say
from bert_elmo_jax.runs.what_next import what_next
from bert_elmo_jax.train.devices import describe_devices
from bert_elmo_jax.train.parallel import DEVICES

# Fields that may change when a run is resumed: they affect speed and comfort, not the numbers (beyond rounding).
FREE = ("data", "workers", "mesh", "log_every", "checkpoint_every", "keep")

BEFORE = "before.json"  # the held-out figures of given weights, before the first step


def pretrain(
    config: ConfigDict, workdir: Path, *, init: str | None = None, parallel: str = "jit", program: str = "pretrain"
) -> int:
    """Start or resume the pretraining run of a directory, and return its exit status: 0, or 75 if it was stopped.

    The parameters come from the first of these that applies: the newest whole checkpoint, the checkpoint before a
    damaged one, the weights of `init`, the seed.
    """
    keep_freed_memory()
    family, workdir = get_family(config.family), Path(workdir)
    first = jax.process_index() == 0
    with train.only_process(workdir) if first else contextlib.nullcontext(), cost_kept(workdir, first):
        asked = {"program": program, "init": init, **config.to_dict()}
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE)
        train.meet("run directory")
        if jax.config.values["jax_compilation_cache_dir"] is None:  # unless JAX_COMPILATION_CACHE_DIR names another
            jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
        mesh = None if parallel == "pmap" else train.make_mesh(**config.mesh)

        # Data, model and objective.
        corpora = load_corpora(config, workdir, family.inputs)
        tokenizer = load_tokenizer_of(corpora, family.inputs)
        model, stored = start_model(family, config, init, tokenizer)
        objective = family.objective(config, model)
        params = objective.init(jax.random.key(config.seed))
        if stored is not None:
            params = fill_missing(params, stored, report=not is_run_directory(workdir))
        here = {"process": jax.process_index(), "processes": jax.process_count()}
        if family.inputs == "words":  # every part of a batch has a table of its distinct words
            here["shards"] = mesh.shape["data"] * mesh.shape["fsdp"] if mesh else jax.device_count()
        feed: Any = functools.partial(train_batches, corpora, seed=config.seed, workers=config.workers, **here)
        phases = [(phase.steps, feed(phase.examples, phase.rows)) for phase in objective.phases]
        batches: Any = phases[0][1] if family.inputs == "words" else Phases(phases)
        examples, rows = objective.phases[0].examples, config.batch_size
        held_out = functools.partial(eval_batches, corpora, examples, rows, limit=config.eval_batches, **here)

        # The step.
        rate, method, step = build_step(config, objective, axis=None if mesh else DEVICES)
        if config.optimizer.warmup > config.steps:
            say(f"the warm-up, {config.optimizer.warmup:,.0f} steps, is longer than the run: its rate is not reached")
        if first:  # only now, when everything asked for has been found possible
            train.same_run(workdir, asked, FREE)
            describe_run(workdir, model, params, tokenizer)
            say(f"{workdir}: {config.steps:,} steps of {config.batch_size:,} rows, on {describe_devices()}")
        state = train.new_state(params, method, jax.random.key(config.seed), objective.carry(rows))
        rules = (*family.sharding, *train.RULES)
        run = train.over_mesh(step, state, mesh, rules) if mesh else train.over_pmap(step, carry_axis=2)
        put: Any = run.put if mesh else dict
        means = train.make_evaluate(objective.held_out_loss, held_out, put=put, carry=objective.carry(rows))

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
                        say(f"before the first step: {', '.join(f'{name} {x:.4g}' for name, x in before.items())}")
                state, stopped = train.train(
                    state, run, batches, run=workdir, schedule=schedule_of(config), checkpoints=checkpoints,
                    evaluate=lambda state: objective.figures(means(state)), score=objective.score, size=objective.size,
                    top_speed=train.matmul_rate(model.dtype) * jax.device_count() / objective.work(
                        params, config.length
                    ),
                    extra=lambda step: {"learning_rate": float(rate(step - 1))}, report=say,
                )  # fmt: skip
        if first and stopped is None:
            page = train.write_report(workdir, [what_next(workdir, family.inputs)])
            say(f"{page}: the curves of this run, and what to do with it next")
        return train.STOPPED if stopped else 0


def start_model(
    family: Family, config: ConfigDict, init: str | None, tokenizer: Any
) -> tuple[Any, Mapping[str, Any] | None]:
    """Return the model's configuration, and the parameters of `init` if given.

    A word encoder of characters may be given data with another vocabulary: its softmax is then new.
    """
    asked = dict(config.model)
    if init is None:
        return family.config_for(tokenizer, **asked), None
    stored = read_model(init)
    if stored.kind != family.name:
        raise ValueError(f"--init={init} is not {family.called}; give one, or a config of its family")
    same = stored.tokenizer is not None and stored.tokenizer.fingerprint == tokenizer.fingerprint
    needed = family.reads_vocabulary(stored.config, ())
    if needed and not same and (stored.tokenizer is not None or family.inputs == "words"):
        raise ValueError(
            f"the data was not prepared with the vocabulary of --init={init}: prepare it again with --tokenizer={init}"
        )
    if family.inputs == "words":
        model = adopt_config(stored.config, {**asked, "vocab_size": tokenizer.vocab_size})
        return model, stored.params if same else {"encoder": stored.params["encoder"]}
    return adopt_config(stored.config, asked), stored.params


def schedule_of(config: ConfigDict) -> train.Schedule:
    """Return the intervals of a run: logging, evaluation, checkpoints."""
    return train.Schedule(
        config.steps, config.log_every, config.eval_every, config.checkpoint_every, config.stop_after_failures
    )
