"""Operations inside kernels, whose text spans several lines."""

import pytest

from bert_elmo_jax.plan.compiled_cost import compiled_cost
from bert_elmo_jax.plan.hlo_text import parse_hlo

METADATA = """frontend_attributes={kernel_metadata={
"xprof_metadata":"{\\"block_q\\": 128, \\"layout\\": \\"}{{\\"}"
}}, metadata={op_name="a {brace" stack_frame_id=1}, backend_config={"custom_call_config":{"body":"TUz="ESTIMATE}}"""

KERNEL = """HloModule kernel, num_partitions=8
ENTRY %main (q: bf16[2,3,128,64]) -> f32[256,256] {
  %q = bf16[2,3,128,64]{3,2,1,0:T(8,128)(2,1)} parameter(0)
  %mask = s8[1,1,1]{2,1,0} constant({...})
  %NAME.1 = (RESULT, f32[128,128]{1,0}) custom-call(%mask, %q, %q, /*index=3*/%q), custom_call_target="TARGET", METADATA
  %part = RESULT get-tuple-element(%NAME.1), index=0, METADATA
  %x = f32[256,128]{1,0} constant({...})
  ROOT %y = f32[256,256]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
PRODUCT = 2.0 * 2 * 3 * 128 * 128 * 64
DOT = 2.0 * 256 * 256 * 128
ROW = "bf16[2,3,128,64]{3,2,1,0:T(8,128)(2,1)}"
SPLIT = "bf16[2,1,3,128,64]{4,3,2,1,0:T(8,128)(2,1)}"


def kernel(name, target="tpu_custom_call", result=ROW, estimate=""):
    text = KERNEL.replace("METADATA", METADATA.replace("ESTIMATE", estimate)).replace("TARGET", target)
    return text.replace("NAME", name).replace("RESULT", result)


def test_metadata_of_several_lines_does_not_end_a_computation():
    entry = parse_hlo(kernel("some")).entry
    assert list(entry.instructions) == ["q", "mask", "some.1", "part", "x", "y"]
    assert entry.root == "y"
    assert entry.instructions["part"].operands == ("some.1",)


def test_a_text_that_is_cut_off():
    with pytest.raises(ValueError, match="ends inside of the computation main"):
        parse_hlo(kernel("some").rstrip("}\n"))


@pytest.mark.parametrize(
    ("name", "result", "products"),
    [
        ("splash_mha_fwd_segmented_residuals", ROW, 2),
        ("splash_mha_dq_no_residuals", ROW, 3),
        ("splash_mha_dkv_no_residuals", ROW, 4),
        ("splash_mha_dkv_segmented_no_residuals", SPLIT, 5),  # with the gradient of the queries
    ],
)
def test_splash_attention_is_counted_by_its_shapes(name, result, products):
    cost = compiled_cost(kernel(name, result=result))
    assert cost.flops == DOT + products * PRODUCT
    assert cost.uncounted == []


def test_the_bytes_of_a_kernel_are_its_operands_and_results():
    row = 2 * 3 * 128 * 64 * 2
    dot = (2 * 256 * 128 + 256 * 256) * 4
    assert compiled_cost(kernel("some")).bytes == 1 + 3 * row + row + 128 * 128 * 4 + dot


@pytest.mark.parametrize("flops", ["1234", '"1234"'])
def test_a_kernels_own_estimate_comes_first(flops):
    estimate = f',"cost_estimate":{{"transcendentals":0,"flops":{flops},"bytes_accessed":5}}'
    cost = compiled_cost(kernel("splash_mha_fwd_x", estimate=estimate))
    assert (cost.flops, cost.uncounted) == (DOT + 1234, [])


def test_uncounted_calls_are_named():
    assert compiled_cost(kernel("my_kernel")).uncounted == ["my_kernel"]
    assert compiled_cost(kernel("call", target="__onednn$matmul")).uncounted == ["__onednn$matmul"]
    assert compiled_cost(kernel("call", target="ConcatBitcast")).uncounted == []
