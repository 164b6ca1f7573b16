"""The devices of this process, in words."""

import jax


def describe_devices() -> str:
    """Return the number and kind of the devices.

    >>> describe_devices()
    '... × cpu'
    """
    return f"{jax.device_count()} × {jax.devices()[0].device_kind}"
