# `make demo` and `make test` each do all their set-up on a machine that has Python and make.
PYTHON ?= python3
BIN := .venv/bin
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
export ROUNDELAY_CACHE ?= $(CURDIR)/.venv/compiled
# Tests and the demo start hundreds of processes, each of a thousand modules: their bytecode is kept, also where the environment says that none is.
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.venv/bytecode
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests quick versions dist soak lint audit docs bench house field reproduce format clean help

help:
	@echo "make demo    five sites fit one model to real data by two methods, one of them is killed on the way"
	@echo "make test    lint, types, import rules and all tests"
	@echo "make quick   most tests, in a minute or so once they are compiled: no rings of processes, no browser, not the paper's study"
	@echo "make versions    the same on every Python from 3.11 to 3.14 that is here; PYTHONS=… for some alone"
	@echo "make dist    wheel and sdist of the last commit, built twice: kept where both builds have the same bytes"
	@echo "make soak    hundreds of kills, bad links, thousands of schedules, a sweep whose cluster is killed: the long forms of tests"
	@echo "make audit   whether a hole is known in what a site installs; says so where nobody can be asked"
	@echo "make docs    the documentation as a site, in out/docs; runs the tutorials that have changed"
	@echo "make lint    lint, types and import rules alone"
	@echo "make bench   docs/performance.md: against C, other packages, bare links; goes on where it was; PARTS=… for some alone"
	@echo "make house   how hard the house is to enter, in numbers; COMMIT=… puts another state beside it"
	@echo "make reproduce   every figure of the paper and a verdict on its claims; goes on where it was"
	@echo "make field   every method in one table, about an hour; goes on where it was"

demo: .venv/installed-demo
	$(BIN)/roundelay ring demo

# Lint beside the tests, and two processes more than there are cores: many tests wait for links, disks and other processes. The
# tests of a file stay together, since they compile much the same; folders go by the alphabet, so that the long rings come first.
test: .venv/installed-dev .venv/browser
	@$(MAKE) --no-print-directory --jobs 2 lint tests

tests: .venv/installed-dev
	$(BIN)/pytest -n $$(($(CORES) < 8 ? $(CORES) + 2 : 8)) --dist loadfile --no-loadscope-reorder

quick: .venv/installed-dev
	$(BIN)/pytest -n $(CORES) --dist loadfile --quick

versions:
	@scripts/versions.sh $(PYTHONS)

dist: .venv/installed-dev
	@PYTHON=$(BIN)/python scripts/dist.sh

soak: .venv/installed-dev
	$(BIN)/python -m tests.agents.soak

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: .venv/installed-dev
	@PYTHON=$(BIN)/python scripts/audit.sh

docs: .venv/installed-docs
	$(BIN)/sphinx-build -W --keep-going --quiet -b html -d out/docs.doctrees docs out/docs
	@echo "The site is out/docs/index.html."

bench: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[ring]"
	$(BIN)/python benchmarks/page.py $(PARTS)

house: .venv/installed
	$(BIN)/python scripts/house.py $(COMMIT)

field: .venv/installed
	$(BIN)/roundelay field

reproduce: .venv/installed-report
	$(BIN)/roundelay reproduce

format: .venv/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# A second run finds the stamp and installs nothing.
.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/roundelay demo --compile-only
	@touch $@

.venv/installed-demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable ".[demo]"
	@touch $@

.venv/installed-report: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[report]"
	@touch $@

.venv/installed-docs: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

# What is not imported need not be compiled.
.venv/installed-dev: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

# Looks again each time until there is a browser.
.venv/browser: scripts/browser.sh | .venv/installed-dev
	@scripts/browser.sh
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then touch $@; fi

clean:
	rm -rf .venv dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
