# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of the spill register, the FIFO, the RAMs and the arbiter, in their common wrapper."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

WIDTH = 40
STREAMS = 9
SPILL = 0

Cycles = Callable[[int], bool]
"""Stream -> True for a withheld cycle."""


def never(_: int) -> bool:
    """No stall."""
    return False


def always(_: int) -> bool:
    """Nothing moves."""
    return True


def randomly(_: int) -> bool:
    """Half of the cycles."""
    return random.random() < 0.5


def skewed(stream: int) -> bool:
    """Another share for each stream."""
    return random.random() < (0.1, 0.5, 0.9)[stream % 3]


class Streams:
    """Drives every stream at once and checks each against a deque, in every cycle."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.idle: Cycles = never
        self.stall: Cycles = never
        self.held: list[deque[int]] = [deque() for _ in range(STREAMS)]
        self.entered = [0] * STREAMS
        self.left = [0] * STREAMS
        self.cycle = 0
        self.times: list[deque[int]] = [deque() for _ in range(STREAMS)]
        self.latencies: list[set[int]] = [set() for _ in range(STREAMS)]
        self.peak = [0] * STREAMS

    async def start(self) -> None:
        """Clock, reset, driver."""
        dut = self.dut
        dut.rst_ni.value = 0
        for name in ("flush_i", "in_valid_i", "out_ready_i", "a_en_i", "b_en_i", "req_i"):
            getattr(dut, name).value = 0
        dut.advance_i.value = 0
        Clock(dut.clk_i, 4, unit="ns").start(start_high=False)
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        assert int(dut.in_ready_o.value) == 0, "ready in reset"
        assert int(dut.out_valid_o.value) == 0, "valid in reset"
        dut.rst_ni.value = 1
        self.depth = [int(dut.depth_o.value) >> 8 * s & 0xFF for s in range(STREAMS)]
        self.block = [bool(int(dut.block_o.value) >> s & 1) for s in range(STREAMS)]
        cocotb.start_soon(self._drive())

    async def _drive(self) -> None:
        dut = self.dut
        valid = 0
        data = [0] * STREAMS
        was_cleared = True
        while True:
            ready = 0
            for s in range(STREAMS):
                if not valid >> s & 1 and not self.idle(s):
                    valid |= 1 << s
                    data[s] = random.getrandbits(WIDTH)
                ready |= (not self.stall(s)) << s
            dut.in_valid_i.value = valid
            dut.in_data_i.value = sum(value << WIDTH * s for s, value in enumerate(data))
            dut.out_ready_i.value = ready
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            cleared = not int(dut.rst_ni.value)
            flushed = bool(int(dut.flush_i.value))
            taken = valid & int(dut.in_ready_o.value)
            given = ready & int(dut.out_valid_o.value)
            outputs = int(dut.out_data_o.value)
            counts = int(dut.count_o.value)
            for s in range(STREAMS):
                held = self.held[s]
                if not cleared:
                    if s != SPILL:
                        assert counts >> 8 * s & 0xFF == len(held), f"count of stream {s}"
                        # Full is exactly when Depth beats are held.
                        expected = len(held) < self.depth[s] and not was_cleared
                        assert bool(int(dut.in_ready_o.value) >> s & 1) == expected
                    if given >> s & 1:
                        assert held, f"stream {s}: beat from nowhere"
                        assert outputs >> WIDTH * s & (1 << WIDTH) - 1 == held.popleft()
                        self.left[s] += 1
                        entered = self.times[s].popleft()
                        if not held:
                            self.latencies[s].add(self.cycle - entered)
                    if taken >> s & 1:
                        held.append(data[s])
                        self.times[s].append(self.cycle)
                        self.entered[s] += 1
                    self.peak[s] = max(self.peak[s], len(held))
                if cleared or (flushed and s != SPILL):
                    held.clear()
                    self.times[s].clear()
            valid = 0 if cleared else valid & ~taken
            was_cleared = cleared

    async def cycles(self, count: int) -> None:
        """Waits."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(idle=[never, randomly, skewed], stall=[never, randomly, skewed])
async def streams_keep_order(dut: Any, idle: Cycles, stall: Cycles) -> None:
    """No beat is lost, doubled or overtaken; `count` and `ready` are exact in every cycle."""
    tb = Streams(dut)
    tb.idle, tb.stall = idle, stall
    await tb.start()
    await tb.cycles(600)
    tb.idle, tb.stall = always, never
    await tb.cycles(200)
    assert tb.entered == tb.left and not any(tb.held)
    assert min(tb.entered) > 20


@cocotb.test(timeout_time=200, timeout_unit="us")
async def throughput_and_latency_are_as_stated(dut: Any) -> None:
    """1 beat per cycle from the stated depths on; latency into an empty stream."""
    tb = Streams(dut)
    await tb.start()
    await tb.cycles(5)
    before = list(tb.left)
    await tb.cycles(100)
    for s in range(STREAMS):
        if tb.depth[s] >= (3 if tb.block[s] else 2):
            assert tb.left[s] - before[s] == 100, f"stream {s}"
    # Single beats, far apart.
    tb.idle = always
    await tb.cycles(100)
    for latencies in tb.latencies:
        latencies.clear()
    tb.idle = lambda _: tb.cycle % 8 != 0
    await tb.cycles(100)
    for s in range(STREAMS):
        assert tb.latencies[s] == {2 if tb.block[s] else 1}, f"stream {s}"


