# Needs GNU make, a POSIX shell and Python 3.11 or newer; uses uv when it is on PATH.
# `make setup UV=` keeps to pip, `make setup PYTHON=python3.13` names the interpreter.

VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
OLDEST_VENV := .venv-oldest
PIPELINES_VENV := .venv-pipelines
UV ?= $(shell command -v uv 2>/dev/null)
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Packages are installed without bytecode, which the first import writes: with this variable set,
# every run would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test most spark pipelines quick check wheel dist oldest site notebooks bench lock format clean docs figures pictures evaluation

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.installed ## Make the development environment in .venv, all packages checked by hash

demo: $(VENV)/.installed ## Repair a biased table with real rows of an embedded lake, end to end; writes to demo/
	@$(BIN)/equipoise demo --output demo/ $(ARGS)

test: most spark ## Run every test and every example in the docs (ARGS="-k table" to choose)

most: $(VENV)/.installed $(PIPELINES_VENV)/.installed ## Run the tests that need no Spark
	$(BIN)/pytest -n auto -m "not spark" --durations=10 $(ARGS)

spark: $(VENV)/.installed ## Run the tests that need Spark, one after the other on one cluster
	$(BIN)/pytest -q -m spark --durations=10 $(or $(ARGS),tests docs) || test $$? = 5  # 5: ARGS chose none of them

pipelines: $(VENV)/.installed $(PIPELINES_VENV)/.installed ## Run the examples of docs/pipelines, with dbt, Dagster, Airflow and pre-commit
	$(BIN)/pytest -q $(ARGS) tests/pipelines

# `make --jobs 2 test check` checks while Spark's tests run, since these alone leave cores idle, and does
# not run again what the tests before them have run.
ifneq ($(filter test,$(MAKECMDGOALS)),)
spark check wheel: | most
else
EXAMPLES := $(BIN)/pytest -q -m "not spark" tests/test_repository.py $(wildcard README.md docs)
endif

quick: $(VENV)/.installed ## Run the tests that are not marked slow: five sixths of them, in three minutes
	$(BIN)/pytest -n auto --dist loadscope -m "not slow and not spark" --durations=10 $(ARGS)

check: $(VENV)/.installed ## Lint, formatting, types, import layers, the docs' examples and links, repository rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(EXAMPLES)
	$(BIN)/python tools/build_site.py

wheel: $(VENV)/.installed ## Install the built wheel alone and with each extra, in empty environments, and use it there
	$(BIN)/python tools/check_wheel.py $(ARGS)

dist: $(VENV)/.installed ## Build the wheel and the source distribution into dist/
	$(BIN)/python tools/check_wheel.py --build

# The oldest versions have no wheels for the newest Python: PYTHON=python3.11 names one that they have.
oldest: $(OLDEST_VENV)/.installed ## Run the quick tests with the lowest versions that pyproject.toml allows
	$(OLDEST_VENV)/bin/pytest -n auto -m "not slow and not spark" $(ARGS) tests src

docs: $(VENV)/.installed ## Write the pages of docs/ that are read off the program itself
	$(BIN)/python tools/build_keywords.py
	$(BIN)/python tools/build_docs.py

site: $(VENV)/.installed ## Build the documentation site into site/; a broken link fails
	$(BIN)/python tools/build_site.py

notebooks: $(VENV)/.installed ## Run the notebooks of docs/notebooks/ again, from their pages
	$(BIN)/python tools/build_notebooks.py

figures: $(VENV)/.installed ## Draw every figure of docs/ anew
	$(BIN)/python tools/build_docs.py --picture

pictures: $(VENV)/.installed ## Take the pictures of the explorer in docs/pictures anew (needs Chromium)
	$(BIN)/python tools/build_pictures.py $(ARGS)

