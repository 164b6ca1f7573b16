"""Examples of `bert_elmo_jax.analysis.layer_weights`."""

import numpy as np

from bert_elmo_jax.analysis.layer_weights import weight_results


def test_example_of_weight_results():
    params = {"mix": {"weights": np.zeros(2), "gamma": np.ones(())}}
    results, figures = weight_results(params, "runs/tagger", layers=[1, 2])
    assert ([(result.layer, result.percent) for result in results], list(figures[0].labels)) == (
        [("1", "50.0"), ("2", "50.0")],
        ["layer 1", "layer 2"],
    )
