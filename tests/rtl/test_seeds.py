# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The random traffic of every bench under many seeds; the normal run has seed 0 and a random one.

The other tests of the benches are directed; those that draw numbers anyway run with five seeds in
the long versions beside their normal ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotline.config import kernel_config
from hotline.reference import FRAGMENTER
from sim.runner import ROOT, run_bench
from tests.rtl import test_cold_tracker, test_fragmenter, test_gatherer
from tests.rtl import test_read_engine as read_engine
from tests.rtl import test_write_engine as write_engine

SEEDS = 50
TINY = kernel_config("tiny")


@dataclass(frozen=True)
class Bench:
    """A module, its bench, and a regular expression of the bench's random tests."""

    toplevel: str
    file_list: str
    bench: str
    tests: str
    parameters: Mapping[str, int]
    extra_sources: Sequence[Path] = ()

    def run(self, seed: int, tests: str | None = None) -> None:
        run_bench(
            self.toplevel,
            self.file_list,
            self.bench,
            self.parameters,
            seed=seed,
            test_filter=tests or self.tests,
            extra_sources=self.extra_sources,
            build_args=test_fragmenter.FAST_BUILD,
        )


BENCHES = {
    "small blocks": Bench(
        "hotline_small_blocks_wrap", "common", "cocotb_small_blocks", "streams_keep_order", {},
        [ROOT / "sim/hdl/hotline_small_blocks_wrap.sv"],
    ),
    "word packer": Bench(
        "hotline_word_packer_wrap", "common", "cocotb_word_packer", "words_keep_order", {},
        [ROOT / "sim/hdl/hotline_word_packer_wrap.sv"],
    ),
    "read engine": Bench(
        "hotline_read_engine", "common", "cocotb_read_engine",
        "streams_match_memory|errors_mark|flush_ends|cancel_ends", read_engine.WIDE,
    ),
    "write engine": Bench(
        "hotline_write_engine", "common", "cocotb_write_engine",
        "streams_land|marks_report|cancel_drops", write_engine.WIDE,
    ),
    "eal": Bench(
        "hotline_eal", "eal", "cocotb_eal", "mixed_operations|reset_at_any",
        {"Lanes": 4, "Sets": 4, "Ways": 4, "Banks": 2, "UserBits": 1},
    ),
    "cold tracker": Bench(
        "hotline_cold_tracker", "fragmenter", "cocotb_cold_tracker", "positions_match_model",
        test_cold_tracker.FOUR,
    ),
    "sample lengths": Bench(
        "hotline_sample_lengths", "fragmenter", "cocotb_sample_lengths",
        "records_match_model|stops_at_any", {"BusBits": 128, "LookupsMax": 50},
    ),
    "splitter": Bench(
        "hotline_splitter", "fragmenter", "cocotb_splitter", "slices_make_the_samples",
        {"BusBits": 256, "LookupsMax": 40},
    ),
    "fragmenter": Bench(
        "hotline_fragmenter", "fragmenter", "cocotb_fragmenter", "random_jobs|aborts|resets",
        test_fragmenter._wide(),
    ),
    "gatherer": Bench(
        "hotline_gatherer", "gatherer", "cocotb_gatherer",
        "jobs_match|queued_jobs|abort_at|reset_at", test_gatherer.NARROW,
    ),
    "axi guard": Bench(
        "hotline_axi_guard", "shell", "cocotb_axi_guard", "responses_carry|reset_at",
        {"BusBits": 64, "ReadOutstanding": 256, "WriteOutstanding": 8},
    ),
    "job check": Bench(
        "hotline_job_check", "shell", "cocotb_job_check", "reasons_match",
        {
            "EalEntries": TINY.eal_entries, "LookupsMax": TINY.lookups_max,
            "ColdRowsMax": TINY.cold_rows_max,
        },
    ),
    "shell": Bench(
        "hotline_shell", "shell", "cocotb_shell", "back_to_back|reset_at|abort_ends",
        {
            "Operations": sum(1 << operation for operation in FRAGMENTER), "BusBits": 64,
            "EalSets": TINY.eal_sets, "EalWays": TINY.eal_ways, "LookupsMax": TINY.lookups_max,
            "ColdRowsMax": TINY.cold_rows_max, "BurstBeats": TINY.burst_beats,
            "ReadOutstanding": TINY.read_outstanding, "WriteOutstanding": TINY.write_outstanding,
            "ClockKhz": TINY.clock_khz, "BuildId": 0x1234_ABCD, "CoreSeesErrors": 1,
        },
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", BENCHES)
def test_many_seeds(name: str) -> None:
    for seed in range(SEEDS):
        BENCHES[name].run(seed)
