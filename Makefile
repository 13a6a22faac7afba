# Works from a fresh checkout: every target first installs what it needs into VENV.
#   PYTHON=python3.12   the interpreter to build it with (3.11 or newer; found by itself otherwise)
#   VENV=path           where to install; an environment that exists is reused and only completed
#   ARGS="..."          passed on to ewe demo, pytest or the benchmarks
#   WORKERS=n           processes that share the tests (one per core, eight at most; 0: only pytest itself)
# `make gpu` uses the interpreter's own packages if they suffice (torch with CUDA, transformers, ...), without installing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ifndef PYTHON
PYTHON := $(shell for name in python3 python3.13 python3.12 python3.11; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
endif
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ARGS ?=
WORKERS ?= $(shell env -u OMP_NUM_THREADS nproc | awk '{ print ($$1 > 8) ? 8 : $$1 }')
# Not in pyproject.toml: the interpreter that runs the GPU tests may not have pytest-xdist.
# Its processes share what each of them would compile.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo installed test test-slow lint format docs bench bench-gpu gpu gpu-test gpu-rehearsal gpu-sanitize gpu-tune \
  deploy-check sbom clean

help:
	@echo "make demo       a run on the built-in world and model, in the terminal"
	@echo "make test       the fast tests          make test-slow   the ones that take minutes, and more examples"
	@echo "make lint       style, types, layers    make format      mends what can be mended"
	@echo "make bench      ten minutes of benchmarks on the CPU (ARGS=--all: hours)   make bench-gpu   on a GPU"
	@echo "make docs       the documentation as a site, in build/site"
	@echo "make gpu-test   the tests for GPUs      make gpu         GPU tests and benchmarks"
	@echo "make gpu-rehearsal   the tests for GPUs on a stand-in, where there is no GPU (minutes)"
	@echo "make gpu-sanitize    the kernels under compute-sanitizer     make gpu-tune    which tiles are the fastest"
	@echo "make deploy-check    the files in deploy/, by tests and by the linters that are installed"
	@echo "make sbom       a bill of materials in build/ (SBOM_OF=folder: of another environment than VENV)"

# torch goes first and alone: resolving it together with the rest may pick another build of it.
$(BIN)/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found; set PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) setuptools
	$(INSTALL) torch
	$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(BIN)/.installed-%: $(BIN)/.installed
	$(INSTALL) --no-build-isolation --editable ".[$*]"
	@touch $@

demo: $(BIN)/.installed
	$(BIN)/ewe demo $(ARGS)

installed: $(BIN)/.installed-lint $(BIN)/.installed-test

test: $(BIN)/.installed-test
	$(PYTEST) $(ARGS)

# Beside what is marked slow, all that Hypothesis draws, with more examples.
test-slow: $(BIN)/.installed-test
	$(PYTEST) -m "(slow or hypothesis) and not gpu" --hypothesis-profile thorough $(ARGS)

# mypy reads the types of the optional packages too.
lint: $(BIN)/.installed-lint $(BIN)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(BIN)/.installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(BIN)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(BIN)/.installed
	$(BIN)/python -m benchmarks.run_all --device cpu $(ARGS)

# The check imports what the engine and its tests import; only if that fails is anything installed.
GPU_CHECK := import sys, torch, pytest, hypothesis, ewe.cli.main, ewe.llm; \
  sys.exit(None if torch.cuda.is_available() else 'torch sees no CUDA device')
GPU_PATH = PYTHONPATH=.:kernels$${PYTHONPATH:+:$$PYTHONPATH}
define FIND_GPU_PYTHON
python=$(PYTHON); \
if ! reason="$$($(GPU_PATH) $$python -c "$(GPU_CHECK)" 2>&1)"; then \
  echo "$$python will not do ($${reason##*$$'\n'}): installing into $(VENV)"; \
  $(MAKE) $(BIN)/.installed-test; python=$(BIN)/python; $(GPU_PATH) $$python -c "$(GPU_CHECK)"; \
fi
endef

gpu-test:
	$(FIND_GPU_PYTHON); $(GPU_PATH) $$python -m pytest -m gpu $(ARGS)

gpu-rehearsal: $(BIN)/.installed-test
	PYTHONPATH=tests $(BIN)/python -m pytest -p stand_in_gpu.plugin -m gpu --ignore tests/unit/test_benchmarks_smoke.py $(ARGS)

# Ten minutes of GPU time at most; what fails costs its own figures only.
bench-gpu:
	$(FIND_GPU_PYTHON); $(GPU_PATH) $$python -m benchmarks.run_all --device cuda $(ARGS)

# Memory is taken from the driver for each tensor, or reading beyond one would go unnoticed.
gpu-sanitize:
	$(FIND_GPU_PYTHON); PYTORCH_NO_CUDA_MEMORY_CACHING=1 $(GPU_PATH) compute-sanitizer --tool memcheck --error-exitcode 1 \
	  $$python -m pytest -m gpu tests/kernels --ignore tests/kernels/test_static_engine.py -k "not static" $(ARGS)

gpu-tune:
	$(FIND_GPU_PYTHON); $(GPU_PATH) $$python scripts/tune_tiles.py $(ARGS)

# The benchmarks run whatever the tests say.
gpu:
	failed=0; $(MAKE) gpu-test || failed=1; $(MAKE) bench-gpu ARGS= || failed=1; exit $$failed

deploy-check: $(BIN)/.installed-test
	$(PYTEST) tests/unit/test_deploy_files.py tests/unit/test_grafana_dashboard.py tests/unit/test_licences.py $(ARGS)
	PATH="$(abspath $(BIN)):$$PATH" deploy/check.sh

# For a release: of what the image holds, SBOM_OF=/opt/ewe after `deploy/install.sh /opt/ewe`.
SBOM_OF ?= $(VENV)
sbom:
	scripts/make_sbom.sh $(SBOM_OF) build/sbom.cdx.json

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
