"""GPUs that this machine lacks: their descriptions, and a step compiled for one."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from bert_elmo_jax.plan import cards
from bert_elmo_jax.plan.chips import CHIPS, find_topology

ROOT = Path(__file__).parents[2]
HAS_PLUGIN = cards.find_plugin(13) or cards.find_plugin(12)
COMPILER = pytest.mark.skipif(not HAS_PLUGIN, reason="needs XLA's compiler for GPUs, of the extra `gpu`")


@pytest.mark.parametrize("name", ["h100", "h100:", "h100:0", "h100:9", "h100:2x2", "a100:x", "h300:1"])
def test_unknown_cards(name):
    with pytest.raises(ValueError, match=rf"--topology='{name}' is not known.*h100: any number from 1 to 8"):
        find_topology(name)


@pytest.mark.skipif(HAS_PLUGIN, reason="the compiler is installed")
def test_without_the_compiler():
    with pytest.raises(ImportError, match=r"--topology=h200:2 needs the GPU's compiler: pip install .*\[gpu\]"):
        find_topology("h200:2")


@pytest.mark.parametrize("kind", cards.CARDS)
def test_descriptions(kind):
    text = cards.describe_card(cards.CARDS[kind])
    assert text.count("{") == text.count("}")
    assert f"device_memory_size: {CHIPS[kind].memory}" in text
    assert ("ACCELERATED_FEATURES" in text) == (kind != "a100")


class Device:
    platform, compute_capability = "gpu", "9.0"


def test_a_gpu_is_there_while_a_step_is_traced():
    from jax._src.cudnn import fused_attention_stablehlo as attention

    before = jax.device_count(), attention.check_cudnn_version
    with cards.as_if_present([Device(), Device()]):
        assert jax.device_count() == 2
        assert attention.check_cudnn_version() >= 90000
        assert [attention.check_compute_capability(least) for least in ("8.0", "9.0", "10.0")] == [True, True, False]
        assert attention.is_cuda_compute_capability_equal("9.0")
    assert (jax.device_count(), attention.check_cudnn_version) == before


def plan(*words):
    """Return what the program says, which sets JAX's platform before anything else."""
    command = [sys.executable, "-m", "experiments.plan", "--tries=0", "--vocab_size=1000", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


SMALL = (
    "--config=bert:base", "--config.compute=gpu", "--config.model.num_layers=1", "--config.long_share=0.",
    "--config.batch_size=32",
)  # fmt: skip


@COMPILER
@pytest.mark.long
def test_a_step_of_one_layer_has_no_more_kernels_than_before():
    output = plan(*SMALL, "--topology=h100:1")
    kernels, gigabytes = re.search(r"kernels: (\d+) .*?; ([\d.]+) GB outside", output).groups()
    assert int(kernels) <= 162 and float(gigabytes) <= 1.1, output
    assert "custom calls of unknown operations" not in output


@COMPILER
@pytest.mark.long
def test_several_cards_share_parameters():
    output = plan(*SMALL, "--topology=h200:4", "--config.mesh.fsdp=4")
    assert "on 4 devices (data=1 × fsdp=4 × tensor=1)" in output
    assert re.search(r"reduce-scatter|all-gather|all-reduce", output) and "collectives add up to" in output


@COMPILER
@pytest.mark.long
def test_a_step_that_does_not_fit_is_planned_with_remat():
    output = plan(*SMALL, "--topology=a100:1", "--memory=0.7", "--config.model.num_layers=4")
    assert "does not fit" in output and "with remat=True scan=True: " in output
