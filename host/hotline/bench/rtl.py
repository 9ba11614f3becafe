# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Throughput of the RTL in cycles: jobs back to back, as a share of what the bus allows.

``docs/architecture.md`` (section 7) defines the figure: ratio = sum of the jobs' limits / cycles
from the first start to the last done. A job's limit is what its data need on the busier of the two
directions of the bus, in cycles. Cycles are exact and the same in every run.

Cases are ``<operation>/<configuration>/<traffic>``:

- ``fragment/*/criteo``, ``learn/*/criteo``: mini-batches of 4096 samples with 26 lookups, tables of
  the Criteo Kaggle data, bounded Zipf 1.1, tables of up to 16,384 rows pinned. FRAGMENT finds the
  EAL loaded with the rows that were most frequent in other mini-batches.
- ``gather/*/64B``, ``scatter/*/64B``: records of 64 bytes at random rows.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import reference
from hotline.config import KernelConfig, kernel_config
from hotline.data.synthetic import Synthetic
from hotline.device.base import Completion, Fragment, Gather, Handle, Job, Learn, Load, Scatter
from hotline.device.sim import MemoryModel, SimDevice
from hotline.device.transport import Kernel
from hotline.errors import CompareError, ConfigError
from hotline.tables import Group

log = logging.getLogger(__name__)

CONFIGURATIONS = ("zynq", "kv260", "alveo")
BATCH = 4096
"""Samples of a mini-batch."""
DIM = 16
"""Elements of a row: with the default threshold, tables of up to 16,384 rows are pinned."""
RECORD_BYTES = 64
STORE_ROWS = 1 << 18
RECORDS = 8192
"""Records of a GATHER or SCATTER."""

_TRAFFIC = {"fragment": "criteo", "learn": "criteo", "gather": "64B", "scatter": "64B"}
CASES = tuple(
    f"{operation}/{config}/{traffic}"
    for operation, traffic in _TRAFFIC.items()
    for config in CONFIGURATIONS
)
"""All cases."""


@dataclass(frozen=True)
class Result:
    """Outcome of a case.

    Attributes:
        bench, case: ``rtl`` and the case's name.
        value, unit: throughput, in lookups or records per cycle.
        limit: the same if every cycle were used.
        ratio: value / limit.
        jobs, cycles: number of jobs, cycles from first start to last done.
        clock_khz: clock that the configuration is meant for.
        shares: of all lookups or samples: ``pinned``, ``eal``, ``cold``, ``popular`` ...
        counters: of the kernel, difference over the case.
        memory: the memory model.
        simulated_cycles_per_second: speed of the simulation itself, wall clock.
    """

    bench: str
    case: str
    value: float
    unit: str
    limit: float
    ratio: float
    jobs: int
    cycles: int
    clock_khz: int
    shares: dict[str, float]
    counters: dict[str, int]
    memory: dict[str, Any] = field(default_factory=dict)
    simulated_cycles_per_second: float = 0.0


def select(patterns: Sequence[str] | None) -> list[str]:
    """The cases that match any of the patterns (``fragment/*``, ``*/zynq/*``); None: all.

    A name in full may use any configuration: ``fragment/tiny/criteo`` works.
    """
    if not patterns:
        return list(CASES)
    chosen: list[str] = []
    for pattern in patterns:
        found = [case for case in CASES if fnmatch.fnmatch(case, pattern)]
        if not found:
            parts = pattern.split("/")
            if len(parts) != 3 or _TRAFFIC.get(parts[0]) != parts[2]:
                raise ConfigError(f"no case matches {pattern!r}; there are {', '.join(CASES)}")
            kernel_config(parts[1])
            found = [pattern]
        chosen += [case for case in found if case not in chosen]
    return chosen


