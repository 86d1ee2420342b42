# Everything a person needs to work on queuectl. A fresh machine needs git, make and Python 3.11+ with venv.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test chaos check docs screenshots bench bench-check bench-dashboard bench-quick clean

# PYTHON=/path/to/python3.13 picks the interpreter; otherwise the first of these that is new enough.
PYTHON ?=
PYTHONS := $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11)

PY  := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check
PEERS_PIP := .venv-peers/bin/python -m pip install -qq --disable-pip-version-check
CHECKED := $(wildcard src tests benchmarks examples docs)
COMPILED := src/queuectl/system/_launch.c

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: .venv/.dev ## Make .venv with queuectl (editable) and the development tools

demo: .venv/.installed ## Show the main job end to end in a throw-away home
	@$(PY) examples/demo.py

test: .venv/.dev .venv/.rewritten ## Run all tests on SQLite and PostgreSQL; ARGS='-k claim' passes arguments on
	@sh tests/packages.sh
	@$(PY) -m compileall -q src tests # thousands of processes start; where nothing may be cached, each would compile it all
	@$(PY) -m pytest -q -n $$($(PY) -c 'import os; print(4 + (os.cpu_count() or 1))') --dist worksteal \
		$(PYTEST_ARGS) $(ARGS)

chaos: .venv/.dev ## Kill, freeze and cut everything at random; SECONDS=60 SEED=7 DATABASE=sqlite|postgres|both
	@$(PY) -m tests.chaos $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(DATABASE),--database $(DATABASE)) $(ARGS)

check: .venv/.dev ## Check format, lint, types and architecture
	@$(PY) -m ruff format --check -q .
	@$(PY) -m ruff check -q .
	@$(PY) -m mypy $(CHECKED)
	@$(PY) -m pytest -q tests/test_architecture.py

docs: .venv/.dev ## Write docs/states.md and docs/reference.md from the code
	@$(PY) docs/generate.py

screenshots: .venv/.dev ## Take the pictures of the dashboard in docs/images anew (needs Chromium)
	@$(PY) -m docs.screenshots $(ARGS)

bench: .venv/.dev ## Measure everything side by side, installing peers (about 12 minutes); ARGS='--only drain' picks some
	@names=$$($(PY) -m benchmarks full --names $(ARGS)) || exit $$?; \
	case " $$names " in *' peers '*) $(MAKE) --no-print-directory .venv-peers/.installed && sh benchmarks/packages.sh;; esac
	@$(PY) -m benchmarks full $(ARGS)

bench-dashboard: .venv/.dev ## Measure the dashboard beside a million jobs (about 4 minutes)
	@$(PY) -m benchmarks dashboard $(ARGS)

bench-check: .venv/.dev .venv-peers/.installed ## Let every tool that is measured beside ours run three commands
	@sh benchmarks/packages.sh
	@$(PY) -m benchmarks.peers.check $(ARGS)

bench-quick: .venv/.dev ## Measure the main figures side by side (under 2 minutes)
	@$(PY) -m benchmarks quick $(ARGS)

clean: ## Remove .venv and everything generated
	rm -rf .venv .venv-peers build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A stamp each, so that the demo need not wait for tools it does not use.
.venv/.installed: pyproject.toml $(COMPILED)
	@$(make-venv)
	@echo "installing queuectl into .venv"
	@$(PIP) -e '.[all]'
	@touch $@

.venv/.dev: pyproject.toml $(COMPILED)
	@$(make-venv)
	@echo "installing queuectl and the development tools into .venv"
	@$(PIP) -e '.[all,dev]'
	@touch .venv/.installed $@

# What pytest makes of the asserts, made once before all its processes would make it at the same time, and kept also
# where Python is told to cache nothing. What cannot be collected, the run itself tells.
.venv/.rewritten: .venv/.dev $(shell find tests -name '*.py')
	@for half in 'tests/[a-c]*/' 'tests/[d-z]*/ tests/test_*.py'; do \
		PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -q --collect-only $$half >/dev/null 2>&1 & \
	done; wait
	@touch $@

# The peers live apart, so that they cannot disturb what is measured. One that does not install is left out, and the
# result says so.
.venv-peers/.installed: benchmarks/peers/requirements.txt | .venv/.dev
	@echo "installing the peers into .venv-peers"
	@$(PY) -m venv --clear .venv-peers
	@$(PEERS_PIP) -r $< || grep -v '^#' $< | while read -r peer; do \
		$(PEERS_PIP) "$$peer" || echo "not installed: $$peer" >&2; done
	@touch $@

define make-venv
if $(PY) -m pip --version >/dev/null 2>&1; then exit 0; fi; \
for python in $(PYTHONS); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	"$$python" -c 'import venv, ensurepip' 2>/dev/null || { without_venv="$$python"; continue; }; \
	echo "making .venv with $$("$$python" --version)"; \
	exec "$$python" -m venv --clear .venv; \
done; \
if [ -n "$$without_venv" ]; then \
	echo "$$without_venv has no venv module; on Debian: apt-get install python3-venv" >&2; \
else \
	echo "no Python 3.11 or newer among:" $(PYTHONS)"; name one with: make PYTHON=/path/to/python3" >&2; \
fi; \
exit 1
endef
