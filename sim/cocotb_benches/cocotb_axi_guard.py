# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hotline_axi_guard: addresses of responses, limits, throughput, the note of errors."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from sim.bfm.axi import AxiChecker, AxiMemory, AxiPort, Response, Timing
from sim.bfm.axi_master import AxiMaster, Read, Write
from sim.bfm.power import power_up

BASE = 0x12_3400_0000
SIZE = 1 << 16
BAD = 0xBAD_0000_0000
"""An address outside the memory: DECERR."""


@dataclass
class Testbench:
    """Master, guard, memory."""

    dut: Any
    master: AxiMaster
    memory: AxiMemory
    bus: int
    reads_max: int
    writes_max: int


async def start(dut: Any, timing: Timing | None = None) -> Testbench:
    """Resets the guard between a master and a memory with random contents."""
    power_up(dut.clk_i, dut.rst_ni)
    bus = int(dut.BusBits.value) // 8
    port = AxiPort(dut, bus)
    reads_max, writes_max = int(dut.ReadOutstanding.value), int(dut.WriteOutstanding.value)
    checker = AxiChecker(
        port, read_outstanding=reads_max, write_outstanding=writes_max, word_strobes=False
    )
    memory = AxiMemory(port, timing or Timing(), checker=checker)
    memory.add_region(BASE, SIZE, random.randbytes(SIZE))
    master = AxiMaster(dut, "in_", bus)
    master.data_ahead = False  # hotline_axi_mux, in front of the guard, sees to that
    dut.note_clear_i.value = 0
    cocotb.start_soon(memory.run())
    cocotb.start_soon(master.run())
    await ClockCycles(dut.clk_i, 4)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2)
    return Testbench(dut, master, memory, bus, reads_max, writes_max)


