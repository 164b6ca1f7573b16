# The two commands of the README are `git clone` and `make quickstart`. Everything else is for developers.
#   make quickstart                installs, pretrains a toy BERT and a toy ELMo, puts them to use, opens the report
#   make test                      environment, lint, import rules, types, tests (aim: under 15 minutes on two cores)
#   make test PYTHON=python3.12    the same against the newest JAX, in an environment of its own
#   make proofs                    the long proofs of a commit: kills, memory, Ray, other projects
#   make tables                    the sweeps' toy tables, which take most of an hour
#   make test-all                  make test, make proofs and make tables
#   make bench                     the benchmarks of this machine, one after the other; quote ratios, not times
#   make goldens                   remakes tests/goldens (needs the `peers` extra: make peers)
#   make docs                      the reference and the README as a site in site/, which can be read without a network
#   make lock                      remakes requirements.txt from setup.cfg for every supported Python
PYTHON ?= python3
JOBS ?= 2
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
RUN = $(VENV)/bin/python
INSTALLED = $(VENV)/installed
DOCUMENTED = $(VENV)/installed-docs
# A file's tests stay in one worker, and begin in the order of tests/conftest.py.
TESTS = $(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Where Python is told to keep no bytecode, only collecting the tests takes 29 seconds instead of 8.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quickstart test test-all proofs tables lint format check-python bench docs goldens peers lock clean

# Without huge pages a third of the time of such small steps on Linux goes into asking for memory; elsewhere the
# variable says nothing.
quickstart: $(INSTALLED)
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(RUN) -m experiments.quickstart

test: lint
	$(TESTS) --doctest-modules bert_elmo_jax tests

proofs: $(INSTALLED)
	$(TESTS) -m "long and not tables" tests

tables: $(INSTALLED)
	$(TESTS) -m tables tests

test-all: test proofs tables

lint: $(INSTALLED)
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/lint-imports --no-logo --config setup.cfg
	$(VENV)/bin/mypy bert_elmo_jax experiments

format: $(INSTALLED)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

check-python:
	@$(PYTHON) -c 'import sys' 2>/dev/null || { \
	  echo "There is no interpreter '$(PYTHON)' (a version manager's stub may stand in for it). Install it, or name" \
	    "another: make test PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "bert_elmo_jax needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make test PYTHON=python3.12" >&2; exit 2; }

# Reinstalled only when what is asked for changed: the stamp is newer than the three files that say it.
$(INSTALLED): requirements.txt setup.cfg pyproject.toml
	@$(MAKE) --silent check-python
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --requirement requirements.txt
	$(RUN) -m pip install --quiet --no-deps --editable .
	@touch $@

peers: $(INSTALLED)
	$(RUN) -m pip install --quiet --editable ".[peers]"

bench: $(INSTALLED)
	for benchmark in experiments/benchmarks/[a-z]*.py; do $(RUN) -m experiments.benchmarks.$$(basename $$benchmark .py) || exit 1; done

# Strict: a link that leads nowhere is an error. Not --quiet, which would silence what --strict counts.
docs: $(DOCUMENTED)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --config-file docs/mkdocs.yml
	@echo "site/index.html is ready; to search in it: $(RUN) -m http.server --directory site"

$(DOCUMENTED): $(INSTALLED)
	$(RUN) -m pip install --quiet --editable ".[docs]"
	@touch $@

goldens: $(INSTALLED)
	$(RUN) tests/goldens/make.py

lock: $(INSTALLED)
	$(RUN) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --extra dev --no-annotate --no-emit-index-url \
	  --custom-compile-command "make lock" setup.cfg --output-file requirements.txt $(if $(UPGRADE),--upgrade)

clean:
	rm -rf .venv .venv-* build site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
