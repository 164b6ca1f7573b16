"""The report on a read of weights: which tensors were used, skipped or missing."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Complete lists of the tensors of a file, by their names in the file ("theirs") and in the tree ("ours").

    `str(report)` is a summary. `extras` holds other facts from the folder, such as labels.

    >>> print(Report("a.bin", mapped={"nsp/bias": "cls.seq_relationship.bias"}, unexpected=["adapter.weight"]))
    a.bin: 1 tensor mapped
    unexpected, not used (1): adapter.weight
    """

    source: str
    mapped: dict[str, str] = field(default_factory=dict)  # ours -> theirs
    skipped: dict[str, str] = field(default_factory=dict)  # theirs -> reason
    missing: dict[str, str] = field(default_factory=dict)  # ours -> expected name in the file
    unexpected: list[str] = field(default_factory=list)  # theirs
    misshaped: dict[str, str] = field(default_factory=dict)  # theirs -> actual and expected shape
    contradictions: list[str] = field(default_factory=list)  # messages about options that the weights contradict
    initialised: list[str] = field(default_factory=list)  # ours: missing from the weights, randomly initialised
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the heads that were read."""
        return tuple(dict.fromkeys(name for path in self.mapped if (name := path.split("/")[0]) != "encoder"))

    def raise_if_unusable(self) -> None:
        """Raise one error for all missing and mis-shaped tensors and contradictions; a head without tensors is fine."""
        if self.missing or self.misshaped or self.contradictions:
            raise ValueError(
                f"the weights in {self.source} do not fit:\n"
                + "\n".join(self._lines("contradictions", "missing", "misshaped", "unexpected"))
                + "\nThey were compared with the configuration in their folder: does it belong to these weights?"
            )

    def __str__(self) -> str:
        count = len(self.mapped)
        lines = [f"{self.source}: {count} tensor{'s' * (count != 1)} mapped"]
        return "\n".join(lines + self._lines("skipped", "missing", "misshaped", "unexpected", "initialised"))

    def _lines(self, *kinds: str) -> list[str]:
        reasons = defaultdict(list)
        for name, why in self.skipped.items():
            reasons[why].append(name)
        lines = {
            # There are hundreds of optimiser slots; `skipped` has all their names.
            "skipped": [f"skipped ({len(names)}), {why}: {_few(names)}" for why, names in reasons.items()],
            "contradictions": _list("contradicted", self.contradictions, "\n  "),
            "misshaped": _list("mis-shaped", [f"{name}: {what}" for name, what in self.misshaped.items()], "\n  "),
            "unexpected": _list("unexpected, not used", self.unexpected),
            "missing": _list("missing", list(self.missing.values())),
            "initialised": _list("initialised", self.initialised),
        }
        return [line for kind in kinds for line in lines[kind]]


def _list(title: str, names: list[str], line: str = "") -> list[str]:
    """Return the line of a kind, empty if there are none; with `line`, each name begins its own."""
    shown = "".join(line + name for name in names) if line else f" {', '.join(names)}"
    return [f"{title} ({len(names)}):{shown}"] if names else []


def _few(names: list[str], show: int = 3) -> str:
    rest = f" and {len(names) - show} more" if len(names) > show else ""
    return ", ".join(names[:show]) + rest
