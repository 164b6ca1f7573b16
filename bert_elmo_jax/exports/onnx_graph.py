"""A graph of ONNX nodes that grows node by node, with sizes that are known only when it runs."""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

OLDEST_OPSET = 13  # axes are inputs since then


class Tensor(NamedTuple):
    """A value of the graph; its shape has 1 where a broadcast is left to the operations that read it."""

    name: str
    shape: tuple[Any, ...]
    array: np.ndarray | None = None  # of a constant, which becomes part of the graph when a node reads it


def check_opset(opset: int) -> None:
    """Raise ValueError for a set of operators that is too old, or that the installed onnx does not know."""
    import onnx

    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        problem = "old" if opset < OLDEST_OPSET else "new for the installed onnx"
        raise ValueError(f"opset {opset} is too {problem}: use {OLDEST_OPSET} to {newest}")


class Graph:
    """Nodes, constants and inputs; `sizes` names the input and the axis that each symbolic size is read from."""

    def __init__(self, opset: int, sizes: dict[str, tuple[str, int]]):
        import onnx

        check_opset(opset)
        self.onnx, self.opset, self.sizes = onnx, opset, sizes
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self._small: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._made: dict[str, str] = {}  # sizes and shapes that are there already
        self._count = 0  # names that were given out

    def new_name(self, kind: str) -> str:
        """Return a name that no other value has."""
        self._count += 1
        return f"{kind}_{self._count}"

    def node(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or of all outputs."""
        base = self.new_name(kind)
        names = [f"{base}_{n}" for n in range(outputs)] if outputs > 1 else [base]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, array: np.ndarray, name: str = "") -> str:
        """Return the name of a constant."""
        array = np.asarray(array)
        key = str(array.dtype), array.shape, array.tobytes() if array.size < 64 else b""
        if array.size < 64 and key in self._small:
            return self._small[key]
        name = name or f"constant_{len(self.constants)}"
        while name in self.constants and self.constants[name] is not array:
            name += "_"
        self.constants[name] = array
        if array.size < 64:
            self._small[key] = name
        return name

    def read(self, tensor: Tensor) -> str:
        """Return the name that a node uses to read a tensor."""
        return tensor.name if tensor.array is None else self.constant(tensor.array, tensor.name)

    def body(self, inputs: Sequence[tuple[Any, ...]], build: Callable[[], Sequence[tuple[str, Any]]]) -> Any:
        """Return the graph of a loop's step, whose inputs and outputs are (name, type), or with sizes.

        `build` adds its nodes; they may read everything that is in this graph already.
        """
        outer_nodes, outer_made = self.nodes, self._made
        self.nodes, self._made = [], dict(outer_made)
        results = [(str(self.node("Identity", [name])), dtype) for name, dtype in build()]
        nodes, self.nodes, self._made = self.nodes, outer_nodes, outer_made
        described = [[self._describe(*part) for part in parts] for parts in (inputs, results)]
        return self.onnx.helper.make_graph(nodes, self.new_name("body"), *described)

    def _describe(self, name: str, dtype: Any, sizes: Sequence[Any] | None = None) -> Any:
        shape = None if sizes is None else [size if isinstance(size, int) else str(size) for size in sizes]
        helper = self.onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    def cast(self, name: str, dtype: Any) -> str:
        """Return a value in another type."""
        return self.node("Cast", [name], to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def shape(self, sizes: Sequence[Any]) -> str:
        """Return a shape as an int64 vector."""
        if all(isinstance(size, int) for size in sizes):
            return self.constant(np.array(sizes, np.int64))
        return self._once(f"shape {list(map(str, sizes))}", lambda: self._join(sizes))

    def _join(self, sizes: Sequence[Any]) -> str:
        parts = [self.size(size) for size in sizes]
        return parts[0] if len(parts) == 1 else str(self.node("Concat", parts, axis=0))

    def size(self, size: Any) -> str:
        """Return a size as an int64 vector of one number."""
        if isinstance(size, int):
            return self.constant(np.array([size], np.int64))
        text = str(size).replace("^", "**")
        return self._once(f"size {text}", lambda: self._compute(ast.parse(text, mode="eval").body))

    def _once(self, key: str, make: Callable[[], str]) -> str:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _compute(self, tree: ast.expr) -> str:
        """Return the value of an expression of sizes, such as `2*length + 1`."""
        match tree:
            case ast.Name(id=name):
                source, axis = self.sizes[name]
                shape = self._once(f"shape of {source}", lambda: self.node("Shape", [source]))
                return str(self.node("Gather", [shape, self.constant(np.array([axis], np.int64))], axis=0))
            case ast.Constant(value=int(value)):
                return self.constant(np.array([value], np.int64))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return str(self.node("Neg", [self._compute(operand)]))
            case ast.BinOp(left=left, op=op, right=right):
                kind = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Pow: "Pow"}[type(op)]
                return str(self.node(kind, [self._compute(left), self._compute(right)]))
            case ast.Call(func=ast.Name(id=name), args=[left, right]):
                kind = {"floordiv": "Div", "mod": "Mod", "max": "Max", "min": "Min"}[name]
                return str(self.node(kind, [self._compute(left), self._compute(right)]))
        raise ValueError(f"the size {ast.unparse(tree)} has no form in ONNX")

    def finish(self, inputs: Sequence[Any], outputs: Sequence[Any], name: str) -> Any:
        """Return the model with the nodes that its outputs need; inputs and outputs are (name, type, sizes)."""
        helper = self.onnx.helper
        used = {name for name, _, _ in outputs}
        nodes: list[Any] = []
        for node in reversed(self.nodes):
            if used & set(node.output):
                used |= set(names_read(node))
                nodes.insert(0, node)
        tensors = [self.onnx.numpy_helper.from_array(x, key) for key, x in self.constants.items() if key in used]
        graph = helper.make_graph(
            nodes,
            name,
            [self._describe(*part) for part in inputs],
            [self._describe(*part) for part in outputs],
            tensors,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets),
            producer_name="bert_elmo_jax",
        )


def names_read(node: Any) -> Iterator[str]:
    """Yield the names that a node reads, with those that the step of a loop reads."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from names_read(inner)
