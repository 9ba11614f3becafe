# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The memory of the simulated device: its timing, and that it notices every broken rule of AXI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hotline.device.simbuild import HARNESS


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("axi") / "axi_memory_test"
    source = Path(__file__).with_name("axi_memory_test.cpp")
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{HARNESS}", "-o", target]
    subprocess.run([*command, source], check=True, timeout=300)
    return target


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ("legal", "none"),
        ("outside", "none"),
        ("latency", "none"),
        ("bandwidth", "none"),
        ("w_changed_without_strobe", "none"),
        ("ar_withdrawn", "AR was withdrawn or changed"),
        ("ar_changed", "AR was withdrawn or changed"),
        ("aw_changed", "AW was withdrawn or changed"),
        ("w_withdrawn", "W was withdrawn or changed"),
        ("w_changed", "W was withdrawn or changed"),
        ("last_early", "WLAST is 1 at beat 3"),
        ("last_missing", "WLAST is 0 at beat 4"),
        ("part_of_a_word", "part of a 32-bit word"),
        ("page", "crosses a 4 KiB boundary"),
        ("page_write", "crosses a 4 KiB boundary"),
        ("too_long", "burst of 17 beats"),
        ("misaligned", "not aligned"),
        ("size", "size is 4 bytes"),
        ("fixed", "not INCR"),
        ("id", "id is 1"),
        ("reads_outstanding", "5 read bursts in flight"),
        ("writes_outstanding", "4 write bursts in flight"),
        ("reset", "high in reset"),
    ],
)
def test_scenario(program: Path, scenario: str, says: str) -> None:
    done = subprocess.run(
        [program, scenario], capture_output=True, text=True, check=True, timeout=60
    )
    assert says in done.stdout
