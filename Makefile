# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
#
# Every target sets up what it needs. `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
VERIFY := $(VENV)/.verify-installed
PEERS  := $(VENV)/.peers-installed
# Two workers: a build of a bench is one process, so more than the cores gains nothing.
JOBS   ?= 2
# Of the long checks: `make soak LOOKUPS=1e8 CONFIG=kv260 SEED=1`.
LOOKUPS ?= 1e6
CONFIG ?= zynq
SEED   ?= 0
COUNT  ?= 300
NATIVE := $(wildcard host/hotline/native/*.cpp host/hotline/native/*.hpp)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all soak coverage mutate formal synth lint format regs bench bench-rtl bench-hotset clean distclean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort \
	  | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): requirements-dev.lock pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

$(VERIFY): $(STAMP) requirements-verify.lock
	$(BIN)/python -m pip install --quiet -r requirements-verify.lock
	@touch $@

$(PEERS): $(STAMP) requirements-peers.lock
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-peers.lock
	@touch $@

setup: $(STAMP)  ## Make .venv with the pinned development environment

demo: $(STAMP)  ## Train on MovieLens-100K through the simulated RTL; plots and metrics in build/demo
	$(BIN)/hotline train --data ml-100k --device sim --compare plain --out build/demo

test: $(STAMP)  ## Run the tests (cocotb, system, host), slow ones left out
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" -q

test-all: $(STAMP) $(VERIFY)  ## Run every test, the slow ones with many seeds included
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -q

lint: $(STAMP)  ## ruff, mypy, verilator -Wall, verible, register freshness
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python hw/lint/run.py

format: $(STAMP)  ## Format the Python sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

regs: $(STAMP)  ## Generate the register files from hw/regs/hotline.rdl
	$(BIN)/python hw/regs/generate.py

soak: $(STAMP)  ## Random jobs on the simulated RTL against the reference: LOOKUPS=1e6 CONFIG=zynq SEED=0
	OMP_NUM_THREADS=1 $(BIN)/python -m sim.soak --config $(CONFIG) --seed $(SEED) --lookups $(LOOKUPS)

coverage: $(STAMP)  ## Line and toggle coverage of the RTL; report in build/coverage/report
	$(BIN)/python -m sim.coverage --jobs $(JOBS)

mutate: $(STAMP)  ## Small faults put into the RTL, one at a time: would a test notice? COUNT=300
	OMP_NUM_THREADS=1 $(BIN)/python -m sim.mutate --count $(COUNT)

formal: $(VERIFY)  ## Prove properties of the building blocks (SymbiYosys, z3); counterexamples in build/formal
	$(BIN)/python hw/formal/run.py --json build/formal/results.json

# With --fmax also an ECP5 as a trend of the clock; its placement has not ended in 100 minutes.
synth: $(VERIFY)  ## Synthesise every configuration with Yosys; writes docs/synthesis.md
	$(BIN)/python hw/synth/run.py

bench: $(PEERS)  ## Benchmarks of ten minutes beside torch, NumPy, FBGEMM, TorchRec; writes docs/benchmarks.md
	$(BIN)/hotline bench suite --out build/bench --document docs/benchmarks.md

bench-rtl: $(STAMP)  ## Measure the kernels against the bus limit; JSON lines in build/bench/rtl.jsonl
	$(BIN)/hotline bench rtl --json build/bench/rtl.jsonl

bench-hotset: $(STAMP)  ## Compare learned hot sets with an exact count
	$(BIN)/hotline bench hotset --json build/bench/hotset.jsonl

clean:  ## Remove build output
	rm -rf build host/*.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean  ## Remove build output and the environment
	rm -rf $(VENV)
