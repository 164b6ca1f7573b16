"""The lease of a place: an object that its writer refreshes, so that a second writer is refused.

Buckets have no locks. A writer that finds the lease of another one watches it for `PATIENCE` seconds: if it changes,
the other one lives. No clocks are compared. A writer that has lost its lease (it was suspended, or cut off, for longer)
writes no more. Two writers that start in the same second can both write their lease: each reads it again after `SETTLE`
seconds, and before every publication, and the one whose lease is gone ends. A lease is `unfinished` while the place has
a part of a folder that is of use only as a whole, also after its writer has ended.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from typing import Any

from bert_elmo_jax.buckets.objects import Place, delete_objects, read_object, write_object

LEASE = "lease.json"
REFRESH, PATIENCE, SETTLE = 15.0, 45.0, 1.0  # seconds


class LeaseLost(BlockingIOError):
    """Another process has taken the lease."""


def read_lease(place: Place) -> dict[str, Any] | None:
    """Return the lease of a place, None if there is none; a damaged one counts as released."""
    data = read_object(place, LEASE)
    if data is None:
        return None
    try:
        lease = json.loads(data)
        return {"owner": str(lease["owner"]), "released": bool(lease["released"]), "unfinished": False, **lease}
    except (ValueError, KeyError, TypeError):
        return {"owner": "", "released": True, "unfinished": False}


def write_lease(place: Place, owner: str, *, released: bool = False, unfinished: bool = False) -> None:
    """Write, refresh or release the lease."""
    lease = {
        "owner": owner, "released": released, "unfinished": unfinished, "host": platform.node(), "process": os.getpid(),
        "refreshed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "nonce": time.monotonic_ns(),
    }  # fmt: skip
    write_object(place, LEASE, json.dumps(lease, indent=1).encode())


def take_lease(place: Place, owner: str) -> None:
    """Take the lease of a place; raise if another process holds and refreshes it."""
    lease = read_lease(place)
    if lease is not None and lease["owner"] != owner and not lease["released"]:
        who = describe_owner(lease)
        print(
            f"{place.address} was being written by {who}, at {lease.get('refreshed')}; waiting up to {PATIENCE:.0f} "
            "seconds to see whether it still is",
            file=sys.stderr,
        )
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            time.sleep(min(1.0, PATIENCE))
            if (now := read_lease(place)) != lease and now is not None and not now["released"]:
                raise BlockingIOError(
                    f"{place.address} is being written by {describe_owner(now)}: wait for it, stop it, or choose "
                    "another address"
                )
    write_lease(place, owner, unfinished=lease is not None and lease["unfinished"])
    if lease is None or lease["owner"] != owner:
        time.sleep(SETTLE)
        check_lease(place, owner)


def check_lease(place: Place, owner: str) -> None:
    """Raise if another process has taken the lease."""
    lease = read_lease(place)
    if lease is not None and lease["owner"] != owner:
        raise LeaseLost(f"{place.address} was taken over by {describe_owner(lease)}")


def drop_lease(place: Place) -> None:
    """Remove the lease of a place where nothing was written."""
    delete_objects(place, [LEASE])


def describe_owner(lease: Mapping[str, Any]) -> str:
    """Return the process and the machine of a lease.

    >>> describe_owner({"process": 7, "host": "a100"})
    'process 7 on a100'
    """
    return f"process {lease.get('process')} on {lease.get('host')}"
