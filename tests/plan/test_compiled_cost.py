"""The cost of compiled programs, written by hand or compiled by XLA."""

import jax
import jax.numpy as jnp
import pytest

from bert_elmo_jax.plan.compiled_cost import compiled_cost, group_size
from bert_elmo_jax.plan.hlo_text import Shape, parse_hlo

LOOP = """HloModule loop, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (state: (s32[], f32[64,32])) -> (s32[], f32[64,32]) {
  %state = (s32[]{:T(128)}, /*index=1*/f32[64,32]{1,0:T(8,128)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%state), index=0
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)S(1)} add(%i, %one)
  %x = f32[64,32]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %reduced = f32[64,32]{1,0:T(8,128)S(1)} all-reduce(%x), channel_id=1, replica_groups=GROUPS, to_apply=%add
  ROOT %out = (s32[]{:T(128)}, f32[64,32]{1,0:T(8,128)}) tuple(%next, %reduced)
}

%condition (state.1: (s32[], f32[64,32])) -> pred[] {
  %state.1 = (s32[]{:T(128)}, f32[64,32]{1,0:T(8,128)}) parameter(0)
  %i.1 = s32[]{:T(128)} get-tuple-element(%state.1), index=0
  %limit = s32[]{:T(128)} constant(LIMIT)
  ROOT %less = pred[]{:T(512)} compare(%i.1, %limit), direction=LT
}

ENTRY %main (x.1: f32[64,32]) -> (s32[], f32[64,32]) {
  %x.1 = f32[64,32]{1,0:T(8,128)} parameter(0)
  %begin = s32[]{:T(128)} constant(BEGIN)
  %start = (s32[]{:T(128)}, f32[64,32]{1,0:T(8,128)}) tuple(%begin, %x.1)
  ROOT %loop = (s32[], f32[64,32]) while(%start), condition=%condition, body=%body KNOWN
}
"""


def loop(limit=12, begin=0, groups="{{0,1,2,3},{4,5,6,7}}", backend_config=""):
    text = LOOP.replace("LIMIT", str(limit)).replace("BEGIN", str(begin)).replace("GROUPS", groups)
    return text.replace("KNOWN", backend_config)


def test_a_collective_in_a_loop_counts_once_per_iteration():
    (kind, cost), *more = compiled_cost(loop()).collectives.items()
    assert (kind, cost.count, cost.size) == ("all-reduce", 12, 12 * 64 * 32 * 4)
    assert cost.sent == 12 * 64 * 32 * 4 * 2 * 3 / 4
    assert not more


@pytest.mark.parametrize(("limit", "begin", "turns"), [(12, 0, 12), (12, 1, 11), (0, 0, 0), (3, 5, 0)])
def test_trip_count_from_the_condition(limit, begin, turns):
    cost = compiled_cost(loop(limit, begin))
    assert cost.collectives["all-reduce"].count == turns
    assert cost.unknown_loops == []


def test_trip_count_of_the_compiler_comes_first():
    backend_config = ', backend_config={"known_trip_count":{"n":"7"},"known_init_step":{"init":"0","step":"1"}}'
    assert compiled_cost(loop(backend_config=backend_config)).collectives["all-reduce"].count == 7


def test_a_loop_of_unknown_length_is_named():
    cost = compiled_cost(loop().replace("direction=LT", "direction=NE"))
    assert cost.unknown_loops == ["loop"]
    assert cost.collectives["all-reduce"].count == 1


def test_a_condition_on_something_else_than_a_counter_tells_no_length():
    """A loop that runs until enough has been found."""
    cost = compiled_cost(loop().replace("%next = s32[]{:T(128)S(1)} add(", "%next = s32[]{:T(128)S(1)} multiply("))
    assert cost.unknown_loops == ["loop"]
    assert cost.collectives["all-reduce"].count == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}", 2),
        ("replica_groups={}, dimensions={0}", 8),
        ("channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true", 4),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", 2),
        ("replica_groups=mesh['axis_0'=8] {'axis_0'}, use_global_device_ids=true", 8),
        ("replica_groups=mesh['a'=2,'b'=4] {'a'}", 2),
        ("replica_groups=mesh['a'=2,'b'=2,'c'=2] {'a','c'}", 4),
        ("replica_groups=mesh['a'=8] {'a':(2)4}", 4),
        ("dimensions={0}", 8),
    ],
)
def test_groups(text, size):
    assert group_size(text, 8) == size


