# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_sample_lengths`: records against a plain walk over the offsets."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

from hotline.codes import Reason


class Kind(IntEnum):
    """`length_e` of hotline_fragment_pkg."""

    SAMPLE = 0
    END = 1
    BAD = 2
    FAILED = 3


Stall = Callable[[], Iterator[bool]]


def never() -> Iterator[bool]:
    """No withheld cycle."""
    while True:
        yield False


def randomly() -> Iterator[bool]:
    """Half of the cycles withheld."""
    while True:
        yield random.random() < 0.5


@dataclass
class Job:
    """A job; ``offsets`` None: all samples have ``length`` lookups."""

    samples: int
    lookups: int
    length: int = 0
    bags: int = 0
    offsets: list[int] | None = None
    failing_beat: int | None = None


@dataclass
class Records:
    """What comes out."""

    lengths: list[int] = field(default_factory=list)
    kind: Kind = Kind.END
    detail: tuple[int, ...] = ()
    """BAD: reason, sample, lookup, value. FAILED: address."""


def golden(job: Job, lanes: int, longest: int) -> Records:
    """The specification (docs/architecture.md, "Order of events")."""
    records = Records()
    if job.offsets is None:
        records.lengths = [job.length] * job.samples
        return records
    last, edge, sample = job.samples * job.bags, 0, 0
    for number, entry in enumerate(job.offsets):
        if job.failing_beat is not None and number // lanes >= job.failing_beat:
            records.kind, records.detail = Kind.FAILED, (address(job.failing_beat, lanes),)
            return records
        before = job.offsets[number - 1] if number else 0
        good = before <= entry <= job.lookups if number else entry == 0
        if not good or (number == last and entry != job.lookups):
            records.kind = Kind.BAD
            records.detail = (int(Reason.OFFSET), sample, number, entry)
            return records
        if number and number % job.bags == 0:
            if entry - edge > longest:
                records.kind = Kind.BAD
                records.detail = (int(Reason.SAMPLE_TOO_LONG), sample, edge, entry - edge)
                return records
            records.lengths.append(entry - edge)
            edge, sample = entry, sample + 1
    return records


def address(beat: int, lanes: int) -> int:
    """Where the bench says that a beat lies."""
    return 0xAB_0000_0000 + 4 * lanes * beat


