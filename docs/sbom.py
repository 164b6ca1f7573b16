"""Write the software bill of materials: the pinned dependencies with their hashes and licences, as CycloneDX JSON.

`make sbom` writes it to build/sbom.json. It needs no network: versions and hashes are in requirements.txt, licences in
the metadata of the installed packages. One for another system is not installed and has none.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)\s*(?:;\s*([^\\]+?))?\s*\\?$")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
# SPDX names of licences that packages give in words of their own.
NAMES = {
    "apache-2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache2": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit": "MIT",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}


def read_pins(text: str) -> list[dict[str, Any]]:
    """Return name, version, marker and hashes of every pin."""
    pins: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := PIN.match(line):
            pins.append({"name": match[1], "version": match[2], "marker": match[3] or "", "hashes": []})
        elif pins:
            pins[-1]["hashes"] += HASH.findall(line)
    return pins


def find_licence(name: str) -> str | None:
    """Return the licence of an installed package, as an SPDX expression if its metadata has one; None if unknown."""
    try:
        fields: Any = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [
        one.rpartition(" :: ")[2] for one in fields.get_all("Classifier") or () if one.startswith("License ::")
    ]
    licences = [fields.get("License-Expression"), fields.get("License"), *classifiers]
    for text in filter(None, licences):
        first = text.strip().splitlines()[0].strip()
        if spdx := NAMES.get(first.lower()):
            return spdx
    return next((text.strip().splitlines()[0].strip() for text in licences if text and text.strip()), None)


def make_sbom(pins: list[dict[str, Any]], version: str) -> dict[str, Any]:
    """Return the bill of materials, CycloneDX 1.5; it has no date, so equal inputs give equal files."""
    components = []
    for pin in pins:
        part: dict[str, Any] = {
            "type": "library", "name": pin["name"], "version": pin["version"],
            "purl": f"pkg:pypi/{pin['name'].lower().replace('_', '-')}@{pin['version']}",
        }  # fmt: skip
        part["bom-ref"] = part["purl"]
        if licence := find_licence(pin["name"]):
            part["licenses"] = [
                {"expression": licence} if re.fullmatch(r"[\w.()+ -]+", licence) else {"license": {"name": licence}}
            ]
        if pin["marker"]:
            part["properties"] = [{"name": "python:marker", "value": pin["marker"]}]
        # Each file of a release has a hash of its own: one distribution per hash.
        part["externalReferences"] = [
            {"type": "distribution", "url": part["purl"], "hashes": [{"alg": "SHA-256", "content": digest}]}
            for digest in pin["hashes"]
        ]
        components.append(part)
    root = {"type": "library", "name": "bert_elmo_jax", "version": version, "licenses": [{"expression": "Apache-2.0"}]}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": root},
        "components": components,
    }  # fmt: skip


def main(target: str) -> None:
    """Write the file."""
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    match = re.search(r"^version = (\S+)$", setup, re.M)
    assert match is not None, "setup.cfg has no version"
    bill = make_sbom(read_pins((ROOT / "requirements.txt").read_text(encoding="utf-8")), match[1])
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    print(f"{target}: {len(bill['components'])} packages")


if __name__ == "__main__":
    main(*sys.argv[1:])
