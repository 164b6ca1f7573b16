"""The peer on a GPU refuses to run without one, and its step runs on the CPU, too."""

import importlib.util

import pytest

from .programs import run_program

PEERS = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


def test_it_says_what_is_missing():
    status, out, err = run_program("benchmarks.torch_gpu")
    assert (status, out) == (2, "")
    assert "torch finds no GPU" in err if PEERS else "lacks torch, transformers" in err


SIZES = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
GPT = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 50}


@pytest.mark.peers
@pytest.mark.skipif(not PEERS, reason="needs torch and transformers")
@pytest.mark.parametrize(
    ("case", "mask", "sizes"), [("base128", False, SIZES), ("base128", True, SIZES), ("gpt512", False, GPT)]
)
def test_a_small_step_on_the_cpu(case, mask, sizes):
    from experiments.benchmarks.torch_gpu import measure

    line = measure(case, False, mask, "cpu", steps=1, shape=(2, 16, sizes))
    assert line["milliseconds"] > 0 and line["together"] > 0
