"""The share of each layer in the mixes that a task learned: the softmax of their weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bert_elmo_jax.report.figures import Bars
from bert_elmo_jax.report.language import Phrase
from bert_elmo_jax.report.results import Result
from bert_elmo_jax.weights.parameter_tree import flatten


def layer_shares(params: Mapping[str, Any]) -> dict[str, Float[np.ndarray, " L"]]:
    """Return the shares of the layers, which sum to 1, in each mix in a parameter tree, by the path of the mix.

    A mix has `weights`, one per layer, and a scalar `gamma`: in features, or in a task network's input and output.
    """
    flat = {path: np.asarray(value) for path, value in flatten(params).items()}
    results = {}
    for path, value in flat.items():
        above, _, name = path.rpartition("/")
        if name == "weights" and value.ndim == 1 and np.shape(flat.get(f"{above}/gamma", np.zeros(1))) == ():
            powers = np.exp(value.astype(np.float64) - value.max())
            results[above] = powers / powers.sum()
    return results


def weight_results(
    params: Mapping[str, Any], name: str, layers: Sequence[int] | None = None
) -> tuple[list[Result], list[Bars]]:
    """Return the shares of every mix of a model as results and figures; `layers` are the numbers of its layers.

    >>> params = {"mix": {"weights": np.zeros(2), "gamma": np.ones(())}}
    >>> results, figures = weight_results(params, "runs/tagger", layers=[1, 2])
    >>> ([(result.layer, result.percent) for result in results], list(figures[0].labels))
    ([('1', '50.0'), ('2', '50.0')], ['layer 1', 'layer 2'])
    """
    shares = layer_shares(params)
    if not shares:
        advice = "give a run whose task learned one, as with features.combine=mix"
        raise ValueError(f"{name} has no mix of layers (weights and gamma): {advice}")
    results, figures = [], []
    for path, values in shares.items():
        numbers = layers if layers is not None and len(layers) == len(values) else range(len(values))
        results += [
            Result(Phrase("weights: {path}", path=path), name, str(n), float(v)) for n, v in zip(numbers, values)
        ]
        labels = [Phrase("layer {number}", number=n) for n in numbers]
        note = Phrase("The larger the share of a layer, the more the task uses it; the shares add up to 1.")
        title = Phrase("{name}: softmax of the weights", name=name)
        figures.append(Bars(title, labels, {path: values.tolist()}, note))
    return results, figures
