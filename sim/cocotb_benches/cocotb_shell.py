# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hotline_shell: a host at the registers, a fake core, memory behind the AXI port."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from hotline import registers as reg
from hotline.arguments import POINTERS, Arguments
from hotline.codes import MAGIC, VERSION, Operation, Reason, Status
from hotline.config import kernel_config
from hotline.reference import FRAGMENTER, check_config
from sim.bfm.axi import AxiMemory, AxiPort, Response, Timing
from sim.bfm.axi_master import AxiMaster
from sim.bfm.power import power_up
from sim.bfm.register_host import Record, RegisterHost, decode

CONFIG = kernel_config("tiny")
RECORDS = 0xA5_0000_0000
RECORD_BYTES = 64 * 64
DATA = 0x1_0000_0000
DATA_BYTES = 1 << 14
POINTER = 0x7_0000_0040
TIMEOUT = 20_000
EPOCH_OPERATIONS = {Operation.CLEAR, Operation.LEARN, Operation.LOAD, Operation.EVICT}
COUNTS = (
    "samples", "popular", "cold_rows", "pinned_lookups", "eal_lookups", "cold_lookups", "lookups",
)  # fmt: skip
RESULTS = ("status", "reason", "epoch", *COUNTS, "stalls", "error_sample", "error_lookup")
GOOD = Arguments(
    operation=Operation.FRAGMENT,
    lookups=12,
    samples=3,
    lookups_per_sample=4,
    total_rows=1000,
    pinned_rows=10,
    cold_base=10 + CONFIG.eal_entries,
    cold_rows_max=128,
    record_bytes=64,
    segments=1,
    **dict.fromkeys(POINTERS, POINTER),
)


@dataclass
class CoreJob:
    """A job in the fake core."""

    arguments: dict[str, int]
    left: int
    taken_at: int
    result: dict[str, int] = field(default_factory=dict)


class FakeCore:
    """Takes jobs and gives results by script; holds up to two jobs, as the real ones do.

    Attributes:
        hold_jobs, hold_results, hold_aborts: take no job; give no result; do not end for an abort.
        work: cycles that a job takes, drawn per job.
        results: results to give, in order; random ones when it is empty.
        takes_in_abort: whether a job is taken while ``abort_o`` is high.
        taken, given: what happened.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.hold_jobs = self.hold_results = self.hold_aborts = False
        self.takes_in_abort = True
        self.work: Callable[[], int] = lambda: random.randint(1, 30)
        self.results: deque[dict[str, int]] = deque()
        self.cycle = 0
        self.abort_cycles = 0
        self.forget()

    def forget(self) -> None:
        """Reset."""
        self.jobs: deque[CoreJob] = deque()
        self.taken: list[dict[str, int]] = []
        self.given: list[dict[str, int]] = []
        self.epoch = 0
        self._ready = self._valid = False

    def _draw(self, job: CoreJob) -> dict[str, int]:
        """A random result, or the next one of the script."""
        if job.arguments["operation"] in EPOCH_OPERATIONS:
            self.epoch += 1
        result = {name: random.getrandbits(32) for name in (*COUNTS, "stalls")}
        result |= {"error_sample": random.getrandbits(32), "error_lookup": random.getrandbits(32)}
        result |= {"error_value": random.getrandbits(64), "reason": random.getrandbits(8)}
        result["status"] = random.choice([Status.OK, Status.BAD_INDEX, Status.COLD_OVERFLOW])
        if self.results:
            result |= self.results.popleft()
        result["epoch"] = self.epoch
        return result

    async def run(self) -> None:
        """Serves the ports for ever."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                self.forget()
                dut.job_ready_i.value = 0
                dut.res_valid_i.value = 0
                dut.epoch_i.value = 0
                continue
            aborting = int(dut.abort_o.value)
            self.abort_cycles += aborting
            assert not (aborting and not self.jobs and not self._ready), "abort of an empty core"
            if self._ready and int(dut.job_valid_o.value):
                arguments = {
                    name: int(getattr(dut, f"job_{name}_o").value)
                    for name in GOOD.__dict__
                    if name not in ("tag", "record")
                }
                self.taken.append(arguments)
                self.jobs.append(CoreJob(arguments, self.work(), self.cycle))
            if self._valid and int(dut.res_ready_o.value):
                self.given.append(self.jobs.popleft().result)
                self._valid = False
            self._ready = (
                len(self.jobs) < 2 and not self.hold_jobs and (self.takes_in_abort or not aborting)
            )
            dut.job_ready_i.value = int(self._ready)
            if self.jobs and not self._valid:
                job = self.jobs[0]
                job.left -= 1
                abort = aborting and not self.hold_aborts
                if abort or (job.left <= 0 and not self.hold_results):
                    job.result = self._draw(job)
                    if abort:
                        job.result |= {"status": int(Status.ABORTED), "reason": 0}
                    for name in (*RESULTS, "error_value"):
                        getattr(dut, f"res_{name}_i").value = job.result[name]
                    self._valid = True
            dut.res_valid_i.value = int(self._valid)
            dut.epoch_i.value = self.epoch


