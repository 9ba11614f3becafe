# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Splitter and the lengths of samples, on a bus of four and of eight words."""

from __future__ import annotations

from sim.runner import run_bench

FAST_BUILD = ("-CFLAGS", "-O0")


def test_sample_lengths() -> None:
    run_bench(
        "hotline_sample_lengths", "fragmenter", "cocotb_sample_lengths",
        {"BusBits": 128, "LookupsMax": 50}, build_args=FAST_BUILD,
    )  # fmt: skip


def test_splitter() -> None:
    run_bench(
        "hotline_splitter", "fragmenter", "cocotb_splitter",
        {"BusBits": 256, "LookupsMax": 40}, build_args=FAST_BUILD,
    )  # fmt: skip
