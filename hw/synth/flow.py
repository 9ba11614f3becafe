# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Synthesises one kernel of one configuration with Yosys: a process of its own for ``run.py``.

    python hw/synth/flow.py zynq fragmenter xc7 build/synth/zynq-fragmenter.json

The family ``ecp5`` gives a netlist for nextpnr instead of a Xilinx one. The result is a JSON object
with the number of cells by type, and the names of the cells that are latches or distributed RAM.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pyosys.libyosys as ys  # type: ignore[import-not-found]

from hotline.config import kernel_config
from hotline.sources import read_file_list

ROOT = Path(__file__).resolve().parents[2]


def synthesise(config: str, kernel: str, family: str, result: Path) -> None:
    """Runs Yosys and writes the result; for ``ecp5`` a netlist (``.netlist.json``) as well."""
    top = f"hotline_{kernel}_top"
    parameters = kernel_config(config).verilog_parameters()
    options = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    sources = " ".join(str(path) for path in read_file_list("kernels", ROOT))
    design = ys.Design()
    ys.run_pass(f"read_slang --top {top} -D SYNTHESIS {options} {sources}", design)
    if family == "ecp5":
        netlist = result.with_suffix(".netlist.json")
        ys.run_pass(f"synth_ecp5 -top {top} -json {netlist}", design)
    else:
        ys.run_pass(f"synth_xilinx -family {family} -noiopad -noclkbuf -flatten -top {top}", design)
    cells: Counter[str] = Counter()
    latches, memories = [], []
    for cell in design.top_module().selected_cells():
        kind, name = cell.type.str().lstrip("\\"), cell.name.str().lstrip("\\")
        cells[kind] += 1
        if kind.startswith(("LD", "$dlatch", "$_DLATCH")):
            latches.append(name)
        elif kind.startswith("RAM") and not kind.startswith("RAMB"):
            memories.append(name)
    result.write_text(json.dumps({"cells": cells, "latches": latches, "distributed": memories}))


if __name__ == "__main__":
    synthesise(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
