# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bench of `hotline_cold_tracker`: positions against a dict, whatever the rows and the stalls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

Answer = tuple[int, int | None, bool, bool]
"""Row, position (None after an overflow), new, overflow."""


def never() -> Iterator[bool]:
    """No withheld cycle."""
    while True:
        yield False


def randomly() -> Iterator[bool]:
    """Half of the cycles withheld."""
    while True:
        yield random.random() < 0.5


def bursts() -> Iterator[bool]:
    """Long runs of either kind."""
    while True:
        value = random.random() < 0.5
        for _ in range(random.randint(1, 30)):
            yield value


def cold_hash(row: int, bits: int) -> int:
    """The hash of `hotline_fragment_pkg`, all 32 bits."""
    value = row
    for i in range(bits, 32):
        if row >> i & 1:
            value ^= (0x9E3779B9 * (2 * i + 1) & 0xFFFF_FFFF) >> (i % 7)
    return value


def golden(rows: list[int], limit: int) -> list[Answer]:
    """The specification: rank of first occurrence, until no position is left."""
    positions: dict[int, int] = {}
    answers: list[Answer] = []
    overflow = False
    for row in rows:
        known = row in positions
        if not known and len(positions) == limit:
            overflow = True
        if overflow:
            answers.append((row, None, False, not known))
            continue
        positions.setdefault(row, len(positions))
        answers.append((row, positions[row], not known, False))
    return answers


@dataclass
class Job:
    """Rows of a job, cut into requests."""

    rows: list[int]
    limit: int


