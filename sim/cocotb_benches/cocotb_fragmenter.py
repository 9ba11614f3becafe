# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of the core `hotline_fragmenter` over its AXI port, against `hotline.reference`.

Cases come from `hotline.testing.JobGenerator`. The bench lays them into a memory full of guard
bytes, drives the job port, and compares results and memory when a result comes: what was not
certainly to be written must be unchanged.
"""

from __future__ import annotations

import os
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

from hotline import reference
from hotline.codes import BAGS_MAX, Operation, Reason, Status
from hotline.config import KernelConfig
from hotline.device.base import ENTRY, Capabilities, Completion
from hotline.testing import Case, JobGenerator
from sim.bfm import AxiChecker, AxiMemory, AxiPort, Response, Timing

BASE = 0x7_FFFC_0000
"""The memory crosses an address of more than 32 bits."""
SIZE = 0x8_0000
GUARD = 0xC3
LONG = int(os.environ.get("HOTLINE_LONG", "1"))
"""Factor of the number of jobs."""

U8 = npt.NDArray[np.uint8]


@dataclass
class Result:
    """A result of the core, fields as in the record."""

    status: Status
    reason: Reason
    epoch: int
    samples: int
    popular: int
    cold_rows: int
    pinned_lookups: int
    eal_lookups: int
    cold_lookups: int
    lookups: int
    error_sample: int
    error_lookup: int
    error_value: int


COUNTS = (
    "samples", "popular", "cold_rows", "pinned_lookups", "eal_lookups", "cold_lookups", "lookups",
    "error_sample", "error_lookup", "error_value",
)  # fmt: skip


@dataclass
class Ticket:
    """A case in flight."""

    case: Case
    buffers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> address and bytes."""


