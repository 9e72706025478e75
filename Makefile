# Two commands: `make run` and `make test`. The others are for those who work on Moonhook.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export DJANGO_SETTINGS_MODULE := config.settings
# Without cached bytecode, each process of the tests would compile all of them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run announce test test-client test-slow soak test-browser test-conformance bench bench-floods lint format types migrations-check lock licences audit clean

run: announce $(VENV)/.runtime-installed
	@exec $(BIN)/python manage.py serve

# Said at once, before the silence of a first start.
announce:
	@if [ ! -e $(VENV)/.runtime-installed ]; then \
		echo "moonhook: first start: creates $(VENV) and installs the locked packages into it."; \
		echo "moonhook: this takes about half a minute."; \
	fi

# Runs one process per core and one more, because some tests mostly wait; never more than 8.
# To run some of the tests in a single process: make test PYTEST_ARGS="-n 0 tests/accounts"
TEST_PROCESSES = $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? n + 1 : 8)))
PYTEST = $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal
test: $(VENV)/.dev-installed
	$(PYTEST) $(PYTEST_ARGS)

# A file or socket left open is only a warning here: Python notices it during a later test, so an
# error would fail the wrong one.
TELL_UNCLOSED := -W default::ResourceWarning -W default::pytest.PytestUnraisableExceptionWarning

# The tests of a file share its servers. TEST_POSTGRES_URL names a server for those that need one;
# TEST_SIZE=full makes them as large as in `make soak`.
test-slow: $(VENV)/.dev-installed
	$(PYTEST) --dist loadfile -m slow $(TELL_UNCLOSED) $(PYTEST_ARGS)

# The client's wheel in an environment of its own, against servers from this folder, one for each
# of two processes of pytest. Not by `python -m pytest`, which would import the folder's files
# instead of the wheel's.
CLIENT := $(VENV)-client
test-client: $(VENV)/.runtime-installed $(CLIENT)/.installed
	rm -rf $(CLIENT)/wheel
	$(CLIENT)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation --wheel-dir $(CLIENT)/wheel ./client
	$(CLIENT)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--force-reinstall $(CLIENT)/wheel/*.whl
	cd client && $(abspath $(CLIENT))/bin/pytest -n 2 --dist loadfile $(PYTEST_ARGS)

# The suite on other Pythons, as far as this machine can have them, then what is slow, at full size.
soak: $(VENV)/.dev-installed
	tests/soak/on_pythons.sh 3.12 3.13 3.14
	$(MAKE) --no-print-directory test-client PYTEST_ARGS="-m slow"
	TEST_SIZE=full $(MAKE) --no-print-directory test-slow PYTEST_ARGS="--timeout=0 --durations=40 $(PYTEST_ARGS)"

# The GraphQL audits need their npm packages: cd tests/conformance && npm ci
test-conformance: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m conformance $(TELL_UNCLOSED) $(PYTEST_ARGS)

# Accessibility is judged by axe-core, an npm package: cd tests/browser && npm ci
test-browser: $(VENV)/.dev-installed
	$(PYTEST) -m browser $(TELL_UNCLOSED) $(PYTEST_ARGS)

# Beside others that do the same; benchmarks/README.md says what it needs and measures.
NODE_RED := benchmarks/comparison/node_red
bench: $(VENV)-bench/.installed
	@-command -v npm >/dev/null && $(MAKE) --no-print-directory $(NODE_RED)/node_modules/.package-lock.json
	@$(VENV)-bench/bin/python -m benchmarks.comparison $(BENCH_ARGS)

# What others see beside one organisation's floods.
bench-floods: $(VENV)/.runtime-installed
	@$(BIN)/python -m benchmarks.floods $(BENCH_ARGS)

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev-installed $(CLIENT)/.installed
	$(BIN)/mypy .
	cd client && $(abspath $(CLIENT))/bin/mypy moonhook_cli

migrations-check: $(VENV)/.dev-installed
	$(BIN)/python manage.py makemigrations --check --dry-run

# Every version and hash of what is installed, for Python 3.11 and later.
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock" --quiet
lock: $(VENV)/.dev-installed
	$(LOCK) pyproject.toml -o requirements/runtime.txt $(LOCK_ARGS)
	$(LOCK) pyproject.toml --group dev -o requirements/dev.txt $(LOCK_ARGS)
	$(LOCK) client/pyproject.toml --extra test -o requirements/client.txt $(LOCK_ARGS)
	$(LOCK) --group audit -o requirements/audit.txt $(LOCK_ARGS)
	$(LOCK) pyproject.toml --group bench -c requirements/runtime.txt -o requirements/bench.txt $(LOCK_ARGS)

# After each lock: what is installed with Moonhook, and under which licence.
licences: $(VENV)/.runtime-installed
	$(BIN)/python requirements/licences.py > docs/licences.md

# Known vulnerabilities of what is installed. Asks the package index that pip is configured with.
audit: $(VENV)-audit/.installed
	$(VENV)-audit/bin/python requirements/audit.py

clean:
	rm -rf $(VENV) $(VENV)-audit $(VENV)-bench $(CLIENT)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Moonhook needs Python 3.11 or newer: make run PYTHON=python3.12"; exit 1; }
	@echo "moonhook: creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime-installed: requirements/runtime.txt | $(VENV)/bin/python
	@$(BIN)/python requirements/install.py $<
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt | $(VENV)/bin/python
	@$(BIN)/python requirements/install.py $<
	@touch $@ $(VENV)/.runtime-installed

$(VENV)-audit/.installed: requirements/audit.txt
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(CLIENT)/.installed: requirements/client.txt
	$(PYTHON) -m venv $(CLIENT)
	@$(CLIENT)/bin/python requirements/install.py $<
	@touch $@

$(VENV)-bench/.installed: requirements/bench.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(NODE_RED)/node_modules/.package-lock.json: $(NODE_RED)/package-lock.json
	cd $(NODE_RED) && npm ci --silent --no-fund --no-audit
	@touch $@
