"""The peer on a GPU refuses to run without one, and its step runs on the CPU, too."""

import importlib.util

import pytest

from .programs import run_program

PEERS = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


def test_it_says_what_is_missing():
    status, out, err = run_program("benchmarks.torch_gpu")
    assert (status, out) == (2, "")
    assert "torch finds no GPU" in err if PEERS else "lacks torch, transformers" in err


@pytest.mark.peers
@pytest.mark.skipif(not PEERS, reason="needs torch and transformers")
def test_a_small_step_on_the_cpu():
    from experiments.benchmarks.torch_gpu import measure

    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    assert measure(2, 16, False, "cpu", repeats=1, vocab_size=50, **sizes) > 0
