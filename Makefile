# The commands of the course; `make` alone lists them. Works with GNU Make 3.81, which macOS has.

PYTHON ?= python3
# What is passed on to JupyterLab: make lab LAB_ARGS="--port 9999"
LAB_ARGS ?=
# What is built or tested: make build NOTEBOOKS="01 02"; all when empty.
NOTEBOOKS ?=
# Processes that run tests: auto is two more than there are cores, unless memory is short.
JOBS ?= auto

PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# pip compiles what it installs on one core, which takes longer than anything else it does; this takes all cores, and
# leaves out what few ever import. A package may hold a file that is no Python on purpose.
COMPILE := $(PY) -m compileall -qq -j 0 -x '/tests/|/transformers/models/' .venv/lib lmcourse || true
# Written last, so an interrupted installation leaves none and the next run starts it afresh: a copy of the lock that
# .venv was installed from, and the mark that the package itself is in.
LOCKED := .venv/requirements.lock
READY := .venv/ready
# The same of what only tests and the site need.
TOOLS := .venv/requirements-test.lock

# PYTHON=python3.12 given on purpose, and .venv made by another one: make it anew.
ifneq ($(origin PYTHON),file)
ifneq ($(shell $(PYTHON) -V 2>&1),$(shell $(PY) -V 2>&1))
.PHONY: $(LOCKED)
endif
endif

.PHONY: help install lab test tests coverage prove lint style types format build site book dist doctor clean

help:
	@echo "make lab      open the course in JupyterLab; the first time it installs, which takes some minutes"
	@echo "              options for JupyterLab: make lab LAB_ARGS=\"--port 9999\""
	@echo "make doctor   check that everything is installed, and print what to do if not"
	@echo "make test     after a change: lint, types, fast tests, the notebooks that you changed"
	@echo "              everything that concerns one notebook, within two minutes: make test NOTEBOOKS=09"
	@echo "make coverage the fast tests, and the share of lines that they run"
	@echo "make prove    before a release: every notebook, known answer and mutant, the sandbox, browsers, the site"
	@echo "make lint     ruff and mypy            make format   let ruff format"
	@echo "make build    build the notebooks from solutions/ (NOTEBOOKS=\"01 02\" for some)"
	@echo "make site     build the site into _site: the course as web pages that need no kernel"
	@echo "make book     the same, and the course as one PDF and a PDF of each chapter; it prints with Chromium or Chrome"
	@echo "make dist     make a source archive and a wheel in dist/"
	@echo "make clean    remove .venv and caches; notebooks and progress stay"
	@echo
	@echo "Another Python (3.11, 3.12 or 3.13):  make lab PYTHON=python3.12"

install: $(READY)

lab: $(READY)
	@$(PY) -m lmcourse.jupyter.lab $(LAB_ARGS)

doctor: $(READY)
	@$(PY) -m lmcourse.jupyter.doctor

# Types are checked while tests run: by itself mypy keeps one core busy for a minute and the others idle.
test: style
	@$(MAKE) --no-print-directory --jobs 2 types tests

# The notebooks that differ from what is published, or else the first one.
CHANGED = $(or $(shell git diff --name-only origin/main -- solutions 2>/dev/null | cut -d / -f 2 | sort -u),01-floating-point)
PYTEST = $(PY) -m pytest -n $(JOBS) --dist loadscope --durations 10

tests: $(TOOLS)
ifeq ($(strip $(NOTEBOOKS)),)
	$(PYTEST) -m "not prove" tests --nbval $(wildcard $(CHANGED:%=solutions/%) $(CHANGED:%=notebooks/%))
else
	$(PYTEST) --nbval tests/course tests/chapters solutions notebooks --notebooks "$(NOTEBOOKS)"
endif

# Which lines no fast test runs. Python 3.12 and newer count lines almost for nothing.
coverage: $(TOOLS)
	COVERAGE_CORE=sysmon $(PYTEST) -m "not prove" --cov lmcourse --cov-report term:skip-covered tests

prove: $(TOOLS)
	$(PYTEST) -m "prove or cell" tests --nbval solutions notebooks

lint: style types

style: $(TOOLS)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(TOOLS)
	$(PY) -m mypy

format: $(TOOLS)
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

build: $(READY)
	.venv/bin/lmcourse build $(NOTEBOOKS)

site: $(TOOLS)
	.venv/bin/lmcourse site $(NOTEBOOKS)

book: $(TOOLS)
	.venv/bin/lmcourse site --pdf $(NOTEBOOKS)

# The wheel is made from the archive, so the archive is complete.
dist: $(TOOLS)
	$(PY) -m build --no-isolation

# The lock's three lines, in a new environment, so that what an older lock installed does not linger. requirements.lock
# says why torch goes first, with its dependencies, and everything else without.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "The course needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is" \
	    "$$($(PYTHON) -V 2>&1 | head -n 1). Name one that fits: make lab PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing the course into .venv, once; PyTorch is large, so this takes some minutes."
	@rm -f $(READY) $(LOCKED)
	$(PYTHON) -m venv --clear .venv
	$(PIP) install --quiet --upgrade pip  # the one of Python 3.11 takes twice as long for all that follows
	$(PIP) install --no-compile --constraint requirements.lock torch
	$(PIP) install --no-compile --no-deps --requirement requirements.lock
	@$(COMPILE)
	$(PIP) check
	@cp requirements.lock $(LOCKED)

$(READY): $(LOCKED) pyproject.toml setup.py
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

$(TOOLS): requirements-test.lock $(LOCKED) | $(READY)
	@echo "Installing the tools of the tests into .venv, once."
	$(PIP) install --no-compile --no-deps --requirement requirements-test.lock
	@$(COMPILE)
	$(PIP) check
	@cp requirements-test.lock $(TOOLS)

clean:
	rm -rf .venv build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find lmcourse tests -name __pycache__ -type d -prune -exec rm -rf {} +