@dataclass
class Testbench:
    """Everything around the shell."""

    dut: Any
    host: RegisterHost
    core: FakeCore
    memory: AxiMemory
    master: AxiMaster
    expected_epoch: int = 0
    number: int = 0

    def job(self, operation: int | None = None, **changes: int) -> Arguments:
        """A good job with its own tag and record."""
        self.number += 1
        operation = random.choice(sorted(FRAGMENTER)) if operation is None else operation
        record = RECORDS + self.number % (RECORD_BYTES // 64) * 64
        base = replace(GOOD, operation=operation, tag=random.getrandbits(32), record=record)
        return replace(base, **changes)

    def record(self, arguments: Arguments) -> Record:
        """The record in memory."""
        return decode(self.memory.read(arguments.record, 64))

    def expect(self, arguments: Arguments, given: dict[str, int] | None) -> Record:
        """The completion of a job; ``given`` is the core's result, None: BAD_CONFIG."""
        want = dict.fromkeys((entry.name for entry in reg.RESULT_FIELDS), 0)
        if given is None:
            want["status"] = int(Status.BAD_CONFIG)
            want["reason"] = int(check_config(arguments, CONFIG, FRAGMENTER))
            want["epoch"] = self.expected_epoch
        else:
            want |= given
            self.expected_epoch = given["epoch"]
        want |= {"tag": arguments.tag, "operation": arguments.operation & 0xFF}
        return want

    async def reset(self, cycles: int = 3) -> None:
        """Resets everything; all registers are as after power-up."""
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, cycles)
        self.dut.rst_ni.value = 1
        self.host.written.clear()
        self.expected_epoch = 0
        await ClockCycles(self.dut.clk_i, 2)

    async def quiet(self) -> None:
        """Nothing is left anywhere."""
        await ClockCycles(self.dut.clk_i, 10)
        assert await self.host.control() == reg.CONTROL_IDLE_MASK | reg.CONTROL_READY_MASK
        assert await self.host.read(reg.ABORT) == 0
        assert not self.core.jobs
        self.memory.checker.assert_quiet()


def same(result: Record, want: Record, what: object = "") -> None:
    """Compares all fields but ``cycles``."""
    for name, value in want.items():
        if name != "cycles":
            got = result[name]
            assert got == value, f"{name} is {got:#x}, expected {value:#x}: {what}"


async def start(dut: Any, timing: Timing | None = None) -> Testbench:
    """Brings everything up, in reset from time 0 on."""
    power_up(dut.clk_i, dut.rst_ni)
    for name in ("res_valid_i", "job_ready_i", "epoch_i"):
        getattr(dut, name).value = 0
    for name in ("busy", "stall_read", "stall_write", "stall_bank", "stall_tracker"):
        getattr(dut, f"stat_{name}_i").value = 0
    bus = int(dut.BusBits.value) // 8
    memory = AxiMemory(AxiPort(dut, bus), timing or Timing(latency=5, jitter=5))
    memory.add_region(RECORDS, RECORD_BYTES, 0xEE)
    memory.add_region(DATA, DATA_BYTES, random.randbytes(DATA_BYTES))
    tb = Testbench(
        dut,
        RegisterHost(dut, dut.clk_i, dut.rst_ni),
        FakeCore(dut),
        memory,
        AxiMaster(dut, "core_", bus),
    )
    cocotb.start_soon(memory.run())
    cocotb.start_soon(tb.core.run())
    cocotb.start_soon(tb.master.run())
    await tb.reset()
    return tb


