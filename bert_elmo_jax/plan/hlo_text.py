"""Parse the text of a compiled program: its computations, and the shapes, operands and attributes of instructions.

XLA's text is not a stable format. This parser only reads the parts that `compiled_cost` needs, which have not changed
for years. An unreadable instruction is an error.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

BITS = {"pred": 8, "token": 0, "opaque": 0}  # of types without a number in their name

_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<= ]*)\](?:\{([^{}]*)\})?|(token)\[\]")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.*)$")
_COMMENT = re.compile(r"/\*.*?\*/")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"%?([\w.\-]+)$")


@dataclass(frozen=True)
class Shape:
    """The type and sizes of an array; `space` is 0 for a device's main memory."""

    dtype: str
    sizes: tuple[int, ...]
    space: int = 0

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def size(self) -> int:
        """The size in bytes."""
        bits = BITS[self.dtype] if self.dtype in BITS else int((re.findall(r"\d+", self.dtype) or [0])[0])
        return (self.elements * bits + 7) // 8


@dataclass(frozen=True)
class Instruction:
    """One line of a computation; `shapes` has several entries if the result is a tuple."""

    name: str
    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[str, ...]
    attributes: str  # the text of the attributes

    def called(self, attribute: str) -> str | None:
        """Return the name of the computation in an attribute such as `body`."""
        match = re.search(rf"\b{attribute}=%?([\w.\-]+)", self.attributes)
        return match.group(1) if match else None


@dataclass(frozen=True)
class Computation:
    """Instructions by name, in order; the name of the root; and the names of the parameters by number."""

    name: str
    instructions: Mapping[str, Instruction]
    root: str
    parameters: Mapping[int, str]


@dataclass(frozen=True)
class Module:
    """A whole program."""

    entry: Computation
    computations: Mapping[str, Computation]
    devices: int  # that run it together


def parse_hlo(text: str) -> Module:
    """Parse the output of `compiled.as_text()`."""
    computations: dict[str, Computation] = {}
    entry, name, lines, root = "", "", dict[str, Instruction](), ""
    begun = ""  # an instruction that continues in the next line, as the metadata of a kernel does
    for line in text.splitlines():
        if not name:
            header = _COMPUTATION.match(line)
            if header and not line.startswith("HloModule"):
                name, lines, root = header.group(2), {}, ""
                entry = name if header.group(1) else entry
            continue
        begun += line
        if _open_braces(begun) > 0:
            continue
        line, begun = begun, ""
        if line.startswith("}"):
            numbers = {
                int(i.attributes[1 : i.attributes.index(")")]): i.name
                for i in lines.values()
                if i.opcode == "parameter"
            }
            computations[name] = Computation(name, lines, root or next(reversed(lines)), numbers)
            name = ""
        elif match := _INSTRUCTION.match(_COMMENT.sub("", line)):
            instruction = _instruction(match.group(2), match.group(3))
            lines[instruction.name] = instruction
            root = instruction.name if match.group(1) else root
    if name:
        raise ValueError(f"the text of the program ends inside of the computation {name}")
    if not entry:
        raise ValueError("this is not the text of a compiled program: it has no ENTRY computation")
    counts = re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", text.partition("\n")[0])
    return Module(computations[entry], computations, math.prod(map(int, counts)))


def _open_braces(text: str) -> int:
    """Return how many braces are open at the end of a text, not counting those in strings."""
    bare = _STRING.sub("", text) if '"' in text else text
    return bare.count("{") - bare.count("}")


def _instruction(name: str, text: str) -> Instruction:
    end = _closing(text, 0) + 1 if text.startswith("(") else text.index(" ")
    shapes = tuple(_shape(match) for match in _ARRAY.finditer(text[:end]))
    opcode, bracket, _ = text[end:].partition("(")
    if not bracket:
        raise ValueError(f"cannot read the instruction {name} = {text[:200]}")
    first = end + len(opcode)
    last = _closing(text, first)
    inside = text[first + 1 : last]
    if opcode.strip() in ("parameter", "constant"):
        return Instruction(name, opcode.strip(), shapes, (), f"({inside}){text[last + 1 :]}")
    operands = tuple(match.group(1) for part in _commas(inside) if (match := _NAME.search(part)))
    return Instruction(name, opcode.strip(), shapes, operands, text[last + 1 :])


def _shape(match: re.Match[str]) -> Shape:
    if match.group(4):
        return Shape("token", ())
    sizes = tuple(int(size.strip(" <=")) for size in match.group(2).split(",") if size)
    space = re.search(r"S\((\d+)\)", match.group(3) or "")
    return Shape(match.group(1), sizes, int(space.group(1)) if space else 0)


def _closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match.group() == "(" else -1
        if not depth:
            return match.start()
    raise ValueError(f"a bracket does not close: {text[start : start + 200]}")


def _commas(text: str) -> list[str]:
    """Split a text at the commas outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for match in re.finditer(r"[()\[\]{},]", text):
        if match.group() == ",":
            if not depth:
                parts.append(text[begin : match.start()].strip())
                begin = match.end()
        else:
            depth += 1 if match.group() in "([{" else -1
    return [*parts, text[begin:].strip()] if text.strip() else []