def run(
    cases: Sequence[str] | None = None,
    json_path: str | Path | None = None,
    *,
    jobs: int = 16,
    memory: MemoryModel | None = None,
    verify: bool = True,
    seed: int = 0,
    table: bool = True,
) -> list[Result]:
    """Measures cases one after the other.

    Args:
        cases: names or patterns; None: all.
        json_path: a file that gets one JSON object per line, appended after every case; ``-``:
            standard output.
        jobs: jobs back to back, at least 16 for a figure to be quoted.
        memory: memory model; None: latencies of 100 cycles, no stalls.
        verify: compare one job of every case with the oracle.
        seed: of the traffic.
        table: print a table on the terminal at the end.
    """
    if jobs < 1:
        raise ConfigError(f"jobs={jobs} is not positive")
    chosen = select(cases)
    results: list[Result] = []
    by_config: dict[str, list[str]] = {}
    for case in chosen:
        by_config.setdefault(case.split("/")[1], []).append(case)
    with _progress(len(chosen)) as step:
        for name, named in by_config.items():
            step(f"build {name}", 0)
            model = memory or MemoryModel()
            device = SimDevice(name, background=False, memory=model)
            with device:
                for case in named:
                    step(case, 0)
                    result = _Measurement(device, case, jobs, verify, seed).run()
                    results.append(result)
                    _append(json_path, result)
                    step(case, 1)
    results.sort(key=lambda result: chosen.index(result.case))
    if table:
        _print(results)
    return results


def _append(json_path: str | Path | None, result: Result) -> None:
    if json_path is None:
        return
    line = json.dumps(asdict(result), sort_keys=False) + "\n"
    if str(json_path) == "-":
        sys.stdout.write(line)
        sys.stdout.flush()
    else:
        with Path(json_path).open("a", encoding="utf-8") as file:
            file.write(line)


# ------------------------------------------------------------------------------------- measurement


