"""A pickle machine that only builds containers: it never imports, calls or sets attributes.

Python's own Unpickler makes the calls that a pickle asks for, even when restricted. This machine walks the opcodes with
`pickletools` and records them: an allowed name becomes a `Name`, a call of it a `Called`. Everything else is refused.
"""

import io
import mmap
import pickletools
import sys
import warnings
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from bert_elmo_jax.weights.stored import what_is

MOST_OPCODES = 1_000_000  # a thousand layers need half of it
LARGEST_PLAIN = 1 << 26  # bytes of a pickle of plain values
MOST_BITS = 128  # of an integer; the magic number of old files has 77
LARGEST_KEY = sys.hash_info.modulus  # larger integers can all have one hash, which takes quadratic time
ORDERED_DICT = "collections OrderedDict"
# Operations that push their argument: numbers, text and bytes.
CONTENT = {"BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES"}


@dataclass(frozen=True, eq=False)
class Name:
    """A name that a pickle refers to, as "module name"; it was not imported."""

    text: str


@dataclass(frozen=True, eq=False)
class Called:
    """A call that a pickle asks for; it was not made."""

    name: str
    arguments: tuple[Any, ...]


def run_pickle(file: io.BytesIO | mmap.mmap, allowed: Set[str], persistent: Callable[[Any], Any]) -> Any:
    """Read one pickle from a stream and return the object it describes.

    Pass a memory map rather than a file: a map does not allocate the lengths that a pickle claims. `allowed` are the
    names the pickle may refer to. `persistent` maps the id of an object stored outside the pickle to its stand-in.
    """
    machine = _Machine(allowed, persistent)
    try:
        with warnings.catch_warnings():  # Python warns about some damaged names, which are refused below
            warnings.simplefilter("ignore")
            for count, (opcode, argument, _) in enumerate(pickletools.genops(cast("IO[bytes]", file))):
                if count > MOST_OPCODES:
                    raise ValueError(f"its pickle has more than {MOST_OPCODES:,} steps, too many for a list of tensors")
                machine.step(opcode.name, argument)
    except (IndexError, KeyError, TypeError, OverflowError, UnicodeDecodeError) as problem:
        raise ValueError(f"its pickle is damaged ({type(problem).__name__}: {problem})") from None
    return machine.stack[-1]


def read_plain_pickle(path: str | Path) -> Any:
    """Return the numbers, strings and containers of a pickle, such as a list of words; nothing else is read."""
    path = Path(path)
    with path.open("rb") as file:
        data = file.read(LARGEST_PLAIN + 1)
    try:
        if data[:1] != b"\x80":
            raise ValueError(f"it is not a pickle of protocol 2 or later but {what_is(path)}")
        if len(data) > LARGEST_PLAIN:
            raise ValueError(f"it has more than {LARGEST_PLAIN:,} bytes, too many for a list of words")
        return run_pickle(io.BytesIO(data), set(), _no_storage)
    except ValueError as problem:
        raise ValueError(f"{path} cannot be read as a pickle of plain values: {problem}.") from None


def _no_storage(id: Any) -> Any:
    raise ValueError("it refers to something outside its pickle")


def _refuse(name: str) -> ValueError:
    return ValueError(
        f"it asks for {name}, which is refused: only tensors and containers are read, nothing is executed"
    )


class _Machine:
    def __init__(self, allowed: Set[str], persistent: Callable[[Any], Any]):
        self.allowed = allowed
        self.persistent = persistent
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks under each open mark
        self.memo: dict[int, Any] = {}

    def items(self) -> list[Any]:
        """Pop everything pushed since the last mark."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def name(self, text: str) -> Name:
        if text not in self.allowed | {ORDERED_DICT}:
            raise _refuse(text.replace(" ", "."))
        return Name(text)

    def fill(self, container: Any, keys: list[Any], values: list[Any]) -> None:
        if not isinstance(container, dict) or len(keys) != len(values):
            raise TypeError("items for something that is not a dictionary")
        for key, value in zip(keys, values):
            if not isinstance(key, str | int):
                raise _refuse(f"a dictionary key of type {type(key).__name__}")
            if isinstance(key, int) and abs(key) >= LARGEST_KEY:
                raise ValueError(f"its pickle has the dictionary key {key:,}, larger than any number of a parameter")
            container[key] = value

    def extend(self, container: Any, values: list[Any]) -> None:
        if not isinstance(container, list):
            raise TypeError("items for something that is not a list")
        container += values

    def call(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise _refuse(f"a call of a {type(function).__name__}")
        if function.text != ORDERED_DICT:
            return Called(function.text, arguments)
        pairs = arguments[0] if arguments else []
        # A pair is never copied: thousands of them can be one long string.
        if not isinstance(pairs, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            raise TypeError("an OrderedDict of something else than pairs")
        result: dict[Any, Any] = {}
        self.fill(result, [key for key, _ in pairs], [value for _, value in pairs])
        return result

    def step(self, opcode: str, argument: Any) -> None:
        stack = self.stack
        match opcode:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                if len(stack) != 1 or self.below:
                    raise ValueError("its pickle is damaged: objects are left over at its end")
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[opcode])
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "LONG4":
                if argument.bit_length() > MOST_BITS:
                    raise ValueError(
                        f"its pickle holds an integer of {argument.bit_length()} bits, too many for a tensor size"
                    )
                stack.append(argument)
            case _ if opcode in CONTENT:
                stack.append(argument)
            case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
                stack.append({"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[opcode])
            case "MARK":
                self.below.append(stack)
                self.stack = []
            case "TUPLE":
                items = self.items()
                self.stack.append(tuple(items))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                size = int(opcode[-1])
                if len(stack) < size:
                    raise IndexError("a tuple of more items than the stack has")
                stack[-size:] = [tuple(stack[-size:])]
            case "APPEND":
                value = stack.pop()
                self.extend(stack[-1], [value])
            case "APPENDS":
                items = self.items()
                self.extend(self.stack[-1], items)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                self.fill(stack[-1], [key], [value])
            case "SETITEMS":
                items = self.items()
                self.fill(self.stack[-1], items[::2], items[1::2])
            case "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(self.memo[argument])
            case "GLOBAL":
                stack.append(self.name(argument))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                stack.append(self.name(f"{module} {name}" if isinstance(module, str) else "a module without a name"))
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(self.call(function, arguments))
            case "BUILD":  # a state dictionary has its modules' versions as an attribute: dropped
                stack.pop()
                if not isinstance(stack[-1], dict):
                    raise _refuse(f"a change of a {type(stack[-1]).__name__}")
            case "BINPERSID":
                stack.append(self.persistent(stack.pop()))
            case "INST":
                raise _refuse(argument.replace(" ", "."))
            case _:
                raise _refuse(f"the pickle operation {opcode}")
