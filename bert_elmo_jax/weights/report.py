"""What became of every tensor when weights were read."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Which tensor went where: complete lists, under the names of the file ("theirs") and of the tree ("ours").

    `str(report)` is a short text. `extras` is what the folder says beyond weights (labels and the like).

    >>> print(Report("a.bin", mapped={"nsp/bias": "cls.seq_relationship.bias"}, unexpected=["adapter.weight"]))
    a.bin: 1 tensor mapped
    unexpected, left (1): adapter.weight
    """

    source: str
    mapped: dict[str, str] = field(default_factory=dict)  # ours -> theirs
    skipped: dict[str, str] = field(default_factory=dict)  # theirs -> why
    missing: dict[str, str] = field(default_factory=dict)  # ours -> theirs, as it should have been called
    unexpected: list[str] = field(default_factory=list)  # theirs
    misshaped: dict[str, str] = field(default_factory=dict)  # theirs -> what is wrong
    contradictions: list[str] = field(default_factory=list)  # what the configuration says, and what the weights show
    initialised: list[str] = field(default_factory=list)  # ours: drawn anew by whoever needed what the weights lack
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that were read, in the tree's names.

        >>> Report("a.bin", mapped={"encoder/pooler/bias": "pooler.dense.bias", "nsp/bias": "nsp.bias"}).heads
        ('nsp',)
        """
        return tuple(dict.fromkeys(name for path in self.mapped if (name := path.split("/")[0]) != "encoder"))

    def raise_if_unusable(self) -> None:
        """Raise one error that names all missing and mis-shaped tensors, and what contradicts the configuration.

        A head that is wholly absent is no error.

        >>> Report("model.safetensors", missing={"encoder/pooler/bias": "pooler.dense.bias"}).raise_if_unusable()
        Traceback (most recent call last):
        ValueError: the weights in model.safetensors do not fit:
        missing (1): pooler.dense.bias
        They were held against the configuration beside them: is it the one of these weights?
        """
        if self.missing or self.misshaped or self.contradictions:
            raise ValueError(
                f"the weights in {self.source} do not fit:\n"
                + "\n".join(self._lines(("contradictions", "missing", "misshaped", "unexpected")))
                + "\nThey were held against the configuration beside them: is it the one of these weights?"
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
                # Optimiser slots come in hundreds; all their names are in `skipped`.
                lines += [f"skipped ({len(names)}), {why}: {_few(names)}" for why, names in reasons.items()]
            elif kind == "contradictions":
                lines += [f"contradicted ({len(self.contradictions)}):"]
                lines += [f"  {what}" for what in self.contradictions]
            elif kind == "misshaped":
                lines += [f"mis-shaped ({len(self.misshaped)}):"]
                lines += [f"  {name}: {what}" for name, what in self.misshaped.items()]
            elif kind == "unexpected":
                lines.append(f"unexpected, left ({len(self.unexpected)}): {', '.join(self.unexpected)}")
            else:
                names = list(self.missing.values()) if kind == "missing" else self.initialised
                lines.append(f"{kind} ({len(names)}): {', '.join(names)}")
        return lines


def _few(names: list[str], show: int = 3) -> str:
    rest = f" and {len(names) - show} more" if len(names) > show else ""
    return ", ".join(names[:show]) + rest
