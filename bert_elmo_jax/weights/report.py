"""The report on a read of weights: which tensors were used, skipped or missing."""

from collections import defaultdict
from collections.abc import Iterable
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
        """The names of the heads that were read.

        >>> Report("a.bin", mapped={"encoder/pooler/bias": "pooler.dense.bias", "nsp/bias": "nsp.bias"}).heads
        ('nsp',)
        """
        return tuple(dict.fromkeys(name for path in self.mapped if (name := path.split("/")[0]) != "encoder"))

    def raise_if_unusable(self) -> None:
        """Raise one error that lists all missing and mis-shaped tensors and contradicted options.

        A head without any tensor is not an error.

        >>> Report("model.safetensors", missing={"encoder/pooler/bias": "pooler.dense.bias"}).raise_if_unusable()
        Traceback (most recent call last):
        ValueError: the weights in model.safetensors do not fit:
        missing (1): pooler.dense.bias
        They were compared with the configuration in their folder: does it belong to these weights?
        """
        if self.missing or self.misshaped or self.contradictions:
            raise ValueError(
                f"the weights in {self.source} do not fit:\n"
                + "\n".join(self._lines(("contradictions", "missing", "misshaped", "unexpected")))
                + "\nThey were compared with the configuration in their folder: does it belong to these weights?"
            )

    def __str__(self) -> str:
        count = len(self.mapped)
        lines = [f"{self.source}: {count} tensor{'s' * (count != 1)} mapped"]
        return "\n".join(lines + self._lines(("skipped", "missing", "misshaped", "unexpected", "initialised")))

    def _lines(self, kinds: Iterable[str]) -> list[str]:
        lines = []
        for kind in kinds:
            if not getattr(self, kind):
                continue
            if kind == "skipped":
                reasons = defaultdict(list)
                for name, why in self.skipped.items():
                    reasons[why].append(name)
                # There are hundreds of optimiser slots; `skipped` has all their names.
                lines += [f"skipped ({len(names)}), {why}: {_few(names)}" for why, names in reasons.items()]
            elif kind == "contradictions":
                lines += [f"contradicted ({len(self.contradictions)}):"]
                lines += [f"  {what}" for what in self.contradictions]
            elif kind == "misshaped":
                lines += [f"mis-shaped ({len(self.misshaped)}):"]
                lines += [f"  {name}: {what}" for name, what in self.misshaped.items()]
            elif kind == "unexpected":
                lines.append(f"unexpected, not used ({len(self.unexpected)}): {', '.join(self.unexpected)}")
            else:
                names = list(self.missing.values()) if kind == "missing" else self.initialised
                lines.append(f"{kind} ({len(names)}): {', '.join(names)}")
        return lines


def _few(names: list[str], show: int = 3) -> str:
    rest = f" and {len(names) - show} more" if len(names) > show else ""
    return ", ".join(names[:show]) + rest