class Testbench:
    """Drives requests, collects results place by place."""

    def __init__(
        self, dut: Any, idle: Callable[[], Iterator[bool]], stall: Callable[[], Iterator[bool]]
    ) -> None:
        self.dut = dut
        self.idle, self.stall = idle(), stall()
        self.lanes = len(dut.req_mask_i)
        self.capacity = int(dut.ColdRowsMax.value)
        self.position_bits = len(dut.res_positions_o) // self.lanes
        self.set_bits = (self.capacity // 2).bit_length() - 1
        self.answers: list[Answer] = []
        self.cycles = 0
        dut.start_valid_i.value = 0
        dut.req_valid_i.value = 0
        dut.res_ready_i.value = 0
        dut.cold_rows_max_i.value = 1
        Clock(dut.clk_i, 10, unit="ns").start()

    async def reset(self) -> None:
        """Resets and waits for the sweep."""
        self.dut.rst_ni.value = 0
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        for _ in range(10 + self.capacity):
            await RisingEdge(self.dut.clk_i)
            if self.dut.idle_o.value:
                return
        raise AssertionError("never idle after reset")

    def rows_of_one_home(self, count: int, home: int | None = None) -> list[int]:
        """Distinct rows that share a home set (of one bank)."""
        found: dict[int, None] = {}
        mask = (1 << self.set_bits) - 1
        home = random.getrandbits(self.set_bits) if home is None else home
        while len(found) < count:
            high = random.getrandbits(32 - self.set_bits) << self.set_bits
            # The low bits enter the hash as they are, so they can be solved for.
            low = (cold_hash(high, self.set_bits) ^ home) & mask
            found[high | low] = None
        return list(found)

    async def start(self, limit: int) -> None:
        """Begins a job."""
        dut = self.dut
        dut.cold_rows_max_i.value = limit
        dut.start_valid_i.value = 1
        for _ in range(100 + self.capacity):
            await RisingEdge(dut.clk_i)
            if dut.start_ready_o.value:
                break
        else:
            raise AssertionError("a job was never accepted")
        dut.start_valid_i.value = 0

    async def run(self, job: Job, full: bool = False, limit_cycles: int = 200_000) -> list[Answer]:
        """Runs a job; ``full``: requests are as wide as can be."""
        dut = self.dut
        await self.start(job.limit)
        todo = list(job.rows)
        self.answers = []
        pending: list[int] = []
        offered: list[int] = []
        seen_places = 0
        self.cycles = 0
        requests: list[int] = []
        while len(self.answers) < len(job.rows):
            if not offered and todo and not next(self.idle):
                count = self.lanes if full else random.randint(1, self.lanes)
                offered, todo = todo[:count], todo[count:]
                words = random.getrandbits(32 * self.lanes)
                for place, row in enumerate(offered):
                    words &= ~(0xFFFF_FFFF << 32 * place)
                    words |= row << 32 * place
                dut.req_rows_i.value = words
                dut.req_mask_i.value = (1 << len(offered)) - 1
                dut.req_user_i.value = len(offered) & 1
            dut.req_valid_i.value = int(bool(offered))
            dut.res_ready_i.value = int(not next(self.stall))
            await RisingEdge(dut.clk_i)
            self.cycles += 1
            assert self.cycles < limit_cycles, f"{len(self.answers)} of {len(job.rows)} answered"
            if offered and dut.req_ready_o.value:
                pending += offered
                requests.append(len(offered))
                offered = []
            if dut.res_valid_o.value and dut.res_ready_i.value:
                mask = int(dut.res_mask_o.value)
                assert int(dut.res_user_o.value) == requests[0] & 1
                assert mask and mask & ((1 << seen_places) - 1) == 0, "places out of order"
                rows, positions = int(dut.res_rows_o.value), int(dut.res_positions_o.value)
                new, overflow = int(dut.res_new_o.value), int(dut.res_overflow_o.value)
                for place in range(self.lanes):
                    if mask >> place & 1:
                        assert place == seen_places, "a place is missing"
                        seen_places += 1
                        position = positions >> self.position_bits * place
                        self.answers.append(
                            (
                                rows >> 32 * place & 0xFFFF_FFFF,
                                position & ((1 << self.position_bits) - 1),
                                bool(new >> place & 1),
                                bool(overflow >> place & 1),
                            )
                        )
                last = bool(dut.res_last_o.value)
                assert last == (seen_places == requests[0]), "last"
                if last:
                    seen_places = 0
                    requests.pop(0)
        dut.req_valid_i.value = 0
        dut.res_ready_i.value = 0
        return self.answers

    async def check(self, job: Job, full: bool = False) -> None:
        """Runs a job and compares; beyond an overflow only what the contract says."""
        got = await self.run(job, full)
        want = golden(job.rows, job.limit)
        overflow = next((i for i, a in enumerate(want) if a[3]), len(want))
        assert got[:overflow] == want[:overflow]
        if overflow < len(want):
            assert got[overflow][3], "the first row without room must overflow"
            assert not any(answer[2] for answer in got[overflow:]), "a row was added after that"


def traffic(tb: Testbench, kind: str) -> Job:
    """Rows of one job."""
    capacity = tb.capacity
    limit = random.choice([capacity, capacity, random.randint(1, capacity)])
    if kind == "few":
        pool = [random.getrandbits(32) for _ in range(random.randint(1, 6))]
        rows = random.choices(pool, k=300)
    elif kind == "one":
        rows = [random.getrandbits(32)] * 100
    elif kind == "neighbours":
        base = random.randrange(2**32 - capacity)
        rows = [base + random.randrange(capacity) for _ in range(400)]
    elif kind == "full":
        pool = random.sample(range(2**32 - 1), capacity)
        rows = pool + random.choices(pool, k=capacity)
        limit = capacity
    elif kind == "overflow":
        pool = random.sample(range(2**32 - 1), capacity + 5)
        rows = pool[:capacity] + random.choices(pool[:capacity], k=20) + pool[capacity:] + pool
    elif kind == "one_home":
        pool = tb.rows_of_one_home(capacity + random.randint(-2, 2))
        rows = [row for row in pool for _ in range(random.randint(1, 2))]
        limit = capacity
    elif kind == "last_home":
        # The ring wraps from the last bank to the first.
        pool = tb.rows_of_one_home(capacity // 2, (1 << tb.set_bits) - 1)
        pool += [random.getrandbits(32) for _ in range(capacity // 4)]
        rows = random.choices(pool, k=3 * capacity)
    else:
        homes = [tb.rows_of_one_home(capacity // 4) for _ in range(4)]
        rows = random.choices([row for home in homes for row in home], k=4 * capacity)
    return Job(rows, limit)


KINDS = ["few", "one", "neighbours", "full", "overflow", "one_home", "last_home", "homes"]


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(
    (("idle", "stall"), [(never, never), (randomly, never), (never, bursts), (randomly, randomly)])
)
async def positions_match_model(
    dut: Any, idle: Callable[[], Iterator[bool]], stall: Callable[[], Iterator[bool]]
) -> None:
    """Any rows, in any traffic, get their rank of first occurrence; jobs do not see each other."""
    tb = Testbench(dut, idle, stall)
    await tb.reset()
    kinds = random.sample(KINDS, len(KINDS))
    for kind in kinds:
        dut._log.info(kind)
        await tb.check(traffic(tb, kind), full=random.random() < 0.5)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def generations_wrap(dut: Any) -> None:
    """Many short jobs: entries of a job that lies a wrap of the generation back are not found."""
    tb = Testbench(dut, never, never)
    await tb.reset()
    pool = tb.rows_of_one_home(9)
    for _ in range(3 * 2 ** int(dut.GenerationBits.value)):
        await tb.check(Job(random.sample(pool, random.randint(1, 9)), tb.capacity))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def keeps_its_rate(dut: Any) -> None:
    """One group per cycle; distinct banks make a request one group, equal rows do not slow down."""
    tb = Testbench(dut, never, never)
    await tb.reset()
    rows = [0x1000 + i for i in range(tb.capacity // 2)] * 8
    await tb.check(Job(rows, tb.capacity), full=True)
    assert tb.cycles <= len(rows) // tb.lanes + 12, f"{tb.cycles} cycles for {len(rows)} rows"
    rows = [7] * 200
    await tb.check(Job(rows, tb.capacity), full=True)
    assert tb.cycles <= len(rows) + 12, f"{tb.cycles} cycles for {len(rows)} equal rows"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def reset_in_a_job(dut: Any) -> None:
    """A reset at any time leaves nothing behind."""
    tb = Testbench(dut, never, never)
    await tb.reset()
    for kind in ("one_home", "neighbours", "full"):
        job = traffic(tb, kind)
        task = cocotb.start_soon(tb.run(job))
        for _ in range(random.randint(5, 60)):
            await RisingEdge(dut.clk_i)
        task.cancel()
        dut.req_valid_i.value = 0
        dut.start_valid_i.value = 0
        await tb.reset()
        await tb.check(traffic(tb, "few"))
