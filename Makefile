# Two words: `make demo` shows what gpufit does on a real model, `make test` proves that it works here.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed

# Without a card torch is pinned to one release; with one, anything in the supported range is right.
HAS_CARD := $(wildcard /dev/nvidiactl /dev/kfd)
CONSTRAINT = $(if $(HAS_CARD),,--constraint constraints/cpu.txt)

# A file of tests a process, on every core; what measures a card has it alone.
SIDE_BY_SIDE = -n logical --maxprocesses 8 --dist loadfile -m "not gpu"

DEMO_MODEL = models/SmolLM2-135M-Instruct.Q4_1.gguf
DEMO_PROFILE = profiles/SmolLM2-135M-Instruct.Q4_1.json

.DEFAULT_GOAL := help
.PHONY: help demo test check format lint types contracts tests lowest install models bench screens screens-check

help:
	@echo "make demo    measure a real model on this machine and judge every card for it"
	@echo "make test    set up and run every check"
	@echo "make check   the checks alone: format, lint, types, contracts, tests"
	@echo "make bench   the speed budgets, measured"
	@echo "make lowest  the tests on the lowest release of every dependency"
	@echo "make screens the pictures of the terminal interface; screens-check: whether those in docs are still true"

demo: $(INSTALLED) $(DEMO_MODEL)
	$(BIN)/gpufit profile $(DEMO_MODEL) -o $(DEMO_PROFILE) --force
	$(BIN)/gpufit fit $(DEMO_PROFILE) --context 8k --concurrency 16
	@echo
	@echo "Open it in the terminal interface:  $(BIN)/gpufit tui $(DEMO_PROFILE)"
	@echo "As a spreadsheet:                   $(BIN)/gpufit fit $(DEMO_PROFILE) --context 8k --concurrency 16 -o cards.xlsx"
	@echo "As a page:                          $(BIN)/gpufit fit $(DEMO_PROFILE) --context 8k --concurrency 16 -o report.html"

test: $(INSTALLED) models check

check: format lint types contracts tests

format:
	$(BIN)/ruff format --check .

lint:
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

contracts:
	$(BIN)/lint-imports

tests:
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m gpu

bench: $(INSTALLED)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/allocator.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/headers.py
	$(BIN)/python benchmarks/simulate.py

screens: $(INSTALLED)
	$(BIN)/python scripts/screenshots.py

screens-check: $(INSTALLED)
	$(BIN)/python scripts/screenshots.py --check

lowest: models
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints/lowest.txt --editable ".[measure,dev]"
	HF_HUB_OFFLINE=1 .venv-lowest/bin/python -m pytest $(SIDE_BY_SIDE)

install: $(INSTALLED)

models: $(INSTALLED)
	$(BIN)/python scripts/fetch_models.py

$(DEMO_MODEL): | $(INSTALLED)
	$(BIN)/python scripts/fetch_models.py smollm2

$(INSTALLED): pyproject.toml constraints/cpu.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpufit needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(CONSTRAINT) --editable ".[measure,dev]"
	touch $(INSTALLED)
