# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a lookup costs on the host: against the mini-batch, the number of rows and the hot share.

The fragmentation job of ``hotline bench host`` (26 features of one raw id each, records of 64
bytes, an EAL of 524,288 entries, nothing pinned, one thread), with traffic that varies one thing at
a time: an id is with the given chance one of the hot rows, uniformly, else any other row. The two
steps are timed apart: FRAGMENT (rebasing included) and GATHER of the distinct cold rows.

Cases are ``scaling/batch/<samples>``, ``scaling/rows/<rows>`` and ``scaling/hot/<share>``;
``value`` is in nanoseconds per lookup for both steps, ``limit`` is that of the common point (4,096
samples, ten million rows, nine of ten lookups hot). Where a store of all rows would take more than
half of the free memory, it is smaller and the cold rows are folded onto it; ``extra`` says its
size.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hotline.bench.host import COLD_ROWS, SETS, WAYS, Quiet
from hotline.bench.output import Result, append_json
from hotline.codes import Operation, Status
from hotline.errors import CompareError
from hotline.ingest import describe
from hotline.native.kernels import NativeFragmenter, move
from hotline.tables import FeatureConfig, Group, TableConfig

FEATURES = 26
DIM = 16
RECORD_BYTES = 4 * DIM
SAMPLES, ROWS, HOT = 4096, 10_000_000, 0.9
SAMPLE_COUNTS = (16, 64, 256, 1024, 4096, 16_384, 65_536)
ROW_COUNTS = (10**5, 10**6, 10**7, 10**8, 3 * 10**8)
HOT_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
HOT_ROWS = 400_000
"""Rows that are loaded, or half of all: an EAL of 524,288 entries has room for nearly all."""
MEMORY_SHARE = 0.5
"""Of the memory that is available, the store takes at most this."""
LEAST_SECONDS = 0.05
"""A point is measured for at least this long."""


@dataclass(frozen=True)
class ScalingResult(Result):
    """See the module.

    Attributes:
        fragment_ns, gather_ns: nanoseconds per lookup of the two steps.
        samples, rows, hot: of this point; ``hot`` as measured.
        extra: ``store_bytes``; ``cold_rows`` of a mini-batch.
        quiet: share of the repetitions that began while nothing else was runnable.
    """

    fragment_ns: float = 0.0
    gather_ns: float = 0.0
    samples: int = 0
    rows: int = 0
    hot: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)
    quiet: float = 1.0