KINDS = """HloModule kinds, num_partitions=8
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
%all-reduce-scatter.1 (p: f32[16]) -> f32[2] {
  %p = f32[16]{0} parameter(0)
  %zero = s32[] constant(0)
  %r = f32[16]{0} all-reduce(%p), channel_id=9, ALL, to_apply=%add
  ROOT %mine = f32[2]{0} dynamic-slice(%r, %zero), dynamic_slice_sizes={2}
}
ENTRY %main (x: f32[16], y: bf16[16]) -> f32[2] {
  %x = f32[16]{0} parameter(0)
  %y = bf16[16]{0} parameter(1)
  %begun = (f32[16]{0}, f32[128]{0}) all-gather-start(%x), channel_id=1, ALL, dimensions={0}
  %done = f32[128]{0} all-gather-done(%begun)
  %clone = f32[128]{0} all-gather(%x), channel_id=1, ALL, dimensions={0}
  %two = (f32[16]{0}, bf16[16]{0}) all-reduce(%x, %y), channel_id=2, replica_groups=[4,2]<=[8], to_apply=%add
  %scattered = f32[2]{0} reduce-scatter(%x), channel_id=3, ALL, dimensions={0}, to_apply=%add
  %fused = f32[2]{0} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.1
  %turned = f32[16]{0} all-to-all(%x), channel_id=4, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  %passed = bf16[16]{0} collective-permute(%y), channel_id=5, source_target_pairs={{0,1},{1,2}}
  %alone = f32[16]{0} all-reduce(%x), channel_id=6, replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, to_apply=%add
  ROOT %last = f32[2]{0} add(%scattered, %fused)
}
""".replace("ALL", "replica_groups={{0,1,2,3,4,5,6,7}}")


def test_every_kind_of_collective():
    collectives = compiled_cost(KINDS).collectives
    assert {kind: (one.count, one.size, one.sent) for kind, one in collectives.items()} == {
        "all-gather": (1, 64, 64 * 7),  # start and done are one, and a clone with the same channel is not another
        "all-reduce": (1, 96, 96),  # a group of one device sends nothing and is not counted
        "reduce-scatter": (2, 128, 128 * 7 / 8),
        "all-to-all": (1, 64, 64 * 3 / 4),
        "collective-permute": (1, 32, 32),
    }


PRODUCTS = """HloModule products
ENTRY %main (x: bf16[6,4], w: bf16[4,8]) -> bf16[6,8] {
  %x = bf16[6,4]{1,0} parameter(0)
  %w = bf16[4,8]{1,0} parameter(1)
  %q = f32[3,2,5,7]{3,2,1,0} constant({...})
  %k = f32[3,2,9,7]{3,2,1,0} constant({...})
  %s = f32[3,2,5,9]{3,2,1,0} convolution(%q, %k), WINDOW, dim_labels=01bf_01oi->01bf
  %dots = f32[3,2,5,9]{3,2,1,0} dot(%q, %k), lhs_batch_dims={0,1}, lhs_contracting_dims={3}, RIGHT
  ROOT %y = bf16[6,8]{1,0} convolution(%x, %w), dim_labels=bf_io->bf
}
""".replace("WINDOW", "window={size=3x2 stride=2x1 lhs_dilate=3x2}").replace(
    "RIGHT", "rhs_batch_dims={0,1}, rhs_contracting_dims={3}"
)


