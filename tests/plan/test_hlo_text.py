"""Examples of `bert_elmo_jax.plan.hlo_text`."""

from bert_elmo_jax.plan.hlo_text import parse_hlo


def test_example_of_parse_hlo():
    module = parse_hlo("""HloModule example, num_partitions=8
ENTRY %main (a: f32[2,3]) -> f32[2,3] {
  %a = f32[2,3]{1,0:T(8,128)S(1)} parameter(0)
  ROOT %b = f32[2,3]{1,0} add(%a, %a), metadata={op_name="add"}
}""")
    root = module.entry.instructions[module.entry.root]
    assert (root.opcode, root.operands, root.shapes[0].size, module.devices) == ("add", ("a", "a"), 24, 8)
