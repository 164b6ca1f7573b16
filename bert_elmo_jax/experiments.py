"""Makes the folder `experiments` of a checkout a part of this package, as in an installed package.

A wheel has the package `bert_elmo_jax/experiments/`, which Python prefers to this file.
"""

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "experiments")]
