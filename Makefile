# Both `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-published lint bench clean

help:  ## Show what there is to make.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Sfumato needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)  ## Audit the bundled Adult table and write a page with pictures.
	@rm -rf demo
	@$(BIN)/sfumato sample adult -o demo
	@$(BIN)/sfumato audit --run demo/run.toml --html demo/audit.html
	@echo "Open demo/audit.html in a browser; demo/run.toml declares the columns."

test: lint  ## Check style, types and import direction, then run all tests but the slow published tables.
	$(BIN)/python -m pytest -m "not published" -n 2

test-published: $(STAMP)  ## Reproduce the slow published tables.
	$(BIN)/python -m pytest -m published

lint: $(STAMP)  ## Style, types, import direction.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## Measure speed and print tables (benchmarks/RESULTS.md keeps them).
	$(BIN)/python -m benchmarks

clean:  ## Remove what was made.
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
