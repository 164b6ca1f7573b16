"""Limits of the machine: raised, or reported in one line."""

import pytest

from bert_elmo_jax import platform_support
from bert_elmo_jax.platform_support import OPEN_FILES, check_machine_limits

resource = pytest.importorskip("resource", reason="only Unix has limits on open files")


@pytest.mark.parametrize(
    ("limits", "new_limits"),
    [
        ((1024, 4096), None),
        ((OPEN_FILES, OPEN_FILES), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
        ((24, 4096), (OPEN_FILES, 4096)),
        ((24, resource.RLIM_INFINITY), (OPEN_FILES, resource.RLIM_INFINITY)),
    ],
)
def test_a_low_limit_is_raised(limits, new_limits, monkeypatch):
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, new: set_to.append(new))
    check_machine_limits()
    assert set_to == ([new_limits] if new_limits else [])


def test_a_limit_that_cannot_be_raised(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (24, 24))
    with pytest.raises(OSError, match="24 files may be open at once, and 64 are needed: raise the limit"):
        check_machine_limits()


@pytest.mark.parametrize(("vendor", "intel"), [("GenuineIntel", True), ("AuthenticAMD", False), (None, False)])
def test_maker_of_the_processor(tmp_path, monkeypatch, vendor, intel):
    cpuinfo = tmp_path / "cpuinfo"
    if vendor:
        cpuinfo.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: fpu amx_bf16\n", "utf-8")
    monkeypatch.setattr(platform_support, "open", lambda path, **options: cpuinfo.open(**options), raising=False)
    for function, expected in (
        (platform_support.is_intel, intel),
        (platform_support.has_bfloat16_products, bool(vendor)),
    ):
        assert function.__wrapped__() == expected
