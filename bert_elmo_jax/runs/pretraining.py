"""What the two pretraining programs share: the run directory, the devices, the optimiser, the way through a run."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from bert_elmo_jax import train
from bert_elmo_jax.inference.run_directory import describe_run
from bert_elmo_jax.files import write_json
from bert_elmo_jax.families.elmo.config import ElmoConfig
from bert_elmo_jax.train.parallel import DEVICES
from experiments.command_line import start as command_line
from experiments.command_line.endings import endings
from bert_elmo_jax.runs.freed_memory import keep_freed_memory
from bert_elmo_jax.runs.objectives import step_of
from bert_elmo_jax.runs.start_cost import cost_kept
from bert_elmo_jax.runs.starting_weights import devices, say
from bert_elmo_jax.runs.what_next import what_next

FLAGS = flags.FLAGS

# What may be another when a run goes on: it changes speed and comfort, not the numbers (beyond rounding).
FREE = ("data", "workers", "mesh", "log_every", "checkpoint_every", "keep")

BEFORE = "before.json"  # the held-out figures of given weights, before the first step


class Task(NamedTuple):
    """What is BERT's or ELMo's own of a run."""

    model: Any  # its configuration
    params: Any
    tokenizer: Any
    loss: Any
    held_out_loss: Any
    coefficients: Mapping[str, float]
    batches: Any
    held_out: Callable[[], Any]
    figures: Callable[[Mapping[str, float]], dict[str, float]]  # what to call the held-out means
    score: str  # the figure by which the best checkpoint is kept
    size: Callable[[Mapping[str, Any]], int]  # tokens of a batch
    work: float  # floating-point operations that a step needs for one of them
    carry: Any = None
    held_out_carry: Any = None
    long_steps: int = 0  # the last so many steps are BERT's second phase
    step: Mapping[str, Any] = {}


TaskOf = Callable[[ConfigDict, str | None, Path, Any], Task]  # of config, init, run directory, mesh


def pretrain(
    config: ConfigDict, workdir: Path, init: str | None, task_of: TaskOf, program: str, pmap: bool = False
) -> int:
    """One start of a run, whatever it finds in the run directory; the exit status."""
    first = jax.process_index() == 0
    with train.only_process(workdir) if first else contextlib.nullcontext(), cost_kept(workdir, first):
        asked = {"program": program, "init": init, **config.to_dict()}
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE)
        train.meet("run directory")
        if jax.config.values["jax_compilation_cache_dir"] is None:  # unless JAX_COMPILATION_CACHE_DIR names another
            jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
        mesh = None if pmap else train.make_mesh(**config.mesh)
        task = task_of(config, init, workdir, mesh)
        rate, method, step = step_of(
            config, task.loss, task.coefficients, task.step, task.long_steps, axis=None if mesh else DEVICES
        )
        if config.optimizer.warmup > config.steps:
            say(f"the warm-up, {config.optimizer.warmup:,.0f} steps, is longer than the run: its rate is not reached")
        if first:  # only now, when all that was asked has been found possible
            train.same_run(workdir, asked, FREE)
            describe_run(workdir, task.model, task.params, task.tokenizer)
            say(f"{workdir}: {config.steps:,} steps of {config.batch_size:,} rows, on {devices()}")
        # Four beginnings, the first that applies: the newest whole checkpoint, the one before a damaged one, the
        # weights of --init, and numbers drawn from the seed (the last two are in task.params).
        state = train.new_state(task.params, method, jax.random.key(config.seed), task.carry)
        parallel = train.over_mesh(step, state, mesh) if mesh else train.over_pmap(step, carry_axis=2)
        put: Any = parallel.put if mesh else dict
        means = train.make_evaluate(task.held_out_loss, task.held_out, put=put, carry=task.held_out_carry)
        with train.Checkpoints(workdir, keep=config.keep) as checkpoints:
            if first and (halves := checkpoints.discard_unfinished()):
                say(f"removed what was half written of step {', '.join(map(str, halves))}")
            state, found = train.restore(checkpoints, state, parallel)
            if found is not None:
                for line in found.damaged:
                    say(line)
                task.batches.restore(found.facts["position"])
                say(f"going on from step {found.step:,}")
            with contextlib.closing(task.batches):
                if found is None and init is not None:
                    before = task.figures(means(parallel.gather(state)))
                    if first:
                        write_json(workdir / BEFORE, before)
                        say(f"before the first step: {', '.join(f'{name} {x:.4g}' for name, x in before.items())}")
                state, stopped = train.train(
                    state, parallel, task.batches, run=workdir, schedule=schedule_of(config), checkpoints=checkpoints,
                    evaluate=lambda state: task.figures(means(state)), score=task.score, size=task.size,
                    top_speed=train.matmul_rate(task.model.dtype) * jax.device_count() / task.work,
                    extra=lambda step: {"learning_rate": float(rate(step - 1))}, report=say,
                )  # fmt: skip
        if first and stopped is None:
            family = "elmo" if isinstance(task.model, ElmoConfig) else "bert"
            page = train.write_report(workdir, [what_next(workdir, family)])
            say(f"{page}: the curves of this run, and what to do with it next")
        return train.STOPPED if stopped else 0


def start(task_of: TaskOf, program: str) -> None:
    """The program: every expected trouble ends in one message and a status of its own."""
    config_flags.DEFINE_config_file("config", None, "A file of experiments/configs.")
    flags.DEFINE_string("workdir", None, "The run directory: made where it is missing, gone on with where it is there.")
    flags.DEFINE_string("init", None, "Weights to begin with: anything `load` understands.")
    flags.DEFINE_enum("parallel", "jit", ["jit", "pmap"], "How several devices share the work.")
    flags.DEFINE_string("coordinator", None, "For several processes: host:port of the first, or auto on a TPU pod.")
    flags.DEFINE_integer("processes", None, "With --coordinator=host:port, how many processes there are.")
    flags.DEFINE_integer("process", None, "With --coordinator=host:port, the number of this one, from 0.")

    def main(argv: list[str]) -> None:
        stopped = "stopped; the same command goes on from the last checkpoint"
        with endings(program, argv, "--config=… --workdir=…", stopped):
            sys.exit(run(task_of, program))

    command_line.start(main, program, {"config": "The run", "parallel": "Several devices, several hosts"})


def run(task_of: TaskOf, program: str) -> int:
    """What the flags ask for; the exit status."""
    if not FLAGS.config or not FLAGS.workdir:
        raise ValueError("--config=experiments/configs/….py and --workdir=… are needed")
    if FLAGS.coordinator and FLAGS.parallel == "pmap":
        raise ValueError("--parallel=pmap is for the devices of one process; use --parallel=jit with --coordinator")
    if FLAGS.coordinator:
        given = {} if FLAGS.coordinator == "auto" else {"coordinator_address": FLAGS.coordinator}
        jax.distributed.initialize(**given, num_processes=FLAGS.processes, process_id=FLAGS.process)
    keep_freed_memory()
    return pretrain(FLAGS.config, Path(FLAGS.workdir), FLAGS.init, task_of, program, FLAGS.parallel == "pmap")


def schedule_of(config: ConfigDict) -> train.Schedule:
    """Every how many steps what is done."""
    return train.Schedule(
        config.steps, config.log_every, config.eval_every, config.checkpoint_every, config.stop_after_failures
    )