def random_burst(bus: int, base: int = BASE) -> tuple[int, int]:
    """Address and beats of a legal burst; often one beat, often up to a page's end."""
    longest = min(256, 4096 // bus)
    beats = random.choice([1, 1, 1, 2, 3, random.randint(1, 16)])
    if random.random() < 0.03:
        beats = longest
    room = 4096 - beats * bus
    offset = random.choice([0, room, random.randrange(room // bus + 1) * bus])
    return base + random.randrange(SIZE // 4096) * 4096 + offset, beats


def check_read(tb: Testbench, read: Read, contents: bytes | None) -> None:
    """Every beat has its own address; good beats have their data."""
    assert read.addresses == [read.address + i * tb.bus for i in range(read.beats)], read
    if contents is not None and not any(read.responses):
        assert read.data == contents, hex(read.address)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.3, 0.8], latency=[1, 30])
async def responses_carry_their_addresses(dut: Any, stall: float, latency: int) -> None:
    """Random bursts and stalls on every channel, errors among them; nothing lost or doubled."""
    tb = await start(dut, Timing(latency, jitter=latency // 2))
    for channel in ("ar", "r", "aw", "w", "b"):
        tb.memory.stall[channel] = stall
        tb.master.stall[channel] = stall * random.random()
    before = tb.memory.read(BASE, SIZE)
    reads: list[Read] = []
    for _ in range(50):
        base = BAD if random.random() < 0.1 else BASE
        reads.append(tb.master.read(*random_burst(tb.bus, base)))
    await tb.master.wait(*reads)
    for read in reads:
        good = read.address < BAD
        assert set(read.responses) == ({0} if good else {int(Response.DECERR)}), read
        offset = read.address - BASE
        check_read(tb, read, before[offset : offset + read.beats * tb.bus] if good else None)

    expected = bytearray(before)
    writes: list[Write] = []
    for _ in range(50):
        address, beats = random_burst(tb.bus, BAD if random.random() < 0.1 else BASE)
        data = random.randbytes(beats * tb.bus)
        writes.append(tb.master.write(address, data, user=random.randint(0, 1)))
        if address < BAD:
            expected[address - BASE : address - BASE + len(data)] = data
        if random.random() < 0.2:
            reads.append(tb.master.read(BASE, 1))
    await tb.master.wait(*writes, *reads)
    for write in writes:
        assert write.address_back == write.address and write.user_back == write.user, write
        assert write.response == (0 if write.address < BAD else int(Response.DECERR)), write
    assert tb.memory.read(BASE, SIZE) == bytes(expected)
    await ClockCycles(dut.clk_i, 5)
    tb.memory.checker.assert_quiet()
    assert dut.reads_in_flight_o.value == 0 and dut.writes_in_flight_o.value == 0


@cocotb.test(timeout_time=200, timeout_unit="us")
async def sustains_one_transfer_per_cycle(dut: Any) -> None:
    """Single-beat bursts without a bubble while fewer are in flight than allowed."""
    tb = await start(dut, Timing(latency=2))
    count = 400
    reads = [tb.master.read(BASE + i % 512 * tb.bus, 1) for i in range(count)]
    await tb.master.wait(*reads)
    if tb.reads_max >= 16:
        assert reads[-1].done_at - reads[0].done_at == count - 1
    # The write FIFO of this build is shallow; its round trip is latency + 2 spill registers + 1.
    writes = [tb.master.write(BASE + i % 8 * 64, bytes(64)) for i in range(100)]
    await tb.master.wait(*writes)
    beats = 64 // tb.bus * 100
    if tb.writes_max * (64 // tb.bus) >= 16:
        assert tb.memory.checker.busy["w"] == beats
        assert writes[-1].done_at - writes[0].done_at == (beats - 64 // tb.bus)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def never_more_outstanding_than_allowed(dut: Any) -> None:
    """With responses withheld exactly the allowed number of addresses leaves; then all goes on."""
    tb = await start(dut)
    tb.memory.hold |= {"r", "b"}
    reads = [tb.master.read(BASE + i * tb.bus, 1) for i in range(tb.reads_max + 5)]
    writes = [tb.master.write(BASE + i * 64, bytes(64)) for i in range(tb.writes_max + 5)]
    await ClockCycles(dut.clk_i, tb.reads_max + 16 * tb.writes_max + 50)
    assert len(tb.memory.checker.reads_open) == tb.reads_max == int(dut.reads_in_flight_o.value)
    assert len(tb.memory.checker.writes_open) == tb.writes_max
    assert int(dut.writes_in_flight_o.value) == tb.writes_max
    tb.memory.hold.clear()
    await tb.master.wait(*reads)
    await tb.master.wait(*writes)
    for i, read in enumerate(reads):
        assert read.addresses == [BASE + i * tb.bus]


@cocotb.test(timeout_time=200, timeout_unit="us")
async def address_and_data_do_not_wait_for_each_other(dut: Any) -> None:
    """A memory may take an address only with its data, or the data only behind the address."""
    tb = await start(dut)
    for held, offered in (("aw", "w"), ("w", "aw")):
        tb.memory.hold.add(held)
        writes = [tb.master.write(BASE + i * 64, bytes(64)) for i in range(3)]
        await ClockCycles(dut.clk_i, 200)
        assert int(getattr(dut, f"m_{held}_valid_o").value) == 1
        taken = tb.memory.checker.busy[offered]
        assert taken > 0 or int(getattr(dut, f"m_{offered}_valid_o").value) == 1
        tb.memory.hold.clear()
        await tb.master.wait(*writes)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def ready_stuck_low(dut: Any) -> None:
    """The master takes nothing for long; nothing is lost when it goes on."""
    tb = await start(dut)
    tb.master.hold |= {"r", "b"}
    reads = [tb.master.read(BASE + i * 256, 256 // tb.bus) for i in range(3)]
    writes = [tb.master.write(BASE + SIZE // 2 + i * 64, bytes(64)) for i in range(3)]
    await ClockCycles(dut.clk_i, 3000)
    assert not any(read.done for read in reads) and not any(write.done for write in writes)
    tb.master.hold.clear()
    await tb.master.wait(*reads, *writes)
    for read in reads:
        check_read(tb, read, tb.memory.read(read.address, 256))


@cocotb.test(timeout_time=200, timeout_unit="us")
async def notes_the_first_error(dut: Any) -> None:
    """First of several errors, reads and writes; records (user) do not count; clearing."""
    tb = await start(dut)

    def note() -> tuple[bool, bool, int]:
        return (
            bool(dut.note_valid_o.value),
            bool(dut.note_write_o.value),
            int(dut.note_addr_o.value),
        )

    async def clear() -> None:
        dut.note_clear_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.note_clear_i.value = 0
        await ClockCycles(dut.clk_i, 2)

    async def run(*bursts: Read | Write) -> None:
        await tb.master.wait(*bursts)
        await ClockCycles(dut.clk_i, 2)

    assert not note()[0]
    await run(tb.master.write(BAD, bytes(64), user=1))
    assert not note()[0], "the write of a record was noted"
    tb.memory.inject(BASE + 3 * tb.bus, Response.SLVERR, reads=True)
    await run(tb.master.read(BASE, 8))
    assert note() == (True, False, BASE + 3 * tb.bus)
    await run(tb.master.read(BAD, 1), tb.master.write(BAD, bytes(64)))
    assert note() == (True, False, BASE + 3 * tb.bus), "not the first error"
    await clear()
    assert not note()[0]
    await run(tb.master.write(BAD + 64, bytes(64)))
    assert note() == (True, True, BAD + 64)
    await run(tb.master.read(BASE, 8))
    assert note() == (True, True, BAD + 64)
    # An error in the cycle of the clearing stays, one before it goes.
    met = set()
    for delay in range(20):
        await run(tb.master.write(BAD + 64, bytes(64)))
        assert note()[0]
        burst = tb.master.read(BASE, 4)
        cleared = failed = -1
        for cycle in range(40):
            dut.note_clear_i.value = int(cycle == delay)
            await RisingEdge(dut.clk_i)
            if dut.note_clear_i.value:
                cleared = cycle
            if dut.in_r_valid_o.value and dut.in_r_ready_i.value and int(dut.in_r_resp_o.value):
                failed = cycle
        assert burst.done and cleared >= 0 and failed >= 0
        met.add((cleared > failed) - (cleared < failed))
        if cleared > failed:
            assert not note()[0]
        else:
            assert note() == (True, False, BASE + 3 * tb.bus)
    assert met == {-1, 0, 1}
    await run(tb.master.write(BAD, bytes(64)))
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 2)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2)
    assert not note()[0]


@cocotb.test(timeout_time=400, timeout_unit="us")
async def reset_at_any_time(dut: Any) -> None:
    """Reset of guard and memory in the middle of bursts; the next ones are right."""
    tb = await start(dut, Timing(latency=10))
    for _ in range(12):
        for _ in range(10):
            tb.master.read(*random_burst(tb.bus))
            tb.master.write(BASE, bytes(512))
        await ClockCycles(dut.clk_i, random.randint(1, 60))
        dut.rst_ni.value = 0
        await ClockCycles(dut.clk_i, random.randint(1, 3))
        dut.rst_ni.value = 1
        await ClockCycles(dut.clk_i, random.randint(1, 3))
        burst = tb.master.read(BASE + 64, 8)
        await tb.master.wait(burst)
        check_read(tb, burst, tb.memory.read(BASE + 64, 8 * tb.bus))


@cocotb.test(timeout_time=50, timeout_unit="us")
async def swallows_left_over_responses(dut: Any) -> None:
    """Responses that no burst waits for reach nobody and block nothing."""
    power_up(dut.clk_i, dut.rst_ni)
    dut.note_clear_i.value = 0
    for name in ("in_ar", "in_aw", "in_w", "m_r", "m_b"):
        getattr(dut, f"{name}_valid_i").value = 0
    for name in ("in_r", "in_b", "m_ar", "m_aw", "m_w"):
        getattr(dut, f"{name}_ready_i").value = 1
    await ClockCycles(dut.clk_i, 3)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 2)
    dut.m_r_valid_i.value = 1
    dut.m_r_last_i.value = 1
    dut.m_r_resp_i.value = int(Response.SLVERR)
    dut.m_b_valid_i.value = 1
    dut.m_b_resp_i.value = int(Response.SLVERR)
    for _ in range(10):
        await RisingEdge(dut.clk_i)
        assert dut.m_r_ready_o.value and dut.m_b_ready_o.value
        assert not dut.in_r_valid_o.value and not dut.in_b_valid_o.value
        assert not dut.note_valid_o.value
