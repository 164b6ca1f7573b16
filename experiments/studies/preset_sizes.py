"""The parameters of all presets of the registry, by the year of their papers."""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax

from bert_elmo_jax.families import all_families
from bert_elmo_jax.families.init_params import init_params
from bert_elmo_jax.optim import count_params
from bert_elmo_jax.report.figures import Lines

# The year of the oldest paper of a family; of presets whose names begin so, if they are younger.
YEARS = {
    "static": 2013, "transformer": 2017, "cove": 2017, "awd_lstm": 2017, "elmo": 2018, "gpt": 2018, "bert": 2018,
    "roberta": 2019, "distilbert": 2019, "albert": 2019, "bart": 2019, "electra": 2020, "mpnet": 2020, "deberta": 2020,
    "modernbert": 2024, "eurobert": 2025,
}  # fmt: skip
YOUNGER = {
    "static/glove": 2014, "static/fasttext": 2016, "gpt/gpt2": 2019, "roberta/klue": 2021, "deberta/xsmall": 2021,
    "deberta/small": 2021, "deberta/base": 2021, "deberta/large": 2021, "deberta/multilingual": 2021,
    "modernbert/mmbert": 2025, "modernbert/ettin": 2025,
}  # fmt: skip
LEFT_OUT = ("toy",)


class PresetSize(NamedTuple):
    """A preset of a family, the year of its paper, and the parameters of its encoder, and decoder if it has one."""

    family: str
    preset: str
    year: int
    parameters: int


def list_preset_sizes() -> list[PresetSize]:
    """Return all presets by year, from shapes alone; sizes without a vocabulary of their own have the family's usual.

    >>> sizes = {(size.family, size.preset): size for size in list_preset_sizes()}
    >>> [f"{sizes['bert', name].parameters:,}" for name in ("base", "large")]
    ['109,482,240', '335,141,888']
    """
    return sorted(_list_sizes(), key=lambda size: (size.year, size.parameters))


def _list_sizes() -> Iterator[PresetSize]:
    for family in all_families():
        for preset, fields in family.presets.items():
            if preset in LEFT_OUT:
                continue
            if family.name not in YEARS:
                raise ValueError(f"the family {family.name} has no year: add it to YEARS of {__name__}")
            vocabulary = {} if "vocab_size" in fields else {"vocab_size": family.inputs.vocab_size}
            config = family.config.preset(preset, **vocabulary)
            heads = ("decoder",) if "decoder" in family.heads else ()
            params = jax.eval_shape(partial(init_params, family, config, heads=heads), jax.random.key(0))
            name = f"{family.name}/{preset}"
            year = next((year for begin, year in YOUNGER.items() if name.startswith(begin)), YEARS[family.name])
            yield PresetSize(family.name, preset, year, count_params(params))


def draw_sizes(sizes: list[PresetSize]) -> Lines:
    """Draw the parameters of each family's presets over the years, as powers of ten.

    >>> draw_sizes([PresetSize("bert", "base", 2018, 100_000_000)]).series
    {'bert': [(2018, 8.0)]}
    """
    series: dict[str, list[tuple[float, float]]] = {}
    for size in sizes:
        series.setdefault(size.family, []).append((size.year, round(math.log10(size.parameters), 2)))
    note = "Each dot is a preset; 8 is a hundred million parameters."
    return Lines("Parameters of the presets", "year", "parameters, power of ten", series, note=note)
