"""The kernels of a program for a GPU, and an estimate of their time."""

import pytest
from ml_collections import ConfigDict

from bert_elmo_jax.plan.chips import CHIPS, Topology
from bert_elmo_jax.plan.compiled_cost import compiled_cost
from bert_elmo_jax.plan.gpu_step import describe_gpu_step, estimate_range, estimate_seconds, read_gpu_step
from bert_elmo_jax.plan.plan import change_remat, describe_step
from bert_elmo_jax.train.ahead_of_time import Compiled

# As XLA writes them for an H100, shortened: a product in a fusion, one by cuBLAS, both passes of cuDNN's attention, one
# of our kernels, one of unknown operations, and a loop.
PROGRAM = """HloModule jit_step, is_scheduled=true

%multiply (p: bf16[64,32], q: bf16[32,16]) -> bf16[64,16] {
  %p = bf16[64,32]{1,0} parameter(0)
  %q = bf16[32,16]{1,0} parameter(1)
  ROOT %dot.1 = bf16[64,16]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%double (p.1: f32[1000]) -> f32[1000] {
  %p.1 = f32[1000]{0} parameter(0)
  ROOT %add.1 = f32[1000]{0} add(%p.1, %p.1)
}

%body (state: (s32[], f32[1000])) -> (s32[], f32[1000]) {
  %state = (s32[], f32[1000]{0}) parameter(0)
  %n = s32[] get-tuple-element(%state), index=0
  %x = f32[1000]{0} get-tuple-element(%state), index=1
  %fusion.2 = f32[1000]{0} fusion(%x), kind=kLoop, calls=%double
  ROOT %tuple.1 = (s32[], f32[1000]{0}) tuple(%n, %fusion.2)
}

%condition (state.1: (s32[], f32[1000])) -> pred[] {
  %state.1 = (s32[], f32[1000]{0}) parameter(0)
  ROOT %end = pred[] constant(false)
}

ENTRY %main (a: bf16[64,32], b: bf16[32,16], c: f32[1000], q: bf16[2,8,4,16], u: f32[8,8]) -> f32[1000] {
  %a = bf16[64,32]{1,0} parameter(0)
  %b = bf16[32,16]{1,0} parameter(1)
  %c = f32[1000]{0} parameter(2)
  %q.1 = bf16[2,8,4,16]{3,2,1,0} parameter(3)
  %u = f32[8,8]{1,0} parameter(4)
  %gemm_fusion = bf16[64,16]{1,0} fusion(%a, %b), kind=kCustom, calls=%multiply
  %gemm = (f32[8,8]{1,0}, s8[4194304]{0}) custom-call(%u, %u), custom_call_target="__cublas$gemm", SUMMED
  %forward = (bf16[2,4,8,16]{3,1,2,0}, u8[0]{0}) custom-call(%q.1, %q.1, %q.1), FORWARD, MAPS
  %back = (bf16[2,4,8,16]{3,1,2,0}, u8[0]{0}) custom-call(%q.1, %q.1, %q.1), BACK, MAPS
  %pallas_call.1 = f32[1000]{0} custom-call(%c), OURS
  %start = s32[] constant(0)
  %pair = (s32[], f32[1000]{0}) tuple(%start, %pallas_call.1)
  %while.1 = (s32[], f32[1000]{0}) while(%pair), condition=%condition, body=%body, FIVE
  ROOT %out = f32[1000]{0} get-tuple-element(%while.1), index=1
}
"""
ATTRIBUTES = {
    "FORWARD": 'custom_call_target="__cudnn$fmhaSoftmax"',
    "BACK": 'custom_call_target="__cudnn$fmhaSoftmaxBackward"',
    "MAPS": 'backend_config={"cudnn_fmha_backend_config": {"intermediate_tensor_shape": {"element_type": "BF16", '
    '"dimensions": ["2", "4", "8", "8"]}}}',
    "SUMMED": 'backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}',
    "OURS": 'custom_call_target="__gpu$xla.gpu.triton", '
    'metadata={op_name="jit(step)/jvp(Bert)/bias_gelu/pallas_call"}, backend_config={name = "a", ir = "x"}',
    "FIVE": 'backend_config={"known_trip_count":{"n":"5"}}',
}
for name, attribute in ATTRIBUTES.items():
    PROGRAM = PROGRAM.replace(name, attribute)
PRODUCT, BLAS = 2 * 64 * 32 * 16, 2 * 8 * 8 * 8
ONE = 2 * 2 * 4 * 8 * 8 * 16  # operations of one product of queries by keys


def test_kernels_of_each_kind():
    step = read_gpu_step(PROGRAM)
    assert step.kernels == {"products": 2, "attention": 2, "memory": 1 + 5}
    assert step.products == {2: PRODUCT, 4: BLAS}
    assert step.attention == (2 + 5) * ONE
    assert step.other_bytes == (1 + 5) * 2 * 4000


def test_their_operations_are_counted():
    cost = compiled_cost(PROGRAM)
    assert cost.flops == PRODUCT + BLAS + 7 * ONE
    assert cost.uncounted == []
    unknown = compiled_cost(PROGRAM.replace("bias_gelu/", "own_kernel/").replace('"dimensions"', '"sizes"'))
    assert unknown.uncounted == ["__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward", "__gpu$xla.gpu.triton"]


def test_one_branch_runs():
    branches = PROGRAM.replace(
        f"while(%pair), condition=%condition, body=%body, {ATTRIBUTES['FIVE']}",
        "conditional(%start, %pair, %pair), branch_computations={%body, %body}",
    )
    assert read_gpu_step(branches).kernels["memory"] == 2


def test_a_step_takes_the_sum_of_its_kernels():
    step, chip = read_gpu_step(PROGRAM), CHIPS["h200"]
    low, middle, high = estimate_range(step, chip)
    parts = estimate_seconds(step, chip)
    assert low < middle < high and middle == pytest.approx(sum(parts.values()))
    assert parts["between kernels"] == pytest.approx(10 * 2.8e-6)
    faster = estimate_seconds(step, chip._replace(bfloat16=2 * chip.bfloat16))
    assert faster["products"] == pytest.approx(parts["products"] / 2)
    kernels, time = describe_gpu_step(step, chip, network=0.002)
    assert kernels.startswith("kernels: 10 (2 of attention, 6 of memory, 2 of products); ")
    assert time.endswith("collectives add up to 2 ms, as far as nothing runs beside them")


class Device:
    platform = "gpu"


def test_a_plan_for_a_gpu_names_its_kernels_and_its_time():
    compiled = Compiled(PROGRAM, 1000, 1000, 1000, 500, 0, 0.0, 0.0, 1.0)
    description = "\n".join(describe_step(compiled, 64, 2.0 * PRODUCT, Topology([Device()], CHIPS["h100"], 0)))
    assert "kernels: 10 (2 of attention, 6 of memory, 2 of products)" in description
    assert "a step, estimated: " in description and "at best, a step: compute" in description
    assert "the model's own count 1.311e+05)" in description and "XLA's, each loop once" not in description
    assert "collectives add" not in description


WAYS = [(True, True, False), (False, False, True), (False, True, None), (True, False, None)]


@pytest.mark.parametrize(("remat", "step_fits", "other"), WAYS)
def test_the_other_way_with_activations_is_planned_where_it_may_help(remat, step_fits, other):
    changed = change_remat(ConfigDict({"model": {"remat": remat, "scan": True}}), step_fits)
    assert (None if changed is None else changed.model.remat) == other
    assert changed is None or changed.model.scan == other
    assert change_remat(ConfigDict({"model": {"size": 3}}), step_fits) is None
