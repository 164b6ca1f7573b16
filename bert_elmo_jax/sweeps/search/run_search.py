"""One start of a search: read the program's command, run trials, and keep the results up to date."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.task import task_named
from bert_elmo_jax.families import get_family
from bert_elmo_jax.runs.config_files import CONFIGS, NAMED, check_program, override, read_config, read_flags
from bert_elmo_jax.runs.pretraining import build_objective
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_scores import score_name
from bert_elmo_jax.sweeps.points import FLAGS
from bert_elmo_jax.sweeps.processes import Processes
from bert_elmo_jax.sweeps.search.results import write_results
from bert_elmo_jax.sweeps.search.space import read_space
from bert_elmo_jax.sweeps.search.study import find_study, import_optuna
from bert_elmo_jax.sweeps.search.trials import Search, run_trials
from bert_elmo_jax.sweeps.stop_signals import stop_asked


class Command(NamedTuple):
    """The command of a program: its config file, overrides of fields, other flags, and the config that they give."""

    file: str
    fields: dict[str, str]
    options: dict[str, Any]
    config: ConfigDict


def run_search(
    words: Sequence[str],
    workdir: str,
    *,
    over: str,
    program: str = "finetune",
    trials: int = 20,
    sampler: str = "bayesian",
    score: str | None = None,
    lowest: bool = False,
    end_bad: bool = True,
    seed: int = 0,
    device: str = "",
    command: str = "",
) -> int:
    """Search over the fields of a program's command, whose flags are `words`; return the exit status.

    The other arguments are the flags of `experiments.search`; `command` is what the report shows as its command.
    """
    if trials < 1:
        raise ValueError(f"--trials={trials}: expected 1 or more")
    base = read_command(program, words)
    space, score = read_space(over, base.config), score or name_score(program, base.config)
    if not lowest and any(part in score.rpartition("/")[2] for part in ("perplexity", "loss")):
        raise ValueError(f"--score={score} is better the lower it is: add --lowest")
    search = Search(program, base.file, space, score, lowest, Path(workdir), base.fields, base.options)
    import_optuna()  # an error before anything is written
    asked = {"program": program, "words": list(words), "over": over, "score": score, "lowest": lowest}
    asked |= {"sampler": sampler, "end_bad": end_bad, "seed": seed}
    with train.only_process(search.workdir):
        study = find_study(search.workdir, asked, trials)
        runner = Processes(1, [device] if device else [], search.workdir.absolute() / "compiled")
        with stop_asked() as stop:
            try:
                whole = run_trials(
                    search, study, runner, trials=trials, sampler=sampler, seed=seed, say=say, stop=stop,
                    changed=lambda: write_results(search, study, command),
                )  # fmt: skip
            finally:
                runner.close()
        if not whole:
            say("stopped; the same command continues")
            return train.STOPPED
        say(write_results(search, study, command))
        say(f"{search.workdir / 'report.html'}: all trials, each with its command")
    return 0


def read_command(program: str, words: Sequence[str]) -> Command:
    """Return what the flags of a program say; a flag's value may be a word of its own."""
    flags = {name: "true" if value is None else value for name, value in read_flags(words).items()}
    if "workdir" in flags:
        raise ValueError("behind -- there is a --workdir, but each trial has its own: give the search's before --")
    file = flags.pop("config", str(CONFIGS / "finetune.py") if program == "finetune" else None)
    if file is None:
        raise ValueError(f"behind -- there is no --config=…, which {program} needs")
    config, _ = read_config(file)
    check_program(file, config, program)
    fields, options = {}, {}
    for name, text in flags.items():
        if name.startswith("noconfig."):
            fields[name.removeprefix("noconfig.")] = "false"
        elif name.startswith("config.") or (program == "finetune" and name in NAMED):
            fields[name.removeprefix("config.")] = text
        elif name in FLAGS[program] and name != "seeds":
            options[name] = text
        else:
            raise ValueError(f"behind -- there is --{name}, which a trial of {program} does not take")
    override(config, [f"{name}={text}" for name, text in fields.items()])
    return Command(file, fields, options, config)


def name_score(program: str, config: ConfigDict) -> str:
    """Return the figure that selects the program's best model."""
    if program == "pretrain":
        return build_objective(config, get_family(config.family).vocab_size)[1].score
    if not config.task:
        raise ValueError("behind -- there is no --task=…, which finetune needs")
    columns = {name: config[name] or None for name in ("text", "pair", "label")}
    return f"dev/{score_name(task_named(config.task, **columns, file=config.train))}"
