# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_write_engine`: every line of its header, on any parameters."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from sim.bfm import AxiChecker, AxiMemory, AxiPort, Response, Timing

SIZE = 0x10_0000
GUARD = 0xA5
EFFORT = int(os.environ.get("HOTLINE_EFFORT", "1"))
"""Multiplies the rounds of the random tests."""
FAST = Timing()
"""The memory answers in the next cycle."""


@dataclass
class Stream:
    """A stream of 32-bit words, and how far it has got."""

    address: int
    words: list[int]
    empty_last: bool = False
    """End with a beat of 0 words although the words fill their beats."""
    beats: list[tuple[int, int, bool]] = field(default_factory=list)
    """data, words, last"""
    begun: bool = False


@dataclass
class Mark:
    """A mark and what it covers."""

    streams: list[Stream]
    acked: bool = False
    error: int | None = None
    """Address of the error that was shown."""
    acked_at: int = -1


Cycles = Callable[[int], bool]
"""Channel -> True for a withheld cycle."""


def never(_: int) -> bool:
    """No stall."""
    return False


def randomly(_: int) -> bool:
    """Half of the cycles."""
    return random.random() < 0.5


def rarely(_: int) -> bool:
    """Nine of ten cycles withheld."""
    return random.random() < 0.9


class Testbench:
    """Drives streams and marks, checks the memory; one coroutine serves all channels."""

    def __init__(self, dut: Any, timing: Timing = FAST) -> None:
        self.dut = dut
        self.bits = int(dut.BusBits.value)
        self.size = self.bits // 8
        self.lanes = self.bits // 32
        self.words_width = self.lanes.bit_length()
        self.channels = int(dut.Channels.value)
        self.burst = int(dut.BurstBeats.value)
        self.fifo = int(dut.FifoBeats.value)
        self.outstanding = int(dut.Outstanding.value)
        checker = AxiChecker(
            AxiPort(dut, self.size), burst_beats=self.burst, write_outstanding=self.outstanding
        )
        self.memory = AxiMemory(checker.port, timing, checker=checker)
        self.checker = checker
        # Anywhere, or across a carry into the upper half: the whole address is exercised.
        upper = random.randrange((1 << 32) - 1) << 32
        self.base = upper + random.choice([random.getrandbits(20) << 12, 0xFFFE_0000])
        self.contents = self.memory.add_region(self.base, SIZE, GUARD)
        self.golden = bytearray(self.contents)
        self.place = 4096
        self.commands: list[deque[Stream]] = [deque() for _ in range(self.channels)]
        self.inputs: list[deque[Stream]] = [deque() for _ in range(self.channels)]
        self.begun: list[Stream] = []
        self.marks_wanted = 0
        self.marks: list[Mark] = []
        self.idle: Cycles = never
        self.cmd_idle: Cycles = never
        self.ack_stall: Cycles = never
        self.cycle = 0
        self.beats_sent = 0
        self.last_transfer = 0
        self.paused = False

    async def start(self) -> None:
        """Clock, memory, driver, reset."""
        dut = self.dut
        dut.rst_ni.value = 0
        for name in ("cmd_valid_i", "in_valid_i", "mark_valid_i", "acked_ready_i", "cancel_i"):
            getattr(dut, name).value = 0
        Clock(dut.clk_i, 4, unit="ns").start(start_high=False)
        cocotb.start_soon(self.memory.run())
        await self.reset()
        cocotb.start_soon(self._drive())

    async def reset(self) -> None:
        """Some cycles of reset; forgets every stream."""
        self.dut.rst_ni.value = 0
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        self.forget()
        self.marks.clear()
        self.marks_wanted = 0
        self.dut.rst_ni.value = 1

    def forget(self) -> None:
        """Drops all streams that the driver holds; the memory's contents are painted again."""
        for channel in range(self.channels):
            self.commands[channel].clear()
            self.inputs[channel].clear()
        self.begun.clear()
        self.contents[:] = bytes([GUARD]) * SIZE
        self.golden[:] = self.contents
        self.place = 4096

    def stream(
        self, channel: int, count: int, start: int | None = None, *, empty_last: bool = False
    ) -> Stream:
        """Queues a stream of ``count`` words; ``start`` is the beat in its page."""
        page = 4096 // self.size
        beats = -(-count // self.lanes)
        if start is not None:
            self.place += (start * self.size - self.place) % 4096
        address = self.base + self.place
        # A gap of one guarded beat behind each stream.
        self.place += (beats + 1) * self.size
        assert self.place <= SIZE, "bench: region too small"
        assert start is None or start < page
        words = [random.getrandbits(32) for _ in range(count)]
        stream = Stream(address, words, empty_last)
        offset = address - self.base
        for index, word in enumerate(words):
            self.golden[offset + 4 * index : offset + 4 * index + 4] = word.to_bytes(4, "little")
        for at in range(0, count, self.lanes):
            part = words[at : at + self.lanes]
            data = sum(word << 32 * lane for lane, word in enumerate(part))
            # Garbage in the lanes beyond the stream must not reach the memory.
            data |= random.getrandbits(self.bits) & ~((1 << 32 * len(part)) - 1)
            stream.beats.append((data, len(part), False))
        if not stream.beats or (empty_last and count % self.lanes == 0):
            stream.beats.append((random.getrandbits(self.bits), 0, True))
        else:
            data, part_words, _ = stream.beats[-1]
            stream.beats[-1] = (data, part_words, True)
        self.commands[channel].append(stream)
        self.inputs[channel].append(stream)
        return stream

    def random_streams(self, count: int) -> None:
        """Lengths round beat and burst, starts round the page, for every channel."""
        lanes, burst, page = self.lanes, self.burst, 4096 // self.size
        for _ in range(count):
            for channel in range(self.channels):
                beats = random.choice([0, 1, 1, 2, burst - 1, burst, burst + 1, 3 * burst + 1])
                if random.random() < 0.03:
                    beats = min(page + 3, 140)
                words = max(0, beats * lanes - random.choice([0, 0, 1, lanes - 1]))
                start = random.choice([0, page - 1, page - 2, max(0, page - burst), None, None])
                self.stream(channel, words, start, empty_last=random.random() < 0.5)

    async def _drive(self) -> None:
        """Serves commands, beats and marks at every edge."""
        dut = self.dut
        cmd_valid = in_valid = 0
        mark_valid = was_busy = False
        words_mask = (1 << self.words_width) - 1
        while True:
            addresses = data = words = last = 0
            for channel in range(self.channels):
                bit = 1 << channel
                if not self.commands[channel]:
                    cmd_valid &= ~bit
                else:
                    if not cmd_valid & bit and not self.paused and not self.cmd_idle(channel):
                        cmd_valid |= bit
                    addresses |= self.commands[channel][0].address << 64 * channel
                if not self.inputs[channel]:
                    in_valid &= ~bit
                else:
                    if not in_valid & bit and not self.paused and not self.idle(channel):
                        in_valid |= bit
                    value, count, is_last = self.inputs[channel][0].beats[0]
                    if not is_last:
                        count = random.getrandbits(self.words_width)  # ignored
                    data |= value << self.bits * channel
                    words |= (count & words_mask) << self.words_width * channel
                    last |= bit if is_last else 0
            mark_valid = mark_valid or (self.marks_wanted > 0)
            acked_ready = not self.ack_stall(0)
            if in_valid:
                dut.in_data_i.value = data
                dut.in_words_i.value = words
                dut.in_last_i.value = last
            if cmd_valid:
                dut.cmd_addr_i.value = addresses
            dut.cmd_valid_i.value = cmd_valid
            dut.in_valid_i.value = in_valid
            dut.mark_valid_i.value = int(mark_valid)
            dut.acked_ready_i.value = int(acked_ready)
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                cmd_valid = in_valid = 0
                mark_valid = was_busy = False
                continue
            # Writes of the edge before this one may have ended at it.
            busy = bool(self.checker.writes_open) or any(not mark.acked for mark in self.marks)
            if busy and was_busy:
                assert not int(dut.idle_o.value), "idle with a burst or a mark open"
            was_busy = busy
            if cmd_valid:
                taken = cmd_valid & int(dut.cmd_ready_o.value)
                for channel in range(self.channels):
                    if taken >> channel & 1:
                        stream = self.commands[channel].popleft()
                        stream.begun = True
                        if not int(dut.cancel_i.value):
                            self.begun.append(stream)
                cmd_valid &= ~taken
            if in_valid:
                taken = in_valid & int(dut.in_ready_o.value)
                for channel in range(self.channels):
                    if taken >> channel & 1:
                        stream = self.inputs[channel][0]
                        # A stream is dropped as a whole in a cancel, but never sent early.
                        assert stream.begun or int(dut.cancel_i.value)
                        stream.beats.pop(0)
                        self.beats_sent += 1
                        self.last_transfer = self.cycle
                        if not stream.beats:
                            self.inputs[channel].popleft()
                in_valid &= ~taken
            if int(dut.acked_valid_o.value) and acked_ready:
                mark = next(mark for mark in self.marks if not mark.acked)
                mark.acked = True
                mark.acked_at = self.cycle
                if int(dut.acked_error_o.value):
                    mark.error = int(dut.acked_addr_o.value)
            if mark_valid and int(dut.mark_ready_o.value):
                self.marks.append(Mark(list(self.begun)))
                self.marks_wanted -= 1
                mark_valid = False
                assert sum(not mark.acked for mark in self.marks) <= 2

    def check_memory(self) -> None:
        """Contents are the streams' words, and the guard everywhere else."""
        if self.contents != self.golden:
            at = next(i for i in range(SIZE) if self.contents[i] != self.golden[i])
            raise AssertionError(f"memory differs at {self.base + at:#x}")

    def mark(self) -> None:
        """Asks for a mark in the next cycle."""
        self.marks_wanted += 1

    async def settle(self, limit: int = 60_000) -> None:
        """Waits until all streams are taken, all marks acknowledged and the engine is idle."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if (
                not any(self.commands)
                and not any(self.inputs)
                and not self.marks_wanted
                and all(mark.acked for mark in self.marks)
                and int(self.dut.idle_o.value)
            ):
                break
        else:
            raise TimeoutError(f"not idle; {[len(q) for q in self.inputs]} streams to come")
        self.checker.assert_quiet()


def random_stalls(tb: Testbench) -> None:
    """Skewed random stalls on every channel of the memory and every stream."""
    for channel in ("aw", "w", "b"):
        tb.memory.stall[channel] = random.choice([0.0, 0.1, 0.5, 0.9])
    tb.idle = random.choice([never, randomly, rarely])
    tb.cmd_idle = random.choice([never, randomly, rarely])
    tb.ack_stall = random.choice([never, randomly, rarely])


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(
    stalled=[False, True], timing=[Timing(1), Timing(7, 20), Timing(60, write_depth=2)]
)
async def streams_land_in_memory(dut: Any, stalled: bool, timing: Timing) -> None:
    """Every length, start and gap: the words are in memory when acknowledged, nothing else is."""
    tb = Testbench(dut, timing)
    await tb.start()
    for _ in range(2 * EFFORT if stalled else 1):
        if stalled:
            random_stalls(tb)
        tb.random_streams(8)
        while any(tb.inputs) or any(tb.commands):
            await RisingEdge(dut.clk_i)
        tb.mark()
        while not tb.marks or not tb.marks[-1].acked:
            await RisingEdge(dut.clk_i)
        tb.check_memory()  # at the acknowledgement, not only when idle
        assert not tb.checker.writes_open
        await tb.settle()
        assert tb.marks[-1].error is None
        tb.marks.clear()
        tb.forget()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def bursts_are_the_longest_legal(dut: Any) -> None:
    """The exact bursts and strobes of a stream, for an unaligned length and an empty last."""
    tb = Testbench(dut)
    await tb.start()
    page, lanes = 4096 // tb.size, tb.lanes
    cases = [(0, 1, False), (page - 1, 2 * lanes, True), (page - 2, 2 * lanes, True)]
    cases += [(3, (2 * page + 1) * lanes - 1, False), (5, tb.burst * lanes, True), (7, 0, False)]
    for start, words, empty_last in cases:
        tb.checker.clear()
        stream = tb.stream(0, words, start, empty_last=empty_last)
        await tb.settle()
        golden, at, left = [], start, -(-words // lanes)
        while left:
            length = min(left, tb.burst, page - at % page)
            golden.append((stream.address + (at - start) * tb.size, length))
            at, left = at + length, left - length
        assert [(b.address, b.beats) for b in tb.checker.writes] == golden
        strobes = [s.bit_count() // 4 for b in tb.checker.writes for s in b.strobes]
        assert sum(strobes) == words and all(s == lanes for s in strobes[:-1])
    tb.check_memory()


async def busy_cycles(tb: Testbench, cycles: int) -> int:
    """W transfers in ``cycles`` cycles from the first W transfer on."""
    tb.checker.clear()
    while tb.checker.busy["w"] == 0:
        await RisingEdge(tb.dut.clk_i)
    tb.checker.clear()
    for _ in range(cycles):
        await RisingEdge(tb.dut.clk_i)
    return tb.checker.busy["w"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def write_data_channel_is_always_busy(dut: Any) -> None:
    """Throughput: no idle W cycle with long streams, one channel and all, nor with short ones."""
    tb = Testbench(dut)
    if tb.fifo < 2 * tb.burst or int(dut.CommandDepth.value) < 2:
        return  # this parameter set cannot keep W busy
    page = 4096 // tb.size
    latency = min(100, tb.outstanding * min(tb.burst, page) - 8)
    tb.memory.timing = Timing(latency)
    await tb.start()
    for channels in ([tb.channels - 1], list(range(tb.channels))):
        for channel in channels:
            tb.stream(channel, 500 * tb.lanes, 0)
        # Begin beyond the first bursts of all channels.
        assert await busy_cycles(tb, 400) >= 399, (channels, tb.checker.busy)
        await tb.settle()
        tb.check_memory()
        tb.forget()
    # One-beat streams, a command each, on one channel: a burst per cycle.
    tb.memory.timing = Timing(min(100, tb.outstanding - 8))
    for _ in range(400):
        tb.stream(0, tb.lanes)
    assert await busy_cycles(tb, 350) >= 349, tb.checker.busy
    await tb.settle()
    tb.check_memory()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def latencies_are_as_stated(dut: Any) -> None:
    """Latency: command to ready 2, beat to AW 2 and W 3, B to acknowledgement 2; idle falls."""
    tb = Testbench(dut, Timing(5))
    await tb.start()
    await RisingEdge(dut.clk_i)
    await RisingEdge(dut.clk_i)
    assert int(dut.idle_o.value)
    stream = tb.stream(0, 1)
    tb.mark()
    while not stream.begun:
        await RisingEdge(dut.clk_i)
    begun = tb.cycle
    await RisingEdge(dut.clk_i)
    assert not int(dut.idle_o.value)
    await tb.settle()
    tb.mark()
    offset = tb.checker.cycle - tb.cycle
    assert tb.last_transfer - begun == 2
    burst = tb.checker.writes[0]
    assert burst.accepted_at - offset - tb.last_transfer == 2
    assert burst.data_at - offset - tb.last_transfer == 3
    # The memory answers 5 cycles after the data.
    if tb.marks[0].streams:
        assert tb.marks[0].acked_at - (burst.data_at - offset) == 5 + 2
    await tb.settle()
    assert tb.marks[1].acked and not tb.marks[1].error


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def data_before_the_address_is_enough(dut: Any) -> None:
    """A memory that wants to see W before it takes AW, and one that wants AW first."""
    tb = Testbench(dut, Timing(3))
    await tb.start()
    tb.memory.stall["aw"] = lambda: not int(dut.m_w_valid_o.value)
    tb.random_streams(4)
    await tb.settle()
    tb.check_memory()
    tb.forget()
    tb.memory.stall["aw"] = 0.0
    tb.memory.stall["w"] = lambda: int(dut.m_aw_valid_o.value) == 1 and random.random() < 0.9
    tb.random_streams(4)
    await tb.settle()
    tb.check_memory()


def expected_error(tb: Testbench, streams: list[Stream]) -> int | None:
    """First address in order of the responses that belongs to ``streams`` and failed."""
    for address, response in tb.checker.answers:
        for stream in streams:
            size = 4 * len(stream.words)
            if response and stream.address <= address < stream.address + max(size, 1):
                return address
    return None


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(response=[Response.SLVERR, Response.DECERR], stalled=[False, True])
async def marks_report_the_first_error(dut: Any, response: Response, stalled: bool) -> None:
    """Errors: first, middle, last beat and burst; only the mark that covers it reports it."""
    tb = Testbench(dut, Timing(9, 5))
    await tb.start()
    if stalled:
        random_stalls(tb)
    beats = 3 * tb.burst + 2
    for fault in [None, 0, 1, tb.burst - 1, tb.burst, beats // 2, beats - 1]:
        tb.checker.clear()
        for channel in range(tb.channels):
            for part in range(2):
                stream = tb.stream(channel, beats * tb.lanes - part)
                if fault is not None and channel != 1:
                    tb.memory.inject(stream.address + fault * tb.size, response, writes=True)
        # Marks come while streams of the next mark are already written.
        for _ in range(4):
            tb.mark()
            for _ in range(random.choice([1, 40, 100])):
                await RisingEdge(dut.clk_i)
        await tb.settle()
        tb.mark()
        await tb.settle()
        covered: list[int] = []
        for mark in tb.marks:
            new = [s for s in mark.streams if id(s) not in covered]
            covered += [id(s) for s in new]
            assert mark.error == expected_error(tb, new)
        errors = [mark.error for mark in tb.marks if mark.error is not None]
        assert bool(errors) == (fault is not None)
        tb.marks.clear()
        tb.memory.remove_regions()
        tb.contents = tb.memory.add_region(tb.base, SIZE, GUARD)
        tb.forget()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def two_marks_may_be_open_and_hold_nothing_up(dut: Any) -> None:
    """Marks: with B withheld two are taken, a third waits, and streams behind them are sent."""
    tb = Testbench(dut, Timing(2))
    await tb.start()
    tb.memory.hold.add("b")
    for _ in range(3):
        tb.stream(0, tb.lanes)
        for _ in range(12):
            await RisingEdge(dut.clk_i)
        tb.mark()
        for _ in range(4):
            await RisingEdge(dut.clk_i)
    sent = min(3, tb.outstanding)
    assert len(tb.marks) == 2 and tb.marks_wanted == 1
    assert len(tb.checker.writes) == sent and not int(dut.acked_valid_o.value)
    tb.memory.hold.clear()
    await tb.settle()
    assert [len(mark.streams) for mark in tb.marks] == [1, 2, 3]
    # A stream without words, and a mark without streams.
    tb.stream(0, 0)
    tb.mark()
    tb.mark()
    await tb.settle()
    assert len(tb.marks) == 5


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def cancel_drops_what_was_not_issued(dut: Any) -> None:
    """Cancel: no new address, issued bursts end with strobes 0, marks end, and it goes on."""
    tb = Testbench(dut, Timing(12, 9))
    await tb.start()
    zeros = 0
    for _ in range(12 * EFFORT):
        random_stalls(tb)
        tb.random_streams(5)
        for _ in range(random.choice([2, 10, 30, 100, 300])):
            await RisingEdge(dut.clk_i)
        tb.mark()
        await RisingEdge(dut.clk_i)
        dut.cancel_i.value = 1
        await RisingEdge(dut.clk_i)
        await RisingEdge(dut.clk_i)
        issued = len(tb.checker.writes)
        written_beats = sum(s != 0 for b in tb.checker.writes for s in b.strobes)
        written_beats += sum(s != 0 for s, _, _ in tb.checker.early_w)
        for _ in range(random.choice([0, 3, 200])):
            await RisingEdge(dut.clk_i)
        # The user withdraws what was not taken: a cancelled stream is void.
        tb.paused = True
        while any(tb.commands) or any(tb.inputs):
            await RisingEdge(dut.clk_i)
            for channel in range(tb.channels):
                if not int(dut.cmd_valid_i.value) >> channel & 1:
                    tb.commands[channel].clear()
                if not int(dut.in_valid_i.value) >> channel & 1:
                    tb.inputs[channel].clear()
        dut.cancel_i.value = 0
        tb.paused = False
        old_end = tb.place
        if random.random() < 0.5:  # else new streams at once, without waiting for idle
            await tb.settle()
            assert len(tb.checker.writes) <= issued + 1  # the one that was offered
        tb.random_streams(2)
        tb.mark()
        await tb.settle()
        # Of the old streams, only the beats that stood in the W and AW registers were written after
        # the cancel; each word is what a stream put there, or untouched.
        strobes = [s for b in tb.checker.writes if b.address < tb.base + old_end for s in b.strobes]
        assert sum(s != 0 for s in strobes) <= written_beats + 2
        zeros += strobes.count(0)
        for at in range(0, old_end, 4):
            if tb.contents[at : at + 4] != bytes([GUARD]) * 4:
                assert tb.contents[at : at + 4] == tb.golden[at : at + 4]
        assert tb.contents[old_end:] == tb.golden[old_end:]
        tb.marks.clear()
        tb.forget()
        tb.checker.clear()
    dut._log.info("beats with strobes 0: %d", zeros)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cancel_completes_issued_bursts_with_strobes_zero(dut: Any) -> None:
    """Cancel with W stuck in a burst: only the beat in the register is written, all are sent."""
    tb = Testbench(dut, Timing(3))
    await tb.start()
    tb.memory.hold.add("w")
    stream = tb.stream(0, 12 * tb.burst * tb.lanes, 0)
    for _ in range(60):
        await RisingEdge(dut.clk_i)
    issued = sum(b.beats for b in tb.checker.writes)
    assert issued
    tb.mark()
    dut.cancel_i.value = 1
    while any(tb.inputs):
        await RisingEdge(dut.clk_i)
    for _ in range(20):
        await RisingEdge(dut.clk_i)
    assert not int(dut.acked_valid_o.value) and not int(dut.idle_o.value)
    tb.memory.hold.clear()
    # At once: the next stream waits until the old bursts are completed.
    dut.cancel_i.value = 0
    offset = stream.address - tb.base
    tb.golden[offset + tb.size : offset + 4 * len(stream.words)] = bytes([GUARD]) * (
        4 * len(stream.words) - tb.size
    )
    tb.stream(0, 3 * tb.lanes)
    await tb.settle()
    strobes = [
        s
        for b in tb.checker.writes
        if b.address < tb.memory.port.bus_bytes * (12 * tb.burst) + stream.address
        for s in b.strobes
    ]
    assert [bool(s) for s in strobes] == [True] + [False] * (issued - 1)
    tb.check_memory()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def ready_stuck_low_loses_nothing(dut: Any) -> None:
    """Stalls: W, AW or B stuck for thousands of cycles, then released."""
    tb = Testbench(dut, Timing(2))
    await tb.start()
    for stuck in ("w", "aw", "b"):
        tb.memory.hold.add(stuck)
        tb.random_streams(6)
        for channel in range(tb.channels):
            for _ in range(3):
                tb.stream(channel, (tb.fifo + 8) * tb.lanes)
            for _ in range(tb.outstanding + 8 if stuck == "b" else 0):
                tb.stream(channel, 1)
        for _ in range(2000):
            await RisingEdge(dut.clk_i)
        assert any(tb.inputs), "bench: too few streams to fill the engine"
        assert len(tb.checker.writes) <= tb.outstanding
        tb.memory.hold.clear()
        await tb.settle()
        tb.check_memory()
        tb.forget()
        tb.checker.clear()


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def reset_in_the_middle_starts_clean(dut: Any) -> None:
    """Reset: at any moment; what follows is complete, and nothing old is written."""
    tb = Testbench(dut, Timing(15, 5))
    await tb.start()
    for _ in range(8 * EFFORT):
        random_stalls(tb)
        tb.random_streams(4)
        tb.mark()
        for _ in range(random.randrange(5, 200)):
            await RisingEdge(dut.clk_i)
        await tb.reset()
        await RisingEdge(dut.clk_i)
        assert int(dut.idle_o.value) and not int(dut.acked_valid_o.value)
        tb.random_streams(1)
        tb.mark()
        await tb.settle()
        tb.check_memory()
