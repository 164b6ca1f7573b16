# The two commands of the README are `git clone` and `make quickstart`. Everything else is for developers.
#   make quickstart                installs, pretrains a toy BERT and a toy ELMo, uses them, opens the report
#   make check                     environment, lint, import rules, types, and the quick tests: text, data, metrics, weights,
#                                  one golden per family (aim: under 2 minutes on two cores)
#   make test                      everything that every change must pass (aim: under 8 minutes on two cores); the second run
#                                  is faster, because what was compiled is kept in .pytest_cache
#   make test PYTHON=python3.12    the same with the newest JAX, in its own environment
#   make proofs                    every night: all tests with types and shapes checked on each call, and the long ones:
#                                  kills, memory, Ray, documented commands, notebooks, pages, without Linux's system calls;
#                                  started again on the same commit, it leaves out what passed
#   make tables                    the tables of all sweeps at toy scale, which take most of an hour
#   make test-all                  make test, make proofs and make tables
#   make campaign                  kills, faults, broken files, fuzzing, lost machines, attacks: hours, and resumable; KINDS= COUNT=
#                                  MINUTES= SECONDS= (for each reader) FOLDER=; make trust writes docs/results/trust.md
#   make bench                     times beside PyTorch, AllenNLP and fastai, into docs/results; PEER_PYTHON=,
#                                  ALLENNLP_PYTHON=, FASTAI_PYTHON=
#   make models                    loads and uses every model of docs/models.json from the hub, and writes docs/models.md
#   make goldens                   remakes the goldens of tests/goldens/make.py whose projects are installed
#   make wheel                     the package for other environments, in dist/
#   make docs                      the reference and the documents as a site in site/, readable without a network
#   make lock                      remakes requirements.txt, with hashes, from setup.cfg for every supported Python
#   make audit                     known vulnerabilities of the pinned packages, from osv.dev; says so without a network
#   make sbom                      the pinned packages with hashes and licences, as CycloneDX, into build/sbom.json
PYTHON ?= python3
# Three for two cores, because tests that wait for other programs leave a core idle.
JOBS ?= 3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
RUN = $(VENV)/bin/python
# The version in the name of the interpreter, for messages: 3.12 for python3.12.
VERSION = $(or $(filter 3.%,$(patsubst python%,%,$(notdir $(PYTHON)))),3.12)
INSTALLED = $(VENV)/installed
DOCUMENTED = $(VENV)/installed-docs
# All tests of a file run in one worker; tests/conftest.py orders the files.
TESTS = $(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Hours long, so what passed on a commit is written down.
RECORDED = -p tests.recorded_proofs
# The number of devices is fixed when a process starts, so tests of several devices have a run of their own.
ON_DEVICES = $(shell grep -rl mark.devices tests --include='test_*.py')

# Without bytecode files, collecting the tests takes 29 seconds instead of 8.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart check test test-all proofs tables campaign trust lint format bench wheel docs models goldens peers lock audit sbom clean

# On Linux, allocating memory without huge pages takes a third of the time of such small steps. Other systems ignore
# the variable.
quickstart: $(INSTALLED)
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(RUN) -m experiments.quickstart

check: lint
	$(TESTS) tests/test_architecture.py tests/text tests/data tests/evals tests/weights \
	  tests/families/test_golden_contract.py tests/families/*/test_golden.py

test: lint
	$(TESTS) -m "not long and not tables and not devices" --doctest-modules bert_elmo_jax tests
	TEST_DEVICES=8 $(TESTS) -m "devices and not long" $(ON_DEVICES)

proofs: $(INSTALLED)
	TEST_TYPES=1 $(TESTS) $(RECORDED) -m "not tables and not devices" --doctest-modules bert_elmo_jax tests
	TEST_TYPES=1 TEST_DEVICES=8 $(TESTS) $(RECORDED) -m devices $(ON_DEVICES)

tables: $(INSTALLED)
	$(TESTS) -m tables tests

test-all: test proofs tables

FOLDER ?= campaign
CAMPAIGN = PYTHONPATH=. $(RUN) -m tests.campaigns.run --folder=$(FOLDER)

# A second start goes on where the first one ended. Python 3.12 counts lines several times faster than 3.11.
campaign: $(INSTALLED)
	$(CAMPAIGN) $(if $(KINDS),--kinds=$(KINDS)) $(if $(COUNT),--count=$(COUNT)) $(if $(MINUTES),--minutes=$(MINUTES)) \
	  $(if $(SECONDS),--seconds=$(SECONDS)) $(if $(ONLY),--only='$(ONLY)') $(if $(AGAIN),--again)

trust: $(INSTALLED)
	$(CAMPAIGN) --render

lint: $(INSTALLED)
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/lint-imports --no-logo --config setup.cfg
	$(VENV)/bin/mypy bert_elmo_jax experiments

format: $(INSTALLED)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Runs again only if one of the three files is newer than the stamp. A version manager's stub, such as pyenv's, exists
# for interpreters that are not installed, so the interpreter is started.
$(INSTALLED): requirements.txt setup.cfg setup.py pyproject.toml
	@$(PYTHON) -c '' 2>/dev/null || { \
	  echo "There is no interpreter '$(PYTHON)'. Install it (pyenv install $(VERSION), or uv python install $(VERSION))," \
	    "or name one that is installed: make test PYTHON=…" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "bert_elmo_jax needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	    "Try: make test PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --require-hashes --requirement requirements.txt
	$(RUN) -m pip install --quiet --no-deps --editable .
	@touch $@

peers: $(INSTALLED)
	$(RUN) -m pip install --quiet --editable ".[peers]"

bench: $(INSTALLED)
	$(RUN) -m experiments.benchmarks.speed $(if $(PEER_PYTHON),--peer_python=$(PEER_PYTHON)) \
	  $(if $(ALLENNLP_PYTHON),--allennlp_python=$(ALLENNLP_PYTHON)) \
	  $(if $(FASTAI_PYTHON),--fastai_python=$(FASTAI_PYTHON))

# Built with the pinned setuptools, so without a network; tests/test_wheel.py uses it from an empty folder.
wheel: $(INSTALLED)
	rm -rf build dist
	$(RUN) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build
	@ls dist/*.whl

# With --strict, a broken link is an error. --quiet would hide the warnings that --strict counts.
docs: $(DOCUMENTED)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --config-file docs/mkdocs.yml
	@grep -q OWNER setup.cfg && echo "warning: the repository's address in setup.cfg is a placeholder; every page has it" || true
	@echo "site/index.html is ready; to search in it: $(RUN) -m http.server --directory site"

$(DOCUMENTED): $(INSTALLED)
	$(RUN) -m pip install --quiet --editable ".[docs]"
	@touch $@

models: $(INSTALLED)
	$(RUN) docs/models.py --check

goldens: $(INSTALLED)
	$(RUN) tests/goldens/make.py

lock: $(INSTALLED)
	$(RUN) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-annotate --no-emit-index-url --generate-hashes \
	  --custom-compile-command "make lock" setup.cfg --output-file requirements.txt $(if $(UPGRADE),--upgrade)

audit:
	$(PYTHON) docs/audit.py

sbom: $(INSTALLED)
	$(RUN) docs/sbom.py build/sbom.json

clean:
	rm -rf .venv .venv-* build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
