"""The parameters of all presets, and the picture of their growth."""

import pytest

from bert_elmo_jax.families import all_families
from experiments.studies.preset_sizes import draw_sizes, list_preset_sizes


@pytest.mark.long  # traces the shapes of fifty models
def test_every_preset_has_a_year_and_a_size():
    sizes = list_preset_sizes()
    presets = {(family.name, preset) for family in all_families() for preset in family.presets} - {
        (name, "toy") for name in ("static", "cove", "awd_lstm", "elmo")
    }
    assert {(size.family, size.preset) for size in sizes} == presets
    assert [size.year for size in sizes] == sorted(size.year for size in sizes)
    by_name = {(size.family, size.preset): size for size in sizes}
    assert by_name["gpt", "gpt2-xl"].year == 2019 and by_name["roberta", "klue-base"].year == 2021
    # The papers say 65 and 93.6 million.
    assert 60e6 < by_name["transformer", "base"].parameters < 66e6
    assert round(by_name["elmo", "original"].parameters / 1e6, 1) == 93.6
    assert len(draw_sizes(sizes).series) == len({size.family for size in sizes})