class _Measurement:
    """One case on an open device."""

    def __init__(self, device: SimDevice, case: str, jobs: int, verify: bool, seed: int) -> None:
        self.device, self.case, self.jobs = device, case, jobs
        self.verify, self.seed = verify, seed
        self.config: KernelConfig = device.config
        self.random = np.random.default_rng(seed)
        self._buffers: list[npt.NDArray[Any]] = []

    def run(self) -> Result:
        self.device.reset()
        measure = {
            "fragment": self._fragment,
            "learn": self._learn,
            "gather": self._gather,
            "scatter": self._scatter,
        }[self.case.split("/")[0]]
        try:
            return measure()
        finally:
            for array in self._buffers:
                self.device.free(array)

    def _allocate(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        array = self.device.allocate(shape, dtype)
        self._buffers.append(array)
        return array

    def _put(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        array = self._allocate(values.shape, values.dtype)
        array[...] = values
        return array

    def _measure(
        self,
        kernel: Kernel,
        jobs: Sequence[Job],
        limit: Callable[[Completion], tuple[int, float]],
        unit: str,
    ) -> tuple[Result, list[Completion]]:
        """Runs jobs back to back, two in flight; ``limit`` gives a job's items and its cycles."""
        device = self.device
        before = device.counters(kernel)
        device.measure(kernel)
        begun, first_cycle = time.perf_counter(), device.cycles
        completions: list[Completion] = []
        handles: deque[Handle] = deque()
        for job in jobs:
            if len(handles) == 2:
                completions.append(handles.popleft().wait())
            handles.append(device.submit(job))
        completions += [handle.wait() for handle in handles]
        speed = (device.cycles - first_cycle) / (time.perf_counter() - begun)
        state = device.state(kernel)
        after = device.counters(kernel)
        cycles = state.last_done - state.first_start
        limits = [limit(completion) for completion in completions]
        items, least = sum(n for n, _ in limits), sum(c for _, c in limits)
        counters = {name: (after[name] - before[name]) & 0xFFFF_FFFF for name in before}
        counters |= {"reads_most": state.reads_most, "writes_most": state.writes_most}
        result = Result(
            bench="rtl",
            case=self.case,
            value=round(items / cycles, 4),
            unit=f"{unit}/cycle",
            limit=round(items / least, 4),
            ratio=round(least / cycles, 4),
            jobs=len(jobs),
            cycles=cycles,
            clock_khz=self.config.clock_khz,
            shares=_shares(completions),
            counters=counters,
            memory=asdict(device.memory(kernel)),
            simulated_cycles_per_second=round(speed),
        )
        return result, completions

    # -------------------------------------------------------------------------------- fragmenter

    def _criteo(self) -> tuple[Group, Iterator[npt.NDArray[np.uint32]]]:
        """The group, and an endless row of mini-batches as row ids, sample-major."""
        data = Synthetic(seed=self.seed)
        group = data.group(DIM)
        bases = np.array([group.bases[feature.table] for feature in group.features])

        def batches() -> Iterator[npt.NDArray[np.uint32]]:
            number = 0
            while True:
                ids = data.ids(np.arange(number, number + BATCH))
                yield (ids + bases).astype(np.uint32).reshape(-1)
                number += BATCH

        return group, batches()

    def _hot_rows(
        self, group: Group, batches: Iterator[npt.NDArray[np.uint32]]
    ) -> npt.NDArray[np.uint32]:
        """The most frequent rows of other mini-batches, as many as the EAL holds."""
        entries = self.config.eal_entries
        # Rarer rows of a larger hot set need a longer look to be told apart.
        count = min(256, max(32, entries // 2048))
        lookups = np.concatenate(list(itertools.islice(batches, count)))
        seen = lookups[lookups >= group.pinned_rows]
        rows, counts = np.unique(seen, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:entries]
        return rows[order].astype(np.uint32)

    def _fragment(self) -> Result:
        device, config = self.device, self.config
        group, batches = self._criteo()
        hot = self._hot_rows(group, batches)
        total, pinned = group.total_rows, group.pinned_rows
        loaded = device.run(
            Load(self._put(hot), self._allocate(len(hot), np.uint32), total, pinned)
        )
        cold_base = group.pinned_rows + config.eal_entries
        per_sample = len(group.features)
        outputs = [self._fragment_outputs(BATCH * per_sample) for _ in range(2)]
        inputs = [self._put(next(batches)) for _ in range(self.jobs)]
        jobs = [
            Fragment(
                ids=ids,
                samples=BATCH,
                total_rows=total,
                pinned_rows=pinned,
                cold_base=cold_base,
                cold_rows_max=config.cold_rows_max,
                lookups_per_sample=per_sample,
                indices=outputs[number % 2]["indices"],
                popular=outputs[number % 2]["popular"],
                nonpopular=outputs[number % 2]["nonpopular"],
                bitmap=outputs[number % 2]["bitmap"],
                cold_rows=outputs[number % 2]["cold_rows"],
            )
            for number, ids in enumerate(inputs)
        ]

        def limit(completion: Completion) -> tuple[int, float]:
            written = (
                completion.lookups
                + completion.samples
                + -(-completion.samples // 32)
                + completion.cold_rows
            )
            return completion.lookups, max(completion.lookups, written) / config.lanes

        result, completions = self._measure("fragmenter", jobs, limit, "lookups")
        result.shares["loaded"] = round(
            (loaded.cold_lookups - loaded.cold_rows) / config.eal_entries, 4
        )
        if self.verify:
            self._verify_fragment(hot, jobs[-1], completions[-1])
        return result

    def _fragment_outputs(self, lookups: int) -> dict[str, npt.NDArray[Any]]:
        sizes = {
            "indices": lookups,
            "popular": BATCH,
            "nonpopular": BATCH,
            "bitmap": BATCH // 32,
            "cold_rows": min(lookups, self.config.cold_rows_max),
        }
        return {name: self._allocate(size, np.uint32) for name, size in sizes.items()}

    def _verify_fragment(
        self, hot: npt.NDArray[np.uint32], job: Job, completion: Completion
    ) -> None:
        assert isinstance(job, Fragment)
        eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
        eal.load(hot, job.total_rows, job.pinned_rows)
        expected = reference.fragment(
            eal,
            job.ids,
            samples=job.samples,
            total_rows=job.total_rows,
            pinned_rows=job.pinned_rows,
            cold_base=job.cold_base,
            cold_rows_max=job.cold_rows_max,
            lookups_max=self.config.lookups_max,
            lookups_per_sample=job.lookups_per_sample,
        )
        for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows"):
            values = getattr(expected, name)
            self._same(name, getattr(job, name)[: len(values)], values)
        for name in ("popular", "cold_rows", "lookups"):
            self._same(name, getattr(completion, name), getattr(expected.completion, name))

    def _same(self, name: str, found: Any, expected: Any) -> None:
        if not np.array_equal(found, expected):
            raise CompareError(f"{self.case}: {name} differs from the oracle's")

    def _learn(self) -> Result:
        group, batches = self._criteo()
        rows = {"total_rows": group.total_rows, "pinned_rows": group.pinned_rows}
        inputs = [self._put(next(batches)) for _ in range(self.jobs)]
        jobs = [Learn(ids, **rows) for ids in inputs]

        def limit(completion: Completion) -> tuple[int, float]:
            return completion.lookups, completion.lookups / self.config.lanes

        result, completions = self._measure("fragmenter", jobs, limit, "lookups")
        if self.verify:
            eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
            for ids, completion in zip(inputs, completions, strict=True):
                expected = eal.learn(ids, **rows)
                self._same("eal_lookups", completion.eal_lookups, expected.eal_lookups)
        return result

    # ---------------------------------------------------------------------------------- gatherer

    def _move_limit(self, completion: Completion) -> tuple[int, float]:
        read = completion.lookups * (RECORD_BYTES + 4)
        return completion.lookups, read / (self.config.bus_bits // 8)

    def _store(self) -> npt.NDArray[np.uint8]:
        store = self._allocate((STORE_ROWS, RECORD_BYTES), np.uint8)
        store[:] = self.random.integers(256, size=store.shape, dtype=np.uint8)
        return store

    def _random_rows(self) -> npt.NDArray[np.uint32]:
        return self.random.integers(STORE_ROWS, size=RECORDS, dtype=np.uint32)

    def _gather(self) -> Result:
        store = self._store()
        records = [self._allocate((RECORDS, RECORD_BYTES), np.uint8) for _ in range(2)]
        jobs = [
            Gather(self._put(self._random_rows()), records[number % 2], store, STORE_ROWS)
            for number in range(self.jobs)
        ]
        result, _ = self._measure("gatherer", jobs, self._move_limit, "records")
        if self.verify:
            self._same("records", jobs[-1].records, store[jobs[-1].ids])
        return result

    def _scatter(self) -> Result:
        store = self._store()
        expected = store.copy()
        jobs = []
        for _ in range(self.jobs):
            records = self.random.integers(256, size=(RECORDS, RECORD_BYTES), dtype=np.uint8)
            jobs.append(
                Scatter(self._put(self._random_rows()), self._put(records), store, STORE_ROWS)
            )
        result, _ = self._measure("gatherer", jobs, self._move_limit, "records")
        if self.verify:
            for job in jobs:
                reference.scatter(job.ids, job.records, expected, STORE_ROWS)
            self._same("store", store, expected)
        return result


def _shares(completions: Sequence[Completion]) -> dict[str, float]:
    """Shares of the lookups by kind, and of the popular samples."""
    lookups = sum(c.lookups for c in completions)
    kinds = {
        "pinned": sum(c.pinned_lookups for c in completions),
        "eal": sum(c.eal_lookups for c in completions),
        "cold": sum(c.cold_lookups for c in completions),
    }
    shares = {name: round(n / lookups, 4) for name, n in kinds.items() if n}
    samples = sum(c.samples for c in completions)
    if samples:
        shares["popular"] = round(sum(c.popular for c in completions) / samples, 4)
        cold_rows = sum(c.cold_rows for c in completions)
        shares["cold_rows_per_job"] = round(cold_rows / len(completions), 1)
    return shares


# ------------------------------------------------------------------------------------------ output


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int], None]]:
    """Shows which case runs, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda case, done: log.info("%s", case)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda case, done: progress.update(task, advance=done, description=case)


def _print(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="RTL throughput per cycle, and in M/s at the clock")
    table.add_column("case", no_wrap=True)
    for title in ("value", "limit", "ratio", "M/s", "cold", "popular"):
        table.add_column(title, justify="right", no_wrap=True)
    for r in results:
        share = {name: f"{value:.1%}" for name, value in r.shares.items() if value <= 1}
        table.add_row(
            r.case,
            f"{r.value:.3f}",
            f"{r.limit:.3f}",
            f"{r.ratio:.4f}",
            f"{r.value * r.clock_khz / 1e3:.0f}",
            share.get("cold", "-"),
            share.get("popular", "-"),
        )
    Console(stderr=True).print(table)
