# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Random jobs from a seed, and a scoreboard that holds a device to the oracle.

    generator = JobGenerator(device.capabilities, seed=7)
    board = Scoreboard(device)
    for _ in range(1000):
        board.check(generator.next())

A ``Case`` says what a job does, without buffers. The ``Scoreboard`` lays its arrays into buffers
with guard bytes on both sides, submits it, runs ``hotline.reference`` on the same input, and
compares the completion (all but its timing), the outputs up to their counts, the guards, the
inputs, and, after a SCATTER, the whole store. Whatever differs raises ``CompareError`` with the
case's seed.

A job that was disturbed, by an abort, a reset or an error of the memory, may end as the contract
allows, and the oracle follows what it says to have done: see ``Disturbance``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import reference
from hotline.arguments import POINTERS, Arguments
from hotline.codes import FLAG_PLAIN_LIST, TOTAL_ROWS_MAX, Operation, Policy, Reason, Status
from hotline.config import KernelConfig
from hotline.device.base import (
    ENTRY,
    U32,
    Capabilities,
    Clear,
    Completion,
    Device,
    Dump,
    Evict,
    Fragment,
    Gather,
    Handle,
    Job,
    Learn,
    Load,
    Scatter,
)
from hotline.device.buffers import learn_flags
from hotline.errors import CompareError, DeviceDead

GUARD_BYTES = 128
"""Bytes on each side of an array that no kernel may touch."""
_GUARD, _POISON = 0xC3, 0xEE

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Case:
    """A job without buffers.

    Attributes:
        operation: what to do.
        ids: [n] uint32, or [n] of ``ENTRY`` for LOAD.
        total_rows, pinned_rows, samples, lookups_per_sample, offsets, bags, cold_base,
            cold_rows_max: as in ``Fragment``.
        records: SCATTER: [n, record_bytes] uint8.
        policy: LEARN.
        note: where the case comes from; part of error messages.
    """

    operation: Operation
    ids: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, np.uint32))
    total_rows: int = 1
    pinned_rows: int = 0
    samples: int = 0
    lookups_per_sample: int = 0
    offsets: U32 | None = None
    bags: int = 0
    cold_base: int = 0
    cold_rows_max: int = 1
    records: Bytes | None = None
    policy: Policy = Policy.FREQUENCY
    note: str = ""

    @property
    def flags(self) -> int:
        """``FLAGS`` of the job."""
        if self.operation is Operation.LOAD:
            return FLAG_PLAIN_LIST if self.ids.dtype != ENTRY else 0
        return learn_flags(self.policy) if self.operation is Operation.LEARN else 0

    def __str__(self) -> str:
        parts = [
            f"{f.name}={value}"
            for f in fields(self)
            if f.name not in ("ids", "offsets", "records", "operation", "note")
            and (value := getattr(self, f.name))
        ]
        return f"{self.operation.name}[{len(self.ids)} {' '.join(parts)}] ({self.note})"


# -------------------------------------------------------------------------------------- generator


