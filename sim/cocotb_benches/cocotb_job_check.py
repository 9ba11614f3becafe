# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hotline_job_check: every rule, at its exact bounds and in order, against the oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hotline.arguments import POINTERS, Arguments
from hotline.codes import Operation, Reason
from hotline.config import kernel_config
from hotline.reference import check_config
from sim.bfm.power import power_up

CONFIG = kernel_config("tiny")
LATENCY = 9
POINTER = 0x7_0000_0040
ENTRIES = CONFIG.eal_entries
UNCHECKED = {"tag", "flags"}

GOOD = Arguments(
    operation=Operation.FRAGMENT,
    lookups=12,
    samples=3,
    lookups_per_sample=4,
    total_rows=1000,
    pinned_rows=10,
    cold_base=10 + ENTRIES,
    cold_rows_max=128,
    record_bytes=64,
    segments=2,
    segment_shift=9,
    **dict.fromkeys(POINTERS, POINTER),
)
"""Arguments that every operation accepts."""

BOUNDS: dict[str, tuple[int, ...]] = {
    "operation": (0, 7, 10, 31, 32, 33, 35, 0x103, 0x8000_0003, 2**32 - 1),
    **dict.fromkeys(POINTERS, (0, 32, POINTER + 1, POINTER + 32, 1 << 63, 64, 1 << 32)),
    "lookups": (0, 1, 11, 13, 2**28 - 1, 2**28, 2**28 + 1, 2**32 - 1),
    "samples": (0, 1, 2, 4, 0x1_0000, 2**28, 2**28 + 1, 2**32 - 1),
    "bags": (0, 1, 5, 0xFFFE, 0xFFFF, 0x1_0000, 2**31, 2**32 - 1),
    "lookups_per_sample": (0, 1, 3, 5, 63, 64, 65, 0x1_0000, 2**32 - 1),
    "total_rows": (0, 1, 9, 10, 11, 512, 513, 1024, 1025, 2**31, 2**32 - 2, 2**32 - 1),
    "pinned_rows": (
        0, 11, 999, 1000, 1001, 2**30 - ENTRIES, 2**30 - ENTRIES + 1, 2**31, 2**32 - 1,
    ),
    "cold_base": (0, ENTRIES + 9, ENTRIES + 11, 2**31 - 129, 2**31 - 128, 2**31 - 1, 2**32 - 1),
    "cold_rows_max": (0, 1, 127, 129, 2**31, 2**32 - 1),
    "record_bytes": (0, 1, 63, 65, 96, 128, 4032, 4096, 4097, 4160, 2**31, 2**32 - 64),
    "segments": (0, 1, 3, 63, 64, 65, 2**31, 2**32 - 1),
    "segment_shift": (0, 1, 8, 10, 30, 31, 32, 33, 63, 2**31, 2**32 - 1),
}  # fmt: skip
"""Values at, just inside and just outside every bound."""


