# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The fragmentation job on the host: our native code beside what one would use without it.

The job, for a mini-batch of raw ids [4096, 26] int64: add the tables' bases, tell popular samples
from others, list the distinct cold rows, replace each id by where its row will be, and copy the
cold rows (64 bytes each) into one buffer. The hot set is the most probable 1 % of the rows of the
Criteo Kaggle tables, as far as a LOAD of it into an EAL of 524,288 entries finds room, and the
tables of up to 16,384 rows; it is the same for every variant. Each is checked to be right before it
is timed. The variants take turns, so that a disturbance hits all; the figure is the median, one
thread.

Cases are ``host/<zipf>/<variant>``; ``value`` is in million lookups per second. ``ratio`` of ours
is to the best of the libraries, of the others to ours. ``host/random/gather`` and ``.../scatter``
move random rows of 64 bytes; their limit is a bare loop over the same rows. ``learn`` (LEARN of row
ids) and ``count`` (exact counts of raw ids; ``host/random/count``: of random rows out of 300
million) are held against the profiler that FAE released.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.bench.output import Result, append_json
from hotline.bench.traffic import DIM
from hotline.codes import Operation, Status
from hotline.data.synthetic import CRITEO_KAGGLE, Synthetic
from hotline.device.base import ENTRY
from hotline.errors import CompareError, ConfigError
from hotline.frequency import RowCounter
from hotline.ingest import describe
from hotline.native import pointer
from hotline.native.kernels import NativeFragmenter, move
from hotline.tables import FeatureConfig, Group, TableConfig

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

ZIPF = {"1.05-1.2": (1.05, 1.2), "0.7-0.9": (0.7, 0.9)}
"""Exponents of the features, spread evenly over the range."""
BATCH = 4096
BATCHES = 8
HOT_SHARE = 0.01
SETS, WAYS = 32_768, 16
COLD_ROWS = 65_536
OURS = "hotline-cpu"
RANDOM_ROWS = 1 << 20
COUNTED_ROWS = 300_000_000
FAE_PROFILER = 2.7
"""Million lookups/s of the profiler released with FAE (arXiv 2103.00686), as we measured it."""


@dataclass(frozen=True)
class HostResult(Result):
    """See the module.

    Attributes:
        minimum_ms, median_ms, maximum_ms: time of a mini-batch.
        extra: ``gather_ms``: the copying alone; ``over_cpp``: ours to the C++ loop; shares.
        quiet: share of the repetitions that began while nothing else was runnable.
    """

    minimum_ms: float
    median_ms: float
    maximum_ms: float
    extra: dict[str, float] = field(default_factory=dict)
    quiet: float = 1.0


@dataclass
class Setting:
    """What all variants share for one traffic."""

    group: Group
    bases: I64
    hot: U32  # row ids of the EAL, by slot - pinned_rows; others are marked
    slot: npt.NDArray[np.int32]  # [total_rows] slot of a hot row, else -1
    store: npt.NDArray[np.float32]  # [total_rows, DIM]
    batches: list[I64]  # [BATCH, features] raw ids
    fragmenter: NativeFragmenter

    @property
    def cold_base(self) -> int:
        """Encoded index of the first cold row."""
        return self.group.pinned_rows + SETS * WAYS


@dataclass(frozen=True)
class Output:
    """What a variant gives; ``row_of`` turns its hot indices into row ids."""

    popular: Any
    others: Any
    cold: Any
    indices: Any
    rows: Any
    cold_base: int
    row_of: Callable[[I64], I64]


Variant = Callable[[int], Output]


def settle(zipf: str, rows_max: int | None, seed: int) -> Setting:
    """Makes mini-batches, hot set and store."""
    low, high = ZIPF[zipf]
    exponents = np.linspace(low, high, len(CRITEO_KAGGLE)).tolist()
    data = Synthetic(exponents=exponents, rows_max=rows_max, seed=seed)
    group = data.group(DIM)
    bases = np.array([group.bases[feature.table] for feature in group.features], np.int64)
    total = group.total_rows
    probable = data.most_probable(int(HOT_SHARE * total))
    wanted = np.concatenate([ids + base for ids, base in zip(probable, bases, strict=True)])
    wanted = wanted.astype(np.uint32)
    fragmenter = NativeFragmenter(SETS, WAYS, COLD_ROWS)
    fragmenter.load(wanted, total, group.pinned_rows, np.empty_like(wanted))
    entries = np.zeros(SETS * WAYS, ENTRY)
    count = fragmenter.dump(entries, group.pinned_rows).lookups
    slots = entries["slot_counter"][:count] & 0x3FFF_FFFF
    slot = np.full(total, -1, np.int32)
    slot[: group.pinned_rows] = np.arange(group.pinned_rows)
    slot[entries["row"][:count]] = slots
    hot = np.full(SETS * WAYS, 0xFFFF_FFFF, np.uint32)
    hot[slots - group.pinned_rows] = entries["row"][:count]
    store = np.empty((total, DIM), np.float32)
    store[:] = np.arange(total, dtype=np.float32)[:, None]
    batches = [data.ids(np.arange(n * BATCH, (n + 1) * BATCH)) for n in range(BATCHES)]
    return Setting(group, bases, hot, slot, store, batches, fragmenter)


