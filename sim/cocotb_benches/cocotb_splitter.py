# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_splitter`: slices put together again give the samples, in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

from hotline.codes import Reason, Status

SAMPLE, END, BAD, FAILED = range(4)
"""`length_e` of hotline_fragment_pkg."""
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
class Slice:
    """One slice: lane -> id, and where a sample ends (None: nowhere)."""

    ids: dict[int, int]
    end: int | None


@dataclass
class Job:
    """A job: lengths of samples (None: no samples), then how the stream of lengths ends."""

    ids: list[int]
    lengths: list[int] | None
    kind: int = END
    entries: bool = False
    failing_beat: int | None = None
    stop_at: int | None = None
    """After so many slices something downstream stops the job ..."""
    abort: bool = False
    """... or an abort does."""


@dataclass
class Outcome:
    """What came of a job."""

    slices: list[Slice] = field(default_factory=list)
    status: Status = Status.OK
    reason: Reason = Reason.NONE
    value: int = 0
    cycles: int = 0


class Testbench:
    """Drives lengths and beats; plays the reader's part in the drain."""

    def __init__(self, dut: Any, idle: Stall, stall: Stall) -> None:
        self.dut = dut
        self.idle, self.lend, self.stall = idle(), idle(), stall()
        self.lanes = int(dut.BusBits.value) // 32

    async def reset(self) -> None:
        """Resets the block."""
        dut = self.dut
        for name in (
            "rst_ni", "start_i", "abort_i", "stop_i", "len_valid_i", "ids_valid_i", "slc_ready_i",
            "ids_pending_i", "off_pending_i", "ids_error_i", "ids_last_i", "len_kind_i",
        ):  # fmt: skip
            getattr(dut, name).value = 0
        await Timer(1, unit="ns")
        Clock(dut.clk_i, 10, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        await RisingEdge(dut.clk_i)

    def _beats(self, job: Job) -> list[tuple[int, int, int]]:
        words = job.ids
        beats = []
        for first in range(0, len(words), self.lanes):
            data = random.getrandbits(32 * self.lanes)
            for lane, word in enumerate(words[first : first + self.lanes]):
                data &= ~(0xFFFF_FFFF << 32 * lane)
                data |= word << 32 * lane
            last = first + self.lanes >= len(words)
            beats.append((data, int(job.failing_beat == first // self.lanes), int(last)))
        return beats

    async def run(self, job: Job) -> Outcome:
        """Runs a job until the splitter is idle again."""
        dut, outcome = self.dut, Outcome()
        dut.fragment_i.value = int(job.lengths is not None)
        dut.entries_i.value = int(job.entries)
        dut.lookups_i.value = len(job.ids) // (2 if job.entries else 1)
        dut.bad_reason_i.value = int(Reason.OFFSET)
        dut.bad_sample_i.value, dut.bad_lookup_i.value = 11, 22
        dut.bad_value_i.value = 0x33
        beats = self._beats(job)
        records = (
            [] if job.lengths is None else [*((SAMPLE, n) for n in job.lengths), (job.kind, 0)]
        )
        beat = record = 0
        beat_offered = record_offered = False
        terminal = False
        dut.ids_pending_i.value = int(bool(beats))
        dut.start_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.start_i.value = 0
        while True:
            if not beat_offered and beat < len(beats) and not next(self.idle):
                dut.ids_data_i.value, dut.ids_error_i.value, dut.ids_last_i.value = beats[beat]
                dut.ids_addr_i.value = 0x1000 + beat
                beat_offered = True
            if not record_offered and record < len(records) and not next(self.lend):
                dut.len_kind_i.value, dut.len_length_i.value = records[record]
                record_offered = True
            dut.ids_valid_i.value = int(beat_offered)
            dut.len_valid_i.value = int(record_offered)
            dut.slc_ready_i.value = int(not next(self.stall))
            stopping = job.stop_at is not None and len(outcome.slices) >= job.stop_at
            (dut.abort_i if job.abort else dut.stop_i).value = int(stopping)
            await RisingEdge(dut.clk_i)
            outcome.cycles += 1
            assert outcome.cycles < 5000, f"{len(outcome.slices)} slices, then nothing: {job}"
            drain = bool(dut.drain_o.value)
            if beat_offered and (dut.ids_ready_o.value or drain):
                beat_offered, beat = False, beat + 1
                dut.ids_pending_i.value = int(beat < len(beats))
            if record_offered and dut.len_ready_o.value:
                assert records[record][0] == SAMPLE, "only samples are taken"
                record_offered, record = False, record + 1
            if dut.slc_valid_o.value and dut.slc_ready_i.value:
                assert not terminal, "a slice behind the terminal one"
                mask, data = int(dut.slc_mask_o.value), int(dut.slc_data_o.value)
                ids = {
                    lane: data >> 32 * lane & 0xFFFF_FFFF
                    for lane in range(self.lanes)
                    if mask >> lane & 1
                }
                terminal = bool(dut.slc_terminal_o.value)
                if terminal:
                    assert not ids and not dut.slc_end_o.value
                    outcome.status = Status(int(dut.evt_status_o.value))
                    outcome.reason = Reason(int(dut.evt_reason_o.value))
                    outcome.value = int(dut.evt_value_o.value)
                else:
                    end = int(dut.slc_end_lane_o.value) if dut.slc_end_o.value else None
                    outcome.slices.append(Slice(ids, end))
            if terminal and dut.idle_o.value:
                dut.abort_i.value = dut.stop_i.value = 0
                dut.len_valid_i.value = 0
                return outcome


def samples_of(slices: list[Slice]) -> tuple[list[list[int]], list[int]]:
    """Puts slices together: complete samples, and what is left of the last one."""
    samples: list[list[int]] = []
    part: list[int] = []
    for piece in slices:
        for lane in sorted(piece.ids):
            if piece.end is not None and lane >= piece.end:
                break
            part.append(piece.ids[lane])
        if piece.end is not None:
            samples.append(part)
            part = [piece.ids[lane] for lane in sorted(piece.ids) if lane >= piece.end]
    return samples, part


def random_job(lanes: int, longest: int) -> Job:
    """Lengths that make all kinds of beats."""
    most = random.choice([0, 1, 3, lanes, longest])
    lengths = [random.randint(0, most) for _ in range(random.choice([0, 1, 2, 30]))]
    if random.random() < 0.3:
        lengths = [min(longest, random.choice([lanes, 2 * lanes, lanes + 1]))] * 20
    ids = [random.getrandbits(32) for _ in range(sum(lengths))]
    return Job(ids, lengths)


def check_order(job: Job, outcome: Outcome, lanes: int) -> None:
    """Slices of beats keep their lanes; samples are a prefix of the job's."""
    assert job.lengths is not None
    samples, part = samples_of(outcome.slices)
    want, first = [], 0
    for length in job.lengths:
        want.append(job.ids[first : first + length])
        first += length
    assert samples == want[: len(samples)]
    seen = sum(map(len, samples)) + len(part)
    assert part == job.ids[seen - len(part) : seen]
    if outcome.status is Status.OK:
        assert len(samples) == len(want) and not part
    number = 0
    for piece in outcome.slices:
        for lane in sorted(piece.ids):
            assert lane == number % lanes, "lookups keep their lanes"
            number += 1


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(idle=[never, randomly], stall=[never, randomly])
async def slices_make_the_samples(dut: Any, idle: Stall, stall: Stall) -> None:
    """Every lookup and every end, once and in order, whatever ends the job."""
    tb = Testbench(dut, idle, stall)
    await tb.reset()
    longest = int(dut.LookupsMax.value)
    for number in range(60):
        job = random_job(tb.lanes, longest)
        assert job.lengths is not None
        beats = -(-len(job.ids) // tb.lanes)
        event = number % 5
        if event == 1:
            job.kind = random.choice([BAD, FAILED])
            # Ids beyond the last good sample are there, and must not be used.
            job.ids += [random.getrandbits(32)] * random.choice([0, 1, 40])
        elif event == 2 and beats:
            job.failing_beat = random.randrange(beats)
        elif event == 3:
            job.stop_at, job.abort = random.randint(0, 20), random.random() < 0.5
        outcome = await tb.run(job)
        check_order(job, outcome, tb.lanes)
        if event == 1:
            assert len(samples_of(outcome.slices)[0]) == len(job.lengths)
            expected = (
                (Status.BAD_INDEX, Reason.OFFSET)
                if job.kind == BAD
                else (Status.AXI_ERROR, Reason.READ)
            )
            assert (outcome.status, outcome.reason, outcome.value) == (*expected, 0x33)
        elif job.failing_beat is not None:
            assert outcome.status is Status.AXI_ERROR
            assert outcome.value == 0x1000 + job.failing_beat
            assert sum(len(p.ids) for p in outcome.slices) == job.failing_beat * tb.lanes
        elif event == 3:
            assert outcome.status in (Status.ABORTED, Status.OK)
        else:
            assert outcome.status is Status.OK


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def beats_pass_whole(dut: Any) -> None:
    """Without samples a slice is a beat; entries are in the even lanes."""
    tb = Testbench(dut, randomly, randomly)
    await tb.reset()
    for _ in range(40):
        entries = random.random() < 0.5
        count = random.choice([0, 1, 2, tb.lanes - 1, tb.lanes, tb.lanes + 1, 50])
        ids = [random.getrandbits(32) for _ in range(count * (2 if entries else 1))]
        job = Job(ids, None, entries=entries)
        if ids and random.random() < 0.3:
            job.failing_beat = random.randrange(-(-len(ids) // tb.lanes))
        outcome = await tb.run(job)
        used = ids if job.failing_beat is None else ids[: job.failing_beat * tb.lanes]
        found = [piece.ids[lane] for piece in outcome.slices for lane in sorted(piece.ids)]
        assert found == (used[::2] if entries else used)
        assert len(outcome.slices) == -(-len(used) // tb.lanes)
        good = job.failing_beat is None
        assert outcome.status is (Status.OK if good else Status.AXI_ERROR)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def keeps_its_rate(dut: Any) -> None:
    """A beat per cycle where no beat holds two ends, else an end per cycle."""
    tb = Testbench(dut, never, never)
    await tb.reset()
    longest = int(dut.LookupsMax.value)
    for length in (tb.lanes, tb.lanes + 1, min(26, longest), longest):
        job = Job([1] * (length * 40), [length] * 40)
        outcome = await tb.run(job)
        beats = -(-len(job.ids) // tb.lanes)
        assert len(outcome.slices) == beats, f"{length}: {len(outcome.slices)} slices"
        assert outcome.cycles <= beats + 8, f"{length}: {outcome.cycles} cycles, {beats} beats"
    outcome = await tb.run(Job([1] * 100, [1] * 100))
    assert outcome.cycles <= 110
    outcome = await tb.run(Job([], [0] * 100))
    assert outcome.cycles <= 110