def cases() -> Iterator[Arguments]:
    """Every operation with one value off, then with several off, then fixed products."""
    operations = list(Operation)
    for operation in operations:
        good = replace(GOOD, operation=operation)
        yield good
        for name, values in BOUNDS.items():
            for value in values:
                yield replace(good, **{name: value})
    for _ in range(4000):
        good = replace(GOOD, operation=random.choice([*operations, Operation.FRAGMENT]))
        names = random.sample(sorted(BOUNDS), random.choice([2, 2, 3, 4, 6]))
        changed = replace(good, **{name: random.choice(BOUNDS[name]) for name in names})
        if changed.bags == 0 and random.random() < 0.7:  # else LOOKUPS hides all later rules
            product = changed.samples * changed.lookups_per_sample
            changed = replace(changed, lookups=product & 0xFFFF_FFFF)
        yield changed
    # Products: exact, off by one, equal only modulo 2**32, with carries between the halves.
    for _ in range(1000):
        samples = random.choice([random.getrandbits(32), random.getrandbits(17), 0x1_0000, 0xFFFF])
        factor = random.choice([random.getrandbits(32), random.getrandbits(17), 0x1_0000, 0xFFFF])
        product = samples * factor + random.choice([0, 0, 0, 1, -1])
        yield replace(
            GOOD,
            samples=samples,
            lookups_per_sample=factor,
            bags=random.choice([0, 0, factor]),
            lookups=product & 0xFFFF_FFFF,
        )
    # Every set of rules broken together (where they use the same argument, the later one sets it).
    fragment_rules: tuple[dict[str, int], ...] = (
        {"record": 0},
        {"ids": 1},
        {"lookups": 13},
        {"samples": 2**28 + 1, "lookups_per_sample": 0, "lookups": 0},
        {"bags": 0x1_0000},
        {"lookups_per_sample": 65, "samples": 0, "lookups": 0},
        {"total_rows": 0},
        {"cold_rows_max": 0},
    )
    move_rules: tuple[dict[str, int], ...] = (
        {"record": 0},
        {"store": 1},
        {"lookups": 2**28 + 1},
        {"total_rows": 0},
        {"record_bytes": 65},
        {"segments": 65},
    )
    for operation, rules in [
        (Operation.FRAGMENT, fragment_rules),
        (Operation.GATHER, move_rules),
        (Operation.SCATTER, move_rules),
    ]:
        for broken in range(1 << len(rules)):
            changed = replace(GOOD, operation=operation)
            for number, change in enumerate(rules):
                if broken >> number & 1:
                    changed = replace(changed, **change)
            yield changed
    for samples, bags in [(0x1_0001, 0xFFFF), (0x1_0000, 0xFFFF), (2**28, 15), (2**28, 16)]:
        yield replace(GOOD, samples=samples, bags=bags)


async def check(dut: Any, arguments: Arguments) -> tuple[int, bool]:
    """Runs one check; returns reason and record_ok, and asserts the latency."""
    dut.start_i.value = 1
    for field in fields(arguments):
        if field.name not in UNCHECKED:
            getattr(dut, f"{field.name}_i").value = getattr(arguments, field.name)
    await RisingEdge(dut.clk_i)
    dut.start_i.value = 0
    for cycle in range(1, LATENCY + 1):
        await RisingEdge(dut.clk_i)
        assert bool(dut.done_o.value) == (cycle == LATENCY), f"done in cycle {cycle}"
    return int(dut.reason_o.value), bool(dut.record_ok_o.value)


async def reset(dut: Any) -> None:
    """Resets the block."""
    power_up(dut.clk_i, dut.rst_ni)
    dut.start_i.value = 0
    for _ in range(2):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reasons_match_the_oracle(dut: Any) -> None:
    """The first broken rule, whatever else is broken."""
    await reset(dut)
    seen: Counter[Reason] = Counter()
    for arguments in cases():
        expected = check_config(arguments, CONFIG)
        reason, record_ok = await check(dut, arguments)
        assert reason == expected, f"{Reason(reason).name}, not {expected.name}: {arguments}"
        assert record_ok == (arguments.record != 0 and arguments.record % 64 == 0), arguments
        seen[expected] += 1
    config_reasons = {reason for reason in Reason if 16 <= reason < 32} | {Reason.NONE}
    assert set(seen) == config_reasons, "a reason was never met"
    assert min(seen.values()) >= 10, seen


@cocotb.test(timeout_time=100, timeout_unit="us")
async def reset_drops_a_check(dut: Any) -> None:
    """No verdict of a check that was under way; the next one is right."""
    await reset(dut)
    for into in range(LATENCY + 1):
        dut.start_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.start_i.value = 0
        for _ in range(into):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 0
        await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        for _ in range(LATENCY + 2):
            await RisingEdge(dut.clk_i)
            assert not dut.done_o.value
        reason, _ = await check(dut, GOOD)
        assert reason == Reason.NONE
