# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The oracle: what the kernels compute, in readable Python (``docs/architecture.md``).

Every other implementation is compared with this one, to the bit. It needs NumPy only and is the
scoreboard of the RTL benches. Results are returned trimmed to their counts, since what lies beyond
is undefined; counts, places of errors and the epoch are in the ``Completion``.

    eal = Eal(sets=1024, ways=16)
    eal.learn(ids, total_rows=50_000, pinned_rows=200)
    output = fragment(eal, ids, samples=64, lookups_per_sample=26, ...)
    reason = check_config(arguments, config)        # what BAD_CONFIG would say
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from hotline.arguments import Arguments
from hotline.codes import (
    BAGS_MAX,
    COUNTER_HIT,
    COUNTER_INSERT,
    COUNTER_VICTIM,
    JOB_LOOKUPS_MAX,
    JOB_SAMPLES_MAX,
    RECORD_BYTES_MAX,
    SEGMENTS_MAX,
    TOTAL_ROWS_MAX,
    Operation,
    Policy,
    Reason,
    Status,
)
from hotline.config import KernelConfig
from hotline.device.base import ALIGNMENT, ENTRY, U32, Completion, Entries

FRAGMENTER = frozenset(
    {
        Operation.CLEAR,
        Operation.LEARN,
        Operation.FRAGMENT,
        Operation.DUMP,
        Operation.LOAD,
        Operation.EVICT,
    }
)
"""Operations of the fragmenter."""
GATHERER = frozenset({Operation.GATHER, Operation.SCATTER})
"""Operations of the gatherer."""

MULTIPLIERS = (0x9E37, 0x85EB, 0xC2B3, 0x27D5)
CONSTANTS = (0x79B9, 0xCA6B, 0xAE35, 0x165F)

Ids = npt.NDArray[np.integer] | Sequence[int]


# ------------------------------------------------------------------------------------ permutation


def _round(half: U32, multiplier: int, constant: int) -> U32:
    """Middle 16 bits of the 32-bit product."""
    return (((half ^ np.uint32(constant)) * np.uint32(multiplier)) >> np.uint32(8)) & np.uint32(
        0xFFFF
    )


def permute(ids: Ids) -> U32:
    """The bijection on 32 bits whose low bits are an id's set, the rest its tag; elementwise."""
    values = np.asarray(ids, dtype=np.uint32)
    left, right = values >> np.uint32(16), values & np.uint32(0xFFFF)
    for multiplier, constant in zip(MULTIPLIERS, CONSTANTS, strict=True):
        left, right = right, left ^ _round(right, multiplier, constant)
    return np.asarray(left << np.uint32(16) | right, dtype=np.uint32)


def unpermute(permuted: Ids) -> U32:
    """Inverse of ``permute``."""
    values = np.asarray(permuted, dtype=np.uint32)
    left, right = values >> np.uint32(16), values & np.uint32(0xFFFF)
    for multiplier, constant in zip(reversed(MULTIPLIERS), reversed(CONSTANTS), strict=True):
        left, right = right ^ _round(left, multiplier, constant), left
    return np.asarray(left << np.uint32(16) | right, dtype=np.uint32)


# -------------------------------------------------------------------------------------------- EAL


def _bad_row(operation: Operation, ids: Sequence[int], total_rows: int) -> Completion | None:
    """The completion (counts 0) of the first id outside the row space, or None."""
    bad = np.flatnonzero(np.asarray(ids, dtype=np.int64) >= total_rows)
    if not bad.size:
        return None
    return Completion(
        tag=0,
        status=Status.BAD_INDEX,
        operation=operation,
        reason=Reason.ROW_ID,
        error_lookup=int(bad[0]),
        error_value=int(ids[bad[0]]),
    )