@cocotb.test(timeout_time=200, timeout_unit="us")
async def full_streams_hold_their_depth(dut: Any) -> None:
    """Stalls: exactly Depth beats go in while nothing comes out; all come out at full rate."""
    tb = Streams(dut)
    tb.stall = always
    await tb.start()
    await tb.cycles(300)
    assert tb.peak == tb.depth
    tb.stall, tb.idle = never, always
    await tb.cycles(76)
    # The beat that was offered all the time enters as well.
    assert tb.left == [depth + 1 for depth in tb.depth]


@cocotb.test(timeout_time=200, timeout_unit="us")
async def reset_and_flush_empty_the_streams(dut: Any) -> None:
    """Reset and flush at any fill; the model drops the same beats, and the next ones are right."""
    tb = Streams(dut)
    await tb.start()
    for turn in range(40):
        tb.idle, tb.stall = random.choice([never, randomly]), random.choice([always, skewed])
        await tb.cycles(random.randrange(5, 90))
        if turn % 2:
            dut.flush_i.value = 1
            await tb.cycles(1)
            dut.flush_i.value = 0
        else:
            dut.rst_ni.value = 0
            await tb.cycles(2)
            assert int(dut.out_valid_o.value) == 0
            dut.rst_ni.value = 1
    tb.idle, tb.stall = always, never
    await tb.cycles(150)
    assert not any(tb.held)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def rams_read_old_data(dut: Any) -> None:
    """Latency 1, held without enable, old data on every collision; LUT RAM reads at once."""
    tb = Streams(dut)
    tb.idle = always
    await tb.start()
    depth = 11
    memory: list[int | None] = [None] * depth
    a_out: int | None = None
    b_out: int | None = None
    simple: int | None = None
    # The simple RAM is written by port a only; compare it where port b never wrote.
    simple_memory: list[int | None] = [None] * depth
    collisions = 0
    for _ in range(1500):
        a_en, b_en = random.random() < 0.8, random.random() < 0.8
        a_we, b_we = random.random() < 0.5, random.random() < 0.5
        a_addr, b_addr = random.randrange(depth), random.randrange(depth)
        if a_en and b_en and a_we and b_we and a_addr == b_addr:
            b_we = False
        a_data, b_data = random.getrandbits(WIDTH), random.getrandbits(WIDTH)
        for name, value in (
            ("a_en", a_en), ("b_en", b_en), ("a_we", a_we), ("b_we", b_we), ("a_addr", a_addr),
            ("b_addr", b_addr), ("a_wdata", a_data), ("b_wdata", b_data),
        ):  # fmt: skip
            getattr(dut, f"{name}_i").value = int(value)
        await ReadOnly()
        if simple_memory[b_addr] is not None:
            assert int(dut.lut_rdata_o.value) == simple_memory[b_addr]
        await RisingEdge(dut.clk_i)
        collisions += a_en and b_en and a_addr == b_addr and (a_we or b_we)
        if a_en:
            a_out = memory[a_addr]
        if b_en:
            b_out, simple = memory[b_addr], simple_memory[b_addr]
        if a_en and a_we:
            memory[a_addr] = simple_memory[a_addr] = a_data
        if b_en and b_we:
            memory[b_addr] = b_data
        await ReadOnly()
        outputs = ((a_out, "a_rdata_o"), (b_out, "b_rdata_o"), (simple, "simple_rdata_o"))
        for want, handle in outputs:
            if want is not None:
                assert int(getattr(dut, handle).value) == want, handle
        await RisingEdge(dut.clk_i)  # leave the read-only phase with nothing enabled twice
        if a_en:
            a_out = memory[a_addr]
        if b_en:
            b_out, simple = memory[b_addr], simple_memory[b_addr]
    assert collisions > 20


@cocotb.test(timeout_time=100, timeout_unit="us")
async def arbiter_is_fair(dut: Any) -> None:
    """One grant, only to a request, next in turn; the turn moves only when told."""
    tb = Streams(dut)
    tb.idle = always
    await tb.start()
    last = 4  # the turn is at 0
    for _ in range(500):
        requests = random.getrandbits(5) & random.choice([0x1F, 0x15, 0x1F])
        advance = random.random() < 0.7
        dut.req_i.value = requests
        dut.advance_i.value = int(advance)
        await RisingEdge(dut.clk_i)
        want = next((n % 5 for n in range(last + 1, last + 6) if requests >> n % 5 & 1), None)
        assert int(dut.grant_o.value) == (0 if want is None else 1 << want)
        assert int(dut.index_o.value) == (want or 0)
        assert int(dut.single_grant_o.value) == requests & 1
        assert int(dut.single_index_o.value) == 0
        if advance and want is not None:
            last = want
