# Both `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SCALE := $(VENV)/.installed-scale
NODE_STAMP := node_modules/.installed
EVERY := not published and not scale and not site and not package
QUICK := not long and $(EVERY)

.DEFAULT_GOAL := help
.PHONY: help demo compiled test test-skipped test-long test-fast size coverage test-hostile installed-scale test-scale test-published lint lint-js checked-js audit-dependencies bench docs test-docs test-package sbom bench-peers pictures clean

help:  ## Show what there is to make.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Sfumato needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: export SFUMATO_STATE = demo/state
demo: $(STAMP)  ## The main job on the bundled Adult table: search, pick, map, publish, verify.
	@rm -rf demo && mkdir demo
	@$(BIN)/sfumato sample adult -o demo/adult
	@$(BIN)/sfumato audit --run demo/adult/run.toml --html demo/audit.html --json > demo/audit.json
	@$(BIN)/sfumato search demo/adult/run.toml -o demo/front
	@$(BIN)/sfumato pick demo/front --max-loss 0.40
	@$(BIN)/sfumato map demo/front --point 8
	@$(BIN)/sfumato publish demo/front --point 8 -o demo/release --reason "demo: most k within 40 % loss"
	@$(BIN)/sfumato verify demo/release --source demo/adult/adult.data.gz
	@$(BIN)/sfumato search demo/adult/cuts.toml -o demo/cuts --json > demo/cuts.json
	@$(BIN)/sfumato ask demo/cuts --max-loss 0.25 --max-suppression 0.10
	@$(BIN)/sfumato map demo/cuts
	@echo
	@echo "Open in a browser:"
	@echo "  demo/audit.html             the raw table: who is at risk"
	@echo "  demo/front/map.html         every non-dominated generalization"
	@echo "  demo/cuts/map.html          finer recodings: parts of every attribute"
	@echo "  demo/release/private/internal.html  the release, for the publisher"
	@echo "  demo/release/public/external.html   the release, for its users"

$(SCALE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark,db]'
	@touch $@ $(STAMP)

installed-scale: $(SCALE)  ## Install what all tests need, Spark and databases included, at once.

compiled: $(STAMP)  ## Compile the loops once, so that not every worker of the tests does.
	$(BIN)/python -m tests.warm

test: $(STAMP)  ## Check style, types and import direction, then run all tests but the slow ones: ten minutes on two cores.
	@$(MAKE) --no-print-directory -j 2 lint compiled
	$(BIN)/python -m pytest -m "$(QUICK)" -n 3 --dist loadfile --no-loadscope-reorder

test-skipped: $(SCALE)  ## Run the tests of `make test` that SFUMATO_ONLY, a file that SFUMATO_SKIPPED wrote, lists.
	$(BIN)/python -m pytest -m "$(QUICK)" -n 3 --dist loadfile --no-loadscope-reorder

test-long: $(STAMP)  ## The tests of more than a few seconds each: whole journeys in a browser, kills, spoiled folders, larger tables.
	$(BIN)/python -m pytest -m "long and $(EVERY)" -n 3 --dist loadfile --no-loadscope-reorder

FAST := tests/hierarchies tests/tables tests/measures tests/algorithms tests/decide/test_knee.py tests/methods/lattice tests/report tests/data/test_settings.py tests/base/test_toml.py
MORE := tests/decide/test_ask.py tests/methods/test_all_systems.py tests/methods/groups/test_rules.py tests/methods/channel/test_model.py tests/methods/channel/test_engines.py tests/cli/test_cli.py tests/cli/test_channel.py tests/cli/test_numbers.py tests/cli/test_inspect.py

test-fast: $(STAMP)  ## The inner loop: no browser, no kills, no Spark.
	$(BIN)/python -m pytest -q -m "$(QUICK)" $(FAST)