def test_products_as_a_tpu_writes_them():
    """A batch of products is a convolution of dilated rows there: each row meets one window."""
    one = 2 * 3 * 2 * 5 * 9 * 7
    assert compiled_cost(PRODUCTS).flops == 2 * one + 2 * 6 * 4 * 8


CONVOLUTION = """HloModule convolution
ENTRY %main (x: f32[2,10,3], w: f32[4,3,5]) -> f32[2,10,5] {
  %x = f32[2,10,3]{2,1,0} parameter(0)
  %w = f32[4,3,5]{2,1,0} parameter(1)
  ROOT %y = f32[2,10,5]{2,1,0} convolution(%x, %w), window={size=4 pad=1_2}, dim_labels=b0f_0io->b0f
}
"""


def test_padding_is_not_multiplied():
    pairs = sum(0 <= out + tap - 1 < 10 for out in range(10) for tap in range(4))
    assert compiled_cost(CONVOLUTION).flops == 2 * pairs * 2 * 3 * 5


TRAFFIC = """HloModule traffic
%write (whole: f32[100,8], row: f32[1,8], at: s32[]) -> f32[100,8] {
  %whole = f32[100,8]{1,0} parameter(0)
  %row = f32[1,8]{1,0} parameter(1)
  %at = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %written = f32[100,8]{1,0} dynamic-update-slice(%whole, %row, %at, %zero)
}
%read (whole.1: f32[100,8], at.1: s32[]) -> f32[1,8] {
  %whole.1 = f32[100,8]{1,0} parameter(0)
  %at.1 = s32[] parameter(1)
  %zero.1 = s32[] constant(0)
  %cast = f32[100,8]{1,0} bitcast(%whole.1)
  %taken = f32[1,8]{1,0} dynamic-slice(%cast, %at.1, %zero.1), dynamic_slice_sizes={1,8}
  ROOT %minus = f32[1,8]{1,0} negate(%taken)
}
ENTRY %main (table: f32[100,8], at.2: s32[]) -> f32[100,8] {
  %table = f32[100,8]{1,0} parameter(0)
  %at.2 = s32[]{:S(6)} parameter(1)
  %row.1 = f32[1,8]{1,0} fusion(%table, %at.2), kind=kLoop, calls=%read
  ROOT %new = f32[100,8]{1,0} fusion(%table, %row.1, %at.2), kind=kLoop, calls=%write
}
"""


def test_slices_move_what_they_take():
    assert compiled_cost(TRAFFIC).bytes == (32 + 32) + (32 + 32)


def test_on_chip_values_are_free():
    text = """HloModule chip
ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0:T(256)} parameter(0)
  %begun = (f32[256]{0:T(256)S(1)}, f32[256]{0:T(256)}, u32[]{:S(2)}) copy-start(%x)
  %here = f32[256]{0:T(256)S(1)} copy-done(%begun)
  %part = ((f32[256]{0:T(256)}), f32[64]{0:T(256)S(1)}, s32[]{:S(2)}) slice-start(%x), slice={[0:64]}
  %quarter = f32[64]{0:T(256)S(1)} slice-done(%part)
  ROOT %y = f32[256]{0:T(256)} multiply(%here, %here)
}
"""
    assert compiled_cost(text).bytes == 1024 + 256 + 1024


CHOICE = """HloModule choice
%little (x.1: f32[4,4]) -> f32[4,4] {
  ROOT %x.1 = f32[4,4]{1,0} parameter(0)
}
%much (x.2: f32[4,4]) -> f32[4,4] {
  %x.2 = f32[4,4]{1,0} parameter(0)
  ROOT %y = f32[4,4]{1,0} dot(%x.2, %x.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY %main (n: s32[], x: f32[4,4]) -> f32[4,4] {
  %n = s32[] parameter(0)
  %x = f32[4,4]{1,0} parameter(1)
  ROOT %z = f32[4,4]{1,0} conditional(%n, %x, %x), branch_computations={%little, %much}
}
"""


def test_the_most_expensive_branch_counts():
    assert compiled_cost(CHOICE).flops == 2 * 4 * 4 * 4


