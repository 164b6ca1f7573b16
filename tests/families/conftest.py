"""Fixtures that write weight files, shared with the tests of the byte readers, and the other side of comparisons."""

import pytest

from bert_elmo_jax.families import huggingface_weights

from ..weights.conftest import elmo_folder, elmo_made, hugging_face, theirs, theirs_config, write_bundle, write_torch  # noqa: F401
from .peers import peers  # noqa: F401


@pytest.fixture(scope="package", autouse=True)
def shapes_traced_once():
    """Trace each model once for its shapes: with every file read or written, that takes most of the time."""
    traced, shapes_by_key = huggingface_weights.param_shapes, {}

    def param_shapes(family, config, heads, *, outputs):
        key = id(family), config, tuple(heads), tuple(sorted(outputs.items()))
        if key not in shapes_by_key:
            shapes_by_key[key] = traced(family, config, heads, outputs=outputs)
        return dict(shapes_by_key[key])

    huggingface_weights.param_shapes = param_shapes
    yield
    huggingface_weights.param_shapes = traced


collect_ignore = ["bag.py"]  # importing it registers its family, which its own tests do