coverage: $(STAMP)  ## Which lines the tests reach, without the page and without processes of their own.
	$(BIN)/python -m coverage run -m pytest -q -m "$(QUICK)" $(FAST) $(MORE)
	$(BIN)/python -m coverage report

test-scale: $(SCALE)  ## Spark (a cluster on loopback; Java 17 or newer) and databases (Debian's PostgreSQL).
	$(BIN)/python -m pytest -m "scale and not published" -n 2 --dist loadfile tests/scale tests/docs/test_blocks.py

test-hostile: $(STAMP)  ## Thousands of spoiled folders and requests, hundreds of kills: the long versions of the tests of hostile input.
	SFUMATO_FUZZ=2000 SFUMATO_KILLS=200 SFUMATO_REQUESTS=5000 $(BIN)/python -m pytest -s tests/hostile tests/web/test_web_schema.py tests/base/test_interrupted.py
	$(BIN)/python -m pytest -m published tests/release/test_verify.py tests/release/test_planted.py tests/hostile tests/methods/groups/test_blows.py

test-published: $(SCALE)  ## Reproduce the slow published tables.
	SFUMATO_EXAMPLES=100 $(BIN)/python -m pytest -m published
	SFUMATO_EXAMPLES=100 $(BIN)/python -m pytest -m "$(EVERY)" tests/contract tests/measures tests/methods tests/tables tests/papers tests/decide tests/release/test_joint.py

lint: audit-dependencies  ## Style, types, import direction, counts, language, known holes in dependencies.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.size
	$(BIN)/python -m tools.prose

lint-js:  ## Check layout, faults and types of the page's JavaScript and run its unit tests (needs node and npm).
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) --no-print-directory checked-js; \
	elif [ -n "$$SFUMATO_NO_SKIPS" ]; then echo "lint-js: there is no node or no npm (apt-get install nodejs npm)"; exit 1; \
	else echo "lint-js: skipped, there is no node or no npm (apt-get install nodejs npm)"; fi

checked-js: $(NODE_STAMP)
	npm run --silent lint
	npm run --silent test

$(NODE_STAMP): package.json package-lock.json
	npm ci --loglevel=error
	@touch $@

size: $(STAMP)  ## Count files and lines of the package; they may not grow beyond what is recorded.
	$(BIN)/python -m tools.size

audit-dependencies: $(STAMP)  ## Check dependencies against the recorded advisories, without a network.
	$(BIN)/python .ci/audit_dependencies.py

bench: $(STAMP)  ## Measure speed and print tables (benchmarks/RESULTS.md keeps them).
	$(BIN)/python -m benchmarks

bench-peers: $(STAMP)  ## Compare with anjana and pycanon, installed in an environment of their own.
	test -x build/peers/bin/python || $(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check 'anjana>=1.1' 'pycanon>=1.3'
	$(BIN)/python -m benchmarks.bench_peers build/peers/bin/python

docs: $(STAMP)  ## Build the documentation site, strictly and without a network: build/site/index.html.
	PYTHONPATH=. $(BIN)/python -m tools.build_site

test-docs: docs  ## Build the site, visit every page in a browser (needs chromium), run its longer pages.
	$(BIN)/python -m pytest -m site tests/docs

test-package: $(STAMP)  ## Build wheel and source archive, install them in clean environments, run the demo there.
	$(BIN)/python -m pytest -m package tests/package

sbom: $(STAMP)  ## Write the bill of materials of this installation: dist/sbom.cdx.json.
	@mkdir -p dist
	PYTHONPATH=. $(BIN)/python -m tools.sbom > dist/sbom.cdx.json

pictures: $(STAMP)  ## Draw the pictures of the workbench and of the two bands in docs/pictures anew, and all views at three widths, light and dark, in pictures/ (needs chromium).
	$(BIN)/python docs/pictures/bands.py
	PYTHONPATH=. $(BIN)/python docs/pictures/workbench.py pictures

clean:  ## Remove what was made.
	rm -rf $(VENV) demo build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache node_modules
