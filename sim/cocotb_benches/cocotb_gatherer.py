# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_gatherer` over its AXI ports, against `hotline.reference`.

Every buffer lies in a region of its own with painted guard bytes before and behind it, and what is
not mapped answers DECERR, so an access outside shows up either way.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from cocotb.utils import get_sim_time

from hotline import reference
from hotline.codes import Operation, Reason, Status
from sim.bfm import AxiChecker, AxiMemory, AxiPort, Response, Timing

GUARD = 4096
PAINT = 0xA5
PERIOD = 2  # ns
SEEDS = int(os.environ.get("HOTLINE_SEEDS", "1"))
"""Repetitions of the random tests; the long run sets more."""


@dataclass
class Job:
    """A job with its buffers in the memory model, and what it must do."""

    operation: Operation
    ids: np.ndarray
    rows: int
    record_bytes: int
    segments: int = 1
    shift: int = 31
    addresses: dict[str, int] = field(default_factory=dict)
    segment_bases: list[int] = field(default_factory=list)
    before: dict[int, bytes] = field(default_factory=dict)
    records: np.ndarray | None = None

    @property
    def scatter(self) -> bool:
        """Whether records go into the store."""
        return self.operation is Operation.SCATTER


class Bench:
    """Drives jobs, answers memory, checks results and guards."""

    def __init__(self, dut: Any, latency: int = 20, jitter: int = 0) -> None:
        self.dut = dut
        self.bus = int(dut.BusBits.value) // 8
        self.port = AxiPort(dut, self.bus)
        checker = AxiChecker(
            self.port,
            burst_beats=int(dut.BurstBeats.value),
            read_outstanding=int(dut.ReadOutstanding.value) + 1,  # one waits in the AR register
            write_outstanding=int(dut.WriteOutstanding.value) + 1,
        )
        self.memory = AxiMemory(self.port, Timing(latency=latency, jitter=jitter), checker=checker)
        self.next = 0x40_0000_0000
        self.buffers: dict[int, tuple[bytearray, int]] = {}
        Clock(dut.clk_i, PERIOD, unit="ns").start()

    async def start(self) -> None:
        """Starts the memory, resets the core."""
        self.dut.job_valid_i.value = 0
        self.dut.abort_i.value = 0
        self.dut.res_ready_i.value = 0
        self.dut.rst_ni.value = 0
        cocotb.start_soon(self.memory.run())
        await self.cycles(3)
        self.dut.rst_ni.value = 1
        await self.cycles(2)

    async def cycles(self, count: int) -> None:
        """Waits."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    # ------------------------------------------------------------------------------------ memory

    def buffer(self, data: bytes | int) -> int:
        """Maps a buffer between guards; returns its address. An int is a size, painted."""
        size = data if isinstance(data, int) else len(data)
        size = (size + 63) // 64 * 64
        base = self.next
        self.next += (size + 2 * GUARD + 4095) // 4096 * 4096 + 4096
        # Any alignment to 64 bytes, near page edges too.
        address = base + GUARD + random.choice([0, 64, 4032, 1984])
        region = self.memory.add_region(base, address - base + size + GUARD, PAINT)
        if not isinstance(data, int):
            region[address - base : address - base + len(data)] = data
        self.buffers[address] = (region, base)
        return address

    def contents(self, address: int, size: int) -> np.ndarray:
        """Bytes of a buffer as they are now."""
        region, base = self.buffers[address]
        return np.frombuffer(bytes(region[address - base : address - base + size]), np.uint8)

    def check_guards(self, address: int, size: int) -> None:
        """Nothing but paint round the first ``size`` bytes of a buffer."""
        region, base = self.buffers[address]
        head, tail = address - base, address - base + size
        assert set(region[:head]) <= {PAINT}, f"written before {address:#x}"
        assert set(region[tail:]) <= {PAINT}, f"written behind {address:#x} + {size}"

    def make(
        self,
        operation: Operation,
        ids: np.ndarray,
        rows: int,
        record_bytes: int,
        segments: int = 1,
    ) -> Job:
        """Lays a job out in memory."""
        shift = 31
        if segments > 1:
            shift = max(0, int(np.ceil(np.log2(rows / segments))))
            segments = ((rows - 1) >> shift) + 1
        if segments == 1:
            shift = 31
        job = Job(operation, ids.astype(np.uint32), rows, record_bytes, segments, shift)
        for s in range(segments):
            first = s << shift
            count = rows if segments == 1 else min(rows, (s + 1) << shift) - first
            data = np.random.default_rng(random.getrandbits(32)).integers(
                0, 256, count * record_bytes, dtype=np.uint8
            )
            job.segment_bases.append(self.buffer(data.tobytes()))
            job.before[job.segment_bases[-1]] = data.tobytes()
        table = np.array(job.segment_bases, dtype="<u8").tobytes()
        job.addresses["store"] = job.segment_bases[0] if segments == 1 else self.buffer(table)
        job.addresses["ids"] = self.buffer(job.ids.astype("<u4").tobytes() or 64)
        size = len(ids) * record_bytes
        if operation is Operation.SCATTER:
            job.records = np.random.default_rng(random.getrandbits(32)).integers(
                0, 256, (len(ids), record_bytes), dtype=np.uint8
            )
            job.addresses["records"] = self.buffer(job.records.tobytes() or 64)
        else:
            job.addresses["records"] = self.buffer(size or 64)
        return job

    def store(self, job: Job, *, before: bool) -> list[np.ndarray]:
        """The segments as [rows, record_bytes] arrays, as they were or as they are."""
        return [
            (np.frombuffer(data, np.uint8) if before else self.contents(base, len(data)))
            .reshape(-1, job.record_bytes)
            .copy()
            for base, data in job.before.items()
        ]

    # --------------------------------------------------------------------------------------- jobs

    async def submit(self, job: Job) -> None:
        """Offers a job until it is latched."""
        dut = self.dut
        dut.job_operation_i.value = int(job.operation)
        for name in ("ids", "records", "store"):
            getattr(dut, f"job_{name}_i").value = job.addresses[name]
        dut.job_lookups_i.value = len(job.ids)
        dut.job_total_rows_i.value = job.rows
        dut.job_record_bytes_i.value = job.record_bytes
        dut.job_segments_i.value = job.segments
        dut.job_segment_shift_i.value = job.shift
        dut.job_valid_i.value = 1
        while True:
            await RisingEdge(dut.clk_i)
            if dut.job_ready_o.value:
                break
        dut.job_valid_i.value = 0

    async def result(self) -> dict[str, int]:
        """Takes the next result."""
        dut = self.dut
        dut.res_ready_i.value = 1
        while True:
            await RisingEdge(dut.clk_i)
            if dut.res_valid_o.value:
                break
        names = ("status", "reason", "lookups", "error_lookup", "error_value", "error_sample",
                 "samples", "popular", "cold_rows", "pinned_lookups", "eal_lookups",
                 "cold_lookups", "epoch")  # fmt: skip
        values = {name: int(getattr(dut, f"res_{name}_o").value) for name in names}
        dut.res_ready_i.value = 0
        return values

    async def run(self, job: Job) -> dict[str, int]:
        """Submits a job and takes its result."""
        await with_timeout(cocotb.start_soon(self.submit(job)), 100, "us")
        return await with_timeout(cocotb.start_soon(self.result()), 2000, "us")

    def check(self, job: Job, result: dict[str, int]) -> None:
        """Compares result, outputs, store and guards with the oracle."""
        store = self.store(job, before=True)
        view = store[0] if job.segments == 1 else store
        if job.scatter:
            assert job.records is not None
            completion = reference.scatter(job.ids, job.records, view, job.rows, job.shift)
        else:
            completion, records = reference.gather(job.ids, view, job.rows, job.shift)
            got = self.contents(job.addresses["records"], records.size)
            assert (got == records.reshape(-1)).all(), "gathered records differ"
        for name, value in result.items():
            assert value == int(getattr(completion, name)), (name, value, completion)
        for now, expected in zip(self.store(job, before=False), store, strict=True):
            assert (now == expected).all(), "the store differs"
        self.check_buffers(job)

    def check_buffers(self, job: Job) -> None:
        """Guards round the store and the records."""
        for base, data in job.before.items():
            self.check_guards(base, len(data))
        size = len(job.ids) * job.record_bytes
        if size:
            self.check_guards(job.addresses["records"], size)

    async def quiet(self) -> None:
        """After the last job: idle, and no burst open."""
        await self.cycles(10)
        assert self.dut.idle_o.value, "not idle after the last job"
        self.memory.checker.assert_quiet()


def random_ids(count: int, rows: int) -> np.ndarray:
    """Skewed, with duplicates, the last row now and then."""
    kind = random.randrange(4)
    if kind == 0:
        ids = [random.randrange(rows) for _ in range(count)]
    elif kind == 1:
        ids = [min(int(random.paretovariate(0.7)) - 1, rows - 1) for _ in range(count)]
    elif kind == 2:
        ids = [rows - 1 - i % min(rows, 3) for i in range(count)]
    else:
        ids = [i % rows for i in range(count)]
    return np.array(ids, dtype=np.uint32)


def random_job(bench: Bench, operation: Operation | None = None, most: int = 60) -> Job:
    """Counts round the lanes of a beat, records of one to many bursts, one to many segments."""
    rows = random.choice([1, 2, 7, 64, 100])
    count = random.choice([0, 1, 2, 15, 16, 17, random.randrange(most)])
    record_bytes = random.choice([64, 64, 128, 192, 256, 1024 if count < 20 else 64])
    return bench.make(
        operation or random.choice([Operation.GATHER, Operation.SCATTER]),
        random_ids(count, rows), rows, record_bytes, random.choice([1, 1, 2, 5, 64]),
    )  # fmt: skip


def never() -> float:
    """No stall."""
    return 0.0


def some() -> float:
    """A share of withheld cycles."""
    return random.choice([0.1, 0.3, 0.5])


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(stall=[never, some], latency=[1, 40])
async def jobs_match_the_oracle(dut: Any, stall: Any, latency: int) -> None:
    """Random jobs one by one, each channel stalled on its own: records, store, counts, guards."""
    bench = Bench(dut, latency=latency, jitter=latency // 2)
    await bench.start()
    for _ in range(12 * SEEDS):
        bench.memory.stall.update({channel: stall() for channel in bench.memory.stall})
        job = random_job(bench)
        result = await bench.run(job)
        bench.check(job, result)
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def queued_jobs_overlap_and_stay_apart(dut: Any) -> None:
    """Jobs offered as fast as they are taken come out in order, each as if it ran alone."""
    bench = Bench(dut, latency=30)
    await bench.start()
    for _ in range(SEEDS):
        jobs = [random_job(bench) for _ in range(16)]

        async def feed(jobs: list[Job] = jobs) -> None:
            for job in jobs:
                await bench.submit(job)

        feeder = cocotb.start_soon(feed())
        for job in jobs:
            bench.memory.stall.update({c: some() for c in bench.memory.stall})
            if random.random() < 0.3:
                await bench.cycles(200)  # the completion waits for its reader
            result = await with_timeout(cocotb.start_soon(bench.result()), 2000, "us")
            bench.check(job, result)
        await feeder
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(operation=[Operation.GATHER, Operation.SCATTER])
async def bad_row_ids_stop_at_their_place(dut: Any, operation: Operation) -> None:
    """Bounds are exact; a SCATTER wrote the rows before, nothing else; the next job is right."""
    bench = Bench(dut)
    await bench.start()
    lanes = bench.bus // 4
    for position in sorted({0, 1, lanes - 1, lanes, 20, 39}):
        for bad in random.sample([10, 11, 2**31, 2**32 - 1], 2):
            ids = random_ids(40, 10)
            ids[position] = bad
            if position < 39:
                ids[position + 1 :] = random.choice([bad, 9])
            job = bench.make(operation, ids, 10, random.choice([64, 192]), 1)
            result = await bench.run(job)
            assert result["status"] == Status.BAD_INDEX and result["reason"] == Reason.ROW_ID
            assert result["error_lookup"] == position and result["error_value"] == bad
            bench.check(job, result)
        job = random_job(bench)
        bench.check(job, await bench.run(job))
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def read_errors_are_reported_and_survived(dut: Any) -> None:
    """A fault on ids, table, or records: typed, with an address of the faulty beat, engine usable.

    A SCATTER leaves all rows behind the fault alone.
    """
    bench = Bench(dut)
    await bench.start()
    for operation in (Operation.GATHER, Operation.SCATTER):
        for what in ("ids", "table", "records"):
            for where in (0.0, 0.5, 0.999):
                response = random.choice([Response.SLVERR, Response.DECERR])
                segments = 4 if what == "table" else 1
                ids = np.arange(50, dtype=np.uint32)
                record_bytes = random.choice([64, 256])
                job = bench.make(operation, ids, 50, record_bytes, segments)
                if what == "table":
                    base, size = job.addresses["store"], job.segments * 8
                elif what == "ids":
                    base, size = job.addresses["ids"], len(ids) * 4
                else:
                    key = "records" if job.scatter else "store"
                    base, size = job.addresses[key], len(ids) * record_bytes
                fault = (base + int(size * where)) // bench.bus * bench.bus
                bench.memory.inject(fault, response, reads=True)
                result = await bench.run(job)
                assert result["status"] == Status.AXI_ERROR, (what, where, result)
                assert result["reason"] == Reason.READ and result["error_value"] == fault
                assert result["lookups"] == 0
                bench.check_buffers(job)
                if job.scatter:
                    now, before = (bench.store(job, before=b)[0] for b in (False, True))
                    first = {"table": 0, "ids": (fault - base) // 4}.get(
                        what, (fault - base) // record_bytes
                    )
                    changed = np.flatnonzero((now != before).any(axis=1))
                    assert not changed.size or changed[-1] <= first
                    if what == "records":
                        part = (fault - base) % record_bytes
                        assert (now[first][part:] == before[first][part:]).all()
                bench.memory.inject(fault, Response.OKAY, reads=True)
                job = random_job(bench)
                bench.check(job, await bench.run(job))
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def write_errors_are_reported_and_survived(dut: Any) -> None:
    """A fault on the first, a middle, the last output beat; a queued job behind it is right."""
    bench = Bench(dut)
    await bench.start()
    for operation in (Operation.GATHER, Operation.SCATTER):
        for where in (0.0, 0.5, 0.999):
            ids = np.arange(40, dtype=np.uint32)
            job = bench.make(operation, ids, 40, 128, 1)
            base = job.addresses["store" if job.scatter else "records"]
            fault = (base + int(40 * 128 * where)) // bench.bus * bench.bus
            bench.memory.inject(
                fault, random.choice([Response.SLVERR, Response.DECERR]), writes=True
            )
            after = random_job(bench)
            await bench.submit(job)
            submit = cocotb.start_soon(bench.submit(after))
            result = await with_timeout(cocotb.start_soon(bench.result()), 2000, "us")
            assert result["status"] == Status.AXI_ERROR and result["reason"] == Reason.WRITE
            burst = int(dut.BurstBeats.value) * bench.bus
            assert 0 <= fault - result["error_value"] < burst, "not the address of its burst"
            await submit
            bench.memory.inject(fault, Response.OKAY, writes=True)
            bench.check(after, await with_timeout(cocotb.start_soon(bench.result()), 2000, "us"))
    await bench.quiet()


@cocotb.test(timeout_time=40, timeout_unit="ms")
async def abort_at_any_cycle(dut: Any) -> None:
    """Both accepted jobs end, no address follows, nothing outside is written; the next is right."""
    bench = Bench(dut, latency=15)
    await bench.start()
    for round_ in range(24 * SEEDS):
        bench.memory.stall.update({c: random.choice([0.0, 0.3]) for c in bench.memory.stall})
        jobs = [random_job(bench, most=40), random_job(bench, most=40)]
        await bench.submit(jobs[0])
        second = cocotb.start_soon(bench.submit(jobs[1]))
        await bench.cycles(random.randrange(1, 40 if round_ % 2 else 300))
        dut.abort_i.value = 1
        await bench.cycles(2)
        addresses = len(bench.memory.checker.reads)
        seen = bench.memory.checker.reads
        allowed = addresses + 1  # one may wait in the AR register
        for job in jobs:
            result = await with_timeout(cocotb.start_soon(bench.result()), 1000, "us")
            if result["status"] == Status.OK:
                if not job.scatter or job is jobs[0]:
                    bench.check(job, result)
            else:
                assert result["status"] == Status.ABORTED, result
                assert result["lookups"] == 0
                bench.check_buffers(job)
        assert len(seen) <= allowed, "addresses were issued after the abort"
        await second
        for _ in range(200):
            await RisingEdge(dut.clk_i)
            if dut.idle_o.value:
                break
        dut.abort_i.value = 0
        job = random_job(bench)
        bench.check(job, await bench.run(job))
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def reset_at_any_cycle(dut: Any) -> None:
    """Reset in mid-job and of the memory with it: a job on the first cycle after it is right."""
    bench = Bench(dut, latency=10)
    await bench.start()
    for _ in range(10 * SEEDS):
        await bench.submit(random_job(bench))
        await bench.cycles(random.randrange(1, 120))
        dut.rst_ni.value = 0
        await bench.cycles(random.choice([2, 3, 5]))
        dut.rst_ni.value = 1
        job = random_job(bench)
        bench.check(job, await bench.run(job))
    await bench.quiet()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ready_stuck_low(dut: Any) -> None:
    """Each channel held for thousands of cycles in mid-job: nothing is lost."""
    bench = Bench(dut)
    await bench.start()
    for channel in ("ar", "r", "aw", "w", "b"):
        for operation in (Operation.GATHER, Operation.SCATTER):
            job = bench.make(operation, random_ids(64, 50), 50, 128, 1)
            await bench.submit(job)
            await bench.cycles(60)
            bench.memory.hold.add(channel)
            await bench.cycles(1500)
            bench.memory.hold.discard(channel)
            bench.check(job, await with_timeout(cocotb.start_soon(bench.result()), 2000, "us"))
    await bench.quiet()


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(operation=[Operation.GATHER, Operation.SCATTER])
async def throughput(dut: Any, operation: Operation) -> None:
    """0.95 of the limit from the first start to the last result, as the header promises."""
    latency = 200 if int(dut.ReadOutstanding.value) >= 64 else 40
    bench = Bench(dut, latency=latency)
    await bench.start()
    record_bytes = max(64, bench.bus * 4)
    size = 200 if bench.bus == 8 else 1000
    jobs = [bench.make(operation, random_ids(size, 300), 300, record_bytes, 1) for _ in range(6)]

    async def feed() -> None:
        for job in jobs:
            await bench.submit(job)

    start = get_sim_time("ns")
    cocotb.start_soon(feed())
    for job in jobs:
        bench.check(job, await with_timeout(cocotb.start_soon(bench.result()), 10, "ms"))
    cycles = (get_sim_time("ns") - start) / PERIOD
    limit = sum(len(j.ids) * (record_bytes + 4) for j in jobs) / bench.bus
    dut._log.info("ratio %.3f (%d cycles)", limit / cycles, cycles)
    assert limit / cycles >= 0.95
    await bench.quiet()
