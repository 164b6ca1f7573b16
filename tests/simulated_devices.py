"""The number of simulated devices, which JAX reads once when a process starts.

Tests run on one device, as most users do, and compile three times as fast as on eight. Tests that are about several
devices are marked `devices` and run in a process of their own, started with TEST_DEVICES=8.
"""

import os
import re

DEVICES = int(os.environ.get("TEST_DEVICES", "1"))
FLAG = "--xla_force_host_platform_device_count"


def program_environment(devices=1):
    """Return the environment of a program that a test starts with so many devices."""
    flags = re.sub(rf"{FLAG}=\d+", f"{FLAG}={devices}", os.environ["XLA_FLAGS"])
    return {**os.environ, "XLA_FLAGS": flags}
