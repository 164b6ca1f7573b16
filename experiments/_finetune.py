"""Temporary: what the lead's finetune will do."""

from pathlib import Path

import jax

from bert_elmo_jax import train
from bert_elmo_jax.runs import adaptation
from bert_elmo_jax.runs.finetuning import FREE, run
from bert_elmo_jax.runs.grid import run_grid, settings_of
from bert_elmo_jax.runs.start_cost import cost_kept
from bert_elmo_jax.runs.task_data import read_data, share_of
from bert_elmo_jax.runs.transfer import start_of
from bert_elmo_jax.runs.with_network import NetworkStart, network_start


def finetune(config, workdir, *, init=None, tokenizer=None, grid=None, seeds=None) -> int:
    """Fine-tune as the flags say; the exit status."""
    settings = settings_of(config, grid, seeds)
    adapt = adaptation.wanted(config, settings)
    data = read_data(config)
    start = (network_start if "network" in config else start_of)(config, init, tokenizer)
    asked = {"program": "finetune", "init": init, "tokenizer": tokenizer, **config.to_dict()}
    if share := share_of(config.dev):  # another one would learn from what was kept aside
        asked["dev_share"] = share
    if settings:
        asked |= {"grid": grid, "seeds": seeds}
    with train.only_process(workdir), cost_kept(workdir):
        if (workdir / "run.json").is_file():
            train.same_run(workdir, asked, FREE)
        if jax.config.values["jax_compilation_cache_dir"] is None:  # unless JAX_COMPILATION_CACHE_DIR names another
            jax.config.update("jax_compilation_cache_dir", str((workdir / "compiled").absolute()))
        if adapt and isinstance(start, NetworkStart):
            start, status = adaptation.adapted(config, workdir, data, start)
            if status:
                return status
        if settings:
            stopped = run_grid(config, workdir, data, start, asked, settings)
        else:
            stopped = run(config, workdir, data, start, asked)
    return train.STOPPED if stopped else 0


