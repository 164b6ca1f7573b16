"""The plan of a run: the program's own step, compiled for devices that are not there."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from bert_elmo_jax import train
from bert_elmo_jax.data.pipeline.batches import train_batches
from bert_elmo_jax.plan import plan as planning
from bert_elmo_jax.plan.chips import CHIPS, GIB, Topology, compute_roofline, count_links, find_topology, slice_exists
from bert_elmo_jax.plan.compiled_cost import Cost
from bert_elmo_jax.plan.plan import describe_shortage, describe_step
from bert_elmo_jax.runs.pretraining import build_objective, build_step
from bert_elmo_jax.train.ahead_of_time import Compiled, TooLarge, lower_step

from ..simulated_devices import DEVICES
from .small_recipes import corpus_kind, small_config, toy_corpora

ROOT = Path(__file__).parents[2]
LIBTPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu, of the extra `tpu`")


def toy(family, **changes):
    return small_config(f"{family}:toy", **{"batch_size": 16, "data": "", "steps": 4_000, **changes})


def planned(config, topology, vocab_size, capsys, memory=None, tries=0):
    fits_memory = planning.plan(config, topology, vocab_size, memory, tries)
    return fits_memory, capsys.readouterr().out


OTHER_FAMILIES = [
    pytest.param(family, marks=pytest.mark.long) for family in ("transformer", "bart", "gpt", "awd_lstm", "cove")
]


@pytest.mark.parametrize("family", ["bert", "elmo", *OTHER_FAMILIES])
@pytest.mark.devices
def test_the_step_is_the_programs_own(family, tmp_path):
    """Lowered from shapes and from a run's state and batch: the same text."""
    corpus = toy_corpora(tmp_path)(corpus_kind(f"{family}:toy"))
    config = toy(family, data=str(corpus), accumulate=2)
    config.mesh.update({"fsdp": 2, "tensor": 2})
    mesh = train.make_mesh(**config.mesh)
    model_family, objective = build_objective(config, None)  # the data's vocabulary
    phase, shards = objective.phases[0], {"shards": 4} if model_family.inputs.name == "words" else {}
    batches = train_batches(config.data, phase.examples, phase.rows, **shards)
    batch = {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in next(batches).items()}
    batches.close()
    _, method, step = build_step(config, objective)
    params = objective.init(jax.random.key(config.seed))
    state = train.new_state(params, method, jax.random.key(config.seed), objective.carry(phase.rows))
    parallel = train.over_mesh(step, state, mesh, (*model_family.sharding, *train.RULES))
    rows = jax.sharding.NamedSharding(mesh, train.parallel.BATCH)
    placed = {name: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=rows) for name, array in batch.items()}
    theirs = parallel.step.lower(parallel.place(state), placed).as_text()

    assert objective.phases[0].rows == config.batch_size
    step, state, shapes = planning.build_inputs(config, objective, objective.phases[0], config.batch_size, mesh)
    assert shapes.keys() == batch.keys()
    if family == "elmo":  # its words are as many and as long as the text has them
        shapes["characters"] = batch["characters"]
    assert shapes == batch
    assert lower_step(step, state, shapes, mesh, (*model_family.sharding, *train.RULES)).as_text() == theirs


@pytest.mark.devices
def test_a_plan_for_simulated_devices(capsys):
    fits_memory, output = planned(toy("bert", long_share=0.0), find_topology("cpu:8"), 100, capsys)
    assert fits_memory
    for part in (
        "on 8 devices (data=8 × fsdp=1 × tensor=1)",
        "4,000 steps of 16 rows of 32, 2 a device",
        "memory: arguments 0.00 GiB",
        "operations: ",
        "all-reduce: ",
        "simulated devices have no peak",
    ):
        assert part in output, output
    assert "largest batch" not in output


@pytest.mark.long
def test_a_plan_of_pairs_counts_both_texts(capsys):
    config = toy("cove")
    _, output = planned(config, find_topology("cpu:1"), 100, capsys)
    counted = re.search(r"the model's own count ([\d.e+]+)", output)
    _, objective = build_objective(config, 100)
    work = objective.work(jax.eval_shape(objective.init, jax.random.key(0)), config.length)
    both = config.batch_size * (config.length + config.target_length)
    assert counted and float(counted[1]) == pytest.approx(work * both, rel=1e-3)