# Work that is done is kept in .evaluation.runs.jsonl: stopped, it goes on from there.
evaluation: $(VENV)/.installed ## Run everything docs/evaluation.md tells of again, and write its numbers and figures
	$(BIN)/equipoise data fetch compas-two-years
	$(BIN)/equipoise evaluate --paper --repeats 20 --runs .evaluation.runs.jsonl -o docs/runs/evaluation.json
	for column in workclass occupation native-country; do \
		$(BIN)/equipoise missing adult -s $$column -l income --na '?' -o docs/runs/missing-$$column.json; \
	done
	for mechanism in random by_label by_value; do \
		$(BIN)/equipoise missing adult -s sex -l income --take-away 0.2 --mechanism $$mechanism \
			-o docs/runs/missing-sex-$$mechanism.json; \
	done
	$(BIN)/python tools/build_docs.py --picture

format: $(VENV)/.installed ## Rewrite the sources in the project's format, and mend what lint can mend
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

bench: $(BENCH_VENV)/.installed ## Compare speed with other libraries, in a separate environment
	$(BENCH_VENV)/bin/python benchmarks/run.py $(ARGS)

# Writes no registry addresses and no paths; `--no-header` because the header repeats the command.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links
lock: ## Pin requirements/*.txt anew from pyproject.toml (needs uv; LOCK=--upgrade takes newer versions)
	@test -n "$(UV)" || { echo "make lock needs uv on PATH: python3 -m pip install uv" >&2; exit 1; }
	$(COMPILE) $(LOCK) --all-extras --group dev pyproject.toml --output-file requirements/dev.txt
	$(COMPILE) $(LOCK) --extra charts --extra excel --extra postgres --extra spark --extra web --group bench pyproject.toml --output-file requirements/bench.txt
	$(COMPILE) $(LOCK) --group pipelines pyproject.toml --output-file requirements/pipelines.txt
	$(COMPILE) $(LOCK) --resolution lowest-direct --all-extras --group build --group test pyproject.toml \
		--output-file requirements/oldest.txt

clean: ## Remove the environments, caches and built files
	rm -rf $(VENV) $(BENCH_VENV) $(OLDEST_VENV) $(PIPELINES_VENV) build dist demo site
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments -----------------------------------------------------------------------------
# Stamps are touched last: an interrupted run leaves none, and the next one starts from nothing.
# Changed requirements rebuild the environment, a changed pyproject.toml only installs us again.
# The lock is complete, so nothing is resolved here; bytecode is left to the first import.
PIP = $(1)/bin/python -m pip install -qq --no-compile

%/.installed: %/.requirements pyproject.toml
	@if [ -n "$(UV)" ]; then \
		$(UV) pip install --quiet --python $*/bin/python --no-deps --no-build-isolation --editable .; \
	else \
		$*/bin/python -m pip --version >/dev/null 2>&1 || $*/bin/python -m ensurepip >/dev/null; \
		$(call PIP,$*) --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@

$(VENV)/.requirements: requirements/dev.txt
$(BENCH_VENV)/.requirements: requirements/bench.txt
$(OLDEST_VENV)/.requirements: requirements/oldest.txt
$(PIPELINES_VENV)/.requirements: requirements/pipelines.txt
.PRECIOUS: %/.requirements
%/.requirements:
	@set -e; \
	for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; \
		python=; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Equipoise needs Python 3.11 or newer; found none as $(or $(PYTHON),python3 or python3.11 to python3.14)." >&2; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; \
		exit 1; \
	fi; \
	rm -rf $*; \
	echo "Making $* with $$("$$python" --version) and $(if $(UV),uv,pip; this takes half a minute or more) ..."; \
	if [ -n "$(UV)" ]; then \
		$(UV) venv --quiet --python "$$(command -v "$$python")" $*; \
		$(UV) pip install --quiet --python $*/bin/python --no-deps --require-hashes --requirement $<; \
	else \
		"$$python" -m venv $*; \
		$(call PIP,$*) --no-deps --require-hashes --requirement $<; \
	fi; \
	touch $@
