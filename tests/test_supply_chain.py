"""The supply chain: hashes, licences, a bill of materials, and no network in imports and tests."""

import importlib.util
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Licences that allow as much as Apache-2.0; files under MPL-2.0 are used unchanged.
PERMITTED = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0",
             "MPL-2.0", "PSF-2.0", "Zlib"}  # fmt: skip
# Packages whose metadata do not say it in known words: the licence in their repository.
LICENCES = {"flatbuffers": "Apache-2.0", "grain": "Apache-2.0"}
# For other systems and Pythons, so not installed everywhere.
ELSEWHERE = {"appnope": "BSD-2-Clause", "cffi": "MIT", "httpx2-jsfetch": "BSD-3-Clause", "nest-asyncio": "BSD-2-Clause",
             "pycparser": "BSD-3-Clause"}  # fmt: skip


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sbom():
    return load_script("sbom")


@pytest.fixture
def audit(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    return load_script("audit")


@pytest.fixture(scope="module")
def pins(sbom):
    return sbom.read_pins((ROOT / "requirements.txt").read_text(encoding="utf-8"))


def test_every_pin_has_hashes_and_make_asks_for_them(pins):
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert len(pins) == sum("==" in line.partition(";")[0] for line in lines) > 100
    assert not [pin["name"] for pin in pins if not pin["hashes"]]
    assert not [line for line in lines if "://" in line or line.startswith(("-i ", "--index", "--extra-index"))]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pip install --quiet --require-hashes --requirement requirements.txt" in makefile
    assert "--generate-hashes" in makefile


def test_no_document_installs_the_pins_and_the_checkout_in_one_command():
    """With hashes, pip refuses an editable folder in the same command."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb")]:
        assert not re.search(r"pip install .*requirements\.txt.* -e ", page.read_text(encoding="utf-8")), page


def test_every_licence_is_known_and_permitted(sbom, pins):
    refused = {}
    for pin in pins:
        name = pin["name"]
        licence = LICENCES.get(name) or sbom.find_licence(name) or ELSEWHERE.get(name)
        # One of several alternatives is enough; of a sum every part counts.
        choices = [set(re.split(r" AND ", choice)) for choice in (licence or "none").split(" OR ")]
        if not any(choice <= PERMITTED for choice in choices):
            refused[name] = licence
    assert not refused, f"look up and add to LICENCES, or do without: {refused}"


def test_the_bill_of_materials(sbom, pins, tmp_path):
    for name in ("a.json", "b.json"):
        sbom.main(str(tmp_path / "new" / name))
    assert (tmp_path / "new" / "a.json").read_bytes() == (tmp_path / "new" / "b.json").read_bytes()
    bill = sbom.make_sbom(pins, "1.2.3")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["version"] == "1.2.3"
    parts = {part["name"]: part for part in bill["components"]}
    numpy = parts["numpy"]
    assert numpy["purl"].startswith("pkg:pypi/numpy@") and numpy["licenses"] == [
        {"expression": "BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0"}
    ]
    assert len(numpy["externalReferences"]) > 20, "one for each file of the release"
    assert parts["appnope"]["properties"] == [{"name": "python:marker", "value": "sys_platform == 'darwin'"}]
    assert sbom.find_licence("no-such-package-here") is None


def test_known_vulnerabilities_of_pins(audit, pins, capsys):
    queries = []

    def answer(question):
        queries.extend(question["queries"])
        bad = [one["package"]["name"] == "numpy" for one in question["queries"]]
        return {"results": [{"vulns": [{"id": "PYSEC-2"}, {"id": "GHSA-1"}]} if one else {} for one in bad]}

    assert audit.main(answer) == 1
    lines = capsys.readouterr().out.splitlines()
    versions = [pin["version"] for pin in pins if pin["name"] == "numpy"]  # one for each Python
    assert lines[0].startswith(f"audit: numpy {versions[0]} has known vulnerabilities: https://osv.dev/")
    assert lines[0].endswith("/GHSA-1, https://osv.dev/vulnerability/PYSEC-2") and len(lines) == len(versions) + 1
    assert [(one["package"]["name"], one["version"]) for one in queries] == [
        (pin["name"], pin["version"]) for pin in pins
    ]
    assert all(one["package"]["ecosystem"] == "PyPI" for one in queries)
    assert audit.main(lambda question: {"results": [{} for _ in question["queries"]]}) == 0
    assert capsys.readouterr().out == f"audit: none of {len(pins)} pins has a known vulnerability\n"
    with pytest.raises(ValueError, match="answered 0 of"):
        audit.main(lambda question: {"results": []})


def test_without_a_network_the_audit_is_skipped_in_so_many_words(audit, pins, capsys):
    assert audit.main() == 0  # tests reach no other machine
    output = capsys.readouterr().out
    assert output.startswith("audit: skipped, because osv.dev cannot be reached (")
    assert output.endswith(f"{len(pins)} pins were not checked\n") and output.count("\n") == 1


def test_ci_runs_the_audit():
    assert "make audit" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^audit:\n\t\$\(PYTHON\) docs/audit\.py$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_pins_of_a_line(sbom):
    text = "a-b==1.0 ; sys_platform == 'darwin' \\\n    --hash=sha256:" + "a" * 64 + "\nc==2\n# d==3\n"
    assert [(pin["name"], pin["version"], pin["marker"], len(pin["hashes"])) for pin in sbom.read_pins(text)] == [
        ("a-b", "1.0", "sys_platform == 'darwin'", 1), ("c", "2", "", 0)]  # fmt: skip


def test_tests_reach_no_other_machine():
    with pytest.raises(OSError, match="tests do not use the network"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with pytest.raises(OSError, match="tests do not use the network, and one asks for the address of example"):
        socket.create_connection(("example.invalid", 80), timeout=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
        with socket.socket() as client:
            assert client.connect_ex(server.getsockname()) == 0


IMPORTS = """
import pkgutil, sys

def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit(f"{event} {arguments}")

sys.addaudithook(hook)
import bert_elmo_jax
for found in pkgutil.walk_packages(bert_elmo_jax.__path__, "bert_elmo_jax."):
    __import__(found.name)
print(len(sys.modules) > 300)
"""


@pytest.mark.long
def test_importing_every_module_uses_no_network():
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]
