"""One start of a search: read the program's command, run trials, and keep the results up to date."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert_elmo_jax import train
from bert_elmo_jax.data.tasks.task import Task, task_named
from bert_elmo_jax.did_you_mean import did_you_mean
from bert_elmo_jax.families import get_family
from bert_elmo_jax.files import write_text
from bert_elmo_jax.inference.read_model import read_model
from bert_elmo_jax.report.figures import Lines
from bert_elmo_jax.report.language import Language, choose_language, translator
from bert_elmo_jax.report.page import draw_code, draw_details, draw_figures, draw_table, write_page
from bert_elmo_jax.runs.config_files import NAMED, check_program, override, read_config, read_flags, show_value
from bert_elmo_jax.runs.data_facts import describe_corpora, describe_files
from bert_elmo_jax.runs.field_ranges import check_fields
from bert_elmo_jax.runs.pretraining import build_objective, list_figures, load_corpora
from bert_elmo_jax.runs.start_run import say
from bert_elmo_jax.runs.task_scores import list_scores, score_name
from bert_elmo_jax.sweeps.folders import write_command
from bert_elmo_jax.sweeps.points import FLAGS
from bert_elmo_jax.sweeps.report import write_lines
from bert_elmo_jax.sweeps.runners import Processes, check_devices, stop_asked
from bert_elmo_jax.sweeps.search.trials import Search, find_study, import_optuna, list_trials, read_space, run_trials
from bert_elmo_jax.weights.digest import digest

ENDS = {"COMPLETE": "done", "PRUNED": "ended early", "FAIL": "failed", "RUNNING": "not done"}


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
    language: str | None = None,
) -> int:
    """Search over the fields of a program's command, whose flags are `words`; return the exit status.

    The other arguments are the flags of the program `search`; the report shows `command`.
    """
    page_language = choose_language(language)
    check_devices([device] if device else [], "--device")
    base = read_command(program, words)
    space, score = read_space(over, base.config), score or name_score(program, base.config)
    if not lowest and any(part in score.rpartition("/")[2] for part in ("perplexity", "loss")):
        raise ValueError(f"--score={score} is better the lower it is: add --lowest")
    check_score(score, program, base.config)
    search = Search(program, base.file, space, score, lowest, Path(workdir), base.fields, base.options)
    import_optuna()  # an error before anything is written
    settings = {"program": program, "words": list(words), "over": over, "score": score, "lowest": lowest}
    settings |= {"sampler": sampler, "end_bad": end_bad, "seed": seed, "data": hash_inputs(program, base)}
    with train.only_process(search.workdir):
        study = find_study(search.workdir, settings, trials)
        runner = Processes(1, [device] if device else [], search.workdir.absolute() / "compiled")
        with stop_asked() as stop:
            try:
                finished = run_trials(
                    search, study, runner, trials=trials, sampler=sampler, seed=seed, say=say, stop=stop,
                    changed=lambda: write_results(search, study, command, page_language),
                )  # fmt: skip
            finally:
                runner.close()
        if not finished:
            say("stopped; the same command continues")
            return train.STOPPED
        say(write_results(search, study, command, page_language))
        say(f"{search.workdir / 'report.html'}: all trials, each with its command")
    return 0


def read_command(program: str, words: Sequence[str]) -> Command:
    """Return what the flags of a program say; a flag's value may be a word of its own.

    >>> read_command("finetune", ["--task", "sst2", "--train=t.tsv"]).fields
    {'task': 'sst2', 'train': 't.tsv'}
    """
    flags = {name: "true" if value is None else value for name, value in read_flags(words).items()}
    if "workdir" in flags:
        raise ValueError("behind -- there is a --workdir, but each trial has its own: give the search's before --")
    file = flags.pop("config", "finetune" if program == "finetune" else None)
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
    check_fields(config)
    return Command(file, fields, options, config)


def hash_inputs(program: str, command: Command) -> dict[str, str]:
    """Return the fingerprints of the local data and of the local model that the trials of a command begin with.

    Scores on different data cannot be compared, so a search whose files have changed does not continue.
    """
    config, init = command.config, command.options.get("init")
    if program == "finetune":
        facts = describe_files({part: config[part] for part in ("train", "dev", "test")})
    elif config.data == "toyworld":  # made by each trial, from fields of its config
        facts = {}
    else:
        facts = describe_corpora(load_corpora(config, Path(), get_family(config.family).inputs))
    hashes = {name: fact["fingerprint"][:16] for name, fact in facts.items()}
    if init and Path(init).expanduser().is_dir():
        hashes["init"] = digest(read_model(init).params)[:16]
    return hashes


def name_score(program: str, config: ConfigDict) -> str:
    """Return the figure that selects the program's best model."""
    if program == "pretrain":
        return build_objective(config, get_family(config.family).inputs.vocab_size)[1].score
    return f"dev/{score_name(find_task(config))}"


