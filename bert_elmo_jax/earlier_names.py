"""Fields of configurations and runs by the names of earlier versions.

`attention`, the function that computes it, was called `implementation`. A BERT's `causal` was a value of `attention`.
Stored models, `run.json`, configs and command lines of those versions are read by these functions.
"""

from collections.abc import Mapping
from typing import Any

DIRECTIONS = ("bidirectional", "causal")  # the earlier values of `attention`, by the value of `causal`


def rename_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields, and the fields of groups among them, by today's names.

    >>> rename_fields({"steps": 9, "model": {"attention": "causal", "implementation": "fused"}})
    {'steps': 9, 'model': {'attention': 'fused', 'causal': True}}
    """
    renamed = {name: rename_fields(value) if isinstance(value, Mapping) else value for name, value in fields.items()}
    rename_group(renamed)
    return renamed


def rename_group(fields: Any) -> None:
    """Give the fields of a group, a dictionary or a ConfigDict, their names of today."""
    if fields.get("attention") in DIRECTIONS:
        fields["causal"] = fields["attention"] == "causal"
        fields["attention"] = "reference"
    if "implementation" in fields:
        fields["attention"] = fields["implementation"]
        del fields["implementation"]


def rename_assignment(name: str, text: str, names: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the text of an assignment to one of the fields `names`.

    >>> rename_assignment("model.implementation", "fused", {"model.attention": "reference"})
    ('model.attention', 'fused')
    >>> rename_assignment("model.attention", "causal", {"model.attention": "reference", "model.causal": False})
    ('model.causal', 'true')
    """
    group, dot, last = name.rpartition(".")
    if last == "implementation" and name not in names and f"{group}{dot}attention" in names:
        return f"{group}{dot}attention", text
    if last == "attention" and text in DIRECTIONS and f"{group}{dot}causal" in names:
        return f"{group}{dot}causal", "true" if text == "causal" else "false"
    return name, text
