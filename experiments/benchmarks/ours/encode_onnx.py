"""Our side of the encoding comparison with ONNX Runtime: the same as `encode`, in float32 or int8."""

from .encode import make_passes

__all__ = ["make_passes"]
