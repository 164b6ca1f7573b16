"""The type of arrays that may be JAX's or, from a file or a data pipeline, numpy's."""

import numpy as np
from jaxtyping import Array

AnyArray = Array | np.ndarray