class Testbench:
    """Drives beats of offsets, collects the records of one job after the other."""

    def __init__(self, dut: Any, idle: Stall, stall: Stall) -> None:
        self.dut = dut
        self.idle, self.stall = idle(), stall()
        self.lanes = int(dut.BusBits.value) // 32
        self.longest = int(dut.LookupsMax.value)
        self.cycles = 0

    async def reset(self) -> None:
        """Resets the block."""
        dut = self.dut
        for name in ("rst_ni", "start_i", "stop_i", "off_valid_i", "off_error_i", "len_ready_i"):
            getattr(dut, name).value = 0
        await Timer(1, unit="ns")
        Clock(dut.clk_i, 10, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        await RisingEdge(dut.clk_i)

    def _beats(self, job: Job) -> list[tuple[int, bool]]:
        """Data and error of each beat; what lies behind the last entry is random."""
        entries = job.offsets or []
        beats = []
        for first in range(0, len(entries), self.lanes):
            data = random.getrandbits(32 * self.lanes)
            for lane, entry in enumerate(entries[first : first + self.lanes]):
                data &= ~(0xFFFF_FFFF << 32 * lane)
                data |= entry << 32 * lane
            beats.append((data, job.failing_beat == first // self.lanes))
        return beats

    async def run(self, job: Job, most: int | None = None) -> Records:
        """Runs a job to its last record, or until ``most`` lengths came; then stops it."""
        dut = self.dut
        dut.jagged_i.value = int(job.offsets is not None)
        dut.samples_i.value = job.samples
        dut.lookups_i.value = job.lookups
        dut.lookups_per_sample_i.value = job.length
        dut.bags_i.value = job.bags
        dut.entries_i.value = job.samples * job.bags + 1
        dut.start_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.start_i.value = 0
        records = Records()
        beats, offered, number = self._beats(job), False, 0
        self.cycles = 0
        while True:
            if not offered and number < len(beats) and not next(self.idle):
                dut.off_data_i.value, dut.off_error_i.value = beats[number]
                dut.off_addr_i.value = address(number, self.lanes)
                offered = True
            dut.off_valid_i.value = int(offered)
            dut.len_ready_i.value = int(not next(self.stall))
            await RisingEdge(dut.clk_i)
            self.cycles += 1
            assert self.cycles < 20_000, f"{len(records.lengths)} records, then nothing"
            if offered and dut.off_ready_o.value:
                offered, number = False, number + 1
            if not (dut.len_valid_o.value and dut.len_ready_i.value):
                continue
            kind = Kind(int(dut.len_kind_o.value))
            if kind is Kind.SAMPLE:
                records.lengths.append(int(dut.len_length_o.value))
                if most is not None and len(records.lengths) == most:
                    break
                continue
            records.kind = kind
            if kind is Kind.BAD:
                names = ("reason", "sample", "lookup", "value")
                records.detail = tuple(int(getattr(dut, f"bad_{n}_o").value) for n in names)
            elif kind is Kind.FAILED:
                records.detail = (int(dut.bad_value_o.value),)
            break
        dut.stop_i.value = 1
        dut.len_ready_i.value = 0
        dut.off_valid_i.value = 0
        for _ in range(random.randint(1, 3)):
            await RisingEdge(dut.clk_i)
        dut.stop_i.value = 0
        await RisingEdge(dut.clk_i)
        return records

    async def check(self, job: Job) -> None:
        """Runs a job and compares."""
        got, want = await self.run(job), golden(job, self.lanes, self.longest)
        assert got == want, f"{job}\ngot  {got}\nwant {want}"


def random_job(longest: int, lanes: int) -> Job:
    """Any job, half of them with a fault."""
    samples = random.choice([0, 1, 2, lanes, random.randint(0, 60)])
    if random.random() < 0.2:
        length = random.randint(0, longest)
        return Job(samples, samples * length, length)
    bags = random.choice([1, 1, 2, 3, lanes - 1, lanes, lanes + 1, 40])
    most = random.choice([0, 1, 3, longest // bags + 1])
    offsets = [0]
    for _ in range(samples * bags):
        offsets.append(offsets[-1] + random.randint(0, most))
    job = Job(samples, offsets[-1], 0, bags, offsets)
    for _ in range(random.choice([0, 0, 1, 2])):
        place = random.choice([0, len(offsets) - 1, random.randrange(len(offsets))])
        values = [0, 1, job.lookups, job.lookups + 1, 2**32 - 1, offsets[place] - 1]
        offsets[place] = random.choice(values) & 0xFFFF_FFFF
    if random.random() < 0.15:
        job.failing_beat = random.randrange(-(-len(offsets) // lanes))
    return job


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=[never, randomly], stall=[never, randomly])
async def records_match_model(dut: Any, idle: Stall, stall: Stall) -> None:
    """Any offsets give the lengths up to the first event, and the event with its place."""
    tb = Testbench(dut, idle, stall)
    await tb.reset()
    for _ in range(80):
        await tb.check(random_job(tb.longest, tb.lanes))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def stops_at_any_record(dut: Any) -> None:
    """A job that is given up leaves nothing to the next."""
    tb = Testbench(dut, never, randomly)
    await tb.reset()
    for _ in range(40):
        job = random_job(tb.longest, tb.lanes)
        count = len(golden(job, tb.lanes, tb.longest).lengths)
        if count:
            most = random.randint(1, count)
            got = await tb.run(job, most)
            assert got.lengths == golden(job, tb.lanes, tb.longest).lengths[:most]
        await tb.check(random_job(tb.longest, tb.lanes))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def keeps_its_rate(dut: Any) -> None:
    """A record per cycle; with many bags a beat per cycle."""
    tb = Testbench(dut, never, never)
    await tb.reset()
    for bags, samples in ((1, 200), (2, 200), (26, 60)):
        offsets = list(range(samples * bags + 1))
        await tb.check(Job(samples, offsets[-1], 0, bags, offsets))
        # Where a sample ends in the middle of a beat, the walk stops there for a cycle.
        most = samples + (len(offsets) // tb.lanes if bags > tb.lanes else 0) + 12
        if bags <= 2:
            most = samples + 12 + len(offsets) // tb.lanes
        assert tb.cycles <= most, f"{bags} bags: {tb.cycles} cycles, at most {most}"
    await tb.check(Job(300, 1200, 4))
    assert tb.cycles <= 306
