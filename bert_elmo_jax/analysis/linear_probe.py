"""A linear probe: multinomial logistic regression on fixed vectors, trained to convergence.

The problem is convex and small, so L-BFGS finds its only minimum without a learning rate, a batch size or a seed, and
layers can be compared. SciPy runs the line search in double precision on the host; JAX computes value and gradient.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int
from scipy.optimize import minimize

STRENGTHS = (0.1, 0.01, 1e-3, 1e-4, 1e-5)  # of the penalty, the strongest first
STEPS = 2000
SLOPE = 1e-4  # the largest partial derivative at convergence
CHUNK = 65_536  # rows that are predicted together


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Weights for each dimension and label, on vectors standardised as in training."""

    labels: np.ndarray
    weights: Float32[np.ndarray, "D C"]
    bias: Float32[np.ndarray, " C"]
    mean: Float32[np.ndarray, " D"]
    scale: Float32[np.ndarray, " D"]
    strength: float
    converged: bool

    def __repr__(self) -> str:
        return f"LinearProbe({len(self.mean)} dimensions, {len(self.labels)} labels, strength {self.strength:g})"

    def predict(self, vectors: Float32[np.ndarray, "N D"]) -> np.ndarray:
        """Return the most probable label of each vector."""
        parts = np.split(vectors, range(CHUNK, len(vectors), CHUNK))
        scores = ((part - self.mean) / self.scale @ self.weights + self.bias for part in parts)
        return self.labels[np.concatenate([np.argmax(part, axis=1) for part in scores])]


def choose_probe(
    vectors: Float32[np.ndarray, "N D"], labels: np.ndarray, dev: Float32[np.ndarray, "M D"], dev_labels: np.ndarray
) -> tuple[LinearProbe, float]:
    """Return the probe whose penalty is best on dev, and its accuracy there; of equals the strongest penalty."""
    if not len(dev_labels):
        raise ValueError("no labelled vector to choose the penalty: give dev data of the same kind")
    data, probe = Standardised(vectors, labels), None
    fitted: list[tuple[LinearProbe, float]] = []
    for strength in STRENGTHS:  # each starts from the one before
        probe = fit_probe(data, strength, probe)
        fitted.append((probe, float(np.mean(probe.predict(dev) == dev_labels))))
        if len(fitted) > 1 and fitted[-1][1] < fitted[-2][1]:  # weaker penalties are worse
            break
    return max(fitted, key=lambda pair: pair[1])


class Standardised:
    """Standardised vectors on the device, and their label numbers."""

    def __init__(self, vectors: Float32[np.ndarray, "N D"], labels: np.ndarray):
        if len(vectors) != len(labels) or not len(labels):
            raise ValueError(f"{len(vectors)} vectors and {len(labels)} labels: give one label per vector, and some")
        self.labels, numbers = np.unique(np.asarray(labels), return_inverse=True)
        self.mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        deviation = np.sqrt(np.mean(np.square(vectors - self.mean), axis=0, dtype=np.float64)).astype(np.float32)
        self.scale = np.where(deviation > 1e-6 * max(float(deviation.max(initial=0)), 1e-30), deviation, 1.0)
        self.scale = self.scale.astype(np.float32)
        self.vectors = jnp.asarray((vectors - self.mean) / self.scale)
        self.numbers = jnp.asarray(numbers.astype(np.int32))


@jax.jit
def _losses(
    weights: Float[Array, "W C"], vectors: Float[Array, "N D"], numbers: Int[Array, " N"]
) -> tuple[Float[Array, " N"], Float[Array, "W C"]]:
    """Return the cross entropy of every row and the gradient of their mean; the last row of weights is the bias."""
    logits = jnp.dot(vectors, weights[:-1], precision="highest") + weights[-1][None]
    logs = jax.nn.log_softmax(logits)
    wrong = (jnp.exp(logs) - jax.nn.one_hot(numbers, weights.shape[1])) / len(numbers)
    slope = jnp.concatenate([jnp.dot(vectors.T, wrong, precision="highest"), wrong.sum(axis=0)[None]])
    return -jnp.take_along_axis(logs, numbers[:, None], axis=1)[:, 0], slope


def fit_probe(data: Standardised, strength: float, start: LinearProbe | None = None) -> LinearProbe:
    """Return the probe with the least mean cross entropy + strength / 2 · ‖weights‖²; the bias has no penalty.

    `start`, a probe of the same data, makes it faster and changes nothing else.
    """
    if not strength > 0:
        raise ValueError(f"strength={strength}: expected above 0, as separable labels have no minimum without penalty")
    shape = (data.vectors.shape[1] + 1, len(data.labels))
    first = np.zeros(shape) if start is None else np.concatenate([start.weights, start.bias[None]])

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(shape)
        losses, slope = jax.device_get(_losses(jnp.asarray(weights, jnp.float32), data.vectors, data.numbers))
        slope = slope.astype(np.float64)
        slope[:-1] += strength * weights[:-1]
        # Summed in double precision: the rounding of single precision would stop the line search too early.
        loss = float(np.mean(losses, dtype=np.float64)) + strength / 2 * float(np.sum(np.square(weights[:-1])))
        return loss, slope.ravel()

    limits = {"maxiter": STEPS, "maxfun": 2 * STEPS, "gtol": SLOPE, "ftol": 1e-9}
    minimum = minimize(value, first.ravel(), jac=True, method="L-BFGS-B", options=limits)
    weights = minimum.x.reshape(shape).astype(np.float32)
    return LinearProbe(data.labels, weights[:-1], weights[-1], data.mean, data.scale, strength, bool(minimum.success))