async def interrupt_is(tb: Testbench, level: bool) -> None:
    """The interrupt settles within a few cycles of its cause."""
    await ClockCycles(tb.dut.clk_i, 4)
    assert bool(tb.dut.interrupt_o.value) == level


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def identity_and_reset_values(dut: Any) -> None:
    """Identity of the build; arguments read back; holes read 0; byte strobes."""
    tb = await start(dut)
    host = tb.host
    got = {e.name: await host.read(reg.IDENTITY + e.offset) for e in reg.IDENTITY_FIELDS}
    assert got == {
        "magic": MAGIC,
        "version": VERSION,
        "operations": sum(1 << operation for operation in FRAGMENTER),
        "bus_bits": int(dut.BusBits.value),
        "eal_sets": CONFIG.eal_sets,
        "eal_ways": CONFIG.eal_ways,
        "counter_bits": 2,
        "lookups_max": CONFIG.lookups_max,
        "cold_rows_max": CONFIG.cold_rows_max,
        "job_lookups_max": 2**28,
        "job_samples_max": 2**28,
        "bags_max": 2**16 - 1,
        "segments_max": 0,
        "record_bytes_max": 0,
        "burst_beats": CONFIG.burst_beats,
        "clock_khz": CONFIG.clock_khz,
        "build_id": int(dut.BuildId.value),
        "epoch": 0,
    }
    assert await host.control() == reg.CONTROL_IDLE_MASK | reg.CONTROL_READY_MASK
    for offset in (reg.GIE, reg.IER, reg.ISR, reg.ABORT, 0x098, 0x0A4, 0x0FC, 0x1C8, 0xFFC):
        assert await host.read(offset) == 0, hex(offset)
    assert set((await host.axil.read(reg.RESULT, 64)).data) == {0}
    names = GOOD.registers()
    values = {name: random.getrandbits(32) for name in names}
    for name in names:
        assert await host.read(getattr(reg, name)) == 0, name
    for name, value in values.items():
        await host.write(getattr(reg, name), value)
    await host.write(0x098, 0xFFFF_FFFF)
    await host.write(reg.RESULT, 0xFFFF_FFFF)
    for name, value in values.items():
        assert await host.read(getattr(reg, name)) == value, name
    assert await host.read(reg.RESULT) == 0
    await host.axil.write(reg.TAG + 1, b"\x5a")
    assert await host.read(reg.TAG) == values["TAG"] & 0xFFFF_00FF | 0x5A00
    await host.write(reg.CONTROL, reg.CONTROL_RESUME_MASK)  # nothing to take: no effect
    await tb.quiet()
    assert not tb.core.taken and not tb.memory.checker.writes


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(enable=["before", "running", "after_done"], clear=["before", "after"])
async def interrupts_in_every_order(dut: Any, enable: str, clear: str) -> None:
    """Enabling before, during and after a job; clearing ISR before and after ``resume``."""
    tb = await start(dut)
    host = tb.host

    async def switch_on() -> None:
        order = [(reg.GIE, reg.GIE_ENABLE_MASK), (reg.IER, reg.IER_DONE_MASK)]
        random.shuffle(order)
        for offset, value in order:
            await host.write(offset, value)

    if enable == "before":
        await switch_on()
    for _ in range(2):
        tb.core.hold_results = True
        job = tb.job()
        await host.start(job)
        if enable == "running":
            await switch_on()
        await interrupt_is(tb, False)
        assert await host.read(reg.ISR) == reg.ISR_READY_MASK
        await host.write(reg.ISR, reg.ISR_READY_MASK)
        assert await host.control() & 0xF == reg.CONTROL_READY_MASK
        tb.core.hold_results = False
        await host.until(reg.CONTROL_DONE_MASK, reg.CONTROL_DONE_MASK)
        if enable == "after_done":
            await interrupt_is(tb, False)
            await switch_on()
        await interrupt_is(tb, True)
        assert await host.read(reg.ISR) == reg.ISR_DONE_MASK
        same(await host.result(), tb.expect(job, tb.core.given[-1]))
        if clear == "before":
            await host.write(reg.ISR, reg.ISR_DONE_MASK)
            await interrupt_is(tb, False)
            assert await host.control() & reg.CONTROL_DONE_MASK
            await host.resume()
        else:
            await host.resume()
            await interrupt_is(tb, True)  # the event stays until it is cleared
            assert not await host.control() & reg.CONTROL_DONE_MASK
            await host.write(reg.ISR, reg.ISR_DONE_MASK)
        await interrupt_is(tb, False)
        assert await host.read(reg.ISR) == 0
        await tb.quiet()
        if enable != "before":
            await host.write(reg.GIE, 0)
    # `ready` has its own enable; GIE gates both.
    await host.write(reg.GIE, reg.GIE_ENABLE_MASK)
    await host.write(reg.IER, reg.IER_READY_MASK)
    await host.start(tb.job())
    await interrupt_is(tb, True)
    await host.write(reg.GIE, 0)
    await interrupt_is(tb, False)
    await host.write(reg.GIE, reg.GIE_ENABLE_MASK)
    await interrupt_is(tb, True)
    await host.write(reg.ISR, reg.ISR_READY_MASK)
    await interrupt_is(tb, False)
    await host.finish()
    assert await host.read(reg.ISR) == reg.ISR_DONE_MASK
    await interrupt_is(tb, False)  # `done` is not enabled
    await tb.quiet()


