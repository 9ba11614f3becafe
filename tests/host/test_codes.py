# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The host's codes, limits and permutation equal those of ``hw/rtl/hotline_pkg.sv``."""

from __future__ import annotations

import enum
import re
from pathlib import Path

import pytest

from hotline import codes, reference

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = re.sub(r"//.*", "", (ROOT / "hw/rtl/hotline_pkg.sv").read_text())


def enumeration(name: str, prefix: str) -> dict[str, int]:
    """Members of a SystemVerilog enum: upper-case name with underscores -> value."""
    body = re.search(rf"typedef enum logic \[7:0\] \{{([^}}]*)\}} {name};", PACKAGE)
    assert body, name
    members = re.findall(r"(\w+)\s*=\s*8'd(\d+)", body.group(1))
    assert len(members) == body.group(1).count("=")
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", member.removeprefix(prefix)).upper(): int(value)
        for member, value in members
    }


def constant(name: str) -> int:
    match = re.search(
        rf"localparam [\w\s\[\]:-]*\b{name}\s*=\s*(?:\d+'([dh]))?([0-9A-Fa-f_]+);", PACKAGE
    )
    assert match, name
    return int(match.group(2).replace("_", ""), 16 if match.group(1) == "h" else 10)


def halves(name: str) -> list[int]:
    """A packed array of 16-bit constants, element 0 first."""
    match = re.search(rf"\b{name} =\s*\{{([^}}]*)\}};", PACKAGE)
    assert match, name
    return [int(value, 16) for value in re.findall(r"16'h([0-9A-F]{4})", match.group(1))][::-1]


@pytest.mark.parametrize(
    ("name", "prefix", "host"),
    [
        ("operation_e", "Op", codes.Operation),
        ("status_e", "Status", codes.Status),
        ("reason_e", "Reason", codes.Reason),
    ],
)
def test_enumerations(name: str, prefix: str, host: type[enum.IntEnum]) -> None:
    hardware = enumeration(name, prefix)
    if host is codes.Operation:
        assert hardware.pop("NONE") == 0  # no operation of the host
    assert hardware == {member.name: int(member) for member in host}


def test_constants() -> None:
    for hardware, host in {
        "Magic": codes.MAGIC,
        "Version": codes.VERSION,
        "JobLookupsMax": codes.JOB_LOOKUPS_MAX,
        "JobSamplesMax": codes.JOB_SAMPLES_MAX,
        "BagsMax": codes.BAGS_MAX,
        "SegmentsMax": codes.SEGMENTS_MAX,
        "RecordBytesMax": codes.RECORD_BYTES_MAX,
        "CounterBits": codes.COUNTER_BITS,
        "CounterHit": codes.COUNTER_HIT,
        "CounterInsert": codes.COUNTER_INSERT,
        "CounterVictim": codes.COUNTER_VICTIM,
    }.items():
        assert constant(hardware) == host, hardware
    assert 1 << constant("FlagPlainList") == codes.FLAG_PLAIN_LIST
    assert 1 << constant("FlagFrequency") == codes.FLAG_FREQUENCY


def test_permutation_constants() -> None:
    assert tuple(halves("FeistelMultiplier")) == reference.MULTIPLIERS
    assert tuple(halves("FeistelConstant")) == reference.CONSTANTS
    assert constant("FeistelRounds") == len(reference.MULTIPLIERS)
    document = (ROOT / "docs/architecture.md").read_text()
    listed = re.search(r"multiplier = ([0-9A-F ]+)constant = ([0-9A-F ]+)\(hex", document)
    assert listed
    for text, values in zip(
        listed.groups(), (reference.MULTIPLIERS, reference.CONSTANTS), strict=True
    ):
        assert [int(value, 16) for value in text.split()] == list(values)
