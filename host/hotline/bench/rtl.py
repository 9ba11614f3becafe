# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Throughput of the RTL in cycles: jobs back to back, as a share of what the bus allows.

``docs/architecture.md`` (section 7) defines the figure: ratio = sum of the jobs' limits / cycles
from the first start to the last done. A job's limit is what its data need on the busier of the two
directions of the bus, in cycles. Cycles are exact and the same in every run.

Cases are ``<operation>/<configuration>/<traffic>``:

- ``fragment``: mini-batches of ``hotline.bench.traffic``, by name. The EAL holds the rows that were
  most frequent in other mini-batches.
- ``learn``: LEARN on the criteo traffic, from an empty EAL.
- ``gather``, ``scatter``: records of 64, 128 or 256 bytes at random rows.
- ``overlap``: FRAGMENT on mini-batch i+1 while the gatherer moves the cold rows of i; the limit is
  the longer of the two alone.
- ``small``: FRAGMENT on mini-batches of 64 samples, back to back; ``extra`` says what one job takes
  alone, and how much of that is beyond its limit and the latencies of one read and one write.
- ``sim/<configuration>/speed``: simulated cycles per second of wall clock, the one figure that
  depends on the machine; the limit is a wish.
"""

from __future__ import annotations

import fnmatch
import itertools
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import reference
from hotline.bench.output import Result, append_json
from hotline.bench.traffic import BATCHES, Traffic, traffic
from hotline.config import KernelConfig, kernel_config
from hotline.device.base import Completion, Fragment, Gather, Handle, Job, Learn, Load, Scatter
from hotline.device.sim import MemoryModel, SimDevice
from hotline.device.transport import KERNELS, Kernel
from hotline.errors import CompareError, ConfigError
from hotline.tables import RowBatch

log = logging.getLogger(__name__)

CONFIGURATIONS = ("zynq", "kv260", "alveo")
SMALL = 64
"""Samples of a small mini-batch."""
STORE_BYTES = 1 << 24
MOVED_BYTES = 1 << 19
"""Bytes of the records of a GATHER or SCATTER."""
SPEED = 200_000
"""Simulated cycles per second that we want."""

CASES = (
    *(f"fragment/{config}/criteo" for config in CONFIGURATIONS),
    *(f"fragment/alveo/{name}" for name in BATCHES if name != "criteo"),
    *(f"learn/{config}/criteo" for config in CONFIGURATIONS),
    *(
        f"{operation}/{config}/{size}B"
        for operation in ("gather", "scatter")
        for config in CONFIGURATIONS
        for size in (64, 128, 256)
    ),
    "overlap/alveo/criteo",
    *(f"small/{config}/criteo" for config in CONFIGURATIONS),
    "sim/alveo/speed",
)
"""All cases."""


@dataclass(frozen=True)
class RtlResult(Result):
    """Throughput, in lookups or records per cycle; the limit is that of the bus.

    Attributes:
        jobs, cycles: number of jobs, cycles from first start to last done.
        clock_khz: clock that the configuration is meant for.
        shares: of all lookups or samples: ``pinned``, ``eal``, ``cold``, ``popular`` ...
        counters: of the kernel, difference over the case.
        memory: the memory model.
        extra: further figures of the case, by name.
        simulated_cycles_per_second: speed of the simulation itself, wall clock.
    """

    jobs: int
    cycles: int
    clock_khz: int
    shares: dict[str, float]
    counters: dict[str, int]
    memory: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
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
            operation, _, rest = pattern.partition("/")
            config, _, what = rest.partition("/")
            if not fnmatch.filter(CASES, f"{operation}/*/{what}") or "*" in pattern:
                raise ConfigError(f"no case matches {pattern!r}; there are {', '.join(CASES)}")
            kernel_config(config)
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
) -> list[RtlResult]:
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
    results: list[RtlResult] = []
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
                    append_json(json_path, result)
                    step(case, 1)
    results.sort(key=lambda result: chosen.index(result.case))
    if table:
        _print(results)
    return results


# ------------------------------------------------------------------------------------- measurement


class _Measurement:
    """One case on an open device."""

    def __init__(self, device: SimDevice, case: str, jobs: int, verify: bool, seed: int) -> None:
        self.device, self.case, self.jobs = device, case, jobs
        self.verify, self.seed = verify, seed
        self.config: KernelConfig = device.config
        self.what = case.split("/")[2]
        self._shape = (self.config.eal_sets, self.config.eal_ways)
        self.random = np.random.default_rng(seed)
        self._buffers: list[npt.NDArray[Any]] = []

    def run(self) -> RtlResult:
        self.device.reset()
        measure = {
            "fragment": self._fragment,
            "learn": self._learn,
            "gather": self._gather,
            "scatter": self._scatter,
            "overlap": self._overlap,
            "small": self._small,
            "sim": self._speed,
        }[self.case.split("/")[0]]
        result = measure()
        for array in self._buffers:
            self.device.free(array)
        return result

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
        limit: Callable[[Any, Completion], tuple[int, float]],
        unit: str,
    ) -> tuple[RtlResult, list[Completion]]:
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
        limits = [limit(job, done) for job, done in zip(jobs, completions, strict=True)]
        items, least = sum(n for n, _ in limits), sum(c for _, c in limits)
        counters = {name: (after[name] - before[name]) & 0xFFFF_FFFF for name in before}
        counters |= {"reads_most": state.reads_most, "writes_most": state.writes_most}
        result = RtlResult(
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

    def _loaded(
        self, name: str, samples: int | None = None
    ) -> tuple[Traffic, list[RowBatch], Completion | None]:
        """The traffic, ``jobs`` mini-batches in device memory, the EAL loaded."""
        made = traffic(name, *self._shape, samples=samples, seed=self.seed)
        loaded = None
        if made.hot.size:
            rejected = self._allocate(len(made.hot), np.uint32)
            loaded = self.device.run(
                Load(self._put(made.hot), rejected, made.total_rows, made.pinned_rows)
            )
        batches = [
            replace(
                batch,
                ids=self._put(batch.ids),
                offsets=None if batch.offsets is None else self._put(batch.offsets),
            )
            for batch in itertools.islice(made.batches, self.jobs)
        ]
        return made, batches, loaded

    def _fragments(self, made: Traffic, batches: Sequence[RowBatch], sets: int) -> list[Fragment]:
        """A job for each mini-batch; ``sets`` sets of outputs take turns."""
        config = self.config
        lookups = max(batch.ids.size for batch in batches)
        samples = batches[0].samples
        sizes = {
            "indices": lookups,
            "popular": samples,
            "nonpopular": samples,
            "bitmap": -(-samples // 32),
            "cold_rows": min(lookups, config.cold_rows_max),
        }
        outputs = [
            {name: self._allocate(size, np.uint32) for name, size in sizes.items()}
            for _ in range(sets)
        ]
        jobs = []
        for number, batch in enumerate(batches):
            out = outputs[number % sets]
            jobs.append(
                Fragment(
                    ids=batch.ids,
                    samples=batch.samples,
                    total_rows=made.total_rows,
                    pinned_rows=made.pinned_rows,
                    cold_base=made.pinned_rows + config.eal_entries,
                    cold_rows_max=config.cold_rows_max,
                    indices=out["indices"][: batch.ids.size],
                    popular=out["popular"],
                    nonpopular=out["nonpopular"],
                    bitmap=out["bitmap"],
                    cold_rows=out["cold_rows"][: batch.ids.size],
                    lookups_per_sample=batch.lookups_per_sample or 0,
                    offsets=batch.offsets,
                    bags=0 if batch.offsets is None else batch.bags,
                )
            )
        return jobs

    def _fragment_limit(self, job: Job, completion: Completion) -> tuple[int, float]:
        assert isinstance(job, Fragment)
        read = completion.lookups + (0 if job.offsets is None else job.offsets.size)
        written = (
            completion.lookups
            + completion.samples
            + -(-completion.samples // 32)
            + completion.cold_rows
        )
        return completion.lookups, max(read, written) / self.config.lanes

    def _fragment(self) -> RtlResult:
        made, batches, loaded = self._loaded(self.what)
        jobs = self._fragments(made, batches, 2)
        result, completions = self._measure("fragmenter", jobs, self._fragment_limit, "lookups")
        if loaded is not None:
            result.shares["loaded"] = round(loaded.cold_lookups / self.config.eal_entries, 4)
        if self.verify:
            self._verify_fragment(made.hot, jobs[-1], completions[-1])
        return result

    def _small(self) -> RtlResult:
        made, batches, _ = self._loaded(self.what, SMALL)
        jobs = self._fragments(made, batches, 2)
        result, completions = self._measure("fragmenter", jobs, self._fragment_limit, "lookups")
        if self.verify:
            self._verify_fragment(made.hot, jobs[-1], completions[-1])
        alone, done = self._measure("fragmenter", jobs[-1:], self._fragment_limit, "lookups")
        least = self._fragment_limit(jobs[-1], done[0])[1]
        memory = self.device.memory("fragmenter")
        latency = memory.read_latency + memory.write_latency
        result.extra.update(
            cycles_per_job=round(result.cycles / len(jobs), 1),
            alone=alone.cycles,
            alone_beyond=round(alone.cycles - least - latency, 1),
        )
        return result

    def _overlap(self) -> RtlResult:
        """Gathers the cold rows of each mini-batch while the next ones are fragmented."""
        device = self.device
        made, batches, _ = self._loaded(self.what)
        # Three mini-batches are alive at a time: two in the fragmenter, one in the gatherer.
        fragments = self._fragments(made, batches, 4)
        rows = -(-made.total_rows // (1 << 5))  # a store of manageable size: row ids are folded
        record = 64
        store = self._allocate((rows, record), np.uint8)
        records = [self._allocate((self.config.cold_rows_max, record), np.uint8) for _ in range(2)]

        def folded(number: int, completion: Completion) -> Gather:
            job = fragments[number]
            ids = self._allocate(completion.cold_rows, np.uint32)
            ids[:] = job.cold_rows[: completion.cold_rows] % rows
            return Gather(ids, records[number % 2][: len(ids)], store, rows)

        for kernel in KERNELS:
            device.measure(kernel)
        handles: deque[Handle] = deque()
        gathers: deque[Handle] = deque()
        moved: list[Gather] = []
        completions: list[Completion] = []
        for number, job in enumerate(fragments):
            handles.append(device.submit(job))
            if len(handles) == 2:
                completions.append(handles.popleft().wait())
                moved.append(folded(number - 1, completions[-1]))
                if len(gathers) == 2:
                    gathers.popleft().wait()
                gathers.append(device.submit(moved[-1]))
        completions.append(handles.popleft().wait())
        for handle in gathers:
            handle.wait()
        states = [device.state(kernel) for kernel in KERNELS]
        cycles = max(s.last_done for s in states) - min(s.first_start for s in states)
        fragment, _ = self._measure("fragmenter", fragments, self._fragment_limit, "lookups")
        gather, _ = self._measure("gatherer", moved, self._move_limit, "records")
        longer = max(fragment.cycles, gather.cycles)
        return replace(
            fragment,
            value=round(sum(c.lookups for c in completions) / cycles, 4),
            limit=round(sum(c.lookups for c in completions) / longer, 4),
            ratio=round(longer / cycles, 4),
            cycles=cycles,
            extra={"fragment_cycles": fragment.cycles, "gather_cycles": gather.cycles},
        )

    def _speed(self) -> RtlResult:
        self.what = "criteo"
        result = self._fragment()
        speed = result.simulated_cycles_per_second
        return replace(
            result,
            value=speed,
            unit="cycles/s",
            limit=SPEED,
            ratio=round(speed / SPEED, 4),
        )

    def _verify_fragment(self, hot: npt.NDArray[np.uint32], job: Job, done: Completion) -> None:
        assert isinstance(job, Fragment)
        eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
        if hot.size:
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
            offsets=job.offsets,
            bags=job.bags,
        )
        for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows"):
            values = getattr(expected, name)
            self._same(name, getattr(job, name)[: len(values)], values)
        for name in ("status", "popular", "cold_rows", "lookups"):
            self._same(name, getattr(done, name), getattr(expected.completion, name))

    def _same(self, name: str, found: Any, expected: Any) -> None:
        if not np.array_equal(found, expected):
            raise CompareError(f"{self.case}: {name} differs from the oracle's")

    def _learn(self) -> RtlResult:
        made = traffic("criteo", *self._shape, seed=self.seed)
        rows = (made.total_rows, made.pinned_rows)
        inputs = [self._put(batch.ids) for batch in itertools.islice(made.batches, self.jobs)]
        jobs = [Learn(ids, *rows) for ids in inputs]

        def limit(_: Job, completion: Completion) -> tuple[int, float]:
            return completion.lookups, completion.lookups / self.config.lanes

        result, completions = self._measure("fragmenter", jobs, limit, "lookups")
        if self.verify:
            eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
            for ids, completion in zip(inputs, completions, strict=True):
                expected = eal.learn(ids, *rows)
                self._same("eal_lookups", completion.eal_lookups, expected.eal_lookups)
        return result

    # ---------------------------------------------------------------------------------- gatherer

    def _move_limit(self, job: Job, completion: Completion) -> tuple[int, float]:
        assert isinstance(job, Gather | Scatter)
        read = completion.lookups * (job.records.shape[1] + 4)
        return completion.lookups, read / (self.config.bus_bits // 8)

    def _sizes(self) -> tuple[int, int, int]:
        """Bytes of a record, rows of the store, records of a job."""
        record = int(self.what.removesuffix("B"))
        return record, STORE_BYTES // record, MOVED_BYTES // record

    def _store(self) -> npt.NDArray[np.uint8]:
        record, rows, _ = self._sizes()
        store = self._allocate((rows, record), np.uint8)
        store[:] = self.random.integers(256, size=store.shape, dtype=np.uint8)
        return store

    def _random_rows(self) -> npt.NDArray[np.uint32]:
        _, rows, count = self._sizes()
        return self._put(self.random.integers(rows, size=count, dtype=np.uint32))

    def _gather(self) -> RtlResult:
        record, rows, count = self._sizes()
        store = self._store()
        records = [self._allocate((count, record), np.uint8) for _ in range(2)]
        jobs = [
            Gather(self._random_rows(), records[number % 2], store, rows)
            for number in range(self.jobs)
        ]
        result, _ = self._measure("gatherer", jobs, self._move_limit, "records")
        if self.verify:
            self._same("records", jobs[-1].records, store[jobs[-1].ids])
        return result

    def _scatter(self) -> RtlResult:
        record, rows, count = self._sizes()
        store = self._store()
        expected = store.copy()
        jobs = []
        for _ in range(self.jobs):
            records = self.random.integers(256, size=(count, record), dtype=np.uint8)
            jobs.append(Scatter(self._random_rows(), self._put(records), store, rows))
        result, _ = self._measure("gatherer", jobs, self._move_limit, "records")
        if self.verify:
            for job in jobs:
                reference.scatter(job.ids, job.records, expected, rows)
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


def _print(results: Sequence[RtlResult]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="RTL throughput, and what else the cycles went to",
        caption="value and limit: per cycle; M/s at the configuration's clock; waits: cycles in "
        "which data wait for the memory to be read or written, for a bank of the EAL, for the "
        "tracker of cold rows; they overlap",
        box=None,
    )
    table.add_column("case", no_wrap=True)
    columns = ("value", "limit", "ratio", "M/s", "cold", "pop.", "read", "write", "bank", "track")
    for title in columns:
        table.add_column(title, justify="right", no_wrap=True)

    def percent(value: float | None) -> str:
        return "-" if value is None else f"{value:.1%}"

    for r in results:
        digits = 0 if r.limit >= 1000 else 2 if r.limit >= 10 else 3
        table.add_row(
            r.case,
            f"{r.value:.{digits}f}",
            f"{r.limit:.{digits}f}",
            f"{r.ratio:.3f}",
            f"{r.value * r.clock_khz / 1e3:.0f}" if r.unit.endswith("/cycle") else "-",
            percent(r.shares.get("cold")),
            percent(r.shares.get("popular")),
            *(
                percent(r.counters[f"stall_{name}"] / r.cycles)
                for name in ("read", "write", "bank", "tracker")
            ),
        )
    console = Console(stderr=True)
    console.print(table)
    for r in results:
        for name, value in r.extra.items():
            console.print(f"{r.case}: {name.replace('_', ' ')} {value:g}", highlight=False)
