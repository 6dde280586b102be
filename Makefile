# What a person or CI does with this folder. Every target makes what it needs and can be called first.
#
#   make demo     run the main job on a few sample files and search them
#   make test     the whole test suite
#   make check    style, types, import directions, and the tests of documents and house rules
#   make bench    the benchmarks (they take their time)
#   make proof    the heavy proofs: thousands of files, kill -9 at random moments
#   make clean    remove what these made, .venv included
#
# PYTHON chooses the interpreter (3.11 or newer): make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
MADE := $(VENV)/.made-$(VERSION)
RUNTIME := $(VENV)/.runtime-$(VERSION)
DEV := $(VENV)/.dev-$(VERSION)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
ITSELF := $(PIP) --no-deps --no-build-isolation --editable .

.PHONY: demo test check bench proof clean
.DELETE_ON_ERROR:

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is needed; name one: make PYTHON=python3.12' >&2; exit 1; }
	@test "$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$(VERSION)" || \
	  $(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUNTIME): requirements/runtime.txt pyproject.toml | $(MADE)
	$(PIP) --require-hashes -r requirements/runtime.txt
	$(ITSELF)
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml | $(MADE)
	$(PIP) --require-hashes -r requirements/dev.txt
	$(ITSELF)
	@touch $@ $(RUNTIME)

demo: $(RUNTIME)
	@set -e; state="$$(mktemp -d)"; trap 'rm -rf "$$state"' EXIT; \
	for words in 'run examples/samples' 'search 合同 --pool examples/samples' \
	             'search harbour --pool examples/samples' 'status examples/samples'; do \
	  echo "\$$ tidegate $$words"; $(BIN)/tidegate $$words --state "$$state"; echo; \
	done

test: $(DEV)
	timeout 1200 $(BIN)/python -m pytest -n auto

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/docs tests/house

bench: $(DEV)
	@failed=; for file in $$(grep -l '^if __name__ == "__main__":' benchmarks/*.py); do \
	  echo "== $$file"; $(BIN)/python "$$file" || failed="$$failed $$file"; \
	done; test -z "$$failed" || { echo "did not end well:$$failed" >&2; exit 1; }

proof: $(DEV)
	$(BIN)/python -m pytest -m proof --timeout 7200 tests/proof

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache .bench .demo
	find src tests examples benchmarks -name __pycache__ -type d -exec rm -rf {} +