# ---------------------------------------------------------------------------------------- variants


def _by_slot(setting: Setting) -> Callable[[I64], I64]:
    pinned = setting.group.pinned_rows

    def row_of(index: I64) -> I64:
        beyond = setting.hot[np.maximum(index - pinned, 0)].astype(np.int64)
        return np.where(index < pinned, index, beyond)

    return row_of


def ours(setting: Setting) -> Variant:
    """``fragment_features`` and GATHER."""
    group = setting.group
    lookups = BATCH * len(setting.bases)
    sizes = {"indices": lookups, "popular": BATCH, "nonpopular": BATCH, "cold_rows": lookups}
    out = {name: np.zeros(size, np.uint32) for name, size in sizes.items()}
    out["bitmap"] = np.zeros(BATCH // 32, np.uint32)
    records = np.zeros((lookups, 4 * DIM), np.uint8)
    store = setting.store.view(np.uint8)
    row_of = _by_slot(setting)

    def run(number: int) -> Output:
        done = setting.fragmenter.fragment_features(
            describe(group, setting.batches[number]).table,
            lookups=lookups,
            lookups_max=len(setting.bases),
            samples=BATCH,
            total_rows=group.total_rows,
            pinned_rows=group.pinned_rows,
            cold_base=setting.cold_base,
            cold_rows_max=COLD_ROWS,
            ids=None,
            offsets=None,
            **out,
        )
        assert done is not None and done.status is Status.OK
        cold = out["cold_rows"][: done.cold_rows]
        rows = records[: done.cold_rows]
        move(Operation.GATHER, cold, rows, store, group.total_rows)
        others = out["nonpopular"][: BATCH - done.popular]
        popular = out["popular"][: done.popular]
        rows = rows.view(np.float32)
        return Output(popular, others, cold, out["indices"], rows, setting.cold_base, row_of)

    return run


def numpy_slots(setting: Setting) -> Variant:
    """A slot for every row, in NumPy."""
    row_of = _by_slot(setting)

    def run(number: int) -> Output:
        rows = setting.batches[number] + setting.bases
        slots = setting.slot[rows]
        cold = slots < 0
        popular = ~cold.any(axis=1)
        unique, inverse = np.unique(rows[cold], return_inverse=True)
        gathered = np.take(setting.store, unique, axis=0)
        slots[cold] = setting.cold_base + inverse
        pair = np.flatnonzero(popular), np.flatnonzero(~popular)
        return Output(*pair, unique, slots, gathered, setting.cold_base, row_of)

    return run


def _torch_job(setting: Setting, lookup: Callable[[Any], Any]) -> Variant:
    import torch

    row_of = _by_slot(setting)
    bases, store = torch.from_numpy(setting.bases), torch.from_numpy(setting.store)
    batches = [torch.from_numpy(batch) for batch in setting.batches]

    def run(number: int) -> Output:
        rows = (batches[number] + bases).view(-1)
        slots = lookup(rows)
        hot = slots >= 0
        popular = hot.view(BATCH, -1).all(1)
        places = (~hot).nonzero().view(-1)
        unique, inverse = torch.unique(rows.index_select(0, places), return_inverse=True)
        gathered = store.index_select(0, unique)
        slots.index_copy_(0, places, (inverse + setting.cold_base).to(slots.dtype))
        pair = popular.nonzero().view(-1), (~popular).nonzero().view(-1)
        return Output(*pair, unique, slots, gathered, setting.cold_base, row_of)

    return run


def torch_slots(setting: Setting) -> Variant:
    """A slot for every row, by ``index_select``."""
    import torch

    slot = torch.from_numpy(setting.slot)
    return _torch_job(setting, lambda rows: slot.index_select(0, rows))


def torch_isin(setting: Setting) -> Variant:
    """A sorted list of the hot rows, by ``isin`` and ``searchsorted``: no memory per row."""
    import torch

    rows_of_slots = np.flatnonzero(setting.slot >= 0)
    known = torch.from_numpy(rows_of_slots)
    slots = torch.from_numpy(setting.slot[rows_of_slots])

    def lookup(rows: Any) -> Any:
        found = torch.isin(rows, known)
        place = torch.searchsorted(known, rows).clamp_(max=len(known) - 1)
        return torch.where(found, slots[place], -1)

    return _torch_job(setting, lookup)


def fbgemm_array(setting: Setting) -> Variant:
    """FBGEMM's ``pruned_array_lookup`` as the map; the rest in torch."""
    import fbgemm_gpu  # noqa: F401
    import torch

    slot = torch.from_numpy(setting.slot)
    offsets = torch.tensor([0, BATCH * len(setting.bases)], dtype=torch.int32)
    ends = torch.tensor([0, len(slot)])

    def lookup(rows: Any) -> Any:
        found = torch.ops.fbgemm.pruned_array_lookup(rows.int(), offsets, slot, ends)
        return found.int()

    return _torch_job(setting, lookup)


def numba_loop(setting: Setting) -> Variant:
    """A compiled loop over a slot map, with a stamp for every row."""
    import numba

    lookups = BATCH * len(setting.bases)
    stamp = np.zeros(setting.group.total_rows, np.int32)
    position = np.zeros(setting.group.total_rows, np.int32)
    popular, others = np.zeros(BATCH, np.int64), np.zeros(BATCH, np.int64)
    cold, gathered = np.zeros(lookups, np.int64), np.zeros((lookups, DIM), np.float32)
    indices = np.zeros((BATCH, len(setting.bases)), np.int32)
    count = [0]
    row_of = _by_slot(setting)

    @numba.njit  # type: ignore[untyped-decorator]
    def loop(
        ids: Any,
        bases: Any,
        slot: Any,
        cold_base: Any,
        store: Any,
        stamp: Any,
        position: Any,
        job: Any,
        popular: Any,
        others: Any,
        cold: Any,
        gathered: Any,
        indices: Any,
    ) -> Any:
        populars = rest = distinct = 0
        for s in range(ids.shape[0]):
            some = False
            for f in range(ids.shape[1]):
                row = ids[s, f] + bases[f]
                index = slot[row]
                if index < 0:
                    some = True
                    if stamp[row] != job:
                        stamp[row] = job
                        position[row] = distinct
                        cold[distinct] = row
                        distinct += 1
                    index = cold_base + position[row]
                indices[s, f] = index
            if some:
                others[rest] = s
                rest += 1
            else:
                popular[populars] = s
                populars += 1
        for n in range(distinct):
            for d in range(store.shape[1]):
                gathered[n, d] = store[cold[n], d]
        return populars, rest, distinct

    def run(number: int) -> Output:
        count[0] += 1
        populars, rest, distinct = loop(
            setting.batches[number],
            setting.bases,
            setting.slot,
            setting.cold_base,
            setting.store,
            stamp,
            position,
            count[0],
            popular,
            others,
            cold,
            gathered,
            indices,
        )
        return Output(
            popular[:populars],
            others[:rest],
            cold[:distinct],
            indices,
            gathered[:distinct],
            setting.cold_base,
            row_of,
        )

    return run


def peer_library() -> ctypes.CDLL:
    """The C++ loops of peers.cpp, compiled for this machine; raises ImportError without g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise ImportError("g++ is not installed")
    source = Path(__file__).with_name("peers.cpp")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"hotline-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"peers-{digest}.so"
    if not target.exists():
        part = target.with_suffix(f".{os.getpid()}")
        flags = ["-O3", "-march=native", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", str(part)], check=True, timeout=120)
        part.replace(target)
    library = ctypes.CDLL(str(target))
    p, i64, u32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32
    library.peer_new.restype, library.peer_new.argtypes = p, [i64]
    library.peer_fragment.argtypes = [p, p, i64, i64, p, p, p, u32, p, p, p, p, p]
    library.peer_random_lines.argtypes = [p, i64, p, p]
    library.peer_random_stores.argtypes = [p, i64, p, p]
    return library


def cpp_bitmap(setting: Setting) -> Variant:
    """The loop of peers.cpp."""
    library = peer_library()
    lookups = BATCH * len(setting.bases)
    mask = np.zeros(-(-setting.group.total_rows // 64) * 64, dtype=bool)
    mask[: len(setting.slot)] = setting.slot >= 0
    bits = np.packbits(mask, bitorder="little").view(np.uint64)
    ranks = np.concatenate([[0], np.cumsum(mask.reshape(-1, 64).sum(axis=1))[:-1]])
    rank = ranks.astype(np.uint32)
    hot = np.flatnonzero(mask)
    table = library.peer_new(lookups)
    popular, others = np.zeros(BATCH, np.uint32), np.zeros(BATCH, np.uint32)
    cold, indices = np.zeros(lookups, np.uint32), np.zeros(lookups, np.uint32)
    gathered = np.zeros((lookups, DIM), np.float32)
    counts = np.zeros(3, np.int64)
    shape = (BATCH, len(setting.bases))

    def run(number: int) -> Output:
        library.peer_fragment(
            table,
            pointer(setting.batches[number]),
            *shape,
            pointer(setting.bases),
            pointer(bits),
            pointer(rank),
            len(hot),
            pointer(popular),
            pointer(others),
            pointer(cold),
            pointer(indices),
            pointer(counts),
        )
        populars, rest, distinct = counts.tolist()
        library.peer_random_lines(
            pointer(cold), distinct, pointer(setting.store), pointer(gathered)
        )
        return Output(
            popular[:populars],
            others[:rest],
            cold[:distinct],
            indices,
            gathered[:distinct],
            len(hot),
            lambda index: hot[np.minimum(index, len(hot) - 1)],
        )

    return run


LIBRARIES: dict[str, Callable[[Setting], Variant]] = {
    "numpy": numpy_slots,
    "torch-index-select": torch_slots,
    "torch-isin": torch_isin,
    "fbgemm-pruned-array": fbgemm_array,
}
LOOPS: dict[str, Callable[[Setting], Variant]] = {"numba": numba_loop, "cpp-bitmap": cpp_bitmap}
VARIANTS = {OURS: ours, **LIBRARIES, **LOOPS}


def check(setting: Setting, number: int, name: str, output: Output) -> None:
    """Compares a variant's output with the definition of the job.

    Raises:
        CompareError: it differs.
    """
    rows = (setting.batches[number] + setting.bases).reshape(-1)
    hot = (setting.slot[rows] >= 0).reshape(BATCH, -1).all(axis=1)
    cold = np.asarray(output.cold).astype(np.int64)
    index = np.asarray(output.indices).reshape(-1).astype(np.int64)
    is_cold = index >= output.cold_base
    found = output.row_of(np.where(is_cold, 0, index))
    found[is_cold] = cold[index[is_cold] - output.cold_base]
    for what, ok in {
        "popular samples": np.array_equal(np.asarray(output.popular), np.flatnonzero(hot)),
        "other samples": np.array_equal(np.asarray(output.others), np.flatnonzero(~hot)),
        "cold rows": np.array_equal(np.sort(cold), np.unique(rows[setting.slot[rows] < 0])),
        "indices": np.array_equal(found, rows),
        "gathered rows": np.array_equal(np.asarray(output.rows), setting.store[cold]),
    }.items():
        if not ok:
            raise CompareError(f"{name}: its {what} are wrong, so its time means nothing")


# ------------------------------------------------------------------------------------ measurement


class Quiet:
    """Waits, a bounded time, until nothing else is runnable."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.waited = self.found = 0

    def wait(self) -> None:
        """Returns when the machine was quiet three times in a row, or at the limit."""
        self.waited += 1
        end, calm = time.monotonic() + self.limit_s, 0
        while True:
            calm = calm + 1 if self._running() <= 1 else 0
            if calm >= 3:
                self.found += 1
                return
            if time.monotonic() > end:
                return
            time.sleep(0.002)

    @staticmethod
    def _running() -> int:
        try:
            lines = Path("/proc/stat").read_text().splitlines()
        except OSError:
            return 0  # not Linux: nothing is known
        return next(int(line.split()[1]) for line in lines if line.startswith("procs_running"))

    @property
    def share(self) -> float:
        """Share of the waits that ended with a quiet machine."""
        return round(self.found / max(self.waited, 1), 3)


def _interleave(
    runs: dict[str, Callable[[int], object]], repetitions: int, quiet: Quiet
) -> dict[str, list[float]]:
    """Seconds of each repetition of each run; the runs take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repetition in range(repetitions):
        for name, run in runs.items():
            quiet.wait()
            run((repetition + 1) % BATCHES)  # the caches hold this variant's data again
            begun = time.perf_counter()
            run(repetition % BATCHES)
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def run(
    zipf: Sequence[str] = tuple(ZIPF),
    json_path: str | Path | None = None,
    *,
    variants: Sequence[str] | None = None,
    repetitions: int = 25,
    rows_max: int | None = None,
    wait_s: float = 1.0,
    seed: int = 0,
    table: bool = True,
) -> list[HostResult]:
    """Measures all cases.

    Args:
        zipf: which traffic, names of ``ZIPF``.
        json_path: a file that gets one JSON object per case, appended; ``-``: standard output.
        variants: which, names of ``VARIANTS``; None: all that are installed.
        repetitions: mini-batches for each variant.
        rows_max: cap on the rows of each table, to try it with little memory; None: the real sizes
            (2.2 GB).
        wait_s: longest wait for a quiet machine before each repetition.
        seed: of the traffic.
        table: print it.
    """
    import torch

    for name in zipf:
        if name not in ZIPF:
            raise ConfigError(f"no traffic {name!r}; there are {', '.join(ZIPF)}")
    for name in variants or ():
        if name not in VARIANTS:
            raise ConfigError(f"no variant {name!r}; there are {', '.join(VARIANTS)}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results: list[HostResult] = []
    absent: dict[str, str] = {}
    try:
        for name in zipf:
            setting = settle(name, rows_max, seed)
            made: dict[str, Variant] = {}
            for variant in variants or VARIANTS:
                _make(variant, setting, made, absent)
            results += _job(name, setting, made, repetitions, wait_s)
        results += _random(rows_max, repetitions, wait_s, seed)
        results.append(_count(rows_max, repetitions, wait_s, seed))
    finally:
        torch.set_num_threads(threads)
    for result in results:
        append_json(json_path, result)
    if table:
        _print(results, absent)
    return results


def _make(name: str, setting: Setting, made: dict[str, Variant], absent: dict[str, str]) -> None:
    try:
        made[name] = VARIANTS[name](setting)
    except ImportError as error:
        absent[name] = str(error)


def _job(
    zipf: str, setting: Setting, made: dict[str, Variant], repetitions: int, wait_s: float
) -> list[HostResult]:
    lookups = BATCH * len(setting.bases)
    for variant, function in made.items():
        for number in range(BATCHES):
            check(setting, number, variant, function(number))
    quiet = Quiet(wait_s)
    seconds = _interleave(dict(made), repetitions, quiet)
    values = {name: lookups / statistics.median(s) / 1e6 for name, s in seconds.items()}
    libraries = [values[name] for name in values if name in LIBRARIES]
    rows = (setting.batches[0] + setting.bases).reshape(-1)
    hot = setting.slot[rows] >= 0
    results = []
    for name, value in values.items():
        mine = name == OURS
        limit = max(libraries, default=value) if mine else values.get(OURS, value)
        extra: dict[str, float] = {}
        if mine:
            extra = {
                "hot_lookups": round(float(hot.mean()), 4),
                "popular": round(float(hot.reshape(BATCH, -1).all(axis=1).mean()), 4),
            }
            if "cpp-bitmap" in values:
                extra["over_cpp"] = round(value / values["cpp-bitmap"], 3)
        results.append(
            _result(f"host/{zipf}/{name}", value, limit, seconds[name], extra, quiet.share)
        )
    flat = [(batch + setting.bases).reshape(-1).astype(np.uint32) for batch in setting.batches]
    learner, counter = NativeFragmenter(SETS, WAYS, 1), RowCounter(setting.group)
    total, pinned = setting.group.total_rows, setting.group.pinned_rows
    profiled = _interleave(
        {
            "learn": lambda number: learner.learn(flat[number], total, pinned),
            "count": lambda number: counter.add(setting.batches[number]),
        },
        repetitions,
        quiet,
    )
    for name, times in profiled.items():
        value = lookups / statistics.median(times) / 1e6
        results.append(_result(f"host/{zipf}/{name}", value, FAE_PROFILER, times, {}, quiet.share))
    return results


def _count(rows_max: int | None, repetitions: int, wait_s: float, seed: int) -> HostResult:
    """Counting of uniformly random rows, the worst case, of a table of 300 million."""
    total = min(rows_max or COUNTED_ROWS, COUNTED_ROWS)
    group = Group((TableConfig("table", total, DIM),), (FeatureConfig("id", "table"),), pin_bytes=0)
    counter, random = RowCounter(group), np.random.default_rng(seed)
    ids = [random.integers(total, size=RANDOM_ROWS, dtype=np.uint32) for _ in range(BATCHES)]
    counter.add_rows(np.arange(total, dtype=np.uint32))  # every page is there
    quiet = Quiet(wait_s)
    times = _interleave(
        {"count": lambda n: counter.add_rows(ids[n])}, max(repetitions // 3, 3), quiet
    )
    value = RANDOM_ROWS / statistics.median(times["count"]) / 1e6
    extra = {"rows": float(total), "bytes_per_row": 1.0}
    return _result("host/random/count", value, FAE_PROFILER, times["count"], extra, quiet.share)


def _random(rows_max: int | None, repetitions: int, wait_s: float, seed: int) -> list[HostResult]:
    """GATHER and SCATTER of uniformly random rows against a bare loop."""
    total = 1 << 25 if rows_max is None else 1 << 16
    count = RANDOM_ROWS if rows_max is None else 1 << 12
    random = np.random.default_rng(seed)
    store = np.zeros((total, 64), np.uint8)
    store[:, 0] = 1  # every page is there
    ids = [random.integers(total, size=count, dtype=np.uint32) for _ in range(BATCHES)]
    records = np.zeros((count, 64), np.uint8)
    records[:] = 1
    runs: dict[str, Callable[[int], object]] = {
        "gather": lambda n: move(Operation.GATHER, ids[n], records, store, total),
        "scatter": lambda n: move(Operation.SCATTER, ids[n], records, store, total),
    }
    try:
        library = peer_library()
    except ImportError:
        return []
    runs["gather-loop"] = lambda n: library.peer_random_lines(
        pointer(ids[n]), count, pointer(store), pointer(records)
    )
    runs["scatter-loop"] = lambda n: library.peer_random_stores(
        pointer(ids[n]), count, pointer(store), pointer(records)
    )
    quiet = Quiet(wait_s)
    seconds = _interleave(runs, max(repetitions // 3, 3), quiet)
    rate = {name: count / statistics.median(s) / 1e6 for name, s in seconds.items()}
    return [
        _result(
            f"host/random/{name}",
            rate[name],
            rate[f"{name}-loop"],
            seconds[name],
            {"gigabytes_per_second": round(rate[name] * 64 / 1e3, 3)},
            quiet.share,
            "million rows/s",
        )
        for name in ("gather", "scatter")
    ]


def _result(
    case: str,
    value: float,
    limit: float,
    seconds: Sequence[float],
    extra: dict[str, float],
    quiet: float,
    unit: str = "million lookups/s",
) -> HostResult:
    return HostResult(
        bench="host",
        case=case,
        value=round(value, 3),
        unit=unit,
        limit=round(limit, 3),
        ratio=round(value / limit, 4),
        minimum_ms=round(min(seconds) * 1e3, 4),
        median_ms=round(statistics.median(seconds) * 1e3, 4),
        maximum_ms=round(max(seconds) * 1e3, 4),
        extra=extra,
        quiet=quiet,
    )


def _print(results: Sequence[HostResult], absent: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="The fragmentation job on one thread", box=None)
    table.add_column("case", no_wrap=True)
    for title in ("M/s", "ratio", "min ms", "median", "max"):
        table.add_column(title, justify="right", no_wrap=True)
    for r in results:
        times = (f"{r.minimum_ms:.2f}", f"{r.median_ms:.2f}", f"{r.maximum_ms:.2f}")
        table.add_row(r.case, f"{r.value:.1f}", f"{r.ratio:.2f}", *times)
    console = Console(stderr=True)
    console.print(table)
    for r in results:
        shown = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in r.extra.items())
        if shown:
            console.print(f"{r.case}: {shown}", highlight=False)
    for name, reason in absent.items():
        console.print(f"absent: {name} ({reason})", highlight=False)
    least = min((r.quiet for r in results), default=1.0)
    if least < 0.9:
        console.print(
            f"The machine was not quiet: only {least:.0%} of the repetitions began with nothing "
            "else to run. Ratios hold roughly, times do not.",
            highlight=False,
        )