@pytest.mark.devices
def test_search_for_the_largest_batch_that_fits(capsys, monkeypatch):
    """The search uses a compiler that needs 1 GiB, and a quarter of a GiB more for each row of a device."""

    def compiled(step, state, batch, mesh, rules):
        rows = len(batch["lengths"].shape) and batch["lengths"].shape[0] // 8
        return Compiled("ENTRY %main () -> f32[] {\n  ROOT %x = f32[] constant(0)\n}", GIB, 0, 0, rows * GIB // 4, 0,
                        0.0, 0.0, 0.0)  # fmt: skip

    monkeypatch.setattr(planning, "compile_step", compiled)
    config = toy("elmo", batch_size=128)
    fits_memory, output = planned(config, find_topology("cpu:8"), 100, capsys, memory=3.5 * GIB, tries=6)
    assert not fits_memory
    assert "128 rows: does not fit: needs 5.00 GiB, has 3.50 GiB" in output
    assert "largest batch found: 80 rows fit, 10 a device; 88 do not" in output
    assert output.count("in all 3.00 GiB") == output.count("memory: ") == 1  # of the first that fits, once
    config.accumulate = 4
    output = planned(config, find_topology("cpu:8"), 100, capsys, memory=3.5 * GIB, tries=6)[1]
    assert "largest batch found: 64 rows fit, 8 a device; 96 do not" in output
    config.accumulate = 3
    with pytest.raises(ValueError, match=r"128 rows cannot be shared by 24 \(data · fsdp · accumulate\): use a mult"):
        planning.plan(config, find_topology("cpu:8"), 100, None, 0)


@pytest.mark.devices
def test_both_phases_are_reported(capsys, monkeypatch):
    def refused(step, state, batch, mesh, rules):
        raise TooLarge(2.0 * GIB, 1.0 * GIB)

    monkeypatch.setattr(planning, "compile_step", refused)
    fits_memory, output = planned(
        toy("bert", long_batch_size=8, long_share=0.5), find_topology("cpu:8"), 100, capsys, memory=1.0 * GIB, tries=3
    )
    assert not fits_memory
    assert "2,000 steps of 16 rows of 32, 2 a device" in output
    assert "2,000 steps of 8 rows of 64, 1 a device" in output
    assert output.count("largest batch found: 0 rows fit, 0 a device; 8 do not") == 2


@pytest.mark.devices
@pytest.mark.parametrize(("needs", "fit"), [((1,), True), ((4, 1), True), ((4, 3), False)])
def test_a_run_that_chooses_remat_fits_if_one_of_both_ways_does(needs, fit, capsys, monkeypatch):
    compiled, programs = [], [Compiled(None, size * GIB, 0, 0, 0, 0, 0.0, 0.0, 0.0) for size in needs]
    monkeypatch.setattr(planning, "compile_step", lambda *step: compiled.append(step) or programs[len(compiled) - 1])
    config = toy("bert", long_share=0.0, remat="auto")
    config.model.update(remat=True, scan=True)  # a recipe's values are no matter
    fits_memory, output = planned(config, find_topology("cpu:8"), 100, capsys, memory=2.0 * GIB)
    assert fits_memory == fit and len(compiled) == len(needs)
    assert ("16 rows: does not fit: needs 4.00 GiB, has 2.00 GiB" in output) == (len(needs) > 1)
    assert ("with remat=True scan=True: fits 1.00 GiB" in output) == (needs == (4, 1))


def test_layers_are_traced_for_another_backend(monkeypatch):
    with planning.trace_for([SimpleNamespace(platform="tpu")]):
        assert jax.default_backend() == "tpu"
    assert jax.default_backend() == "cpu"


