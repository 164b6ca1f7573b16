"""ONNX from a traced JAX function: one rule for each primitive that encoders use.

Functions with gradients of their own (`custom_vjp`) are read through, and everything that depends on constants alone
is computed while converting. Broadcasts are left to the operations that read them, as far as those broadcast.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from bert_elmo_jax.exports.onnx_graph import Graph, Tensor

UNARY = {
    "neg": "Neg", "exp": "Exp", "log": "Log", "tanh": "Tanh", "erf": "Erf", "sqrt": "Sqrt", "abs": "Abs",
    "sign": "Sign", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil", "round": "Round",
    "logistic": "Sigmoid", "not": "Not",
}  # fmt: skip
BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow", "and": "And",
    "or": "Or", "xor": "Xor", "eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual",
    "add_any": "Add",
}  # fmt: skip
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}
SAME = ("stop_gradient", "copy", "copy_p", "optimization_barrier", "reduce_precision")  # outputs are the inputs
LOOPS = ("scan", "while")
Rule = Callable[["Converter", Any, Sequence[Tensor]], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function `(converter, equation, inputs) -> tensor, or several` for primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


class Converter:
    """Converts the equations of a jaxpr, one after the other, into nodes of a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def run(self, closed: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs of a closed jaxpr."""
        jaxpr = getattr(closed, "jaxpr", closed)
        values: dict[Any, Tensor] = dict(zip(jaxpr.invars, inputs, strict=True))
        values |= {variable: constant(value) for variable, value in zip(jaxpr.constvars, getattr(closed, "consts", ()))}

        def read(atom: Any) -> Tensor:
            if not isinstance(atom, Literal):
                return values[atom]
            aval: Any = atom.aval
            return constant(np.asarray(atom.val, aval.dtype))

        for equation in jaxpr.eqns:
            outputs = self.convert(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def convert(self, equation: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs of an equation."""
        name = equation.primitive.name
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        if inner is not None and name not in LOOPS:
            normal = self._normalise(inner, inputs) if name == "custom_vjp_call" else None
            return self.run(inner, inputs) if normal is None else [normal]
        if name in SAME:
            return list(inputs)
        if self._folds(equation, inputs):
            arrays = [jnp.asarray(tensor.array) for tensor in inputs]
            results = equation.primitive.bind(*arrays, **equation.params)
            return [constant(x) for x in (results if equation.primitive.multiple_results else [results])]
        if name not in RULES:
            raise ValueError(f"the operation {name} of JAX has no rule for ONNX; use --to=stablehlo")
        results = RULES[name](self, equation, inputs)
        return results if isinstance(results, list) else [results]

    def full(self, tensor: Tensor, variable: Any) -> str:
        """Return the name of a tensor in the shape of its variable, broadcast if that was left out."""
        shape = tuple(variable.aval.shape)
        if tensor.shape == shape:
            return self.graph.read(tensor)
        if tensor.array is not None and all(isinstance(size, int) for size in shape):
            return self.graph.constant(np.broadcast_to(tensor.array, shape))
        return str(self.graph.node("Expand", [self.graph.read(tensor), self.graph.shape(shape)]))

    def reshape(self, name: str, shape: Sequence[Any]) -> str:
        """Return a value with another shape."""
        unknown = [size for size in shape if not isinstance(size, int)]
        if len(unknown) == 1 and 0 not in shape:
            vector = self.graph.constant(np.array([s if isinstance(s, int) else -1 for s in shape], np.int64))
        else:
            vector = self.graph.shape(shape)
        zeros = {"allowzero": 1} if 0 in shape and self.graph.opset >= 14 else {}
        return str(self.graph.node("Reshape", [name, vector], **zeros))

    def elementwise(self, kind: str, *inputs: Tensor) -> Tensor:
        """Return the output of an operation that broadcasts its inputs."""
        name = self.graph.node(kind, [self.graph.read(tensor) for tensor in inputs])
        return Tensor(name, join_shapes([tensor.shape for tensor in inputs]))

    def _folds(self, equation: Any, inputs: Sequence[Tensor]) -> bool:
        """Return True if an equation reads only constants, and its output is not larger than they are."""
        if any(tensor.array is None for tensor in inputs) or not inputs or equation.primitive.name in LOOPS:
            return False
        if any(tensor.shape != np.shape(atom.aval) for tensor, atom in zip(inputs, equation.invars)):
            return False
        shapes = [variable.aval.shape for variable in equation.outvars]
        return equation.primitive.name != "broadcast_in_dim" and all(
            isinstance(size, int) for shape in shapes for size in shape
        )

    def _normalise(self, inner: Any, inputs: Sequence[Tensor]) -> Tensor | None:
        """Return the output of a layer norm as one node, None for another function."""
        jaxpr = getattr(inner, "jaxpr", inner)
        if not str(jaxpr.debug_info.func_src_info).startswith("_normalise ") or self.graph.opset < 17:
            return None
        added = [equation for equation in jaxpr.eqns if equation.primitive.name == "add"]
        literals = [atom.val for equation in added for atom in equation.invars if isinstance(atom, Literal)]
        if len(literals) != 1 or inputs[0].shape != tuple(jaxpr.invars[0].aval.shape):
            return None
        names = [self.graph.read(tensor) for tensor in inputs]
        name = self.graph.node("LayerNormalization", names, axis=-1, epsilon=float(literals[0]))
        return Tensor(name, inputs[0].shape)


def constant(value: Any, name: str = "") -> Tensor:
    """Return a constant."""
    array = np.asarray(value)
    return Tensor(name, array.shape, array)


def join_shapes(shapes: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Return the shape of arrays that are broadcast against each other.

    >>> join_shapes([(2, 1), (), (1, 3)])
    (2, 3)
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((s for s in column if not is_one(s)), 1) for column in zip(*padded))


def is_one(size: Any) -> bool:
    """Return True for the number 1, False for another or an unknown size."""
    return isinstance(size, int) and size == 1


def shape_of(equation: Any) -> tuple[Any, ...]:
    """Return the shape of an equation's output."""
    return tuple(equation.outvars[0].aval.shape)


@rule(*UNARY)
def _unary(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    return c.elementwise(UNARY[equation.primitive.name], *inputs)


@rule(*BINARY)
def _binary(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    return c.elementwise(BINARY[equation.primitive.name], *inputs)


@rule("ne")
def _differ(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    return c.elementwise("Not", c.elementwise("Equal", *inputs))


@rule("rem")
def _remainder(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    name = c.graph.node("Mod", [c.graph.read(tensor) for tensor in inputs], fmod=1)
    return Tensor(name, join_shapes([tensor.shape for tensor in inputs]))


@rule("rsqrt")
def _inverse_root(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    return c.elementwise("Reciprocal", c.elementwise("Sqrt", *inputs))


@rule("square")
def _square(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    return c.elementwise("Mul", inputs[0], inputs[0])


@rule("integer_pow")
def _integer_power(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    power = np.asarray(equation.params["y"], equation.outvars[0].aval.dtype)
    return c.elementwise("Pow", inputs[0], constant(power))


@rule("log1p")
def _log_of_more(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    one = constant(np.ones((), equation.outvars[0].aval.dtype))
    return c.elementwise("Log", c.elementwise("Add", inputs[0], one))


@rule("clamp")
def _clamp(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    low, x, high = inputs
    return c.elementwise("Min", c.elementwise("Max", x, low), high)


@rule("select_n")
def _select(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    chosen, if_false, if_true = inputs
    return c.elementwise("Where", chosen, if_true, if_false)


@rule("convert_element_type")
def _convert_type(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    new, old = equation.params["new_dtype"], equation.invars[0].aval.dtype
    return inputs[0] if new == old else Tensor(c.graph.cast(c.graph.read(inputs[0]), new), inputs[0].shape)


@rule("broadcast_in_dim")
def _broadcast(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    places, rank, tensor = equation.params["broadcast_dimensions"], len(shape_of(equation)), inputs[0]
    shape = [1] * rank
    for place, size in zip(places, tensor.shape):
        shape[place] = size
    new = [axis for axis in range(rank) if axis not in places]
    if tensor.array is not None:
        return Tensor("", tuple(shape), tensor.array.reshape(shape)) if new else tensor
    axes = c.graph.constant(np.array(new, np.int64))
    return Tensor(c.graph.node("Unsqueeze", [tensor.name, axes]) if new else tensor.name, tuple(shape))


@rule("iota")
def _count(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    shape, axis, dtype = shape_of(equation), equation.params["dimension"], equation.params["dtype"]
    size, counted = shape[axis], [1] * len(shape)
    counted[axis] = -1
    if isinstance(size, int):
        return constant(np.arange(size, dtype=dtype).reshape(counted))
    zero, one = (c.graph.constant(np.array(n, np.int64)) for n in (0, 1))
    end = c.graph.node("Squeeze", [c.graph.size(size)])
    numbers = c.graph.cast(c.graph.node("Range", [zero, end, one]), dtype)
    name = c.graph.node("Reshape", [numbers, c.graph.constant(np.array(counted, np.int64))])
    return Tensor(name, tuple(size if n == axis else 1 for n in range(len(shape))))


@rule("dim_as_value")
def _size(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    size = c.graph.node("Squeeze", [c.graph.size(equation.params["dim"])])
    return Tensor(c.graph.cast(size, equation.outvars[0].aval.dtype), ())


@rule(*REDUCTIONS, "reduce_or", "reduce_and")
def _reduce(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    axes, name = list(equation.params["axes"]), equation.primitive.name
    x = c.full(inputs[0], equation.invars[0])
    logical = name in ("reduce_or", "reduce_and")
    kind = {"reduce_or": "ReduceMax", "reduce_and": "ReduceMin"}.get(name) or REDUCTIONS[name]
    x = c.graph.cast(x, np.int32) if logical else x
    if kind == "ReduceSum" or c.graph.opset >= 18:
        y = c.graph.node(kind, [x, c.graph.constant(np.array(axes, np.int64))], keepdims=0)
    else:
        y = c.graph.node(kind, [x], axes=axes, keepdims=0)
    return Tensor(c.graph.cast(y, np.bool_) if logical else y, shape_of(equation))


@rule("argmax", "argmin")
def _arg(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    kind = {"argmax": "ArgMax", "argmin": "ArgMin"}[equation.primitive.name]
    (axis,) = equation.params["axes"]
    y = c.graph.node(kind, [c.full(inputs[0], equation.invars[0])], axis=axis, keepdims=0)
    return Tensor(c.graph.cast(y, equation.params["index_dtype"]), shape_of(equation))


@rule("cumsum")
def _running_sum(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    axis = c.graph.constant(np.array(equation.params["axis"], np.int64))
    x = c.full(inputs[0], equation.invars[0])
    return Tensor(c.graph.node("CumSum", [x, axis], reverse=int(equation.params["reverse"])), shape_of(equation))


@rule("reshape")
def _reshape(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    shape = shape_of(equation)
    return Tensor(c.reshape(c.full(inputs[0], equation.invars[0]), shape), shape)


@rule("squeeze")
def _squeeze(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    axes = c.graph.constant(np.array(equation.params["dimensions"], np.int64))
    return Tensor(c.graph.node("Squeeze", [c.full(inputs[0], equation.invars[0]), axes]), shape_of(equation))


@rule("transpose")
def _transpose(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    order = list(equation.params["permutation"])
    name = c.graph.node("Transpose", [c.graph.read(inputs[0])], perm=order)
    return Tensor(name, tuple(inputs[0].shape[axis] for axis in order))


@rule("rev")
def _reverse(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    axes = equation.params["dimensions"]
    ends = [np.full(len(axes), n, np.int64) for n in (-1, np.iinfo(np.int64).min)]
    numbers = [*ends, np.array(axes, np.int64), np.full(len(axes), -1, np.int64)]
    name = c.graph.node("Slice", [c.full(inputs[0], equation.invars[0]), *map(c.graph.constant, numbers)])
    return Tensor(name, shape_of(equation))


@rule("concatenate")
def _concatenate(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    names = [c.full(tensor, variable) for tensor, variable in zip(inputs, equation.invars)]
    return Tensor(c.graph.node("Concat", names, axis=equation.params["dimension"]), shape_of(equation))


@rule("stack")
def _stack(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    axis = equation.params["axis"]
    axes = c.graph.constant(np.array([axis], np.int64))
    names = [c.full(tensor, variable) for tensor, variable in zip(inputs, equation.invars)]
    names = [c.graph.node("Unsqueeze", [name, axes]) for name in names]
    return Tensor(c.graph.node("Concat", names, axis=axis), shape_of(equation))


@rule("split")
def _split(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    sizes, x = equation.params["sizes"], c.full(inputs[0], equation.invars[0])
    names = c.graph.node("Split", [x, c.graph.shape(sizes)], len(sizes), axis=equation.params["axis"])
    names = [names] if len(sizes) == 1 else names
    return [Tensor(name, tuple(variable.aval.shape)) for name, variable in zip(names, equation.outvars)]


@rule("slice")
def _slice(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    p, rank = equation.params, len(shape_of(equation))
    axes, steps = np.arange(rank, dtype=np.int64), np.array(p["strides"] or (1,) * rank, np.int64)
    bounds = [c.graph.shape(p[name]) for name in ("start_indices", "limit_indices")]
    x = c.full(inputs[0], equation.invars[0])
    return Tensor(c.graph.node("Slice", [x, *bounds, *map(c.graph.constant, (axes, steps))]), shape_of(equation))


@rule("dynamic_slice")
def _dynamic_slice(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Slice from computed places, which the caller keeps inside."""
    sizes, one = shape_of(equation), np.array([1], np.int64)
    begins = [
        c.graph.cast(c.graph.node("Reshape", [c.graph.read(x), c.graph.constant(one)]), np.int64) for x in inputs[1:]
    ]
    begin = c.graph.node("Concat", begins, axis=0)
    end = c.graph.node("Add", [begin, c.graph.shape(sizes)])
    axes = c.graph.constant(np.arange(len(sizes), dtype=np.int64))
    return Tensor(c.graph.node("Slice", [c.full(inputs[0], equation.invars[0]), begin, end, axes]), sizes)


@rule("dynamic_update_slice")
def _dynamic_update(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Replace a part along one axis, at a computed place, which the caller keeps inside."""
    shape, part = (tuple(variable.aval.shape) for variable in equation.invars[:2])
    array, update = (c.full(tensor, variable) for tensor, variable in zip(inputs, equation.invars[:2]))
    axes = [axis for axis, sizes in enumerate(zip(shape, part)) if str(sizes[0]) != str(sizes[1])]
    if not axes:
        return Tensor(update, shape)
    if len(axes) > 1:
        raise ValueError("an update along several axes has no rule for ONNX; use --to=stablehlo")
    axis, one = c.graph.constant(np.array(axes, np.int64)), c.graph.constant(np.array([1], np.int64))
    begin = c.graph.cast(c.graph.node("Reshape", [c.graph.read(inputs[2 + axes[0]]), one]), np.int64)
    end = c.graph.node("Add", [begin, c.graph.shape([part[axes[0]]])])
    first, last = (c.graph.constant(np.array([n], np.int64)) for n in (0, np.iinfo(np.int64).max))
    before, after = (c.graph.node("Slice", [array, *bounds, axis]) for bounds in ((first, begin), (end, last)))
    return Tensor(c.graph.node("Concat", [before, update, after], axis=axes[0]), shape)


@rule("pad")
def _pad(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    low, high, inside = zip(*equation.params["padding_config"])
    if any(inside) or any(isinstance(n, int) and n < 0 for n in (*low, *high)):
        raise ValueError("padding that cuts or that is inside of an array has no rule for ONNX")
    pads = c.graph.shape((*low, *high))
    name = c.graph.node("Pad", [c.full(inputs[0], equation.invars[0]), pads, c.graph.read(inputs[1])])
    return Tensor(name, shape_of(equation))


@rule("gather")
def _gather(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Look up along one axis, after axes that match axes of the indices; indices outside end the run."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    table, indices = (c.full(tensor, variable) for tensor, variable in zip(inputs, equation.invars))
    batch, rank = len(numbers.operand_batching_dims), len(sizes)
    axes = numbers.start_index_map
    outer = len(equation.invars[1].aval.shape) - 1
    places = tuple(range(outer, outer + rank - batch - 1))
    cut = [n for n in range(rank) if n not in (*numbers.operand_batching_dims, *axes)]
    uncut = all(str(sizes[n]) == str(equation.invars[0].aval.shape[n]) for n in cut)
    in_order = numbers.operand_batching_dims == tuple(range(batch))
    order = [*numbers.start_indices_batching_dims]
    order += [axis for axis in range(outer) if axis not in order]  # axes of the indices, the batch in front
    if len(axes) == 1 and not batch and not outer and not numbers.collapsed_slice_dims and uncut:
        begin = c.graph.cast(indices, np.int64)
        end = c.graph.node("Add", [begin, c.graph.shape([sizes[axes[0]]])])
        return Tensor(c.graph.node("Slice", [table, begin, end, c.graph.constant(np.array(axes))]), shape_of(equation))
    if len(axes) != 1 or numbers.collapsed_slice_dims != axes or not uncut or not in_order:
        raise ValueError(f"a gather with {numbers} has no rule for ONNX; use --to=stablehlo")
    size = equation.invars[0].aval.shape[axes[0]]
    indices = c.graph.cast(indices, np.int64)
    if str(equation.params["mode"]).endswith("CLIP"):
        zero = c.graph.constant(np.array([0], np.int64))
        last = c.graph.node("Sub", [c.graph.size(size), c.graph.constant(np.array([1], np.int64))])
        indices = c.graph.node("Min", [c.graph.node("Max", [indices, zero]), last])
    if axes[0] == batch and numbers.offset_dims == places:
        if order == sorted(order):
            name = c.graph.node("GatherND", [table, indices], batch_dims=batch)
        else:
            moved = c.graph.node("Transpose", [indices], perm=[*order, outer])
            name = c.graph.node("GatherND", [table, moved], batch_dims=batch)
            back = [*(order.index(axis) for axis in range(outer)), *places]
            name = c.graph.node("Transpose", [name], perm=back)
    elif not batch and numbers.offset_dims == (*range(axes[0]), *range(axes[0] + outer, rank - 1 + outer)):
        last = c.graph.constant(np.array([-1], np.int64))
        name = c.graph.node("Gather", [table, c.graph.node("Squeeze", [indices, last])], axis=axes[0])
    else:
        raise ValueError(f"a gather with {numbers} has no rule for ONNX; use --to=stablehlo")
    return Tensor(name, shape_of(equation))


@rule("while")
def _while(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Loop until the condition fails; both jaxprs read constants, then the values that the loop carries."""
    p, variables = equation.params, equation.outvars
    first = p["cond_nconsts"]
    second = first + p["body_nconsts"]
    states = [c.full(tensor, variable) for tensor, variable in zip(inputs[second:], variables)]
    dtypes = [variable.aval.dtype for variable in variables]
    tensors = _inner_tensors(c, "state", variables)

    def test(carried: Sequence[Tensor]) -> str:
        return c.graph.read(c.run(p["cond_jaxpr"], [*inputs[:first], *carried])[0])

    def build() -> list[tuple[str, Any]]:
        carried = c.run(p["body_jaxpr"], [*inputs[first:second], *tensors])
        names = [c.full(tensor, variable) for tensor, variable in zip(carried, variables)]
        return [(test(carried), np.bool_), *zip(names, dtypes)]

    goes_on = test([Tensor(name, tuple(variable.aval.shape)) for name, variable in zip(states, variables)])
    marks = [(c.graph.new_name("turn"), np.int64, ()), (c.graph.new_name("goes_on"), np.bool_, ())]
    body = c.graph.body([*marks, *zip((tensor.name for tensor in tensors), dtypes)], build)
    names = c.graph.node("Loop", ["", goes_on, *states], len(states), body=body)
    return _outputs(names, variables)


@rule("scan")
def _scan(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Loop over the first axis of arrays; the step reads constants, carried values and an entry of each array."""
    p, jaxpr = equation.params, equation.params["jaxpr"].jaxpr
    first = p["num_consts"]
    second = first + p["num_carry"]
    read = [c.full(tensor, variable) for tensor, variable in zip(inputs[first:], equation.invars[first:])]
    if len(inputs) == second:
        raise ValueError("a loop over a number of steps alone has no rule for ONNX; use --to=stablehlo")
    tensors = _inner_tensors(c, "entry", jaxpr.invars[first:])

    def build() -> list[tuple[str, Any]]:
        results = c.run(p["jaxpr"], [*inputs[:first], *tensors])
        return [(c.full(x, variable), variable.aval.dtype) for x, variable in zip(results, jaxpr.outvars)]

    body = c.graph.body([(x.name, variable.aval.dtype) for x, variable in zip(tensors, jaxpr.invars[first:])], build)
    arrays, stacked = len(inputs) - second, len(equation.outvars) - p["num_carry"]
    backwards = {
        "scan_input_directions": [int(p["reverse"])] * arrays, "scan_output_directions": [int(p["reverse"])] * stacked,
    }  # fmt: skip
    backwards = {name: values for name, values in backwards.items() if values}
    names = c.graph.node("Scan", read, len(equation.outvars), body=body, num_scan_inputs=arrays, **backwards)
    return _outputs(names, equation.outvars)


def _inner_tensors(c: Converter, name: str, variables: Sequence[Any]) -> list[Tensor]:
    """Return the values that a step of a loop reads."""
    return [Tensor(c.graph.new_name(name), tuple(variable.aval.shape)) for variable in variables]


def _outputs(names: Any, variables: Sequence[Any]) -> list[Tensor]:
    names = [names] if len(variables) == 1 else names
    return [Tensor(name, tuple(variable.aval.shape)) for name, variable in zip(names, variables)]


@rule("dot_general")
def _product(c: Converter, equation: Any, inputs: Sequence[Tensor]) -> Tensor:
    (left_sum, right_sum), (left_batch, right_batch) = equation.params["dimension_numbers"]
    shapes = [tuple(variable.aval.shape) for variable in equation.invars]
    left_free, right_free = (
        [axis for axis in range(len(shape)) if axis not in (*summed, *batch)]
        for shape, summed, batch in zip(shapes, (left_sum, right_sum), (left_batch, right_batch))
    )

    def arrange(side: int, *groups: Sequence[int]) -> str:
        """Return a factor with its axes in the order of the groups, and each group as one axis."""
        order, shape, tensor = [axis for group in groups for axis in group], shapes[side], inputs[side]
        if tensor.array is not None and tensor.shape == shape and order != sorted(order):
            x = c.graph.constant(np.ascontiguousarray(tensor.array.transpose(order)), tensor.name)
        else:
            x = c.full(tensor, equation.invars[side])
            x = x if order == sorted(order) else c.graph.node("Transpose", [x], perm=order)
        if all(len(group) == 1 for group in groups[1:]):
            return str(x)
        sizes = [math.prod(shape[axis] for axis in group) for group in groups[1:]]
        return c.reshape(x, [*(shape[axis] for axis in groups[0]), *sizes])

    left = arrange(0, left_batch, left_free, left_sum)
    right = arrange(1, right_batch, right_sum, right_free)
    name = c.graph.node("MatMul", [left, right])
    if len(left_free) != 1 or len(right_free) != 1:
        name = c.reshape(name, shape_of(equation))
    new, old = equation.outvars[0].aval.dtype, equation.invars[0].aval.dtype
    return Tensor(name if new == old else c.graph.cast(name, new), shape_of(equation))


def convert_function(
    function: Callable[..., Any],
    params: Any,
    inputs: Mapping[str, jax.ShapeDtypeStruct],
    outputs: Sequence[str],
    *,
    opset: int = 17,
) -> Any:
    """Return the ONNX model of `function(params, *inputs)`, which returns a tuple of arrays.

    Inputs that are int32 for the function are int64 there; their shapes may have symbolic sizes of `jax.export`. The
    parameters keep their paths as names.
    """
    sizes: dict[str, tuple[str, int]] = {}
    for name, described_input in inputs.items():
        for axis, size in enumerate(described_input.shape):
            if not isinstance(size, int):
                sizes.setdefault(str(size), (name, axis))
    graph = Graph(opset, sizes)
    traced = jax.jit(function).trace(params, *inputs.values())
    leaves = jax.tree_util.tree_leaves_with_path(params)
    paths = ["/".join(str(getattr(key, "key", key)) for key in path) for path, _ in leaves]
    tensors = [constant(leaf, path) for path, (_, leaf) in zip(paths, leaves)]
    integers = {name for name, x in inputs.items() if x.dtype == jnp.int32}
    tensors += [
        Tensor(graph.cast(name, np.int32) if name in integers else name, tuple(x.shape)) for name, x in inputs.items()
    ]
    converter = Converter(graph)
    results = converter.run(traced.jaxpr, tensors)
    described = []
    for name, tensor, variable in zip(outputs, results, traced.jaxpr.jaxpr.outvars, strict=True):
        graph.nodes.append(
            graph.onnx.helper.make_node("Identity", [converter.full(tensor, variable)], [name], name=name)
        )
        described.append((name, variable.aval.dtype, variable.aval.shape))
    read = [(name, np.int64 if name in integers else x.dtype, x.shape) for name, x in inputs.items()]
    return graph.finish(read, described, "model")
