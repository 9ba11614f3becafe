# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_word_packer`, several shapes at once in its wrapper."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

PACKERS = 7
WORD = (1 << 32) - 1

Cycles = Callable[[int], bool]
"""Packer -> True for a withheld cycle."""

Beat = tuple[list[int], bool]
"""Words and `last`."""


def never(_: int) -> bool:
    """No stall."""
    return False


def randomly(_: int) -> bool:
    """Half of the cycles."""
    return random.random() < 0.5


def skewed(packer: int) -> bool:
    """Another share for each packer."""
    return random.random() < (0.1, 0.9, 0.5)[packer % 3]


class Testbench:
    """Drives groups into every packer, collects beats."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.idle: Cycles = never
        self.stall: Cycles = never
        self.groups: list[deque[Beat]] = [deque() for _ in range(PACKERS)]
        self.golden: list[list[Beat]] = [[] for _ in range(PACKERS)]
        self.beats: list[list[Beat]] = [[] for _ in range(PACKERS)]
        self.sent = [0] * PACKERS
        self.sent_at = [0] * PACKERS
        self.got_at = [0] * PACKERS
        self.cycle = 0

    async def start(self) -> None:
        """Clock, reset, driver."""
        dut = self.dut
        dut.rst_ni.value = 0
        dut.flush_i.value = 0
        dut.in_valid_i.value = 0
        dut.out_ready_i.value = 0
        Clock(dut.clk_i, 4, unit="ns").start(start_high=False)
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        assert int(dut.in_ready_o.value) == 0 and int(dut.out_valid_o.value) == 0
        dut.rst_ni.value = 1
        self.lanes = [int(dut.lanes_o.value) >> 5 * p & 31 for p in range(PACKERS)]
        self.in_words = [int(dut.in_words_o.value) >> 5 * p & 31 for p in range(PACKERS)]
        cocotb.start_soon(self._drive())

    def stream(self, packer: int, counts: list[int]) -> None:
        """Queues a stream of groups with these numbers of words, and its golden beats."""
        words: list[int] = []
        for index, count in enumerate(counts):
            group = [random.getrandbits(32) for _ in range(count)]
            words += group
            self.groups[packer].append((group, index + 1 == len(counts)))
        lanes = self.lanes[packer]
        before_last = len(words) - counts[-1]
        full = len(words) // lanes
        beats = [words[lanes * n : lanes * (n + 1)] for n in range(full)]
        # The last group's beat: a beat that was full before it has already gone.
        if len(words) % lanes or not full or before_last == full * lanes:
            beats.append(words[full * lanes :])
        self.golden[packer] += [(beat, n + 1 == len(beats)) for n, beat in enumerate(beats)]

    def random_stream(self, packer: int, groups: int, *, no_empty: bool = False) -> None:
        """A stream of random groups; counts are often full or empty."""
        most = self.in_words[packer]
        counts = [random.choice([0, 1, most, random.randint(0, most)]) for _ in range(groups)]
        if no_empty:
            counts = [most] * groups
        self.stream(packer, counts)

    async def _drive(self) -> None:
        dut = self.dut
        valid = 0
        garbage = random.getrandbits(512)
        while True:
            counts = data = last = ready = 0
            for p in range(PACKERS):
                if self.groups[p]:
                    if not valid >> p & 1 and not self.idle(p):
                        valid |= 1 << p
                    group, is_last = self.groups[p][0]
                    counts |= len(group) << 5 * p
                    value = sum(word << 32 * n for n, word in enumerate(group))
                    # Words beyond the count are garbage.
                    value |= garbage & ~((1 << 32 * len(group)) - 1) & (1 << 512) - 1
                    data |= value << 512 * p
                    last |= is_last << p
                else:
                    valid &= ~(1 << p)
                ready |= (not self.stall(p)) << p
            dut.in_valid_i.value = valid
            dut.in_count_i.value = counts
            dut.in_data_i.value = data
            dut.in_last_i.value = last
            dut.out_ready_i.value = ready
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                valid = 0
                continue
            given = ready & int(dut.out_valid_o.value)
            if given:
                outputs, words = int(dut.out_data_o.value), int(dut.out_words_o.value)
                lasts = int(dut.out_last_o.value)
                for p in range(PACKERS):
                    if given >> p & 1:
                        beat = outputs >> 512 * p
                        count = words >> 5 * p & 31
                        got = [beat >> 32 * n & WORD for n in range(count)]
                        self.beats[p].append((got, bool(lasts >> p & 1)))
                        self.got_at[p] = self.cycle
            taken = valid & int(dut.in_ready_o.value)
            for p in range(PACKERS):
                if taken >> p & 1 and self.groups[p]:  # a flush may have cleared them
                    self.groups[p].popleft()
                    self.sent[p] += 1
                    self.sent_at[p] = self.cycle
            valid &= ~taken

    async def cycles(self, count: int) -> None:
        """Waits."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def settle(self) -> None:
        """Waits until every golden beat has come."""
        for _ in range(20_000):
            await RisingEdge(self.dut.clk_i)
            if not any(self.groups) and all(
                len(b) >= len(g) for b, g in zip(self.beats, self.golden, strict=True)
            ):
                break
        else:
            raise TimeoutError(f"beats {[len(b) for b in self.beats]}")
        await self.cycles(4)
        assert self.beats == self.golden


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(idle=[never, randomly, skewed], stall=[never, randomly, skewed])
async def words_keep_order(dut: Any, idle: Cycles, stall: Cycles) -> None:
    """Streams of every length, empty groups and empty ends: the words, packed, in order."""
    tb = Testbench(dut)
    tb.idle, tb.stall = idle, stall
    await tb.start()
    for p in range(PACKERS):
        for _ in range(25):
            tb.random_stream(p, random.choice([1, 1, 2, 3, 7, 20]))
        # Exactly full, then an empty last; nothing at all; full with the last group.
        tb.stream(p, [1] * tb.lanes[p] + [0])
        tb.stream(p, [0])
        tb.stream(p, [1] * tb.lanes[p])
    await tb.settle()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_group_per_cycle(dut: Any) -> None:
    """Throughput: every cycle a group, however full; a last that overflows costs one more."""
    tb = Testbench(dut)
    await tb.start()
    for p in range(PACKERS):
        tb.random_stream(p, 200, no_empty=p % 2 == 0)
    await tb.cycles(5)
    before = list(tb.sent)
    await tb.cycles(150)
    assert [a - b for a, b in zip(tb.sent, before, strict=True)] == [150] * PACKERS
    await tb.settle()
    # Streams of one group each: one cycle each where nothing overflows.
    for p in range(PACKERS):
        for _ in range(100):
            tb.stream(p, [1])
    await tb.cycles(5)
    before = list(tb.sent)
    await tb.cycles(80)
    assert [a - b for a, b in zip(tb.sent, before, strict=True)] == [80] * PACKERS
    await tb.settle()
    # 4 lanes, 3 words: 3, 3 last overflows by 2, so that 2 groups take 3 cycles.
    packer = tb.lanes.index(4)
    start = tb.sent[packer]
    for _ in range(60):
        tb.stream(packer, [3, 3])
    await tb.cycles(3)
    first = tb.sent[packer]
    await tb.cycles(90)
    assert tb.sent[packer] - first == 60 and first > start
    await tb.settle()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def latency_is_one_cycle(dut: Any) -> None:
    """Latency: 1 cycle from the completing, or last, group to the beat."""
    tb = Testbench(dut)
    await tb.start()
    await tb.cycles(3)
    for counts in ([1], [0]):
        for p in range(PACKERS):
            tb.stream(p, counts)
        await tb.settle()
        assert [g - s for g, s in zip(tb.got_at, tb.sent_at, strict=True)] == [1] * PACKERS


@cocotb.test(timeout_time=400, timeout_unit="us")
async def reset_and_flush_drop_the_words(dut: Any) -> None:
    """Reset and flush in the middle of a stream; the next stream is right."""
    tb = Testbench(dut)
    await tb.start()
    for turn in range(20):
        tb.idle, tb.stall = random.choice([never, randomly]), random.choice([never, skewed])
        for p in range(PACKERS):
            tb.random_stream(p, 30)
        await tb.cycles(random.randrange(3, 40))
        if turn % 2:
            dut.flush_i.value = 1
        else:
            dut.rst_ni.value = 0
        await tb.cycles(1)
        for groups in tb.groups:
            groups.clear()
        await tb.cycles(3)
        for beats, golden in zip(tb.beats, tb.golden, strict=True):
            beats.clear()
            golden.clear()
        assert int(dut.out_valid_o.value) == 0
        dut.flush_i.value = 0
        dut.rst_ni.value = 1
        for p in range(PACKERS):
            tb.random_stream(p, 5)
        await tb.settle()