def run_alone(*words, **environment):
    """Run the program in a process of its own; it sets the number of devices before JAX starts."""
    environment = {**{name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}, **environment}
    command = [sys.executable, "-m", "experiments.plan", "--config=bert:tiny", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_mesh_that_the_devices_cannot_have():
    done = run_alone("--topology=cpu:4", "--config.mesh.fsdp=3")
    assert done.returncode == 2 and "a mesh of" in done.stderr and "Traceback" not in done.stderr
    heading = "compiling the step of bert:tiny for cpu:4, on this machine's processor, without"
    assert done.stdout.startswith(heading)


@pytest.mark.long
def test_no_compiled_program_is_kept(tmp_path):
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    done = run_alone("--config.long_share=0", "--topology=cpu:1", "--tries=0", **cache)
    assert done.returncode == 0, done.stderr
    assert not [path for path in tmp_path.rglob("*") if path.name != ".lockfile"]


def test_vocabularies():
    def size(config, vocab_size=None):
        params = jax.eval_shape(build_objective(config, vocab_size)[1].init, jax.random.key(0))
        return (params["mlm"] if "mlm" in params else params["lm"])["bias"].shape[0]

    assert [size(toy(family)) for family in ("bert", "elmo")] == [30_522, 793_471]
    assert size(toy("bert", data="toyworld")) == toy("bert").toyworld.vocab_size
    assert size(toy("bert", data="toyworld"), 77) == 77


@pytest.mark.parametrize(
    ("name", "shape", "wires"),
    [("v5e", "1x1", 0), ("v5e", "2x2", 2), ("v5e", "2x4", 2), ("v5e", "8x16", 3), ("v5e", "16x16", 4),
     ("v5p", "2x2x1", 2), ("v5p", "4x4x4", 6), ("v4", "2x4x4", 5)],
)  # fmt: skip
def test_links(name, shape, wires):
    assert count_links(CHIPS[name], tuple(map(int, shape.split("x")))) == wires


def test_every_slice_that_is_listed_exists():
    for name, chip in CHIPS.items():
        assert all(
            slice_exists(name, tuple(map(int, shape.split("x"))))
            for shape in chip.slices.split(", ")
            if shape[0].isdigit()
        )


@pytest.mark.parametrize("name", ["", "v5e", "v5e:", "v5e:3x5", "v5e:32x32", "v5e:2x2x2", "v9:2x2", "v4:2x2", "cpu",
                                  "cpu:0", "cpu:-1", "cpu:many", "v5p:4x4x6", "v5e:0x0"])  # fmt: skip
def test_topologies_that_are_not(name):
    with pytest.raises(ValueError, match=r"is not known\. There are v4: .* v5e: 1x1, 2x2, 2x4.* or cpu:8"):
        find_topology(name)


def test_more_devices_than_jax_was_started_with():
    with pytest.raises(ValueError, match=f"cpu:9: JAX was started with {DEVICES} devices"):
        find_topology("cpu:9")


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is not None, reason="libtpu is installed")
def test_without_the_tpus_compiler():
    with pytest.raises(ImportError, match=r"pip install 'bert_elmo_jax\[tpu\]'"):
        find_topology("v5e:2x4")


def test_the_bound_is_the_slowest():
    chip = CHIPS["v5e"]
    from bert_elmo_jax.plan.compiled_cost import Collective

    cost = Cost(flops=chip.bfloat16, bytes=chip.bandwidth * 2, collectives={"all-reduce": Collective(1, 1.0, 300e9)})
    assert compute_roofline(cost, chip, links=2) == {"compute": 1.0, "memory": 2.0, "network": 3.0}
    assert compute_roofline(cost, chip, links=0)["network"] == float("inf")
    text = """ENTRY %main (x: f32[819000000]) -> f32[819000000] {
  %x = f32[819000000]{0} parameter(0)
  ROOT %y = f32[819000000]{0} negate(%x)
}"""
    compiled = Compiled(text, 2 * GIB, GIB, GIB, 3 * GIB, 0, 0.0, 0.0, 1.0)
    lines = describe_step(compiled, tokens=1000, work=chip.bfloat16 * 0.004, topology=Topology([], chip, 2))
    assert "in all 5.00 GiB of 16.00 GiB" in lines[0]
    assert "no collectives" in lines
    assert "bound by memory: 125,000 tokens a second" in lines[-1]
    assert lines[-1].endswith("at 50% of the peak")


def test_memory_is_reported_for_programs_that_jaxlib_cannot_read():
    compiled = Compiled(None, 2 * GIB, GIB, GIB, 3 * GIB, 0, 0.0, 0.0, 1.0)
    lines = describe_step(compiled, tokens=1, work=1.0, topology=Topology([], CHIPS["v6e"], 1))
    assert "in all 5.00 GiB of 32.00 GiB" in lines[0]
    assert "pip install 'jax[tpu]' installs matching versions" in lines[1]
    assert len(lines) == 2


def test_too_large_without_numbers():
    assert (
        describe_shortage(TooLarge(None, None, "RESOURCE_EXHAUSTED:\n  vmem"))
        == "does not fit: RESOURCE_EXHAUSTED: vmem"
    )


@LIBTPU
@pytest.mark.long
@pytest.mark.parametrize("name", ["v5e:2x4", "v4:2x2x1", "v5p:2x2x1", "v6e:1x1"])
def test_a_plan_for_a_tpu(capsys, name):
    config = toy("elmo")
    fits_memory, output = planned(config, find_topology(name), 1000, capsys)
    assert fits_memory
    assert "bound by " in output or "are unknown" in output  # libtpu need not be the one that jaxlib belongs to
    assert "GiB, including a part for the system" in output


@LIBTPU
@pytest.mark.long
def test_a_batch_too_large_for_a_tpu(capsys):
    config = toy("bert", batch_size=2**17, long_share=0.0, length=512)
    fits_memory, output = planned(config, find_topology("v5e:1x1"), 30_000, capsys)
    assert not fits_memory
    assert "does not fit: needs " in output and "has 15." in output
