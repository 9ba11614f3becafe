# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Benches on Icarus, where all registers and memories start unknown: none of that may come out."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass, field

import pytest

from hotline.config import kernel_config
from sim.runner import run_bench

MISSING = [
    text
    for present, text in (
        (shutil.which("iverilog"), "Icarus (apt install iverilog)"),
        (importlib.util.find_spec("pyosys"), "pyosys (make formal)"),
    )
    if not present
]


@dataclass(frozen=True)
class Bench:
    """Arguments of ``run_bench``."""

    toplevel: str
    file_list: str
    bench: str
    parameters: dict[str, int] = field(default_factory=dict)
    test_filter: str | None = None


def _top(kernel: str) -> Bench:
    parameters = kernel_config("tiny").verilog_parameters() | {"BuildId": 0xFEED_BEEF}
    tests = f"{kernel}_runs_jobs"
    return Bench(f"hotline_{kernel}_top", "kernels", "cocotb_top", parameters, tests)


BENCHES = (
    _top("fragmenter"),
    _top("gatherer"),
    Bench("hotline_cold_tracker", "fragmenter", "cocotb_cold_tracker",
          {"ColdRowsMax": 32, "ColdLanes": 1, "UserBits": 9, "GenerationBits": 2}),
    Bench("hotline_eal", "eal", "cocotb_eal",
          {"Lanes": 2, "Sets": 8, "Ways": 4, "Banks": 1, "UserBits": 9, "SlicesInFlight": 32},
          test_filter=r"cocotb_eal\.(?!criteo_shaped_rates)"),
    Bench("hotline_splitter", "fragmenter", "cocotb_splitter", {"BusBits": 256, "LookupsMax": 40}),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.toplevel)
def test_nothing_unknown_comes_out(bench: Bench) -> None:
    run_bench(
        bench.toplevel,
        bench.file_list,
        bench.bench,
        bench.parameters,
        test_filter=bench.test_filter,
        seeds="zero",
        four_state=True,
    )
