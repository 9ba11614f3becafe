# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_read_engine`: every line of its header, on any parameters."""

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

BASE = 0x7_FFFF_0000
"""The region crosses bit 32 and more so that the whole address is exercised."""
SIZE = 0x2_0000
EFFORT = int(os.environ.get("HOTLINE_EFFORT", "1"))
"""Multiplies the rounds of the random tests."""
FAST = Timing()
"""The memory answers in the next cycle."""


@dataclass
class Command:
    """A command and what came back for it."""

    address: int
    beats: int
    data: list[int] = field(default_factory=list)
    errors: dict[int, int] = field(default_factory=dict)
    """Beat number -> address shown with the error."""
    void: bool = False
    done_at: int = -1


Cycles = Callable[[int], bool]
"""Channel -> True for a withheld cycle."""


def never(_: int) -> bool:
    """No stall."""
    return False


def randomly(_: int) -> bool:
    """Half of the cycles."""
    return random.random() < 0.5


def rarely_ready(_: int) -> bool:
    """Nine of ten cycles withheld."""
    return random.random() < 0.9


class Testbench:
    """Drives commands, pops beats, checks order; one coroutine serves all channels."""

    def __init__(self, dut: Any, timing: Timing = FAST) -> None:
        self.dut = dut
        self.bits = int(dut.BusBits.value)
        self.size = self.bits // 8
        self.channels = int(dut.Channels.value)
        self.burst = int(dut.BurstBeats.value)
        self.fifo = int(dut.FifoBeats.value)
        self.outstanding = int(dut.Outstanding.value)
        port = AxiPort(dut, self.size)
        checker = AxiChecker(port, burst_beats=self.burst, read_outstanding=self.outstanding)
        self.memory = AxiMemory(port, timing, checker=checker)
        self.contents = self.memory.add_region(BASE, SIZE)
        self.contents[:] = random.randbytes(SIZE)
        self.queued: list[deque[Command]] = [deque() for _ in range(self.channels)]
        self.open: list[deque[Command]] = [deque() for _ in range(self.channels)]
        self.closed: list[list[Command]] = [[] for _ in range(self.channels)]
        self.idle: Cycles = never
        self.stall: Cycles = never
        self.cancels: set[int] = set()
        """Channels whose cancel pulses in the next cycle."""
        self.cancelled: list[Command | None] = []
        self.cycle = 0
        self.commands_sent = 0
        self.beats_popped = 0

    async def start(self) -> None:
        """Clock, memory, driver, reset."""
        dut = self.dut
        dut.rst_ni.value = 0
        dut.cmd_valid_i.value = 0
        dut.out_ready_i.value = 0
        dut.cancel_i.value = 0
        dut.flush_i.value = 0
        Clock(dut.clk_i, 4, unit="ns").start(start_high=False)
        cocotb.start_soon(self.memory.run())
        await self.reset()
        cocotb.start_soon(self._drive())

    async def reset(self) -> None:
        """Some cycles of reset; forgets every command."""
        self.dut.rst_ni.value = 0
        self.dut.cmd_valid_i.value = 0
        self.dut.out_ready_i.value = 0
        for _ in range(4):
            await RisingEdge(self.dut.clk_i)
        for channel in range(self.channels):
            self.queued[channel].clear()
            self.open[channel].clear()
            self.closed[channel].clear()
        self.dut.rst_ni.value = 1

    def command(self, channel: int, address: int, beats: int) -> Command:
        """Queues a command for the driver."""
        command = Command(address, beats)
        self.queued[channel].append(command)
        return command

    def random_commands(self, count: int) -> None:
        """Lengths round the burst, starts round the page, for every channel."""
        burst, page = self.burst, 4096 // self.size
        for channel in range(self.channels):
            for _ in range(count):
                beats = random.choice([1, 1, 2, max(1, burst - 1), burst, burst + 1, 3 * burst + 1])
                if random.random() < 0.05:
                    beats = min(2 * page + 3, 300)
                start = random.choice(
                    [0, page - 1, page - 2, page - burst, page - burst - 1, random.randrange(page)]
                )
                start = max(0, start) + page * random.randrange(SIZE // 4096 // 2)
                beats = min(beats, SIZE // self.size - start)
                self.command(channel, BASE + start * self.size, beats)

    async def _drive(self) -> None:
        """Serves commands, outputs and cancel pulses at every edge."""
        dut = self.dut
        cmd_valid = 0
        while True:
            addresses = beats = ready = 0
            for channel in range(self.channels):
                bit = 1 << channel
                if self.queued[channel]:
                    if not cmd_valid & bit and not self.idle(channel):
                        cmd_valid |= bit
                    head = self.queued[channel][0]
                    addresses |= head.address << 64 * channel
                    beats |= head.beats << 32 * channel
                else:
                    cmd_valid &= ~bit
                if not self.stall(channel):
                    ready |= bit
            dut.cmd_valid_i.value = cmd_valid
            dut.cmd_addr_i.value = addresses
            dut.cmd_beats_i.value = beats
            dut.out_ready_i.value = ready
            cancel = sum(1 << channel for channel in self.cancels)
            self.cancels.clear()
            dut.cancel_i.value = cancel
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                cmd_valid = 0
                continue
            for channel in range(self.channels):
                if cancel >> channel & 1:
                    self.cancelled.append(self.open[channel][0] if self.open[channel] else None)
            if any(self.open):
                assert not int(dut.idle_o.value), "idle with a command open"
            taken = cmd_valid & int(dut.cmd_ready_o.value) if cmd_valid else 0
            popped = int(dut.out_valid_o.value) & ready
            if popped:
                self._pop(popped)
            for channel in range(self.channels):
                if taken >> channel & 1:
                    self.open[channel].append(self.queued[channel].popleft())
                    self.commands_sent += 1
            cmd_valid &= ~taken

    def _pop(self, popped: int) -> None:
        dut = self.dut
        data = int(dut.out_data_o.value)
        error, last = int(dut.out_error_o.value), int(dut.out_last_o.value)
        void = int(dut.out_void_o.value)
        for channel in range(self.channels):
            if not popped >> channel & 1:
                continue
            assert self.open[channel], f"channel {channel}: beat without a command"
            command = self.open[channel][0]
            if void >> channel & 1:
                assert last >> channel & 1 and not error >> channel & 1
                command.void = True
            else:
                self.beats_popped += 1
                if error >> channel & 1:
                    shown = int(dut.out_addr_o.value) >> 64 * channel & (1 << 64) - 1
                    command.errors[len(command.data)] = shown
                command.data.append(data >> self.bits * channel & (1 << self.bits) - 1)
                real_last = len(command.data) == command.beats
                assert bool(last >> channel & 1) == real_last, f"last at beat {len(command.data)}"
            if last >> channel & 1:
                command.done_at = self.cycle
                self.closed[channel].append(self.open[channel].popleft())

    def expected(self, command: Command) -> list[int]:
        """The beats of a command."""
        offset = command.address - BASE
        return [
            int.from_bytes(self.contents[at : at + self.size], "little")
            for at in range(offset, offset + command.beats * self.size, self.size)
        ]

    def check(self, command: Command, *, may_end_early: bool = False) -> None:
        """Data of a command are right and complete, errors are where they were injected."""
        golden = self.expected(command)
        if not may_end_early:
            assert not command.void and len(command.data) == command.beats
        if command.void:
            assert len(command.data) < command.beats
        for beat, (got, want) in enumerate(zip(command.data, golden, strict=False)):
            if beat not in command.errors:
                assert got == want, f"beat {beat} of {command.address:#x}"

    async def settle(self, limit: int = 100_000) -> None:
        """Waits until all commands are served and the engine is idle."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if not any(self.queued) and not any(self.open) and int(self.dut.idle_o.value):
                break
        else:
            raise TimeoutError(f"not idle; open {[len(q) for q in self.open]}")
        self.memory.checker.assert_quiet()


def random_stalls(tb: Testbench) -> None:
    """Skewed random stalls on every channel of the memory and every stream."""
    for channel in ("ar", "r"):
        tb.memory.stall[channel] = random.choice([0.0, 0.1, 0.5, 0.9])
    tb.idle = random.choice([never, randomly, rarely_ready])
    tb.stall = random.choice([never, randomly, rarely_ready])


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(
    stalled=[False, True], timing=[Timing(1), Timing(7, 20), Timing(60, read_depth=2)]
)
async def streams_match_memory(dut: Any, stalled: bool, timing: Timing) -> None:
    """Every length, start and gap gives the memory's beats, in order, none lost or doubled."""
    tb = Testbench(dut, timing)
    await tb.start()
    rounds = 2 * EFFORT if stalled else 1
    for _ in range(rounds):
        if stalled:
            random_stalls(tb)
        tb.random_commands(12)
        await tb.settle()
    for channel in range(tb.channels):
        assert len(tb.closed[channel]) == 12 * rounds
        for command in tb.closed[channel]:
            tb.check(command)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def splitter_makes_the_longest_legal_bursts(dut: Any) -> None:
    """The exact bursts of one command: BurstBeats each, cut at page boundaries, none shorter."""
    tb = Testbench(dut)
    await tb.start()
    page = 4096 // tb.size
    for start, beats in [(0, 1), (page - 1, 1), (page - 1, 2), (1, tb.burst), (3, 2 * page + 1)]:
        tb.memory.checker.clear()
        tb.command(0, BASE + start * tb.size, beats)
        await tb.settle()
        golden, at, left = [], start, beats
        while left:
            length = min(left, tb.burst, page - at % page)
            golden.append((BASE + at * tb.size, length))
            at, left = at + length, left - length
        assert [(b.address, b.beats) for b in tb.memory.checker.reads] == golden


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def read_data_channel_is_always_busy(dut: Any) -> None:
    """Throughput: no idle R cycle, at the latency that FIFO and Outstanding can cover."""
    tb = Testbench(dut)
    latency = min(100, tb.fifo - tb.burst - 8, tb.outstanding * min(tb.burst, 4096 // tb.size) - 8)
    if latency < 1 or int(dut.CommandDepth.value) < 2:
        return  # this parameter set is too small for any latency
    tb.memory.timing = Timing(latency)
    await tb.start()
    for channels in ([0], list(range(tb.channels))):
        for channel in channels:
            tb.command(channel, BASE, 1000)
        while tb.memory.checker.busy["r"] == 0:
            await RisingEdge(dut.clk_i)
        tb.memory.checker.clear()
        for _ in range(900):
            await RisingEdge(dut.clk_i)
        assert tb.memory.checker.busy["r"] >= 899, tb.memory.checker.busy
        await tb.settle()
        tb.memory.checker.clear()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_beat_commands_flow_at_full_rate(dut: Any) -> None:
    """Throughput: a one-beat command per cycle on one channel."""
    tb = Testbench(dut)
    latency = min(100, tb.fifo - 9, tb.outstanding - 8)
    if latency < 1 or int(dut.CommandDepth.value) < 2:
        return  # this parameter set is too small for any latency
    tb.memory.timing = Timing(latency)
    await tb.start()
    channel = tb.channels - 1
    for _ in range(600):
        tb.command(channel, BASE + random.randrange(SIZE // tb.size) * tb.size, 1)
    while tb.memory.checker.busy["r"] == 0:
        await RisingEdge(dut.clk_i)
    tb.memory.checker.clear()
    for _ in range(400):
        await RisingEdge(dut.clk_i)
    assert tb.memory.checker.busy["r"] >= 399, tb.memory.checker.busy
    await tb.settle()
    for command in tb.closed[channel]:
        tb.check(command)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def latencies_are_as_stated(dut: Any) -> None:
    """Latency: command to AR 4 cycles, R to output 2 or 3; idle falls at once."""
    tb = Testbench(dut, Timing(5))
    await tb.start()
    await RisingEdge(dut.clk_i)
    await RisingEdge(dut.clk_i)
    assert int(dut.idle_o.value)
    tb.command(0, BASE, 1)
    while not tb.commands_sent:
        await RisingEdge(dut.clk_i)
    sent = tb.cycle
    await RisingEdge(dut.clk_i)
    assert not int(dut.idle_o.value)
    await tb.settle()
    accepted = tb.memory.checker.reads[0].accepted_at
    # The checker began to count before the driver did.
    offset = tb.memory.checker.cycle - tb.cycle
    assert accepted - offset - sent == 4
    block = tb.fifo > 64 and tb.fifo * (tb.bits + 2) > 2048
    assert tb.closed[0][0].done_at - (accepted - offset) == 5 + (3 if block else 2)


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(response=[Response.SLVERR, Response.DECERR], stalled=[False, True])
async def errors_mark_their_beat(dut: Any, response: Response, stalled: bool) -> None:
    """Errors: first, middle, last beat of bursts and commands; the address is the beat's."""
    tb = Testbench(dut, Timing(9, 5))
    await tb.start()
    if stalled:
        random_stalls(tb)
    beats = 2 * tb.burst + 1
    faults = {0, 1, tb.burst // 2, tb.burst - 1, tb.burst, beats - 1}
    for case in [[f] for f in sorted(faults)] + [sorted(faults)]:
        for fault in case:
            tb.memory.inject(BASE + 4096 + fault * tb.size, response, reads=True)
        for channel in range(tb.channels):
            tb.command(channel, BASE + 4096, beats)
            tb.command(channel, BASE, 3)
        await tb.settle()
        for channel in range(tb.channels):
            bad, good = tb.closed[channel][-2:]
            tb.check(bad)
            tb.check(good)
            assert not good.errors
            assert bad.errors == {f: BASE + 4096 + f * tb.size for f in case}
        for fault in case:
            tb.memory.inject(BASE + 4096 + fault * tb.size, Response.OKAY, reads=True)
    # Outside every region.
    command = tb.command(0, BASE + SIZE - tb.size, 2)
    await tb.settle()
    assert command.errors == {1: BASE + SIZE}


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def cancel_ends_the_consumers_command(dut: Any) -> None:
    """Cancel at any time: one `last`, requested beats arrive, later commands are complete."""
    tb = Testbench(dut, Timing(12, 9))
    await tb.start()
    voids = alone = whole = 0
    for _ in range(8 * EFFORT):
        random_stalls(tb)
        tb.random_commands(6)
        tb.cancelled.clear()
        while any(tb.queued) or any(tb.open):
            for _ in range(random.choice([1, 3, 20, 60])):
                await RisingEdge(dut.clk_i)
            for channel in range(tb.channels):
                if random.random() < 0.3:
                    tb.cancels.add(channel)
        await tb.settle()
        hit = [id(command) for command in tb.cancelled if command is not None]
        for channel in range(tb.channels):
            assert len(tb.closed[channel]) == 6
            for command in tb.closed[channel]:
                tb.check(command, may_end_early=id(command) in hit)
                voids += command.void and bool(command.data)
                alone += command.void and not command.data
                whole += id(command) in hit and not command.void
            tb.closed[channel].clear()
    dut._log.info("cancelled: %d after data, %d without, %d had no effect", voids, alone, whole)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cancel_at_every_cycle_of_a_command(dut: Any) -> None:
    """Cancel: 0, 1, 2 ... cycles after the command, with the next ones queued or not."""
    tb = Testbench(dut, Timing(6))
    await tb.start()
    seen = set()
    for followers in (0, 1, 3):
        for delay in range(40):
            first = tb.command(0, BASE + 4096 - tb.size, 2 * tb.burst + 2)
            others = [tb.command(0, BASE + 512 * n, n) for n in range(1, followers + 1)]
            sent = tb.commands_sent
            while tb.commands_sent == sent:
                await RisingEdge(dut.clk_i)
            for _ in range(delay):
                await RisingEdge(dut.clk_i)
            tb.cancels.add(0)
            await RisingEdge(dut.clk_i)
            await RisingEdge(dut.clk_i)
            target = tb.cancelled[-1]
            await tb.settle()
            for command in (first, *others):
                tb.check(command, may_end_early=command is target)
            if target is first:
                seen.add("whole" if not first.void else "data" if first.data else "nothing")
    assert seen == {"whole", "data", "nothing"} or tb.fifo < tb.burst * 2
    assert "nothing" in seen


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cancel_stops_issuing_at_once(dut: Any) -> None:
    """Cancel: at most two more bursts of the command reach AR, and the next command follows."""
    tb = Testbench(dut, Timing(20))
    await tb.start()
    long = tb.command(0, BASE, SIZE // tb.size)
    after = tb.command(0, BASE + 64, 2)
    while len(long.data) < 2:
        await RisingEdge(dut.clk_i)
    issued = len(tb.memory.checker.reads)
    tb.cancels.add(0)
    await tb.settle()
    assert long.void and long.data
    assert len(tb.memory.checker.reads) <= issued + 2 + 1 + (tb.burst == 1)
    assert len(long.data) == sum(b.beats for b in tb.memory.checker.reads) - after.beats
    tb.check(long, may_end_early=True)
    tb.check(after)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cancel_without_a_command_does_nothing(dut: Any) -> None:
    """Cancel: void while nothing is open, and in the cycle in which `last` is popped."""
    tb = Testbench(dut, Timing(3))
    await tb.start()
    tb.cancels.update(range(tb.channels))
    for _ in range(3):
        await RisingEdge(dut.clk_i)
    first = tb.command(0, BASE, 1)
    second = tb.command(0, BASE + 512, tb.burst)
    tb.stall = lambda _: True
    while not int(dut.out_valid_o.value) & 1:
        await RisingEdge(dut.clk_i)
    # The driver's next cycle pops the only beat of `first` and carries the pulse.
    tb.stall = never
    tb.cancels.add(0)
    await tb.settle()
    assert tb.cancelled[-1] is first
    tb.check(first)
    tb.check(second)


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def flush_ends_every_command(dut: Any) -> None:
    """Flush: no new address, each command gets its one `last`, idle, and the engine goes on."""
    tb = Testbench(dut, Timing(12, 9))
    await tb.start()
    for _ in range(6 * EFFORT):
        random_stalls(tb)
        tb.random_commands(8)
        for _ in range(random.choice([1, 5, 30, 100, 300])):
            await RisingEdge(dut.clk_i)
        dut.flush_i.value = 1
        await RisingEdge(dut.clk_i)
        issued = len(tb.memory.checker.reads)
        await tb.settle()
        assert len(tb.memory.checker.reads) <= issued + 1  # the one that was offered
        for channel in range(tb.channels):
            assert len(tb.closed[channel]) == 8
            for command in tb.closed[channel]:
                tb.check(command, may_end_early=True)
        dut.flush_i.value = 0
        for channel in range(tb.channels):
            tb.closed[channel].clear()
        tb.random_commands(2)
        await tb.settle()
        for channel in range(tb.channels):
            for command in tb.closed[channel]:
                tb.check(command)
            tb.closed[channel].clear()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_stuck_channel_blocks_no_other(dut: Any) -> None:
    """Stalls: with one output stuck for long the others run, and it loses nothing."""
    tb = Testbench(dut, Timing(10))
    await tb.start()
    tb.stall = lambda channel: channel == 0
    tb.command(0, BASE, 3 * tb.fifo)
    for channel in range(1, tb.channels):
        tb.command(channel, BASE + 64 * channel, 500)
    for _ in range(3000 * EFFORT):
        await RisingEdge(dut.clk_i)
    for channel in range(1, tb.channels):
        assert len(tb.closed[channel]) == 1
    assert sum(b.beats for b in tb.memory.checker.reads) <= tb.fifo + 500 * (tb.channels - 1)
    tb.stall = never
    await tb.settle()
    for channel in range(tb.channels):
        for command in tb.closed[channel]:
            tb.check(command)


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def reset_in_the_middle_starts_clean(dut: Any) -> None:
    """Reset: at any moment, with bursts in flight; outputs are low and nothing old comes."""
    tb = Testbench(dut, Timing(15, 5))
    await tb.start()
    for _ in range(8 * EFFORT):
        random_stalls(tb)
        tb.random_commands(10)
        for _ in range(random.randrange(5, 200)):
            await RisingEdge(dut.clk_i)
        await tb.reset()
        await RisingEdge(dut.clk_i)
        assert not int(dut.out_valid_o.value) and int(dut.idle_o.value)
        tb.random_commands(2)
        await tb.settle()
        for channel in range(tb.channels):
            assert len(tb.closed[channel]) == 2
            for command in tb.closed[channel]:
                tb.check(command)
