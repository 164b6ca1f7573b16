"""Ask osv.dev for known vulnerabilities of the pinned dependencies: one request with their names and versions.

`make audit` runs it, and so does CI. The exit status is 1 if a pin has a known vulnerability. Where osv.dev cannot be
reached, it says so and ends with status 0. Licences need no network: tests/test_supply_chain.py has the list of those
that are permitted.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from sbom import read_pins

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
BATCH, DETAILS = "https://api.osv.dev/v1/querybatch", "https://osv.dev/vulnerability"
SECONDS = 30.0


def send(question: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to osv.dev, and return the answer."""
    request = urllib.request.Request(BATCH, json.dumps(question).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        reply: dict[str, Any] = json.load(answer)
    return reply


def find_vulnerable(
    pins: Sequence[Mapping[str, Any]], ask: Callable[[Mapping[str, Any]], Mapping[str, Any]] = send
) -> dict[str, list[str]]:
    """Return the known vulnerabilities by "name version"."""
    packages = [{"package": {"name": pin["name"], "ecosystem": "PyPI"}, "version": pin["version"]} for pin in pins]
    results = ask({"queries": packages})["results"]
    if len(results) != len(pins):
        raise ValueError(f"{BATCH} answered {len(results)} of {len(pins)} questions")
    # One vulnerability has several names, and may be listed under each.
    vulns_by_pin = {f"{pin['name']} {pin['version']}": one.get("vulns", []) for pin, one in zip(pins, results)}
    return {name: sorted(str(one["id"]) for one in vulns) for name, vulns in vulns_by_pin.items() if vulns}


def main(ask: Callable[[Mapping[str, Any]], Mapping[str, Any]] = send) -> int:
    """Print the findings; return the exit status."""
    pins = read_pins(REQUIREMENTS.read_text(encoding="utf-8"))
    try:
        findings = find_vulnerable(pins, ask)
    except OSError as error:  # URLError and timeouts, too
        reason = re.sub(r"[<>]", "", str(error))
        print(f"audit: skipped, because osv.dev cannot be reached ({reason}); {len(pins)} pins were not checked")
        return 0
    for name, ids in findings.items():
        print(f"audit: {name} has known vulnerabilities: {', '.join(f'{DETAILS}/{one}' for one in ids)}")
    if findings:
        print("audit: raise these versions with `make lock UPGRADE=1`, or the lower bounds in setup.cfg")
    else:
        print(f"audit: none of {len(pins)} pins has a known vulnerability")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
