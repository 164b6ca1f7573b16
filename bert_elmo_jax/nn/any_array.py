"""What a parameter or a batch may be made of: JAX's arrays, or numpy's as they come from a file or a data pipeline."""

import numpy as np
from jaxtyping import Array

AnyArray = Array | np.ndarray