class Eal:
    """The Embedding Access Logger: a set-associative directory of row ids.

    Entry ``set * ways + way`` holds a row id or None, and a 2-bit counter. (The hardware stores the
    tag; set and tag give the row id back, because the permutation is a bijection.)
    """

    def __init__(self, sets: int, ways: int) -> None:
        self.sets, self.ways = sets, ways
        self.epoch = 0
        self._empty()

    def _empty(self) -> None:
        self.rows: list[int | None] = [None] * (self.sets * self.ways)
        self.counters: list[int] = [0] * (self.sets * self.ways)
        self.where: dict[int, int] = {}  # row id -> entry, so that a lookup need not search

    def reset(self) -> None:
        """As after a reset of the hardware: empty, epoch 0."""
        self.epoch = 0
        self._empty()

    def set_of(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Set of each id."""
        return (permute(ids) & np.uint32(self.sets - 1)).astype(np.int64)

    def tag_of(self, ids: Ids) -> U32:
        """Tag of each id, as the hardware stores it."""
        return np.asarray(permute(ids) >> np.uint32(self.sets.bit_length() - 1), dtype=np.uint32)

    def _put(self, entry: int, row: int, counter: int) -> None:
        self.rows[entry], self.counters[entry], self.where[row] = row, counter, entry

    def _invalid_way(self, first: int) -> int | None:
        """The lowest invalid entry of the set that starts at entry ``first``, or None."""
        for entry in range(first, first + self.ways):
            if self.rows[entry] is None:
                return entry
        return None

    def _ran(self, operation: Operation, error: Completion | None, **counts: int) -> Completion:
        """Counts one more change of the EAL and makes the completion."""
        self.epoch = (self.epoch + 1) & 0xFFFF_FFFF
        completion = error or Completion(tag=0, status=Status.OK, operation=operation)
        return replace(completion, epoch=self.epoch, **counts)  # type: ignore[arg-type]

    def clear(self) -> Completion:
        """CLEAR: invalidates everything."""
        self._empty()
        return self._ran(Operation.CLEAR, None)

    def learn(
        self,
        ids: Ids,
        total_rows: int,
        pinned_rows: int = 0,
        policy: Policy = Policy.FREQUENCY,
    ) -> Completion:
        """LEARN: applies lookups in order.

        SRRIP with hit priority (Jaleel et al., ISCA 2010), or a frequency count of two bits: a hit
        moves the counter one step towards 0, a miss moves one of the greatest counters one step
        towards 3 and takes its place if it was there.
        """
        rows = np.asarray(ids, dtype=np.uint32).tolist()
        error = _bad_row(Operation.LEARN, rows, total_rows)
        rows = rows[: error.error_lookup if error else None]
        pinned = hits = misses = 0
        srrip = policy is Policy.SRRIP
        preferred = (self.tag_of(rows) & np.uint32(self.ways - 1)).tolist()
        for row, number, way in zip(rows, self.set_of(rows).tolist(), preferred, strict=True):
            if row < pinned_rows:
                pinned += 1
            elif row in self.where:
                hits += 1
                entry = self.where[row]
                self.counters[entry] = COUNTER_HIT if srrip else max(self.counters[entry] - 1, 0)
            else:
                misses += 1
                first = number * self.ways
                free = self._invalid_way(first)
                if free is None:
                    free = self._replace(first) if srrip else self._challenge(first, way)
                if free is not None:
                    self._put(free, row, COUNTER_INSERT if srrip else COUNTER_VICTIM)
        return self._ran(
            Operation.LEARN,
            error,
            pinned_lookups=pinned,
            eal_lookups=hits,
            cold_lookups=misses,
            lookups=len(rows),
        )

    def _replace(self, first: int) -> int:
        """Ages a full set until a counter is 3 and removes the lowest such entry."""
        entries = range(first, first + self.ways)
        age = COUNTER_VICTIM - max(self.counters[entry] for entry in entries)
        for entry in entries:
            self.counters[entry] += age
        victim = next(entry for entry in entries if self.counters[entry] == COUNTER_VICTIM)
        self._remove(victim)
        return victim

    def _challenge(self, first: int, way: int) -> int | None:
        """Ages the first entry of a full set, from ``way`` on, that has the greatest counter.

        Returns:
            The entry, removed, if its counter was 3; else None.
        """
        entries = [first + (way + i) % self.ways for i in range(self.ways)]
        victim = max(entries, key=lambda entry: self.counters[entry])
        if self.counters[victim] < COUNTER_VICTIM:
            self.counters[victim] += 1
            return None
        self._remove(victim)
        return victim

    def _remove(self, entry: int) -> None:
        row = self.rows[entry]
        assert row is not None
        del self.where[row]

    def load(
        self, entries: Entries | Ids, total_rows: int, pinned_rows: int = 0
    ) -> tuple[Completion, Entries | U32]:
        """LOAD: inserts entries (dtype ``ENTRY``) or row ids (counter 2), in order.

        Returns:
            The completion and the entries that found no way, in the input's format.
        """
        data = np.asarray(entries)
        plain = data.dtype != ENTRY
        if plain:
            data = np.asarray(entries, dtype=np.uint32)
            rows, counters = data.tolist(), [COUNTER_INSERT] * len(data)
        else:
            rows, counters = data["row"].tolist(), (data["slot_counter"] >> 30).tolist()
        error = _bad_row(Operation.LOAD, rows, total_rows)
        rows = rows[: error.error_lookup if error else None]
        pinned = present = inserted = 0
        rejected: list[int] = []
        for i, (row, number) in enumerate(zip(rows, self.set_of(rows).tolist(), strict=True)):
            if row < pinned_rows:
                pinned += 1
            elif row in self.where:
                present += 1
            else:
                entry = self._invalid_way(number * self.ways)
                if entry is None:
                    rejected.append(i)
                else:
                    inserted += 1
                    self._put(entry, row, counters[i])
        completion = self._ran(
            Operation.LOAD,
            error,
            pinned_lookups=pinned,
            eal_lookups=present,
            cold_lookups=inserted + len(rejected),
            cold_rows=len(rejected),
            lookups=len(rows),
        )
        return completion, data[rejected]

    def evict(self, ids: Ids, total_rows: int, pinned_rows: int = 0) -> Completion:
        """EVICT: invalidates the listed ids that are present."""
        rows = np.asarray(ids, dtype=np.uint32).tolist()
        error = _bad_row(Operation.EVICT, rows, total_rows)
        rows = rows[: error.error_lookup if error else None]
        pinned = found = missing = 0
        for row in rows:
            if row < pinned_rows:
                pinned += 1
            elif row in self.where:
                found += 1
                self.rows[self.where.pop(row)] = None
            else:
                missing += 1
        return self._ran(
            Operation.EVICT,
            error,
            pinned_lookups=pinned,
            eal_lookups=found,
            cold_lookups=missing,
            lookups=len(rows),
        )

    def dump(self, pinned_rows: int = 0) -> tuple[Completion, Entries]:
        """DUMP: the valid entries in ascending slot order, dtype ``ENTRY``."""
        found = [
            (row, (pinned_rows + entry) | self.counters[entry] << 30)
            for entry, row in enumerate(self.rows)
            if row is not None
        ]
        completion = Completion(
            tag=0,
            status=Status.OK,
            operation=Operation.DUMP,
            epoch=self.epoch,
            lookups=len(found),
        )
        return completion, np.array(found, dtype=ENTRY)


# --------------------------------------------------------------------------------------- FRAGMENT


@dataclass(frozen=True)
class FragmentOutput:
    """Results of FRAGMENT, trimmed to their counts.

    Attributes:
        indices: [completion.lookups] uint32 encoded indices.
        popular, nonpopular: uint32 sample numbers, ascending.
        bitmap: [ceil(completion.samples / 32)] uint32; after COLD_OVERFLOW the bits of the last
            word from bit ``samples & 31`` up are undefined in hardware and 0 here.
        cold_rows: [completion.cold_rows] uint32 row ids by cold position.
        completion: the record, without tag and cycles.
    """

    indices: U32
    popular: U32
    nonpopular: U32
    bitmap: U32
    cold_rows: U32
    completion: Completion


def fragment(
    eal: Eal,
    ids: Ids,
    *,
    samples: int,
    total_rows: int,
    pinned_rows: int,
    cold_base: int,
    cold_rows_max: int,
    lookups_max: int,
    lookups_per_sample: int = 0,
    offsets: Ids | None = None,
    bags: int = 0,
) -> FragmentOutput:
    """FRAGMENT: classifies samples and encodes indices; arguments passed the BAD_CONFIG checks.

    Args:
        eal: the hot-set directory; not changed.
        ids: [lookups] row ids, sample-major.
        samples: number of samples.
        total_rows, pinned_rows: bounds of the row space.
        cold_base: encoded index of cold position 0.
        cold_rows_max: most distinct cold rows of the job.
        lookups_max: most lookups of a jagged sample (a parameter of the hardware).
        lookups_per_sample: fixed number of lookups of every sample, if ``bags`` is 0.
        offsets: [samples * bags + 1] sample boundaries, if ``bags`` > 0.
        bags: bags per sample, or 0.
    """
    rows: list[int] = np.asarray(ids, dtype=np.uint32).tolist()
    edges: list[int] = [] if offsets is None else np.asarray(offsets, dtype=np.uint32).tolist()
    lookups, last_entry = len(rows), samples * bags

    def bad_index(reason: Reason, sample: int, lookup: int, value: int) -> FragmentOutput:
        completion = Completion(
            tag=0,
            status=Status.BAD_INDEX,
            operation=Operation.FRAGMENT,
            reason=reason,
            epoch=eal.epoch,
            error_sample=sample,
            error_lookup=lookup,
            error_value=value,
        )
        return _fragment_output([], [], [], completion)

    indices: list[int] = []
    verdicts: list[bool] = []
    positions: dict[int, int] = {}  # cold row id -> position; keeps the order of insertion
    pinned = hits = 0
    status = Status.OK

    if bags and (edges[0] != 0 or (last_entry == 0 and edges[0] != lookups)):
        return bad_index(Reason.OFFSET, 0, 0, edges[0])
    first = last = 0
    for sample in range(samples):
        first = last
        if bags:
            for entry in range(sample * bags + 1, sample * bags + bags + 1):
                edge = edges[entry]
                too_small = edge < edges[entry - 1] or (entry == last_entry and edge != lookups)
                if too_small or edge > lookups:
                    return bad_index(Reason.OFFSET, sample, entry, edge)
            last = edges[sample * bags + bags]
            if last - first > lookups_max:
                return bad_index(Reason.SAMPLE_TOO_LONG, sample, first, last - first)
        else:
            last = first + lookups_per_sample

        # One sample: its results are kept aside until it is certain that all its rows have room.
        encoded: list[int] = []
        new: dict[int, int] = {}
        sample_pinned = sample_hits = 0
        overflow = False
        for lookup in range(first, last):
            row = rows[lookup]
            if row >= total_rows:
                return bad_index(Reason.ROW_ID, sample, lookup, row)
            if row < pinned_rows:
                sample_pinned += 1
                encoded.append(row)
                continue
            hot = eal.where.get(row)
            if hot is not None:
                sample_hits += 1
                encoded.append(pinned_rows + hot)
                continue
            position = positions.get(row, new.get(row))
            if position is None:
                position = len(positions) + len(new)
                if position == cold_rows_max:
                    overflow = True
                    break
                new[row] = position
            encoded.append(cold_base + position)
        if overflow:
            status = Status.COLD_OVERFLOW
            break
        indices += encoded
        positions |= new
        pinned += sample_pinned
        hits += sample_hits
        verdicts.append(sample_pinned + sample_hits == last - first)

    completion = Completion(
        tag=0,
        status=status,
        operation=Operation.FRAGMENT,
        epoch=eal.epoch,
        samples=len(verdicts),
        popular=sum(verdicts),
        cold_rows=len(positions),
        pinned_lookups=pinned,
        eal_lookups=hits,
        cold_lookups=len(indices) - pinned - hits,
        lookups=len(indices),
    )
    return _fragment_output(indices, verdicts, list(positions), completion)


def _fragment_output(
    indices: list[int], verdicts: list[bool], cold: list[int], completion: Completion
) -> FragmentOutput:
    popular = np.array(verdicts, dtype=bool)
    padded = np.zeros(-(-len(verdicts) // 32) * 32, dtype=bool)
    padded[: len(verdicts)] = popular
    return FragmentOutput(
        indices=np.array(indices, dtype=np.uint32),
        popular=np.flatnonzero(popular).astype(np.uint32),
        nonpopular=np.flatnonzero(~popular).astype(np.uint32),
        bitmap=np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32),
        cold_rows=np.array(cold, dtype=np.uint32),
        completion=completion,
    )


# --------------------------------------------------------------------------------------- gatherer

Store = npt.NDArray[np.uint8] | Sequence[npt.NDArray[np.uint8]]


def _segments(store: Store) -> Sequence[npt.NDArray[np.uint8]]:
    return (store,) if isinstance(store, np.ndarray) else store


def gather(
    ids: Ids, store: Store, rows: int, segment_shift: int = 31
) -> tuple[Completion, npt.NDArray[np.uint8]]:
    """GATHER: records of the listed rows.

    Args:
        ids: [n] row ids.
        store: [rows, record_bytes] uint8, or a sequence of such segments.
        rows: row ids are below this.
        segment_shift: row id >> this picks the segment, if there are several.

    Returns:
        The completion and [n, record_bytes] records ([0, record_bytes] after BAD_INDEX).
    """
    listed: list[int] = np.asarray(ids, dtype=np.uint32).tolist()
    segments = _segments(store)
    error = _bad_row(Operation.GATHER, listed, rows)
    if error:
        return error, np.empty((0, segments[0].shape[1]), dtype=np.uint8)
    records = np.empty((len(listed), segments[0].shape[1]), dtype=np.uint8)
    for i, row in enumerate(listed):
        records[i] = _record(segments, row, segment_shift)
    completion = Completion(
        tag=0, status=Status.OK, operation=Operation.GATHER, lookups=len(listed)
    )
    return completion, records


def scatter(
    ids: Ids,
    records: npt.NDArray[np.uint8],
    store: Store,
    rows: int,
    segment_shift: int = 31,
) -> Completion:
    """SCATTER: writes ``records`` ([n, record_bytes]) to the listed rows in order."""
    listed: list[int] = np.asarray(ids, dtype=np.uint32).tolist()
    segments = _segments(store)
    error = _bad_row(Operation.SCATTER, listed, rows)
    listed = listed[: error.error_lookup if error else None]
    for i, row in enumerate(listed):
        _record(segments, row, segment_shift)[:] = records[i]
    completion = error or Completion(tag=0, status=Status.OK, operation=Operation.SCATTER)
    return replace(completion, lookups=len(listed))


def _record(
    segments: Sequence[npt.NDArray[np.uint8]], row: int, shift: int
) -> npt.NDArray[np.uint8]:
    """The record of a row, as a view."""
    if len(segments) == 1:
        return cast(npt.NDArray[np.uint8], segments[0][row])
    return cast(npt.NDArray[np.uint8], segments[row >> shift][row & ((1 << shift) - 1)])


# ------------------------------------------------------------------------------------- BAD_CONFIG


def pointers_used(arguments: Arguments) -> tuple[str, ...]:
    """Names of the pointers (RECORD excepted) that the job uses, so that they are checked."""
    some = arguments.lookups > 0
    match arguments.operation:
        case Operation.LEARN | Operation.EVICT:
            return ("ids",) if some else ()
        case Operation.LOAD:
            return ("ids", "indices") if some else ()
        case Operation.DUMP:
            return ("indices",)
        case Operation.FRAGMENT:
            return (
                (("ids", "indices", "cold") if some else ())
                + (("popular", "nonpopular", "bitmap") if arguments.samples else ())
                + (("offsets",) if arguments.bags else ())
            )
        case Operation.GATHER | Operation.SCATTER:
            return ("ids", "records", "store") if some else ()
        case _:
            return ()


def check_config(
    arguments: Arguments | Mapping[str, int],
    config: KernelConfig,
    operations: frozenset[Operation] = FRAGMENTER | GATHERER,
) -> Reason:
    """The reason of BAD_CONFIG: the first rule, in the documented order, that is broken.

    Args:
        arguments: the raw arguments.
        config: parameters of the kernel.
        operations: what the kernel offers: ``FRAGMENTER`` or ``GATHERER``; or both, for a device.

    Returns:
        The reason, ``Reason.NONE`` if the job may run.
    """
    a = Arguments.of(arguments)
    entries = config.eal_sets * config.eal_ways

    def bad_pointer(pointer: int) -> bool:
        return pointer == 0 or pointer % ALIGNMENT != 0

    if a.operation not in operations:
        return Reason.OPERATION
    if bad_pointer(a.record):
        return Reason.RECORD_POINTER
    if any(bad_pointer(getattr(a, name)) for name in pointers_used(a)):
        return Reason.POINTER
    if a.operation == Operation.CLEAR:
        return Reason.NONE
    if a.operation == Operation.DUMP:
        return Reason.ROWS if a.pinned_rows + entries > 1 << 30 else Reason.NONE

    is_fragment = a.operation == Operation.FRAGMENT
    fixed = is_fragment and a.bags == 0
    if a.lookups > JOB_LOOKUPS_MAX or (fixed and a.lookups != a.samples * a.lookups_per_sample):
        return Reason.LOOKUPS
    if is_fragment:
        if a.samples > JOB_SAMPLES_MAX:
            return Reason.SAMPLES
        if a.bags > BAGS_MAX or a.samples * a.bags > 2**32 - 2:  # entries are counted in 32 bits
            return Reason.BAGS
        if fixed and a.lookups_per_sample > config.lookups_max:
            return Reason.LOOKUPS_PER_SAMPLE
    pinned_rows = 0 if a.operation in GATHERER else a.pinned_rows  # the gatherer does not use it
    if not 0 < a.total_rows <= TOTAL_ROWS_MAX or pinned_rows > a.total_rows:
        return Reason.ROWS
    if is_fragment and (
        not 0 < a.cold_rows_max <= config.cold_rows_max
        or a.cold_base + a.cold_rows_max >= 1 << 31
        or a.cold_base < a.pinned_rows + entries
    ):
        return Reason.COLD_RANGE
    if a.operation in GATHERER:
        if a.record_bytes % 64 or not 0 < a.record_bytes <= RECORD_BYTES_MAX:
            return Reason.RECORD_BYTES
        too_few = a.segments > 1 and (a.total_rows - 1) >> a.segment_shift >= a.segments
        if not 0 < a.segments <= SEGMENTS_MAX or a.segment_shift > 31 or too_few:
            return Reason.SEGMENTS
    return Reason.NONE