class Bench:
    """The core, its memory and its model."""

    def __init__(self, dut: Any, timing: Timing = Timing()) -> None:  # noqa: B008
        self.dut = dut
        value = {
            name: int(getattr(dut, name).value)
            for name in (
                "BusBits", "EalSets", "EalWays", "EalBanks", "ColdRowsMax", "LookupsMax",
                "ColdLanes", "BurstBeats", "ReadOutstanding", "WriteOutstanding",
            )
        }  # fmt: skip
        self.config = KernelConfig("bench", *value.values(), 100_000)
        self.bytes = self.config.bus_bits // 8
        port = AxiPort(dut, self.bytes)
        self.checker = AxiChecker(
            port,
            burst_beats=self.config.burst_beats,
            read_outstanding=self.config.read_outstanding,
            write_outstanding=self.config.write_outstanding,
        )
        self.memory = AxiMemory(port, timing, checker=self.checker)
        self.contents = self.memory.add_region(BASE, SIZE, GUARD)
        self.eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
        self.tickets: deque[Ticket] = deque()
        self.results: list[Result] = []
        self.top = 0
        self.take = 1.0
        """Probability that a result is taken in a cycle."""
        self.cycle = 0
        self.done_at: list[int] = []
        dut.rst_ni.value = 0
        dut.job_valid_i.value = 0
        dut.res_ready_i.value = 0
        dut.abort_i.value = 0
        self.started = False
        cocotb.start_soon(self.memory.run())
        cocotb.start_soon(self._take_results())

    async def reset(self) -> None:
        """Resets the core and the model, waits until the memories are initialised."""
        dut = self.dut
        dut.rst_ni.value = 0
        dut.job_valid_i.value = 0
        dut.abort_i.value = 0
        if not self.started:
            # Registers wake up with random values; reset must be low before the first edge.
            await Timer(1, unit="ns")
            Clock(dut.clk_i, 10, unit="ns").start()
            self.started = True
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        self.eal.reset()
        self.tickets.clear()
        self.results.clear()
        self.contents[:] = bytes([GUARD]) * SIZE
        self.top = 0
        await self.idle()

    async def idle(self) -> None:
        """Waits until nothing is in flight."""
        for _ in range(20_000):
            await RisingEdge(self.dut.clk_i)
            if self.dut.idle_o.value:
                self.checker.assert_quiet()
                return
        raise AssertionError("the core does not become idle")

    # ------------------------------------------------------------------------------------- memory

    def _place(self, ticket: Ticket, name: str, size: int, data: bytes | None = None) -> None:
        if not size:
            ticket.buffers[name] = (0, 0)
            return
        # Often close to a page's end; guard bytes around.
        self.top += 64 * random.choice([1, 1, 2, 5, 17])
        if random.random() < 0.2:
            self.top += -self.top % 4096
            self.top += 4096 - 64 * random.randint(1, 3)
        address = BASE + self.top
        self.top += -(-size // 64) * 64 + 64
        assert self.top <= SIZE, "the bench's memory is too small"
        ticket.buffers[name] = (address, size)
        if data is not None:
            self.memory.write(address, data)

    def _room(self, case: Case) -> bool:
        """True if the case fits; starts again at the bottom if nothing is in flight."""
        need = 4 * (3 * len(case.ids) * case.ids.dtype.itemsize // 4 + 3 * case.samples) + 40_000
        need += 8 * self.config.eal_entries
        need += 0 if case.offsets is None else case.offsets.nbytes
        assert need <= SIZE
        if self.top + need <= SIZE:
            return True
        if not self.tickets:
            self.contents[:] = bytes([GUARD]) * SIZE
            self.top = 0
            return True
        return False

    # --------------------------------------------------------------------------------------- jobs

    def legal(self, case: Case) -> bool:
        """Whether the shell would pass the case on."""
        arguments = self._arguments(case)
        return reference.check_config(arguments, self.config) is Reason.NONE

    def _arguments(self, case: Case) -> dict[str, int]:
        plain = case.operation is Operation.LOAD and case.ids.dtype != ENTRY
        pointers = dict.fromkeys(
            ("record", "ids", "offsets", "indices", "popular", "nonpopular", "bitmap", "cold"), 64
        )
        return {
            "operation": case.operation, "lookups": len(case.ids), "samples": case.samples,
            "bags": case.bags, "lookups_per_sample": case.lookups_per_sample,
            "total_rows": case.total_rows, "pinned_rows": case.pinned_rows,
            "cold_base": case.cold_base, "cold_rows_max": case.cold_rows_max,
            "flags": int(plain), **pointers,
        }  # fmt: skip

    async def submit(self, case: Case) -> Ticket:
        """Offers a job until it is taken."""
        while not self._room(case):
            await RisingEdge(self.dut.clk_i)
        ticket = Ticket(case)
        fragment = case.operation is Operation.FRAGMENT
        self._place(ticket, "ids", case.ids.nbytes, case.ids.tobytes())
        if case.offsets is not None:
            self._place(ticket, "offsets", case.offsets.nbytes, case.offsets.tobytes())
        if fragment:
            self._place(ticket, "indices", 4 * len(case.ids))
            self._place(ticket, "popular", 4 * case.samples)
            self._place(ticket, "nonpopular", 4 * case.samples)
            self._place(ticket, "bitmap", 4 * -(-case.samples // 32))
            self._place(ticket, "cold", 4 * min(len(case.ids), case.cold_rows_max))
        elif case.operation is Operation.LOAD:
            self._place(ticket, "indices", case.ids.nbytes)
        elif case.operation is Operation.DUMP:
            self._place(ticket, "indices", 8 * self.config.eal_entries)
        arguments = self._arguments(case)
        del arguments["record"]
        for name in ("ids", "offsets", "indices", "popular", "nonpopular", "bitmap", "cold"):
            arguments[name] = ticket.buffers.get(name, (0, 0))[0]
        dut = self.dut
        for name, value in arguments.items():
            getattr(dut, f"job_{name}_i").value = value
        dut.job_valid_i.value = 1
        self.tickets.append(ticket)
        for _ in range(200_000):
            await RisingEdge(dut.clk_i)
            if dut.job_ready_o.value:
                break
        else:
            raise AssertionError(f"never accepted: {case}")
        dut.job_valid_i.value = 0
        # Arguments mean nothing outside the handshake.
        for name in arguments:
            width = len(getattr(dut, f"job_{name}_i"))
            getattr(dut, f"job_{name}_i").value = random.getrandbits(width)
        return ticket

    async def _take_results(self) -> None:
        dut = self.dut
        ready = 0
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if ready and dut.res_valid_o.value:
                self.done_at.append(self.cycle)
                values = {name: int(getattr(dut, f"res_{name}_o").value) for name in COUNTS}
                self.results.append(
                    Result(
                        status=Status(int(dut.res_status_o.value)),
                        reason=Reason(int(dut.res_reason_o.value)),
                        epoch=int(dut.res_epoch_o.value),
                        **values,
                    )
                )
            ready = int(self.take >= 1 or random.random() < self.take)
            dut.res_ready_i.value = ready

    async def result(self, cycles: int = 400_000) -> tuple[Ticket, Result]:
        """Waits for the result of the oldest job."""
        for _ in range(cycles):
            if self.results:
                return self.tickets.popleft(), self.results.pop(0)
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"no result of {self.tickets[0].case}")

    # -------------------------------------------------------------------------------------- model

    def model(self, case: Case) -> tuple[Completion, dict[str, Any]]:
        """What the case gives; changes the model of the EAL."""
        rows = {"total_rows": case.total_rows, "pinned_rows": case.pinned_rows}
        match case.operation:
            case Operation.CLEAR:
                return self.eal.clear(), {}
            case Operation.LEARN:
                return self.eal.learn(case.ids, **rows), {}
            case Operation.EVICT:
                return self.eal.evict(case.ids, **rows), {}
            case Operation.LOAD:
                completion, rejected = self.eal.load(case.ids, **rows)
                return completion, {"indices": rejected}
            case Operation.DUMP:
                completion, entries = self.eal.dump(case.pinned_rows)
                return completion, {"indices": entries}
            case _:
                output = reference.fragment(
                    self.eal,
                    case.ids,
                    samples=case.samples,
                    cold_base=case.cold_base,
                    cold_rows_max=case.cold_rows_max,
                    lookups_max=self.config.lookups_max,
                    lookups_per_sample=case.lookups_per_sample,
                    offsets=case.offsets,
                    bags=case.bags,
                    **rows,
                )
                outputs = {
                    "indices": output.indices,
                    "popular": output.popular,
                    "nonpopular": output.nonpopular,
                    "bitmap": output.bitmap,
                    "cold": output.cold_rows,
                }
                return output.completion, outputs

    def check(self, ticket: Ticket, result: Result) -> None:
        """Compares a result and the memory with the model."""
        case = ticket.case
        completion, outputs = self.model(case)
        for name in ("status", "reason", "epoch", *COUNTS):
            got, want = getattr(result, name), getattr(completion, name)
            assert got == want, f"{case}: {name} is {got}, not {want}\n{result}\n{completion}"
        for name, want in outputs.items():
            address, size = ticket.buffers[name]
            raw = self.memory.read(address, size) if size else b""
            found = np.frombuffer(raw[: want.nbytes], dtype=want.dtype)
            same = found == want
            if name == "bitmap" and completion.status is Status.COLD_OVERFLOW and len(want):
                mask = np.full(len(want), 0xFFFF_FFFF, np.uint32)
                if completion.samples % 32:
                    mask[-1] = (1 << completion.samples % 32) - 1
                same = (found ^ want) & mask == 0
            assert np.all(same), f"{case}: {name} differs at {np.flatnonzero(~same)[0]}"
        if completion.status is Status.OK:
            # Exactly these bytes; else what lies behind them is undefined, but inside the buffer.
            for name, want in outputs.items():
                address, size = ticket.buffers[name]
                rest = self.memory.read(address, size)[want.nbytes :] if size else b""
                assert rest == bytes([GUARD]) * len(rest), f"{case}: more than {name} was written"
        self.check_guards(ticket)

    def check_guards(self, ticket: Ticket) -> None:
        """Nothing outside the buffers was written, and no input."""
        for name, (address, size) in ticket.buffers.items():
            if not size:
                continue
            before = self.memory.read(address - 64, 64)
            end = address + size
            behind = self.memory.read(end, -(-size // 64) * 64 - size + 64)
            assert before == bytes([GUARD]) * 64, f"{ticket.case}: written before {name}"
            assert behind == bytes([GUARD]) * len(behind), f"{ticket.case}: written behind {name}"
        case = ticket.case
        for name, array in (("ids", case.ids), ("offsets", case.offsets)):
            if array is not None and array.nbytes:
                address, size = ticket.buffers[name]
                assert self.memory.read(address, size) == array.tobytes(), f"{name} was changed"

    def check_partial(self, ticket: Ticket, result: Result) -> None:
        """An AXI_ERROR or ABORTED: counts are 0 but `lookups`, which says what was applied."""
        case = ticket.case
        applied = 0
        if case.operation in (Operation.LEARN, Operation.LOAD, Operation.EVICT):
            applied = result.lookups
            assert applied <= len(case.ids)
            cut = Case(
                case.operation,
                case.ids[:applied],
                total_rows=case.total_rows,
                pinned_rows=case.pinned_rows,
            )
            completion, _ = self.model(cut)
            assert completion.status is Status.OK, f"{case}: {applied} contain a bad row id"
        elif case.operation is Operation.CLEAR:
            self.eal.epoch += 1  # it did not begin
        assert result.epoch == self.eal.epoch, case
        for name in COUNTS:
            if name not in ("lookups", "error_value"):
                assert getattr(result, name) == 0, f"{case}: {name} in {result}"
        assert result.lookups == applied, f"{case}: lookups in {result}"
        self.check_guards(ticket)

    async def run(self, case: Case) -> Result:
        """Runs one job and compares."""
        await self.submit(case)
        ticket, result = await self.result()
        self.check(ticket, result)
        return result

    async def check_eal(self) -> None:
        """The whole EAL is that of the model."""
        await self.run(Case(Operation.DUMP, pinned_rows=random.choice([0, 1000])))

    def generator(self, **arguments: Any) -> JobGenerator:
        """Random cases for this core."""
        config = self.config
        capabilities = Capabilities(
            backend="bench", config="bench", operations=reference.FRAGMENTER,
            bus_bits=config.bus_bits, eal_sets=config.eal_sets, eal_ways=config.eal_ways,
            counter_bits=2, lookups_max=config.lookups_max, cold_rows_max=config.cold_rows_max,
            job_lookups_max=1 << 28, job_samples_max=1 << 28, bags_max=BAGS_MAX, segments_max=64,
            record_bytes_max=4096, burst_beats=config.burst_beats, clock_khz=0, build_id=0,
        )  # fmt: skip
        return JobGenerator(capabilities, random.getrandbits(32), **arguments)

    def cases(self, generator: JobGenerator, count: int) -> list[Case]:
        """The next cases that the shell would pass on."""
        found: list[Case] = []
        while len(found) < count:
            case = generator.next()
            if self.legal(case):
                found.append(case)
        return found

    async def run_all(self, cases: list[Case], in_flight: int = 2) -> None:
        """Runs jobs with some in flight; compares in order."""
        waiting = list(cases)
        open_jobs = 0
        while waiting or open_jobs:
            while waiting and open_jobs < in_flight:
                await self.submit(waiting.pop(0))
                open_jobs += 1
            ticket, result = await self.result()
            open_jobs -= 1
            self.check(ticket, result)


def stalls(kind: str) -> dict[str, Any]:
    """Stall settings of the memory's channels."""
    if kind == "none":
        return dict.fromkeys(("ar", "r", "aw", "w", "b"), 0.0)
    if kind == "slow_write":
        return {"ar": 0.0, "r": 0.0, "aw": 0.6, "w": 0.8, "b": 0.5}
    if kind == "slow_read":
        return {"ar": 0.5, "r": 0.8, "aw": 0.0, "w": 0.0, "b": 0.0}
    return {name: random.choice([0.0, 0.1, 0.5, 0.9]) for name in ("ar", "r", "aw", "w", "b")}


@cocotb.test(timeout_time=100, timeout_unit="ms")
@cocotb.parametrize(kind=["none", "slow_write", "slow_read", "random"])
async def random_jobs(dut: Any, kind: str) -> None:
    """All operations, good and bad input, queued, with any timing of the memory."""
    latency = random.choice([1, 10, 60])
    bench = Bench(dut, Timing(latency=latency, jitter=random.choice([0, 20])))
    bench.memory.stall.update(stalls(kind))
    bench.take = random.choice([1.0, 0.3])
    await bench.reset()
    generator = bench.generator(lookups=300)
    await bench.run_all(bench.cases(generator, 40 * LONG), in_flight=random.randint(1, 3))
    await bench.check_eal()
    await bench.idle()