class JobGenerator:
    """Makes random and adversarial cases; the same seed gives the same cases.

    Args:
        capabilities: limits of the device.
        seed: of all random choices.
        operations: only these.
        faults: share of the cases with an input out of contract.
        lookups: most lookups of a case.
        store: rows and record bytes of the scoreboard's store, for GATHER and SCATTER.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        seed: int = 0,
        *,
        operations: Sequence[Operation] | None = None,
        faults: float = 0.15,
        lookups: int = 600,
        store: tuple[int, int] = (300, 64),
    ) -> None:
        self.capabilities, self.seed = capabilities, seed
        self._random = np.random.default_rng(seed)
        offered = operations or sorted(capabilities.operations)
        weights = {Operation.FRAGMENT: 6, Operation.LEARN: 3, Operation.CLEAR: 0.3}
        self._operations = list(offered)
        shares = np.array([weights.get(op, 1.0) for op in self._operations])
        self._shares = shares / shares.sum()
        self._faults, self._lookups = faults, lookups
        self._store = store
        self._count = 0
        self._rows = 1000
        self._pinned = 0

    def next(self, operation: Operation | None = None) -> Case:
        """The next case, of any operation or of one."""
        if operation is None:
            operation = Operation(self._random.choice(self._operations, p=self._shares))
        if self._count % 16 == 0:
            self._choose_row_space()
        case = self._make(operation)
        self._count += 1
        return replace(case, note=f"seed {self.seed}, case {self._count - 1}")

    def _make(self, operation: Operation) -> Case:
        if operation in reference.GATHERER:
            return self._move(operation)
        rows, pinned = self._rows, self._pinned
        if operation in (Operation.CLEAR, Operation.DUMP):
            return Case(operation, pinned_rows=self._pinned)
        if operation is Operation.FRAGMENT:
            return self._fragment()
        ids = self._ids(self._size())
        if self._faulty() and len(ids):
            ids = self._spoil(ids, self._rows)
        if operation is Operation.LOAD and self._chance(0.5):
            entries = np.empty(len(ids), dtype=ENTRY)
            entries["row"] = ids
            entries["slot_counter"] = self._random.integers(1 << 32, size=len(ids), dtype=np.uint32)
            return Case(operation, entries, total_rows=rows, pinned_rows=pinned)
        policy = Policy.FREQUENCY if self._chance(0.6) else Policy.SRRIP
        return Case(operation, ids, total_rows=rows, pinned_rows=pinned, policy=policy)

    # ------------------------------------------------------------------------------------ choices

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _faulty(self) -> bool:
        return self._chance(self._faults)

    def _pick(self, *values: int) -> int:
        return int(self._random.choice(np.array(values, dtype=np.int64)))

    def _size(self, most: int | None = None) -> int:
        """Sizes near 0, near beats, and anywhere below the limit."""
        most = self._lookups if most is None else most
        if self._chance(0.35):
            return min(most, self._pick(0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65))
        return int(self._random.integers(most + 1))

    def _choose_row_space(self) -> None:
        entries = self.capabilities.eal_entries
        self._rows = self._pick(1, 20, entries, 4 * entries, 100_000, 1 << 24, TOTAL_ROWS_MAX)
        self._pinned = 0
        if self._chance(0.6):
            most = min(self._rows, 1 << 20)
            self._pinned = int(self._random.integers(most + 1)) // self._pick(1, 4, 16)

    def _ids(self, count: int) -> U32:
        """Row ids below ``_rows``: uniform, skewed, in runs, all alike, or all in one set."""
        random, rows = self._random, self._rows
        style = random.integers(6)
        if style == 0:
            ids = random.integers(rows, size=count, dtype=np.uint32)
        elif style == 1:
            ids = (random.zipf(1.3, size=count).astype(np.uint64) % rows).astype(np.uint32)
        elif style == 2:
            start = int(random.integers(rows))
            ids = ((start + np.arange(count, dtype=np.uint64)) % rows).astype(np.uint32)
        elif style == 3:
            ids = np.full(count, random.integers(rows), dtype=np.uint32)
        elif style == 4:
            few = random.integers(rows, size=max(1, count // 8 + 1), dtype=np.uint32)
            ids = random.choice(few, size=count)
        else:
            ids = self._one_set(count)
        if self._pinned < rows and self._chance(0.3):  # the boundary of the pinned rows
            edge = np.array([self._pinned - 1, self._pinned, rows - 1]).clip(0).astype(np.uint32)
            where = random.random(count) < 0.2
            ids = np.where(where, random.choice(edge, size=count), ids).astype(np.uint32)
        return np.asarray(ids, dtype=np.uint32)

    def _one_set(self, count: int) -> U32:
        """Ids that meet in one or two sets of the EAL, as far as the row space has such."""
        sets = self.capabilities.eal_sets
        wanted = self._random.integers(sets, size=self._pick(1, 2))
        tags = self._random.integers((1 << 32) // sets, size=4 * count + 16, dtype=np.uint64)
        permuted = tags * sets + self._random.choice(wanted, size=len(tags)).astype(np.uint64)
        ids = reference.unpermute(permuted.astype(np.uint32))
        ids = ids[ids < self._rows]
        if not len(ids):
            return self._random.integers(self._rows, size=count, dtype=np.uint32)
        few = ids[: self._pick(1, 15, 17, 40)]
        return np.asarray(self._random.choice(few, size=count), dtype=np.uint32)

    def _spoil(self, ids: U32, rows: int) -> U32:
        bad = ids.copy()
        values = [value for value in (rows, rows + 1, 2**31, 2**32 - 1) if value < 1 << 32]
        for _ in range(self._pick(1, 1, 2)):
            place = self._pick(0, len(ids) - 1, int(self._random.integers(len(ids))))
            bad[place] = max(self._pick(*values), rows)
        return bad

    # ---------------------------------------------------------------------------------- operations

    def _fragment(self) -> Case:
        caps = self.capabilities
        if self._chance(0.5):
            samples, each, offsets, bags = *self._fixed(), None, 0
            count = samples * each
        else:
            offsets, samples, bags = self._jagged()
            each, count = 0, int(offsets[-1])
        ids = self._ids(count)
        if self._faulty():
            if offsets is not None and self._chance(0.6):
                offsets = self._spoil_offsets(offsets, count)
            elif count:
                ids = self._spoil(ids, self._rows)
        depth = caps.cold_rows_max
        most = depth if self._chance(0.7) else self._pick(1, 2, 5, 17, depth // 2, depth - 1)
        hot = self._pinned + caps.eal_entries
        base = hot if self._chance(0.5) else int(self._random.integers(hot, (1 << 31) - depth))
        return Case(
            Operation.FRAGMENT,
            ids,
            total_rows=self._rows,
            pinned_rows=self._pinned,
            samples=samples,
            lookups_per_sample=each,
            offsets=offsets,
            bags=bags,
            cold_base=base,
            cold_rows_max=max(1, most),
        )

    def _fixed(self) -> tuple[int, int]:
        each = min(self._pick(0, 1, 2, 3, 5, 16, 26, 33), self.capabilities.lookups_max)
        if self._chance(0.05):
            each = min(self.capabilities.lookups_max, self._lookups)
        return self._size(self._lookups // each if each else 200), each

    def _jagged(self) -> tuple[U32, int, int]:
        bags = self._pick(1, 1, 2, 3, 7)
        samples = self._size(max(1, self._lookups // (2 * bags)))
        longest = self._pick(0, 1, 2, 4, self.capabilities.lookups_max // bags)
        lengths = self._random.integers(longest + 1, size=samples * bags)
        lengths = np.where(np.cumsum(lengths) <= self._lookups, lengths, 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
        return offsets, samples, bags

    def _spoil_offsets(self, offsets: U32, count: int) -> U32:
        bad = offsets.copy()
        place = self._pick(0, len(bad) - 1, int(self._random.integers(len(bad))))
        values = [0, 1, count - 1, count, count + 1, 2**31, 2**32 - 1, int(bad[place]) + 1]
        bad[place] = np.uint32(self._pick(*values) & 0xFFFF_FFFF)
        return bad

    def _move(self, operation: Operation) -> Case:
        rows, record_bytes = self._store
        count = self._size(self._lookups // 2)
        ids = self._random.integers(rows, size=count, dtype=np.uint32)
        if self._chance(0.3) and count:
            ids[:] = self._random.choice(ids[: max(1, count // 5)], size=count)
        if self._faulty() and count:
            ids = self._spoil(ids, rows)
        records = None
        if operation is Operation.SCATTER:
            records = self._random.integers(256, size=(count, record_bytes), dtype=np.uint8)
        return Case(operation, ids, total_rows=rows, records=records)


# -------------------------------------------------------------------------------------- scoreboard


class Guarded:
    """An array of a device with guard bytes on both sides.

    Attributes:
        array: the array; its bytes are poisoned until something is written.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        self._device = device
        # The padding up to 64 bytes belongs to the guard: it is not written either.
        self._buffer = device.allocate(2 * GUARD_BYTES + -(-size // 64) * 64, np.uint8)
        self._buffer[:] = _GUARD
        self._inside = slice(GUARD_BYTES, GUARD_BYTES + size)
        self._buffer[self._inside] = _POISON
        self.array: npt.NDArray[Any] = self._buffer[self._inside].view(kind).reshape(shape)

    def check(self, name: str) -> None:
        """Raises ``CompareError`` if a byte outside the array has changed."""
        outside = self._buffer.copy()
        outside[self._inside] = _GUARD
        bad = np.flatnonzero(outside != _GUARD)
        if len(bad):
            raise CompareError(
                f"{name}: byte {bad[0] - self._inside.start} of an array of "
                f"{self.array.nbytes} bytes was written"
            )

    def free(self) -> None:
        """Gives the buffer back."""
        self._device.free(self._buffer)


def _rows_of(entries: npt.NDArray[Any]) -> U32:
    """Row ids of a list of ids or entries."""
    return np.asarray(entries["row"] if entries.dtype == ENTRY else entries, dtype=np.uint32)


@dataclass
class Disturbance:
    """What may make a job end otherwise than the oracle says.

    Attributes:
        aborted: the job was in its kernel when the abort bit was set.
        faults: (``read`` or ``write``, device address, bytes) of injected errors.
    """

    aborted: bool = False
    faults: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class Ticket:
    """A case in flight: made by ``Scoreboard.submit``, finished by ``Scoreboard.finish``."""

    case: Case
    tag: int
    handle: Handle
    arrays: dict[str, Guarded]
    inputs: dict[str, npt.NDArray[Any]]
    disturbance: Disturbance = field(default_factory=Disturbance)


class Scoreboard:
    """Holds a device to the oracle.

    Args:
        device: freshly reset: its EAL is empty, its epoch 0.
        config: the parameters of its kernels.
        store: rows and record bytes of the cold store; segments are of ``1 << segment_shift`` rows.
        segment_shift: shift of a segmented store; None: one segment.
        seed: of the store's content.
    """

    def __init__(
        self,
        device: Device,
        config: KernelConfig,
        *,
        store: tuple[int, int] = (300, 64),
        segment_shift: int | None = None,
        seed: int = 0,
    ) -> None:
        self.device, self.config = device, config
        self.eal = reference.Eal(config.eal_sets, config.eal_ways)
        self.tag = 0
        self._scatters = 0  # in flight
        self._maybe: dict[int, list[Bytes]] = {}  # row -> what a disturbed SCATTER may have left
        rows, record_bytes = store
        self._shift = 31 if segment_shift is None else segment_shift
        each = rows if segment_shift is None else 1 << segment_shift
        random = np.random.default_rng(seed)
        self._segments: list[Guarded] = []
        self.store: list[Bytes] = []  # the oracle's copy
        for first in range(0, rows, each):
            shape = (min(each, rows - first), record_bytes)
            segment = Guarded(device, shape, np.uint8)
            segment.array[:] = random.integers(256, size=shape, dtype=np.uint8)
            self._segments.append(segment)
            self.store.append(segment.array.copy())

    def close(self) -> None:
        """Gives the store back."""
        for segment in self._segments:
            segment.free()
        self._segments.clear()

    def check(self, case: Case, timeout: float | None = None) -> Completion:
        """Runs a case and compares everything."""
        return self.finish(self.submit(case), timeout)

    def check_all(self, cases: Sequence[Case], in_flight: int = 2) -> list[Completion]:
        """Runs cases with several in flight, in the order given.

        A GATHER and a SCATTER in flight together have no order, so one waits for the other.
        """
        tickets: deque[Ticket] = deque()
        completions = []
        for case in cases:
            opposite = reference.GATHERER - {case.operation}
            moves = case.operation in reference.GATHERER
            while len(tickets) >= in_flight or (
                moves and any(ticket.case.operation in opposite for ticket in tickets)
            ):
                completions.append(self.finish(tickets.popleft()))
            tickets.append(self.submit(case))
        completions += [self.finish(ticket) for ticket in tickets]
        return completions

    # ------------------------------------------------------------------------------------- submit

    def submit(self, case: Case) -> Ticket:
        """Submits a case; cases of one kernel are to be finished in the order submitted."""
        self.tag = (self.tag * 1664525 + 1013904223) & 0xFFFF_FFFF
        builders: dict[Operation, Callable[..., tuple[Job, dict[str, Guarded], set[str]]]] = {
            Operation.FRAGMENT: self._fragment,
            Operation.DUMP: self._dump,
            Operation.LOAD: self._load,
            Operation.GATHER: self._gather,
            Operation.SCATTER: self._scatter,
        }
        job, arrays, written = builders.get(case.operation, self._plain)(case, self.tag)
        inputs = {n: g.array.copy() for n, g in arrays.items() if n not in written}
        handle = self.device.submit(job)
        self._scatters += case.operation is Operation.SCATTER
        return Ticket(case, self.tag, handle, arrays, inputs)

    def _put(self, values: npt.NDArray[Any]) -> Guarded:
        guarded = Guarded(self.device, values.shape, values.dtype)
        guarded.array[...] = values
        return guarded

    def _plain(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        if case.operation is Operation.CLEAR:
            return Clear(tag=tag), {}, set()
        arrays = {"ids": self._put(case.ids)}
        rows = (arrays["ids"].array, case.total_rows, case.pinned_rows)
        if case.operation is Operation.LEARN:
            return Learn(*rows, policy=case.policy, tag=tag), arrays, set()
        return Evict(*rows, tag=tag), arrays, set()

    def _dump(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        arrays = {"entries": Guarded(self.device, (self.config.eal_entries,), ENTRY)}
        return Dump(arrays["entries"].array, case.pinned_rows, tag=tag), arrays, {"entries"}

    def _load(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        arrays = {
            "entries": self._put(case.ids),
            "rejected": Guarded(self.device, case.ids.shape, case.ids.dtype),
        }
        job = Load(
            arrays["entries"].array,
            arrays["rejected"].array,
            case.total_rows,
            case.pinned_rows,
            tag=tag,
        )
        return job, arrays, {"rejected"}

    def _fragment(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        count, samples = len(case.ids), case.samples
        sizes = {
            "indices": count,
            "popular": samples,
            "nonpopular": samples,
            "bitmap": -(-samples // 32),
            "cold_rows": min(count, max(case.cold_rows_max, 1)),
        }
        arrays = {name: Guarded(self.device, (n,), np.uint32) for name, n in sizes.items()}
        arrays["ids"] = self._put(case.ids)
        if case.offsets is not None:
            arrays["offsets"] = self._put(case.offsets)
        job = Fragment(
            ids=arrays["ids"].array,
            samples=samples,
            total_rows=case.total_rows,
            pinned_rows=case.pinned_rows,
            cold_base=case.cold_base,
            cold_rows_max=case.cold_rows_max,
            lookups_per_sample=case.lookups_per_sample,
            offsets=arrays["offsets"].array if case.offsets is not None else None,
            bags=case.bags,
            tag=tag,
            **{name: arrays[name].array for name in sizes},
        )
        return job, arrays, set(sizes)

    def _device_store(self) -> Bytes | tuple[Bytes, ...]:
        parts = tuple(segment.array for segment in self._segments)
        return parts[0] if len(parts) == 1 else parts

    def _gather(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        shape = (len(case.ids), self.store[0].shape[1])
        arrays = {"ids": self._put(case.ids), "records": Guarded(self.device, shape, np.uint8)}
        job = Gather(
            arrays["ids"].array,
            arrays["records"].array,
            self._device_store(),
            case.total_rows,
            self._shift,
            tag=tag,
        )
        return job, arrays, {"records"}

    def _scatter(self, case: Case, tag: int) -> tuple[Job, dict[str, Guarded], set[str]]:
        assert case.records is not None
        arrays = {"ids": self._put(case.ids), "records": self._put(case.records)}
        job = Scatter(
            arrays["ids"].array,
            arrays["records"].array,
            self._device_store(),
            case.total_rows,
            self._shift,
            tag=tag,
        )
        return job, arrays, set()

    # ------------------------------------------------------------------------------------- oracle

    def _refused(self, case: Case) -> Reason:
        """What BAD_CONFIG would say; the pointers are good."""
        pointers = dict.fromkeys(POINTERS, 64)
        arguments = Arguments(
            operation=case.operation,
            lookups=len(case.ids),
            samples=case.samples,
            bags=case.bags,
            lookups_per_sample=case.lookups_per_sample,
            total_rows=case.total_rows,
            pinned_rows=case.pinned_rows,
            cold_base=case.cold_base,
            cold_rows_max=case.cold_rows_max,
            record_bytes=self.store[0].shape[1],
            segments=len(self.store),
            segment_shift=self._shift,
            flags=case.flags,
            **pointers,
        )
        return reference.check_config(arguments, self.config)

    def _oracle(
        self, case: Case
    ) -> tuple[Completion, dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
        """Completion, outputs up to their counts, and masks of the bits that are defined."""
        reason = self._refused(case)
        if reason is not Reason.NONE:
            epoch = self.eal.epoch if case.operation in reference.FRAGMENTER else 0
            refused = Completion(0, Status.BAD_CONFIG, case.operation, reason, epoch)
            return refused, {}, {}
        rows = {"total_rows": case.total_rows, "pinned_rows": case.pinned_rows}
        match case.operation:
            case Operation.CLEAR:
                return self.eal.clear(), {}, {}
            case Operation.LEARN:
                return self.eal.learn(case.ids, **rows, policy=case.policy), {}, {}
            case Operation.EVICT:
                return self.eal.evict(case.ids, **rows), {}, {}
            case Operation.DUMP:
                completion, entries = self.eal.dump(case.pinned_rows)
                return completion, {"entries": entries}, {}
            case Operation.LOAD:
                completion, rejected = self.eal.load(case.ids, **rows)
                return completion, {"rejected": rejected}, {}
            case Operation.GATHER:
                completion, records = reference.gather(
                    case.ids, self.store, case.total_rows, self._shift
                )
                return completion, {"records": records}, {}
            case Operation.SCATTER:
                assert case.records is not None
                completion = reference.scatter(
                    case.ids, case.records, self.store, case.total_rows, self._shift
                )
                return completion, {}, {}
            case _:
                return self._oracle_fragment(case)

    def _oracle_fragment(
        self, case: Case
    ) -> tuple[Completion, dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
        output = reference.fragment(
            self.eal,
            case.ids,
            samples=case.samples,
            total_rows=case.total_rows,
            pinned_rows=case.pinned_rows,
            cold_base=case.cold_base,
            cold_rows_max=case.cold_rows_max,
            lookups_max=self.config.lookups_max,
            lookups_per_sample=case.lookups_per_sample,
            offsets=case.offsets,
            bags=case.bags,
        )
        masks = {}
        if output.completion.status is Status.COLD_OVERFLOW and len(output.bitmap):
            mask = np.full(len(output.bitmap), 0xFFFF_FFFF, dtype=np.uint32)
            if output.completion.samples % 32:
                mask[-1] = (1 << output.completion.samples % 32) - 1
            masks["bitmap"] = mask
        outputs = {
            name: getattr(output, name)
            for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows")
        }
        return output.completion, outputs, masks

    # ------------------------------------------------------------------------------------- finish

    def finish(self, ticket: Ticket, timeout: float | None = None) -> Completion:
        """Waits for a case, asks the oracle for the result, compares, gives the buffers back."""
        completion = ticket.handle.wait(timeout, check=False)
        try:
            self._compare(ticket, completion)
        except CompareError as error:
            raise CompareError(f"{ticket.case}: {error}") from None
        finally:
            for guarded in ticket.arrays.values():
                guarded.free()
        return completion

    def reset(self, tickets: Sequence[Ticket]) -> None:
        """Resets the device with cases in flight; those not over yet end without a result."""
        self.device.reset()
        for ticket in tickets:
            self._end_by_reset(ticket)
        self.eal.reset()

    def _end_by_reset(self, ticket: Ticket) -> None:
        try:
            completion = ticket.handle.wait(check=False)
        except DeviceDead:
            self._end_without_result(ticket)
        else:
            self._compare(ticket, completion)
        finally:
            for guarded in ticket.arrays.values():
                guarded.free()

    def _compare(self, ticket: Ticket, completion: Completion) -> None:
        case, disturbed = ticket.case, ticket.disturbance
        if (completion.status is Status.ABORTED and disturbed.aborted) or (
            completion.status is Status.AXI_ERROR and disturbed.faults
        ):
            expected = self._follow(ticket, completion)
            outputs: dict[str, npt.NDArray[Any]] = {}
            masks: dict[str, npt.NDArray[Any]] = {}
        else:
            expected, outputs, masks = self._oracle(case)
        expected = replace(expected, tag=ticket.tag)
        for entry in fields(Completion):
            if entry.name in Completion.TIMING:
                continue
            found, wanted = getattr(completion, entry.name), getattr(expected, entry.name)
            if found != wanted:
                raise CompareError(
                    f"completion.{entry.name} is {found!r}, expected {wanted!r}; device "
                    f"{completion}, oracle {expected}"
                )
        for name, values in outputs.items():
            found = ticket.arrays[name].array[: len(values)]
            mask = masks.get(name)
            same = found == values if mask is None else (found ^ values) & mask == 0
            if not np.all(same):
                where = int(np.flatnonzero(~np.asarray(same).reshape(len(values), -1).all(1))[0])
                raise CompareError(
                    f"{name}[{where}] is {found[where]}, expected {values[where]} "
                    f"({int(np.count_nonzero(~np.asarray(same)))} of {len(values)} differ)"
                )
        if case.operation is Operation.SCATTER:
            for row in case.ids[: expected.lookups].tolist():  # 0 if it was disturbed
                self._maybe.pop(row, None)
        self._end_without_result(ticket, ended=expected.status)

    def _follow(self, ticket: Ticket, completion: Completion) -> Completion:
        """What a disturbed job may say, given what it says; the oracle applies that much."""
        case, operation = ticket.case, ticket.case.operation
        if self._refused(case) is not Reason.NONE:
            raise CompareError(f"a refused job ended with {completion.status!r}")
        changes = operation in (Operation.LEARN, Operation.LOAD, Operation.EVICT)
        applied = completion.lookups if changes else 0
        if applied > len(case.ids):
            raise CompareError(f"{applied} of {len(case.ids)} lookups were applied")
        part = case.ids[:applied]
        if changes and (_rows_of(part) >= case.total_rows).any():
            raise CompareError(f"{applied} lookups were applied, one of them out of bounds")
        rows = {"total_rows": case.total_rows, "pinned_rows": case.pinned_rows}
        match operation:
            case Operation.LEARN:
                self.eal.learn(part, **rows, policy=case.policy)
            case Operation.LOAD:
                self.eal.load(part, **rows)
            case Operation.EVICT:
                self.eal.evict(part, **rows)
            case Operation.CLEAR:  # it had not begun
                self.eal.epoch = (self.eal.epoch + 1) & 0xFFFF_FFFF
        expected = Completion(
            0,
            completion.status,
            operation,
            epoch=self.eal.epoch if operation in reference.FRAGMENTER else 0,
            lookups=applied,
        )
        if completion.status is Status.AXI_ERROR:
            self._check_place(ticket.disturbance, completion)
            expected = replace(
                expected, reason=completion.reason, error_value=completion.error_value
            )
        return expected

    def _check_place(self, disturbance: Disturbance, completion: Completion) -> None:
        """Reads name the bus word that failed, writes the first address of its burst."""
        kind = {Reason.READ: "read", Reason.WRITE: "write"}.get(completion.reason)
        word = self.config.bus_bits // 8
        first = completion.error_value & -word
        most = word if kind == "read" else 4096 - first % 4096
        for on, address, size in disturbance.faults:
            if on == kind and address < first + most and first < address + size:
                return
        raise CompareError(
            f"{completion.reason!r} at {completion.error_value:#x}; errors were put on "
            + ", ".join(f"{on} {address:#x}+{size}" for on, address, size in disturbance.faults)
        )

    def _end_without_result(self, ticket: Ticket, ended: Status = Status.ABORTED) -> None:
        """Checks of what every job leaves alone; a SCATTER that stopped wrote what it would."""
        for name, guarded in ticket.arrays.items():
            guarded.check(name)
        for name, before in ticket.inputs.items():
            if not np.array_equal(before, ticket.arrays[name].array):
                raise CompareError(f"{name}, an input, was changed")
        case = ticket.case
        if case.operation is not Operation.SCATTER:
            return
        if ended in (Status.ABORTED, Status.AXI_ERROR):
            assert case.records is not None
            for row, record in zip(case.ids.tolist(), case.records, strict=True):
                if row >= case.total_rows:
                    break
                self._maybe.setdefault(row, [self._row(self.store, row).copy()]).append(record)
        self._scatters -= 1
        if not self._scatters:  # the oracle is ahead of the device otherwise
            self.check_store()

    def _row(self, store: Sequence[Bytes], row: int) -> Bytes:
        if len(store) == 1:
            return np.asarray(store[0][row])
        return np.asarray(store[row >> self._shift][row & (1 << self._shift) - 1])

    def check_store(self) -> None:
        """Compares the whole store; no SCATTER may be in flight on it.

        Each word of a row that a disturbed SCATTER lists is the old or a new one.
        """
        device = [segment.array for segment in self._segments]
        for row, choices in self._maybe.items():
            found = self._row(device, row)
            words = found.view(np.uint32)
            if not np.any([words == choice.view(np.uint32) for choice in choices], axis=0).all():
                raise CompareError(f"store: row {row} holds what no SCATTER has written")
            self._row(self.store, row)[:] = found
        self._maybe.clear()
        for number, (segment, expected) in enumerate(zip(self._segments, self.store, strict=True)):
            segment.check(f"store segment {number}")
            bad = np.flatnonzero((segment.array != expected).any(axis=1))
            if len(bad):
                raise CompareError(
                    f"store segment {number}: row {bad[0]} differs ({len(bad)} rows do)"
                )