def available_bytes() -> int:
    """Memory that can be had without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class Scene:
    """Rows, hot set and store for one number of rows."""

    def __init__(self, rows: int, seed: int) -> None:
        each = math.ceil(rows / FEATURES)
        self.random = np.random.default_rng(seed)
        tables = tuple(TableConfig(f"t{n}", each, DIM) for n in range(FEATURES))
        features = tuple(FeatureConfig(f"f{n}", f"t{n}") for n in range(FEATURES))
        self.group = Group(tables, features, pin_bytes=0)
        self.each, self.total = each, each * FEATURES
        hot_each = min(HOT_ROWS // FEATURES, each // 2)
        # Of each table a random set, the same ids for all: what a row id is does not matter.
        self.hot_ids = self.random.permutation(each)[:hot_each]
        wanted = (self.hot_ids[:, None] + np.arange(FEATURES) * each).ravel().astype(np.uint32)
        self.fragmenter = NativeFragmenter(SETS, WAYS, COLD_ROWS * 32)
        self.fragmenter.load(wanted, self.total, 0, np.empty_like(wanted))
        fits = int(available_bytes() * MEMORY_SHARE) // RECORD_BYTES
        self.store = np.zeros((min(self.total, fits), RECORD_BYTES), np.uint8)
        self.store[:, 0] = 1  # every page is there

    def ids(self, samples: int, hot: float) -> npt.NDArray[np.int64]:
        """[samples, features] raw ids."""
        shape = (samples, FEATURES)
        cold = self.random.integers(self.each, size=shape)
        popular = self.hot_ids[self.random.integers(len(self.hot_ids), size=shape)]
        return np.where(self.random.random(shape) < hot, popular, cold)


def measure(
    scene: Scene, case: str, samples: int, hot: float, repetitions: int, quiet: Quiet
) -> ScalingResult:
    """One point."""
    lookups = samples * FEATURES
    batches = [scene.ids(samples, hot) for _ in range(4)]
    out = {
        name: np.zeros(size, np.uint32)
        for name, size in {
            "indices": lookups, "popular": samples, "nonpopular": samples, "cold_rows": lookups,
            "bitmap": -(-samples // 32),
        }.items()
    }  # fmt: skip
    records = np.ones((lookups, RECORD_BYTES), np.uint8)
    inner = 1
    times: list[tuple[float, float]] = []
    found = cold_rows = 0
    for repetition in range(-1, repetitions):  # the first one warms up and sets the length
        quiet.wait()
        fragment = gather = 0.0
        for n in range(inner):
            begin = time.perf_counter()
            done = scene.fragmenter.fragment_features(
                describe(scene.group, batches[n % len(batches)]).table,
                lookups=lookups,
                lookups_max=FEATURES,
                samples=samples,
                total_rows=scene.total,
                pinned_rows=0,
                cold_base=SETS * WAYS,
                cold_rows_max=COLD_ROWS * 32,
                ids=None,
                offsets=None,
                **out,
            )
            middle = time.perf_counter()
            if done is None or done.status is not Status.OK:
                raise CompareError(f"{case}: FRAGMENT ended with {done}")
            cold = out["cold_rows"][: done.cold_rows]
            if len(scene.store) < scene.total:  # not timed
                cold %= np.uint32(len(scene.store))
            start = time.perf_counter()
            move(Operation.GATHER, cold, records[: len(cold)], scene.store, len(scene.store))
            end = time.perf_counter()
            fragment, gather = fragment + middle - begin, gather + end - start
            found, cold_rows = done.eal_lookups, done.cold_rows
        if repetition < 0:
            inner = max(1, min(1000, int(LEAST_SECONDS / repetitions / (fragment + gather))))
        else:
            times.append((fragment / inner, gather / inner))
    fragment_ns, gather_ns = (
        statistics.median(column) * 1e9 / lookups for column in zip(*times, strict=True)
    )
    return ScalingResult(
        bench="scaling",
        case=case,
        value=round(fragment_ns + gather_ns, 3),
        unit="ns/lookup",
        limit=round(fragment_ns + gather_ns, 3),
        ratio=1.0,
        fragment_ns=round(fragment_ns, 3),
        gather_ns=round(gather_ns, 3),
        samples=samples,
        rows=scene.total,
        hot=round(found / lookups, 4),
        extra={"store_bytes": float(scene.store.nbytes), "cold_rows": float(cold_rows)},
        quiet=quiet.share,
    )


def run(
    json_path: str | Path | None = None,
    *,
    png: Path | None = None,
    rows_max: int = ROW_COUNTS[-1],
    samples_max: int = SAMPLE_COUNTS[-1],
    repetitions: int = 9,
    wait_s: float = 1.0,
    seed: int = 0,
    table: bool = True,
) -> list[ScalingResult]:
    """Measures all points.

    Args:
        json_path: a file that gets one JSON object per case, appended; ``-``: standard output.
        png: where the plot goes; None: no plot.
        rows_max, samples_max: caps on the rows and on the samples of a mini-batch.
        repetitions: of each point; its figure is the median.
        wait_s: longest wait for a quiet machine before each repetition.
        seed: of the traffic.
        table: print the table and what dominates.
    """
    quiet = Quiet(wait_s)
    common_rows, common_samples = min(ROWS, rows_max), min(SAMPLES, samples_max)
    results: list[ScalingResult] = []

    def point(scene: Scene, case: str, samples: int, hot: float) -> None:
        results.append(measure(scene, f"scaling/{case}", samples, hot, repetitions, quiet))

    for rows in sorted({*(n for n in ROW_COUNTS if n <= rows_max), common_rows}):
        scene = Scene(rows, seed)
        point(scene, f"rows/{rows}", common_samples, HOT)
        if rows == common_rows:
            common = results[-1].value
            for samples in (n for n in SAMPLE_COUNTS if n <= samples_max):
                point(scene, f"batch/{samples}", samples, HOT)
            for hot in HOT_SHARES:
                point(scene, f"hot/{hot:g}", common_samples, hot)
        del scene  # before the next one takes its memory
    results = [
        replace(result, limit=common, ratio=round(result.value / common, 4)) for result in results
    ]
    results.sort(key=lambda result: result.case.split("/")[1])  # stable: by sweep
    for result in results:
        append_json(json_path, result)
    if png is not None:
        from hotline.plots import plot_scaling

        plot_scaling(png, results)
    if table:
        _print(results)
    return results


def sweep(results: Sequence[ScalingResult], name: str) -> list[ScalingResult]:
    """The points of ``batch``, ``rows`` or ``hot``, in order."""
    return [result for result in results if result.case.split("/")[1] == name]


def explain(results: Sequence[ScalingResult]) -> str:
    """What dominates, in sentences made from the figures."""
    hot = sweep(results, "hot")
    share = np.array([1 - point.hot for point in hot])
    total = np.array([point.value for point in hot])
    gather = np.array([point.gather_ns for point in hot])
    # The extremes, not a fit: in between, unforeseeable branches add their own.
    base, cold = total[-1], total[0]
    even = base / max(cold - base, 1e-9)
    batch, rows = sweep(results, "batch"), sweep(results, "rows")
    call = (batch[0].value - batch[-1].value) * batch[0].samples * FEATURES / 1e3
    dominant = (
        f"from a cold share of {even:.0%} on, cold rows cost more than all else"
        if even < 1
        else "cold rows never cost more than all else"
    )
    return (
        f"A hot lookup costs {base:.1f} ns; where all are cold ({share[0]:.0%}), one costs "
        f"{cold:.1f} ns, {gather[0]:.1f} of them for the row's copy: {dominant}. "
        f"A call costs about {call:.0f} us, whatever the mini-batch: as much as "
        f"{call * 1e3 / max(batch[-1].value, 1e-9) / FEATURES:,.0f} samples. "
        f"From {rows[0].rows:,} to {rows[-1].rows:,} rows the cost of a lookup goes from "
        f"{rows[0].value:.1f} to {rows[-1].value:.1f} ns: the memory's latency, not work."
    )


def _print(results: Sequence[ScalingResult]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Nanoseconds per lookup on one thread", box=None)
    table.add_column("case", no_wrap=True)
    for title in ("hot", "FRAGMENT", "GATHER", "both", "ratio"):
        table.add_column(title, justify="right", no_wrap=True)
    for r in results:
        times = (f"{r.fragment_ns:.2f}", f"{r.gather_ns:.2f}", f"{r.value:.2f}", f"{r.ratio:.2f}")
        table.add_row(r.case, f"{r.hot:.1%}", *times)
    console = Console(stderr=True)
    console.print(table)
    console.print(explain(results), highlight=False)
    if results[0].quiet < 0.9:
        console.print("The machine was not quiet; do not quote these figures.", highlight=False)
