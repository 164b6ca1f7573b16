"""Networks, stored vectors and stopped runs are found again by fingerprints: later versions must not change them."""

import pytest

from bert_elmo_jax import load
from bert_elmo_jax.families.awd_lstm.config import AwdLstmConfig
from bert_elmo_jax.families.elmo.config import ElmoConfig

# As the first released version computes them.
FINGERPRINTS = {
    "bert_tiny": "5984540452810504",
    "elmo_tiny": "5918d613d34ce9b2",
    "cove_tiny": "d15b76154fdb7ea0",
    "awd_lstm_tiny": "f5a4e0d2fbff531f",
    "gpt2_tiny": "d9b59bea5bc85197",
    "modernbert_tiny": "09b6701e5daa3dc8",
    "transformer_tiny": "e3db9c489e28bb7b",
    "electra_tiny/discriminator": "5a41ad8919c892ac",
    "mpnet_tiny": "1e020d5f5e2fcf88",
    "albert_tiny/mlm": "e8b52d73261b1d35",
}


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprints_stay(name, goldens):
    assert load(goldens / name).fingerprint == FINGERPRINTS[name]


def test_fields_that_were_added_count_only_if_they_are_set():
    assert "reader" not in str(ElmoConfig()) and "pooling" not in str(AwdLstmConfig(9))
    assert str(ElmoConfig(reader="attention")).endswith("dtype='float32', reader='attention')")
    assert "pooling='mean'" in str(AwdLstmConfig(9, pooling="mean"))
