"""The model of a run, for its report: size, and where its weights came from."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from bert_elmo_jax.report.language import Translate, english
from bert_elmo_jax.report.page import draw_facts
from bert_elmo_jax.runs.trainable import Section

# The fields of a run that say more about its model.
TITLES = {
    "encoder": "encoder that it reads", "preset": "sizes", "tokenizer": "tokenizer", "transfer": "trained part",
}  # fmt: skip


def describe_model(name: str, params: Any, run: Mapping[str, Any], translate: Translate = english) -> Section:
    """Return the section on a model: its parameters and sources; `run` are the fields of `run.json`.

    >>> page = describe_model("BERT", {"w": np.zeros(1200)}, {"init": "bert-base-cased"})[1]
    >>> "1,200" in page and "bert-base-cased" in page
    True
    """
    count = sum(np.size(leaf) for leaf in jax.tree.leaves(params))
    seed = translate("random numbers (seed {seed})", seed=run.get("seed", 0))
    rows = {"model": translate(name), "parameters": f"{count:,}", "weights before training": run.get("init") or seed}
    for field, title in TITLES.items():
        value = run.get(field)
        if value and isinstance(value, str) and not (field == "preset" and run.get("init")):
            rows[title] = value
    return translate("Model"), draw_facts({translate(name): value for name, value in rows.items()})