def bad_changes() -> list[dict[str, int]]:
    """Changes that make a good FRAGMENT bad, one per reason, and two that break several rules."""
    return [
        {"operation": 0},
        {"operation": Operation.GATHER},
        {"operation": 0x103},
        {"record": 0},
        {"record": RECORDS + 32},
        {"operation": 7, "record": 0},
        {"ids": 0},
        {"bitmap": POINTER + 4},
        {"lookups": 13},
        {"samples": 2**28 + 1, "lookups": 0, "lookups_per_sample": 0},
        {"bags": 2**16},
        {"lookups": 65, "samples": 1, "lookups_per_sample": 65},
        {"total_rows": 0, "cold_rows_max": 0},
        {"cold_base": 2**31 - 128},
    ]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def bad_jobs_reach_neither_core_nor_memory(dut: Any) -> None:
    """Every reason; the record is written unless its pointer is bad; nothing else is touched."""
    tb = await start(dut)
    reasons = set()
    for operation in (Operation.LEARN, Operation.CLEAR):  # an epoch to report
        job = tb.job(operation)
        await tb.host.start(job)
        same(
            await tb.host.finish(), tb.expect(job, None if not tb.core.given else tb.core.given[-1])
        )
    tb.memory.checker.clear()
    for change in bad_changes():
        job = replace(tb.job(Operation.FRAGMENT), **change)
        await tb.host.start(job)
        result = await tb.host.finish()
        same(result, tb.expect(job, None), change)
        assert 0 < result["cycles"] < 40
        reasons.add(result["reason"])
        writes = tb.memory.checker.writes
        if job.record == 0 or job.record % 64:
            assert not writes, "a record went to a bad pointer"
        else:
            assert [burst.address for burst in writes] == [job.record]
            assert tb.record(job) == result
        tb.memory.checker.clear()
        assert len(tb.core.taken) == 2
    assert await tb.host.read(reg.IDENTITY_EPOCH) == tb.core.epoch == 2
    unused = {Reason.RECORD_BYTES, Reason.SEGMENTS, Reason.ROWS, Reason.COLD_RANGE}
    assert reasons >= {reason for reason in Reason if 16 <= reason < 32} - unused
    await tb.quiet()