def test_shapes():
    assert Shape("bf16", (3, 5)).size == 30
    assert Shape("pred", (3,)).size == 3
    assert Shape("s4", (3,)).size == 2
    assert Shape("f8e4m3fn", (3,)).size == 3
    assert Shape("token", ()).size == 0
    assert Shape("f32", ()).size == 4
    assert Shape("f32", (0, 7)).size == 0


@pytest.mark.parametrize("text", ["", "HloModule empty", "%f (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}"])
def test_text_without_a_program(text):
    with pytest.raises(ValueError, match="no ENTRY"):
        parse_hlo(text)


@pytest.mark.parametrize("unroll", [1, 2, 6])
def test_a_scan_costs_all_its_iterations(unroll):
    """Forward and backward, with any unrolling; XLA's own count has one iteration only."""
    x, weights = jnp.ones((16, 32)), jnp.ones((6, 32, 32))

    def loss(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights, unroll=unroll)[0].sum()

    compiled = jax.jit(jax.grad(loss)).lower(weights, x).compile()
    once = 2 * 16 * 32 * 32
    # Forward, and twice that backward, except for the gradient of the first input, which is not needed.
    assert compiled_cost(compiled.as_text()).flops in (17 * once, 18 * once)


def test_example_of_compiled_cost():
    import jax
    import jax.numpy as jnp

    loop = jax.jit(lambda x: jax.lax.scan(lambda x, _: (x @ x, None), x, length=5)[0])
    cost = compiled_cost(loop.lower(jnp.ones((16, 16))).compile().as_text())
    assert (cost.flops == 5 * 2 * 16**3, cost.collectives) == (True, {})


def test_example_of_group_size():
    assert [group_size(text, 8) for text in ("replica_groups={{0,1},{2,3}}", "replica_groups=[2,4]<=[8]", "")] == [
        2,
        4,
        8,
    ]
    assert (group_size("replica_groups=mesh['a'=2,'b'=4] {'b'}", 8), group_size("source_target_pairs={{0,1}}", 8)) == (
        4,
        8,
    )


FUSION = """HloModule fusion
%fused (a: f32[64], at: s32[1000,1], new: f32[1000]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %at = s32[1000,1]{1,0} parameter(1)
  %new = f32[1000]{0} parameter(2)
  %scatter = f32[64]{0} scatter(%a, %at, %new), to_apply=%add
  ROOT %out = f32[64]{0SPACE} bitcast(%scatter)
}

ENTRY %main (a.1: f32[64], at.1: s32[1000,1], new.1: f32[1000]) -> f32[64] {
  %a.1 = f32[64]{0:S(1)} parameter(0)
  %at.1 = s32[1000,1]{1,0:S(1)} parameter(1)
  %new.1 = f32[1000]{0:S(1)} parameter(2)
  ROOT %fusion = f32[64]{0SPACE} fusion(%a.1, %at.1, %new.1), kind=kLoop, calls=%fused
}
"""


@pytest.mark.parametrize(("space", "size"), [("", 64 * 4), (":S(1)", 0)])
def test_a_scatter_writes_no_more_than_its_result_and_nothing_on_chip(space, size):
    assert compiled_cost(FUSION.replace("SPACE", space)).bytes == size


def test_groups_of_a_batch_are_not_counted_twice():
    """The output has a batch of each group's size, and each filter meets one group."""
    text = """HloModule groups
ENTRY %main (x: f32[6,10,3], w: f32[4,3,4]) -> f32[3,7,4] {
  %x = f32[6,10,3]{2,1,0} parameter(0)
  %w = f32[4,3,4]{2,1,0} parameter(1)
  ROOT %y = f32[3,7,4]{2,1,0} convolution(%x, %w), window={size=4}, dim_labels=b0f_0io->b0f, batch_group_count=2
}
"""
    assert compiled_cost(text).flops == 2 * (7 * 4) * 3 * 3 * 4
