"""One bar for all of the quickstart: how much of the work is done, what is running, and how long the rest takes."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from bert_elmo_jax.quickstart.parts import Folder, Part
from bert_elmo_jax.sweeps.schedule import LOG, State

# Seconds that parts take, each with a core of its own: what the bar's length is shared out by.
USUAL = {"pretrain_bert": 80, "pretrain_elmo": 86, "bert": 15, "network": 33, "network_elmo": 48}


def seconds(part: Part) -> float:
    """How long a part takes on a core.

    >>> from bert_elmo_jax.quickstart.parts import Sizes, parts_of
    >>> [seconds(part) for part in parts_of(Path("runs/quickstart"), Sizes())[:4]]
    [80, 86, 15, 15]
    """
    if not part.task:
        return USUAL[part.program]
    return USUAL["bert" if "BERT" in part.column else "network_elmo" if "with ELMo" in part.column else "network"]


class Progress:
    """The bar; where there is no terminal, a line for each part that ends."""

    def __init__(self, parts: Sequence[Part], folder: Folder, jobs: int):
        self._parts, self._folder, self._jobs = parts, folder, jobs
        self._began, self._first = time.monotonic(), 0.0
        self._known: set[str] | None = None
        self._bar = tqdm(
            total=sum(map(seconds, parts)), bar_format="{percentage:3.0f}%|{bar:24}| {desc}", leave=False, disable=None
        )

    def say(self, line: str) -> None:
        """A line that stays."""
        tqdm.write(line, file=sys.stderr)

    def changed(self, state: State[Part]) -> None:
        """A part has ended; those that were there at the start are not told."""
        if self._known is None:
            self._known, self._first = set(state.done), self.made(state)
        for part in self._parts:
            if part.name in state.done - self._known:
                self._known.add(part.name)
                self.say(f"{part.name}: done, {len(state.done)} of {len(self._parts)}{self.left(state)}")

    def tick(self, state: State[Part]) -> None:
        """Time has passed."""
        self._bar.n = self.made(state)
        running = ", ".join(
            f"{name} {self.share(self._part(name), since):.0%}" for name, since in state.running.items()
        )
        self._bar.set_description_str(f"{running}{self.left(state)}")

    def made(self, state: State[Part]) -> float:
        """The seconds of a core that are behind us."""
        done = sum(seconds(part) for part in self._parts if part.name in state.done)
        begun = ((self._part(name), since) for name, since in state.running.items())
        return done + sum(seconds(part) * self.share(part, since) for part, since in begun)

    def share(self, part: Part, since: float) -> float:
        """How much of a part is done: of a pretraining what its own bar says, of the others the usual time."""
        if not part.task:
            return last_percent(self._folder.run(part) / LOG) / 100
        return min(0.95, (time.monotonic() - since) / seconds(part))

    def left(self, state: State[Part]) -> str:
        """How long the rest takes, at the pace of this start."""
        made, all_of_it = self.made(state), sum(map(seconds, self._parts))
        here = made - self._first
        pace = (time.monotonic() - self._began) / here if here > 0.05 * all_of_it else 1 / self._jobs
        minutes = round((all_of_it - made) * pace / 60)
        return f", about {minutes} minutes left" if minutes > 1 else ", a minute left"

    def close(self) -> None:
        """Leave the terminal as it is found by others."""
        self._bar.close()

    def _part(self, name: str) -> Part:
        return next(part for part in self._parts if part.name == name)


def last_percent(log: Path) -> int:
    """What the last bar in a log has come to; 0 where there is none.

    >>> last_percent(Path("no/such/log.txt"))
    0
    """
    with contextlib.suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        if found := re.findall(rb"(\d+)%\|", file.read()):
            return int(found[-1])
    return 0
