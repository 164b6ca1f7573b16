"""Parameter trees: find their tensors in a file, build them with a report, flatten them, check their shapes."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from flax import traverse_util

from bert_elmo_jax.weights.stored import StoredTensor

FLOATS = {"float16", "bfloat16", "float32", "float64"}


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
    lost_heads: list[str] = field(default_factory=list)  # messages about heads of the file that cannot be read
    initialised: list[str] = field(default_factory=list)  # ours: missing from the weights, randomly initialised
    extras: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # of all tensors that were read (`weights.digest`), if requested

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of the heads that were read."""
        return tuple(dict.fromkeys(name for path in self.mapped if (name := path.split("/")[0]) != "encoder"))

    def left_over(self) -> tuple[str, str]:
        """Return the source, and a text about the tensors of the file that are not used.

        >>> Report("a.bin", unexpected=["layer.1.bias"]).left_over()
        ('a.bin', '1 tensor of the file, which is left out: layer.1.bias')
        """
        count = len(self.unexpected)
        verb = "s of the file, which are" if count > 1 else " of the file, which is"
        return self.source, f"{count} tensor{verb} left out: {_few(self.unexpected)}"

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
        digest = [f"digest of these tensors: sha256:{self.digest}"] if self.digest else []
        kinds = ("skipped", "missing", "misshaped", "unexpected", "initialised")
        return "\n".join(lines + self._lines(*kinds) + digest)

    def _lines(self, *kinds: str) -> list[str]:
        reasons = defaultdict(list)
        for name, why in self.skipped.items():
            reasons[why].append(name)
        lines = {
            # There are hundreds of optimiser slots; `skipped` has all their names.
            "skipped": [f"skipped ({len(names)}), {why}: {_few(names)}" for why, names in reasons.items()],
            "contradictions": _list("contradicted", self.contradictions, "\n  "),
            "misshaped": _list(
                "mis-shaped", [f"{name}: {mismatch}" for name, mismatch in self.misshaped.items()], "\n  "
            ),
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
    more = f" and {len(names) - show} more" if len(names) > show else ""
    return ", ".join(names[:show]) + more


def part(path: str) -> str:
    """Return the part of the model that a path belongs to: a head, "pooler" or "encoder"."""
    names = path.split("/")
    return "pooler" if names[:2] == ["encoder", "pooler"] else names[0]


def ancestors(prefix: str, separator: str) -> list[str]:
    """Return a prefix and all its parents, the possible scopes of an encoder's heads."""
    names = prefix.split(separator)[:-1]
    return [separator.join([*names[:size], ""]) for size in range(len(names), -1, -1)]


def encoder_prefix(names: Mapping[str, Any], word_embeddings: str, separator: str, source: str) -> str:
    """Return the prefix of an encoder's tensor names, found by its word embeddings."""
    ends = [name for name in names if name == word_embeddings or name.endswith(separator + word_embeddings)]
    if not ends:
        first_names = ", ".join(sorted(names)[:5]) or "nothing"
        raise ValueError(
            f"{source} has no such encoder: no name ends with {word_embeddings!r}. "
            f"It has {len(names)} tensors: {first_names}"
        )
    if len(ends) > 1:
        raise ValueError(f"{source} has {len(ends)} encoders: {', '.join(sorted(ends))}. Save one model per file.")
    return ends[0].removesuffix(word_embeddings)


def keep_weights(stored: Mapping[str, StoredTensor], report: Report) -> dict[str, StoredTensor]:
    """Return the weights of a TensorFlow checkpoint; the report gets the reason for each tensor that is none."""
    for name, tensor in stored.items():
        if any(str(scope) in stored for scope in PurePosixPath(name).parents):  # slots are stored under their variable
            report.skipped[name] = "optimiser state"
        elif not tensor.shape or tensor.dtype == "string":
            report.skipped[name] = "a counter" if tensor.dtype != "string" else "not numeric"
    return {name: tensor for name, tensor in stored.items() if name not in report.skipped}


def locate(
    table: Mapping[str, str], stored: Mapping[str, str], prefix: str, separator: str, outside: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the stored name of every path found in the file, and the expected name of every path.

    `table` maps paths to names without prefix, `stored` maps names as the table spells them to names as the file does.
    An encoder's tensors are looked up under `prefix`, a head's tensors also under each parent of it, and so are the
    paths `outside`: parts of an encoder that the file stores with a head.
    """
    stored_shapes, expected = {}, {}
    for path, name in table.items():
        inside = path.startswith("encoder/") and path not in outside
        expected[path] = prefix + name if inside else name
        for scope in [prefix] if inside else ancestors(prefix, separator):
            if scope + name in stored:
                stored_shapes[path] = stored[scope + name]
                break
    return stored_shapes, expected


def collect(
    stored: Mapping[str, StoredTensor],
    places: Mapping[str, str],
    names: Mapping[str, str],
    transposed: set[str],
    shapes: Mapping[str, tuple[int, ...]],
    report: Report,
) -> dict[str, Any]:
    """Read the tree as float32 copies and fill in the report; raise if the weights cannot be used.

    `places` maps each path to its stored tensor, `names` maps all paths to expected names, and `transposed` lists the
    paths that are stored [out, in].
    """
    present = {part(path) for path in places} | {"encoder"}
    needed = [path for path in names if part(path) in present]
    absent = [path for path in needed if path not in places and names[path] not in report.misshaped]
    report.missing |= {path: names[path] for path in absent}
    for path, name in places.items():
        shape = shapes[path][::-1] if path in transposed else shapes[path]
        if stored[name].shape != shape:
            report.misshaped[name] = f"{list(stored[name].shape)}, expected {list(shape)}"
        elif stored[name].dtype not in FLOATS:
            report.misshaped[name] = f"of {stored[name].dtype}, expected one of {', '.join(sorted(FLOATS))}"
        else:
            report.mapped[path] = name
    used = {*places.values(), *report.skipped}
    report.unexpected += sorted(name for name in stored if name not in used)
    report.raise_if_unusable()

    flat, broken = {}, []
    for path in needed:
        values = stored[places[path]].read()
        # A copy, because a view of the file changes when the file is overwritten.
        with np.errstate(all="ignore"):  # values too large for float32 become infinity, which is reported below
            flat[path] = np.array(values.T if path in transposed else values, np.float32, order="C")
        if not np.isfinite(flat[path]).all():
            broken.append(places[path])
    if broken:
        raise ValueError(
            f"{len(broken)} tensors in {report.source} hold NaN or infinity (as float32): {', '.join(broken)}. "
            "The training diverged, or the file is damaged."
        )
    return nest(flat)


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a flat dictionary of paths into a tree."""
    return traverse_util.unflatten_dict(dict(flat), sep="/")


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn a tree into a flat dictionary of paths."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= flatten(value, f"{prefix}{name}/") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def check_shapes(shapes: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], source: str) -> None:
    """Raise if names or shapes differ from the expected ones, listing every difference."""
    problems = {
        "missing": [name for name in expected if name not in shapes],
        "unknown": [name for name in shapes if name not in expected],
        "mis-shaped": [
            f"{name} {list(shape)}, expected {list(expected[name])}"
            for name, shape in shapes.items()
            if name in expected and tuple(shape) != tuple(expected[name])
        ],
    }
    if any(problems.values()):
        listed = "\n".join(f"{kind} ({len(names)}): {', '.join(names)}" for kind, names in problems.items() if names)
        raise ValueError(f"{source}: parameters do not fit the configuration:\n{listed}")


def count_layers(config: Any) -> int:
    """Return how many layers of a configuration have parameters of their own; other layers may share them."""
    owners = getattr(config, "layer_owners", range(getattr(config, "num_layers", 0)))
    return len(owners if isinstance(owners, range) else set(owners))


def check_depth(layers: int, stored: Collection[str], source: str) -> None:
    """Raise if a model has more layers than its file has tensors, before anything is made for each layer.

    >>> check_depth(10**9, ["encoder.layer.0.output.dense.bias"], "model.safetensors")
    Traceback (most recent call last):
    ValueError: the weights in model.safetensors do not fit: the configuration has 1,000,000,000 layers, ...
    """
    if layers > max(len(stored), 1):
        raise ValueError(
            f"the weights in {source} do not fit: the configuration has {layers:,} layers, the file {len(stored):,} "
            "tensors in all; does the configuration belong to these weights?"
        )