async def stream(tb: Testbench, count: int, bad_share: float = 0.2) -> None:
    """Keeps two jobs in flight, with random delays of the host, and checks every completion."""
    host = tb.host
    pending: deque[Arguments] = deque()
    started = finished = given = 0
    while finished < count:
        control = await host.control()
        free = started < count and len(pending) < 2 and not control & reg.CONTROL_START_MASK
        if free and random.random() < 0.8:
            job = tb.job()
            if random.random() < bad_share:
                job = replace(tb.job(Operation.FRAGMENT), **random.choice(bad_changes()))
            await host.offer(job)
            pending.append(job)
            started += 1
        elif pending and control & reg.CONTROL_DONE_MASK:
            job = pending.popleft()
            result = await host.result()
            if check_config(job, CONFIG, FRAGMENTER) is Reason.NONE:
                want = tb.expect(job, tb.core.given[given])
                core_saw = tb.core.taken[given]
                assert core_saw == {name: getattr(job, name) for name in core_saw}
                given += 1
            else:
                want = tb.expect(job, None)
            same(result, want, job)
            if job.record and job.record % 64 == 0:
                assert tb.record(job) == result
            await ClockCycles(tb.dut.clk_i, random.choice([0, 0, 5, 100]) + 1)
            assert await host.result() == result, "RESULT changed before resume"
            await host.resume()
            finished += 1
    assert len(tb.core.given) == given


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.6])
async def back_to_back(dut: Any, stall: float) -> None:
    """A stream of good and bad jobs beside the core's own traffic: in order, each exactly once."""
    tb = await start(dut)
    for channel in ("ar", "r", "aw", "w", "b"):
        tb.memory.stall[channel] = stall
        tb.master.stall[channel] = stall / 2
    bus = tb.memory.port.bus_bytes
    stop = False

    async def traffic(base: int) -> None:
        """The core's reads and writes, checked; records must not mix with them."""
        while not stop:
            beats = random.choice([1, 2, 16])
            place = base + random.randrange(DATA_BYTES // 2048) * 1024
            data = random.randbytes(beats * bus)
            step = random.choice([bus, bus, len(data)])  # many short bursts, or one long one
            writes = [
                tb.master.write(place + i, data[i : i + step]) for i in range(0, len(data), step)
            ]
            await tb.master.wait(*writes)
            for write in writes:
                assert (write.response, write.address_back) == (0, write.address)
            read = tb.master.read(place, beats)
            await tb.master.wait(read)
            assert read.data == data
            assert read.addresses == [place + i * bus for i in range(beats)]

    async def watch() -> None:
        """The host reads whatever it likes meanwhile."""
        offsets = [reg.CONTROL, reg.TAG, reg.COUNTERS_CYCLES, reg.IDENTITY_MAGIC, reg.ISR, 0x0B0]
        while not stop:
            offset = random.choice(offsets)
            value = await tb.host.read(offset)
            assert offset != reg.IDENTITY_MAGIC or value == MAGIC
            await ClockCycles(dut.clk_i, random.randint(1, 40))

    work = (traffic(DATA), traffic(DATA + DATA_BYTES // 2), watch())
    tasks = [cocotb.start_soon(task) for task in work]
    await stream(tb, 40)
    stop = True
    for task in tasks:
        await task
    await tb.quiet()
    assert tb.master.quiet


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def at_most_two_jobs(dut: Any) -> None:
    """Core that takes nothing, core that ends nothing, host that takes nothing: all stay put."""
    tb = await start(dut)
    host = tb.host
    start_bit, done_bit = reg.CONTROL_START_MASK, reg.CONTROL_DONE_MASK
    jobs = [tb.job() for _ in range(6)]
    # The core takes nothing: one job latched, the next stays offered.
    tb.core.hold_jobs = True
    await host.start(jobs[0])
    await host.offer(jobs[1])
    await ClockCycles(dut.clk_i, 5000)
    assert await host.control() == start_bit
    assert dut.job_valid_o.value == 1 and not tb.core.taken
    # The core ends nothing: two jobs accepted, the third stays offered.
    tb.core.hold_jobs, tb.core.hold_results = False, True
    await host.until(start_bit, 0)
    await host.offer(jobs[2])
    await ClockCycles(dut.clk_i, 3000)
    assert await host.control() == start_bit
    assert await host.read(reg.COUNTERS_JOBS) == 2 and len(tb.core.taken) == 2
    # The host takes nothing: one done, two accepted, the fourth stays offered.
    tb.core.hold_results = False
    await host.until(start_bit | done_bit, done_bit)
    await host.offer(jobs[3])
    await ClockCycles(dut.clk_i, 3000)
    assert await host.control() == start_bit | done_bit
    assert await host.read(reg.COUNTERS_JOBS) == 3
    first = await host.result()
    assert tb.record(jobs[1])["tag"] == jobs[1].tag, "the second record is there already"
    assert tb.memory.read(jobs[2].record, 64) == b"\xee" * 64, "the third cannot be"
    for number, job in enumerate(jobs[:4]):
        await host.until(done_bit, done_bit)
        result = await host.finish()
        assert number or result == first
        same(result, tb.expect(job, tb.core.given[number]), number)
        assert tb.record(job) == result
    await tb.quiet()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_job_is_started_once(dut: Any) -> None:
    """A write of CONTROL in the very cycle in which ``start`` is cleared does not undo that."""
    tb = await start(dut)

    async def release(after: int) -> None:
        await ClockCycles(dut.clk_i, after)
        tb.core.hold_jobs = False  # the job leaves the latch, so the next one is accepted

    for jobs, offset in enumerate(range(-8, 9)):
        tb.core.hold_jobs = True
        await tb.host.start(tb.job())
        await tb.host.offer(tb.job())
        releasing = cocotb.start_soon(release(max(offset, 0) + 1))
        await ClockCycles(dut.clk_i, max(-offset, 0) + 1)
        await tb.host.resume()  # nothing is done: no effect
        await releasing
        for _ in range(2):
            await tb.host.finish()
        await tb.quiet()
        assert await tb.host.read(reg.COUNTERS_JOBS) == 2 * (jobs + 1), offset


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def cycles_add_up(dut: Any) -> None:
    """``cycles`` of jobs back to back sum to the time from first acceptance to last completion."""
    tb = await start(dut)
    tb.core.work = lambda: random.randint(20, 200)
    begin = await tb.host.read(reg.COUNTERS_CYCLES)
    total = jobs = 0
    pending: deque[Arguments] = deque()
    while jobs < 10 or pending:
        if jobs < 10 and len(pending) < 2:
            pending.append(tb.job())
            await tb.host.start(pending[-1])
            jobs += 1
        else:
            pending.popleft()
            total += (await tb.host.finish())["cycles"]
    span = await tb.host.read(reg.COUNTERS_CYCLES) - begin
    assert span - 300 < total <= span, (total, span)
    await ClockCycles(dut.clk_i, 1000)
    tb.core.work = lambda: 50
    await tb.host.start(tb.job())
    assert 50 <= (await tb.host.finish())["cycles"] <= 70, "idle time must not count"


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(takes_in_abort=[True, False])
async def abort_ends_accepted_jobs(dut: Any, takes_in_abort: bool) -> None:
    """Abort with nothing, one or two jobs, jobs in the latch, bad jobs, completions not taken."""
    tb = await start(dut)
    host, core = tb.host, tb.core
    core.takes_in_abort = takes_in_abort

    async def abort_clears() -> None:
        for _ in range(200):
            if not await host.read(reg.ABORT):
                return
        raise TimeoutError("the abort bit stays")

    async def abort() -> None:
        await host.write(reg.ABORT, reg.ABORT_ABORT_MASK)

    async def take(job: Arguments, status: Status) -> None:
        result = await host.finish()
        good = status != Status.BAD_CONFIG
        same(result, tb.expect(job, core.given[len(core.given) - 1 - behind] if good else None))
        assert result["status"] == status, (result, status)
        assert tb.record(job) == result

    behind = 0
    # Nothing accepted.
    await abort()
    await abort_clears()
    assert core.abort_cycles == 0
    # One job in the core, with and without another behind it, in the core or in the latch.
    for second in (None, "core", "latch", "bad", "offered"):
        core.hold_results, core.hold_jobs = True, False
        first = tb.job(Operation.LEARN)
        await host.start(first)
        while len(core.jobs) < 1:
            await RisingEdge(dut.clk_i)
        core.hold_jobs = second == "latch"
        other = tb.job(Operation.LOAD)
        if second == "bad":
            other = replace(other, total_rows=0)
        if second is not None:
            await host.start(other)
            await ClockCycles(dut.clk_i, 30)
        third = tb.job(Operation.EVICT)
        if second == "offered":
            await host.offer(third)
        await abort()
        if second == "latch":
            # The core takes the job in the latch only later.
            await ClockCycles(dut.clk_i, 60)
            assert await host.read(reg.ABORT) == reg.ABORT_ABORT_MASK
            core.hold_jobs = False
        # The bit clears although the host has not taken a completion.
        await abort_clears()
        await ClockCycles(dut.clk_i, 200)
        core.hold_results = False
        behind = 1 if second in ("core", "latch", "offered") else 0  # results after this one
        await take(first, Status.ABORTED)
        behind = 0
        if second in ("core", "latch"):
            await take(other, Status.ABORTED)
        elif second == "bad":
            await take(other, Status.BAD_CONFIG)
        elif second == "offered":
            result = await host.finish()
            assert result["status"] == Status.ABORTED and result["tag"] == other.tag
            # Accepted after the abort (a place came free only by `resume`), so not aborted.
            result = await host.finish()
            same(result, tb.expect(third, core.given[-1]))
            assert result["status"] != Status.ABORTED
        await tb.quiet()
        assert not dut.abort_o.value
    # Nothing is accepted while the abort lasts: a job offered meanwhile runs afterwards.
    core.hold_aborts = core.hold_results = True
    first, second_job = tb.job(Operation.LEARN), tb.job(Operation.LEARN)
    await host.start(first)
    while len(core.jobs) < 1:
        await RisingEdge(dut.clk_i)
    await abort()
    jobs_accepted = await host.read(reg.COUNTERS_JOBS)
    await host.offer(second_job)
    await ClockCycles(dut.clk_i, 100)
    assert await host.control() == reg.CONTROL_START_MASK
    assert await host.read(reg.COUNTERS_JOBS) == jobs_accepted
    core.hold_aborts = core.hold_results = False
    behind = 0
    for job, status in [(first, Status.ABORTED), (second_job, None)]:
        await host.until(reg.CONTROL_DONE_MASK, reg.CONTROL_DONE_MASK)
        result = await host.finish()
        assert result["tag"] == job.tag
        assert (result["status"] == Status.ABORTED) == (status is not None)
        tb.expected_epoch = result["epoch"]
    # The bit stays while two accepted jobs have no status, and while one has none.
    core.hold_aborts = core.hold_results = True
    pair = [tb.job(Operation.LEARN), tb.job(Operation.LEARN)]
    for job in pair:
        await host.start(job)
    while len(core.jobs) < 2:
        await RisingEdge(dut.clk_i)
    await abort()
    await ClockCycles(dut.clk_i, 100)
    assert await host.read(reg.ABORT) == reg.ABORT_ABORT_MASK
    core.hold_aborts = core.hold_results = False
    for job in pair:
        await host.until(reg.CONTROL_DONE_MASK, reg.CONTROL_DONE_MASK)
        result = await host.finish()
        assert (result["tag"], result["status"]) == (job.tag, Status.ABORTED)
        tb.expected_epoch = result["epoch"]
    # A completion waits for the host, the next job has its result, a third is in the core.
    core.hold_results = False
    jobs = [tb.job(Operation.FRAGMENT) for _ in range(3)]
    count = len(core.given)
    await host.start(jobs[0])
    await host.until(reg.CONTROL_DONE_MASK, reg.CONTROL_DONE_MASK)
    await host.start(jobs[1])
    await ClockCycles(dut.clk_i, 100)
    core.hold_results = True
    await host.start(jobs[2])
    while len(core.jobs) < 1:
        await RisingEdge(dut.clk_i)
    await abort()
    await abort_clears()
    results = [await host.finish() for _ in jobs]
    for job, result, given in zip(jobs, results, core.given[count:], strict=True):
        same(result, tb.expect(job, given))
    assert [r["status"] == Status.ABORTED for r in results] == [False, False, True]
    # Work goes on as if nothing had been.
    core.hold_results = False
    await tb.quiet()
    core.given.clear()
    core.taken.clear()
    await stream(tb, 6)
    await tb.quiet()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(response=[Response.SLVERR, Response.DECERR])
async def record_that_cannot_be_written(dut: Any, response: Response) -> None:
    """AXI_ERROR, reason WRITE, with the record's address; the next job is right."""
    tb = await start(dut)
    status = {"status": int(Status.OK), "reason": 0}
    for operation in (*sorted(FRAGMENTER), 7):
        bad = tb.job(operation)
        beat = random.randrange(64 // tb.memory.port.bus_bytes) * tb.memory.port.bus_bytes
        tb.memory.inject(bad.record + beat, response, writes=True)
        tb.core.results.append(dict(status))
        await tb.host.start(bad)
        result = await tb.host.finish()
        want = dict.fromkeys(result, 0)
        want |= {"tag": bad.tag, "operation": operation, "status": int(Status.AXI_ERROR)}
        want |= {"reason": int(Reason.WRITE), "error_value": bad.record, "epoch": tb.core.epoch}
        tb.expected_epoch = tb.core.epoch
        if operation != 7:
            want["stalls"] = tb.core.given[-1]["stalls"]
            if operation in (Operation.LEARN, Operation.LOAD, Operation.EVICT):
                want["lookups"] = tb.core.given[-1]["lookups"]
        else:
            tb.core.results.clear()
        same(result, want, operation)
        tb.memory.inject(bad.record + beat, Response.OKAY, writes=True)
        good = tb.job()
        await tb.host.start(good)
        result = await tb.host.finish()
        same(result, tb.expect(good, tb.core.given[-1]))
        assert tb.record(good) == result
    await tb.quiet()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def errors_of_the_core(dut: Any) -> None:
    """A core that sees responses may say OK: the error may belong to a later job. For one that does
    not (HLS), the guard's note turns OK into AXI_ERROR, once, and touches no other status."""
    tb = await start(dut)
    blind = not int(dut.CoreSeesErrors.value)

    async def job(status: Status) -> tuple[Record, Record]:
        tb.core.results.append({"status": int(status), "reason": 0})
        job = tb.job(Operation.LEARN)
        await tb.host.start(job)
        result = await tb.host.finish()
        assert tb.record(job) == result
        return result, tb.expect(job, tb.core.given[-1])

    for address, is_write in [(0xDEAD_0000, True), (0xBEEF_0040, False)]:
        for status in (Status.OK, Status.BAD_INDEX):
            if is_write:
                write = tb.master.write(address, bytes(64))
                await tb.master.wait(write)
                assert (write.response, write.address_back) == (Response.DECERR, address)
            else:
                read = tb.master.read(address, 1)
                await tb.master.wait(read)
                assert (read.responses, read.addresses) == ([Response.DECERR], [address])
            result, want = await job(status)
            if blind and status == Status.OK:
                kept = ("tag", "operation", "epoch", "stalls")
                want = {name: want[name] if name in kept else 0 for name in want}
                want["status"] = int(Status.AXI_ERROR)
                want["reason"] = int(Reason.WRITE if is_write else Reason.READ)
                want["error_value"] = address
            same(result, want)
            same(*await job(Status.OK))


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def reset_at_any_time(dut: Any) -> None:
    """Reset with jobs, records and bursts under way; what follows is as after power-up."""
    tb = await start(dut)
    for into in [0, 3, 9, 12, 14, 20, 30, *(random.randint(0, 120) for _ in range(13))]:
        await tb.host.write(reg.GIE, 1)
        await tb.host.write(reg.IER, 3)
        tb.master.write(DATA, bytes(256))
        tb.master.read(DATA, 4)
        await tb.host.start(tb.job())
        await tb.host.offer(tb.job())
        if random.random() < 0.3:
            await tb.host.write(reg.ABORT, 1)
        await ClockCycles(dut.clk_i, into)
        tb.core.hold_jobs = False
        await tb.reset(random.randint(1, 3))
        assert not dut.interrupt_o.value
        assert await tb.host.read(reg.COUNTERS_JOBS) == 0
        for offset in (reg.GIE, reg.IER, reg.ISR, reg.ABORT, reg.RESULT, reg.TAG):
            assert await tb.host.read(offset) == 0, hex(offset)
        await tb.quiet()
        job = tb.job()
        await tb.host.start(job)
        result = await tb.host.finish()
        same(result, tb.expect(job, tb.core.given[-1]))
        assert tb.record(job) == result
        tb.core.hold_jobs = random.random() < 0.3


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def accesses_around_reset(dut: Any) -> None:
    """No READY and no VALID in reset; an access that waits through it is served afterwards."""
    tb = await start(dut)
    del tb
    dut.rst_ni.value = 0
    await ClockCycles(dut.clk_i, 2)
    for _ in range(3):
        for name in ("awready", "wready", "arready", "bvalid", "rvalid"):
            assert not getattr(dut, f"s_axi_control_{name}").value, name
        for name in ("ar", "aw", "w"):
            assert not getattr(dut, f"m_{name}_valid_o").value, name
        assert not dut.job_valid_o.value and not dut.abort_o.value
        await RisingEdge(dut.clk_i)
    dut.s_axi_control_araddr.value = reg.IDENTITY_MAGIC
    dut.s_axi_control_arvalid.value = 1
    dut.s_axi_control_rready.value = 1
    dut.rst_ni.value = 1
    for _ in range(20):
        await RisingEdge(dut.clk_i)
        if dut.s_axi_control_arready.value:
            dut.s_axi_control_arvalid.value = 0
        if dut.s_axi_control_rvalid.value:
            assert int(dut.s_axi_control_rdata.value) == MAGIC
            return
    raise TimeoutError("no answer to the access that waited through reset")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def counters_count(dut: Any) -> None:
    """Pulses, beats, bursts in flight and jobs."""
    tb = await start(dut, Timing(latency=3))
    host = tb.host
    bus = tb.memory.port.bus_bytes
    events = {"busy": 70, "stall_read": 50, "stall_write": 40, "stall_bank": 30, "stall_tracker": 9}
    for cycle in range(80):
        for name, count in events.items():
            getattr(dut, f"stat_{name}_i").value = int(cycle < count)
        await RisingEdge(dut.clk_i)
    tb.memory.stall |= {"r": 0.5, "w": 0.5}
    reads = [tb.master.read(DATA, 5), tb.master.read(DATA + 256, 1)]
    await tb.master.wait(*reads)
    await tb.master.wait(tb.master.write(DATA, bytes(128)))
    await host.start(tb.job())
    await host.finish()
    tb.memory.hold |= {"r", "b"}
    open_read, open_write = tb.master.read(DATA, 1), tb.master.write(DATA, bytes(bus))
    tb.master.read(DATA, 1)
    await ClockCycles(dut.clk_i, 20)
    got = {e.name: await host.read(reg.COUNTERS + e.offset) for e in reg.COUNTERS_FIELDS}
    assert got | {"cycles": 0} == {
        "cycles": 0,
        **events,
        "read_beats": 6,
        "write_beats": 128 // bus + 64 // bus + 1,
        "reads_in_flight": 2,
        "writes_in_flight": 1,
        "jobs": 1,
    }
    tb.memory.hold.clear()
    await tb.master.wait(open_read)
    await tb.master.wait(open_write)
    before = await host.read(reg.COUNTERS_CYCLES)
    at = tb.core.cycle
    await ClockCycles(dut.clk_i, 500)
    after = await host.read(reg.COUNTERS_CYCLES)
    assert abs((after - before) - (tb.core.cycle - at)) < 10
    assert await host.read(reg.COUNTERS_READS_IN_FLIGHT) == 0