def find_task(config: ConfigDict) -> Task:
    """Return the task of a config; raise ValueError if it names none."""
    if not config.task:
        raise ValueError("behind -- there is no --task=…, which finetune needs")
    columns = {name: config[name] or None for name in ("text", "pair", "label")}
    return task_named(config.task, **columns, file=config.train)


def check_score(score: str, program: str, config: ConfigDict) -> None:
    """Raise ValueError unless the runs of a config have a figure of this name."""
    notes = (
        list_figures(config) if program == "pretrain" else [f"dev/{name}" for name in list_scores(find_task(config))]
    )
    if score not in notes:
        hint = did_you_mean(score, notes)
        raise ValueError(f"--score={score} is no figure of these runs; expected one of {', '.join(notes)}{hint}")


def list_results(search: Search, study: Any) -> list[dict[str, Any]]:
    """Return one line per trial: finished ones by score, then the others."""
    rows = []
    for trial in list_trials(study):
        done = trial.state.name == "COMPLETE"
        rows.append({
            "trial": trial.number + 1, search.score: trial.value if done else None, "end": ENDS[trial.state.name],
            "steps": max(search.steps(trial.number), default=None), **trial.params,
            "run": search.run(trial.number).name,
            "command": write_command(search.program, search.job(trial.number, trial.params)),
        })  # fmt: skip
    score, sign = search.score, 1 if search.lowest else -1
    return sorted(rows, key=lambda row: (row[score] is None, sign * (row[score] or 0.0), row["trial"]))


def write_results(search: Search, study: Any, command: str, language: Language = "en") -> str:
    """Write `table.md`, `table.csv` and `report.html`; return the table as Markdown."""
    rows, translate = list_results(search, study), translator(language)
    if not rows:
        return ""
    head = [name for name in rows[0] if name not in ("run", "command")]
    values = [[row.get(name) for name in head] for row in rows]
    cells = [[f"{value:.4g}" if isinstance(value, float) else show_value(value) for value in line] for line in values]
    text = "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *cells))
    write_text(search.workdir / "table.md", f"# Search for {search.score}\n\n{text}")
    write_lines(search.workdir / "table.csv", rows)
    best, curve, trials = min if search.lowest else max, list[tuple[int, float]](), ""
    for trial in list_trials(study):
        if trial.state.name == "COMPLETE":
            curve.append((trial.number + 1, best(trial.value, curve[-1][1]) if curve else trial.value))
    title, legend = translate("Search for {score}", score=search.score), translate("best")
    note = translate("Each dot is the best score of all trials up to there.")
    best_so_far = Lines(translate("The best so far"), translate("trial"), search.score, {legend: curve}, note=note)
    for row in rows:
        page = f"trials/{row['run']}/report.html"
        name = html.escape(translate("its report"))
        link = f'<a href="{page}">{name}</a>' if (search.workdir / page).is_file() else ""
        trials += draw_details(translate("trial {number}", number=row["trial"]), draw_code(row["command"]) + link)
    names = [translate(name) if name in ("trial", "end", "steps") else name for name in head]
    cells = [[translate(cell) if name == "end" else cell for name, cell in zip(head, line)] for line in cells]
    sections = [
        ("", draw_table(names, cells) + draw_figures([best_so_far] if curve else [])),
        (translate("The search"), draw_code(command)),
        (translate("The trials"), trials),
    ]
    write_page(search.workdir / "report.html", title, sections, language=language)
    return text
