"""Record the executed lines of some files: with `sys.monitoring` since Python 3.12, else with `sys.settrace`."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TOOL = 3  # of `sys.monitoring`; 0 to 2 and 5 have a meaning


class Coverage:
    """A collector of the executed lines of functions in `files`; `lines` grows while `watching`."""

    def __init__(self, files: Iterable[Path]):
        self.files = {str(file): file for file in files}
        self.lines: set[tuple[str, int]] = set()
        self.known = {(name, line) for name, file in self.files.items() for line in function_lines(file)}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Collect lines within a block."""
        if hasattr(sys, "monitoring"):
            yield from self._monitor()
        else:
            before = sys.gettrace()
            sys.settrace(self._trace)
            try:
                yield
            finally:
                sys.settrace(before)

    def _monitor(self) -> Iterator[None]:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        if monitoring.get_tool(TOOL) is None:
            monitoring.use_tool_id(TOOL, "campaigns")
        monitoring.register_callback(TOOL, monitoring.events.LINE, self._on_line)
        monitoring.set_events(TOOL, monitoring.events.LINE)
        try:
            yield
        finally:
            monitoring.set_events(TOOL, 0)

    def _on_line(self, code: CodeType, line: int) -> Any:
        if code.co_filename in self.files:
            self.lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]  # each line is reported once

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.files:
            return None
        if event == "line":
            self.lines.add((name, frame.f_lineno))
        return self._trace

    @property
    def reached(self) -> int:
        """The number of lines of functions that were executed."""
        return len(self.lines & self.known)


def function_lines(file: Path) -> set[int]:
    """Return the numbers of the lines inside of functions that can be executed."""
    lines: set[int] = set()

    def walk(code: CodeType, inside: bool) -> None:
        if inside:
            lines.update(line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
        for part in code.co_consts:
            if isinstance(part, CodeType):
                walk(part, inside or bool(part.co_flags & 0x2))  # CO_NEWLOCALS: a function and no class

    walk(compile(file.read_text(encoding="utf-8"), str(file), "exec"), False)
    return lines
