# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The working set: hot rows and a ring of cold tails in one tensor, and who owns which row.

    | pinned rows | rows of the EAL's slots | tail 0 | tail 1 | ... | tail lookahead | (growth) |
    0             pinned_rows               hot_rows

*One owner.* A row lives in a hot slot, in one live cold tail, or in the cold store. A ``Resident``
is the set of cold rows of one mini-batch in one tail:

    admit    rows of live residents are taken from them, the others are gathered
    ready    its records are in the tail
    retire   behind the mini-batch's update: rows that a younger resident takes are copied to it in
             the tensor, the others are scattered to the store, in step order

A resident is *live* until its scatter is done, and a row of a live resident is never gathered. So
look-ahead reads exactly what a loop without look-ahead reads.

*Change of the hot set* (``install``) is a barrier: residents that did not train yet are given up
(their newer rows are written back), then the rows of the symmetric difference move.
"""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hotline.device.base import ENTRY, Clear, Device, Dump, Handle, Learn, Load
from hotline.device.status import error_of
from hotline.errors import ConfigError, DataError, JobError
from hotline.tables import Group, TableConfig
from hotline.train.encode import HotSet, to_device
from hotline.train.estimate import tail_rows
from hotline.train.optim import SGD, RowOptimizer
from hotline.train.staging import Copier, Staging, numpy_dtype
from hotline.train.store import ColdStore, RecordLayout

_LOG = logging.getLogger(__name__)
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]

MOVE_ROWS = 1 << 16
"""Rows moved at a time when the hot set changes: bounds the staging memory."""


class State(enum.IntEnum):
    """Life of a resident, in order."""

    ADMITTED = 0
    """Its gather is queued or running."""
    READY = 1
    """The gathered records are in the tail."""
    RETIRED = 2
    """The mini-batch is over; write-back not yet submitted."""
    WRITING = 3
    """The scatter is queued or running."""
    DONE = 4
    """The store is up to date, or the resident was given up."""


@dataclass
class Tail:
    """One place of the ring.

    Attributes:
        base: first index in the working set.
        places: [capacity] indices in the working set, by rank.
        gathered, written: staging of gathers and of write-backs.
        resident: the last one that was admitted here.
        released: end of the work that used the places, on the stream that trains.
    """

    base: int
    places: I64
    gathered: Staging
    written: Staging
    resident: Resident | None = None
    released: torch.cuda.Event | None = None


@dataclass(eq=False)
class Resident:
    """The cold rows of one mini-batch.

    Attributes:
        tail: where they lie.
        rows: [n] distinct row ids by rank.
        places: [n] index of each in the working set.
        dirty: [n] the record in the tail is newer than the store and nobody writes it back yet.
        passed_on: [n] a younger resident takes the row.
        takes: (older resident, ranks there, ranks here): rows to be copied when that one retires.
        fetched: [m] ranks that come through the staging buffer, in its order.
        gathering: number of those that the gather brings; the others were put there by the host.
        error: of the last gather or scatter, which is to be repeated.
        write_position: [n] position in the write-back staging buffer, -1 if not there.
        events: times for the timeline: name -> (start, end) in seconds of ``time.perf_counter``.
    """

    tail: Tail
    rows: U32
    places: I64
    state: State = State.ADMITTED
    dirty: Bools = field(init=False)
    passed_on: Bools = field(init=False)
    takes: list[tuple[Resident, I64, I64]] = field(default_factory=list)
    fetched: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    write_position: I64 = field(init=False)
    gathering: int = 0
    handles: list[Handle] = field(default_factory=list)
    error: JobError | None = None
    uploaded: torch.cuda.Event | None = None
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.rows)
        self.dirty = np.zeros(count, dtype=np.bool_)
        self.passed_on = np.zeros(count, dtype=np.bool_)
        self.write_position = np.full(count, -1, dtype=np.int64)
        self._order = np.argsort(self.rows)
        self._sorted = self.rows[self._order]

    def find(self, rows: U32) -> tuple[I64, Bools]:
        """Returns (rank of each row here, whether it is here)."""
        if not len(self.rows):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        place = np.minimum(np.searchsorted(self._sorted, rows), len(self._sorted) - 1)
        return self._order[place], self._sorted[place] == rows


@dataclass(frozen=True)
class HotSetChange:
    """What a change of the hot set moved.

    Attributes:
        added: rows that became hot (gathered from the store).
        evicted: rows that became cold (written back).
        moved: rows that stayed hot in another slot (copied within the working set).
        hot_rows: rows in EAL slots now.
        epoch: of the directory.
        seconds: duration of the barrier.
    """

    added: int
    evicted: int
    moved: int
    hot_rows: int
    epoch: int
    seconds: float


class WorkingSet:
    """Weights and optimizer state of a group, over a device's cold store and a model's memory.

    Args:
        group: the tables.
        device: fragmenter and gatherer; its EAL becomes this group's directory.
        optimizer: row-local optimizer.
        dtype: of weights and state.
        seed: of the initial weights.
        lookahead: mini-batches prepared while one trains; 0: none.
        cold_rows: rows of a cold tail; None: what the device's tracker holds.
        torch_device: where the working set lies.
        segment_rows: see ``ColdStore``.
    """

    def __init__(
        self,
        group: Group,
        device: Device,
        *,
        optimizer: RowOptimizer | None = None,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        lookahead: int = 1,
        cold_rows: int | None = None,
        torch_device: torch.device | str = "cpu",
        segment_rows: int | None = None,
    ) -> None:
        if lookahead < 0:
            raise ConfigError(f"lookahead={lookahead} is negative")
        self.group, self.device, self.lookahead = group, device, lookahead
        self.optimizer: RowOptimizer = SGD() if optimizer is None else optimizer
        self.torch_device = torch.device(torch_device)
        self.dtype = dtype
        capabilities = device.capabilities
        self.layout = RecordLayout.build(
            group.dim, numpy_dtype(dtype), self.optimizer.state, capabilities.record_bytes_max
        )
        self.pinned_rows = group.pinned_rows
        self.hot_rows = group.pinned_rows + capabilities.eal_entries
        self.cold_rows = tail_rows(group, capabilities, cold_rows)
        places = self.hot_rows + (lookahead + 1) * self.cold_rows
        if self.cold_rows < 1 or places >= 2**31:
            raise ConfigError(
                f"{self.hot_rows} hot rows and {lookahead + 1} cold tails of {self.cold_rows} rows "
                "are no working set; indices must stay below 2**31"
            )
        self.store = ColdStore(device, group, self.layout, seed=seed, segment_rows=segment_rows)
        self.copier = Copier(self.torch_device)
        self.fields: dict[str, Tensor] = {
            f.name: torch.zeros(places, f.elements, dtype=dtype, device=self.torch_device)
            for f in self.layout.fields
        }
        pinned = np.arange(self.pinned_rows)
        for f in self.layout.fields:
            values = to_device(self.store.read(f.name, pinned), self.torch_device)
            self.fields[f.name][: self.pinned_rows] = values
        self.tails = [self._tail(n) for n in range(lookahead + 1)]
        self.live: list[Resident] = []
        self.admitted = 0
        self.steps = 0
        self.generation = 0
        """Grows with every change that makes encoded indices stale."""
        self.ticket = 0
        """Number of the mini-batch in training, 0 where there is none."""
        self._tickets = 0
        if device.epoch:  # the directory may hold rows of another group
            device.run(Clear())
        self.hot = HotSet(self.pinned_rows)
        self.epoch = device.epoch
        self._moving = Staging(device, self.layout.record_bytes, self.copier)
        self._learning: list[tuple[U32, Handle]] = []
        self._closed = False

    def _tail(self, number: int) -> Tail:
        base = self.hot_rows + number * self.cold_rows
        return Tail(
            base,
            np.arange(base, base + self.cold_rows),
            Staging(self.device, self.layout.record_bytes, self.copier),
            Staging(self.device, self.layout.record_bytes, self.copier),
        )

    @property
    def weights(self) -> Tensor:
        """[places, dim] the working set's weights."""
        return self.fields["weights"]

    @property
    def nbytes(self) -> int:
        """Bytes of the working set on the model's device."""
        return sum(f.numel() * f.element_size() for f in self.fields.values())

    @property
    def training(self) -> bool:
        """Whether a mini-batch was handed out and is not over."""
        return self.ticket != 0

    def begin(self) -> None:
        """Hands out a mini-batch: features get its ticket."""
        self._tickets += 1
        self.ticket = self._tickets

    def end(self) -> None:
        """Ends the mini-batch: its features are stale."""
        self.ticket = 0

    # ------------------------------------------------------------------------------ residents
    def next_tail(self, ahead: int = 0) -> Tail:
        """The tail of the resident that is admitted next, or ``ahead`` admissions later."""
        return self.tails[(self.admitted + ahead) % len(self.tails)]

    def can_admit(self) -> bool:
        """Whether the next tail's last mini-batch is over."""
        resident = self.next_tail().resident
        return resident is None or resident.state >= State.RETIRED

    def admit(self, rows: U32) -> Resident:
        """Gives the cold rows of a mini-batch a tail, and starts to fetch them.

        Args:
            rows: [n] distinct cold row ids.
        """
        tail = self.next_tail()
        if not self.can_admit():
            raise AssertionError("a tail is used again before its mini-batch is over")
        tail.gathered.wait()
        if len(rows) > len(tail.places):
            self._grow(tail, len(rows))
        self.admitted += 1
        resident = Resident(tail, rows, tail.places[: len(rows)])
        left = np.arange(len(rows))
        copied: list[tuple[Staging, I64, I64]] = []
        for other in reversed(self.live):  # the youngest one that has a row owns it
            if not len(left):
                break
            ranks, found = other.find(rows[left])
            theirs, mine, rest = ranks[found], left[found], left[~found]
            if other.state < State.RETIRED:
                other.passed_on[theirs] = True
                if len(mine):
                    resident.takes.append((other, theirs, mine))
            elif other.tail is not tail and other.tail.resident is other:
                self._copy(other.places[theirs], resident.places[mine])
            else:  # its places are used again: take the records from its write-back
                position = other.write_position[theirs]
                here = position >= 0
                copied.append((other.tail.written, mine[here], position[here]))
                rest = np.concatenate((rest, mine[~here]))
            left = rest
        left.sort()
        from_staging = sum(len(mine) for _, mine, _ in copied)
        tail.gathered.reserve(len(left) + from_staging)
        tail.gathered.ids[: len(left)] = rows[left]
        start = len(left)
        for written, mine, position in copied:
            written.wait()
            stop = start + len(mine)
            tail.gathered.records[start:stop] = written.records[position]
            start = stop
        resident.fetched = np.concatenate((left, *(mine for _, mine, _ in copied)))
        resident.gathering = len(left)
        now = time.perf_counter()
        if len(left):
            resident.handles = self.store.gather(
                tail.gathered.ids[: len(left)], tail.gathered.records[: len(left)]
            )
        resident.spans["gather"] = (now, now)
        tail.resident = resident
        self.live.append(resident)
        return resident

    def ready(self, resident: Resident, *, block: bool = True) -> bool:
        """Puts the gathered records into the tail; waits for them if ``block``."""
        if resident.state is not State.ADMITTED:
            return True
        if not block and (resident.error or not all(h.done() for h in resident.handles)):
            return False
        if resident.error is None:
            self._collect(resident, "gather")
        if resident.error is not None:
            if not block:
                return False  # told when the mini-batch's turn comes, not in another one's step
            _LOG.warning("a gather is repeated: %s", resident.error)
            staging, count = resident.tail.gathered, resident.gathering
            resident.handles = self.store.gather(staging.ids[:count], staging.records[:count])
            self._collect(resident, "gather")
            if resident.error is not None:
                raise resident.error
        count = len(resident.fetched)
        if count:
            with self.copier.behind(resident.tail.released):
                places = to_device(resident.places[resident.fetched], self.torch_device)
                self._unpack(resident.tail.gathered.upload(count), places)
            resident.uploaded = self.copier.event()
        resident.state = State.READY
        return True

    def acquire(self, resident: Resident) -> None:
        """Waits until every row of a resident is in its tail, for the current stream too."""
        if any(other.error is not None and other.state is State.WRITING for other in self.live):
            self._wait_writes()
        self.ready(resident)
        if resident.takes:
            raise AssertionError("a mini-batch starts before an older one is over")
        self.copier.compute_waits(resident.uploaded)

    def update(self, places: Tensor, gradient: Tensor, lr: float) -> None:
        """Applies the optimizer to distinct places [n] with gradients [n, dim]; counts a step."""
        self.steps += 1
        if not places.numel():
            return
        values = {name: f.index_select(0, places) for name, f in self.fields.items()}
        weights = values.pop("weights")
        self.optimizer.update(weights, values, gradient, self.steps, lr)
        for name, value in (("weights", weights), *values.items()):
            self.fields[name].index_copy_(0, places, value)

    def retire(self, resident: Resident, *, updated: bool) -> None:
        """Ends a mini-batch: hands rows on to younger residents and writes the others back.

        Args:
            resident: the oldest one that is not retired.
            updated: whether an update was applied to its rows.
        """
        if updated:
            resident.dirty[:] = True
        for younger in self.live:
            for other, theirs, mine in younger.takes:
                if other is resident:
                    self._copy(resident.places[theirs], younger.places[mine])
                    younger.dirty[mine] = resident.dirty[theirs]
            younger.takes = [take for take in younger.takes if take[0] is not resident]
        ranks = np.flatnonzero(resident.dirty & ~resident.passed_on)
        if resident.tail.written.capacity < len(ranks):
            self._wait_writes()  # the old buffer may still be read by a scatter
            resident.tail.written.reserve(max(len(ranks), min(self.cold_rows, 2 * len(ranks))))
        resident.write_position[ranks] = np.arange(len(ranks))
        if len(ranks):
            self._finish_writes_of(resident.tail)
            staging = resident.tail.written
            staging.wait()
            staging.ids[: len(ranks)] = resident.rows[ranks]
            records = self._pack(to_device(resident.places[ranks], self.torch_device))
            self.copier.hand_over(records)
            with self.copier.after_compute():
                staging.download(records)
        resident.tail.released = self.copier.compute_event()
        resident.state = State.RETIRED
        self.pump()

    def pump(self) -> None:
        """Moves everything on that can move without waiting; tells no error of a job."""
        for resident in list(self.live):
            if resident.state is State.RETIRED:
                if not resident.tail.written.copied():
                    break  # write-backs stay in step order
                self._write(resident)
            if resident.state is State.WRITING:
                if resident.error is None and not all(h.done() for h in resident.handles):
                    continue
                if resident.error is not None or not self._finish_write(resident):
                    break  # repeated before anything else happens
        for resident in self.live:
            if resident.state is State.ADMITTED:
                self.ready(resident, block=False)

    def settle(self) -> None:
        """Waits until every write-back of a retired resident is in the store."""
        self._wait_writes()

    def give_up(self, resident: Resident) -> None:
        """Waits for a resident's gather without using it: it retires without having trained.

        Rows that it took from older ones are in its tail; whatever the gather brought, or failed to
        bring, is in the store still.
        """
        for handle in resident.handles:
            handle.wait(check=False)
        resident.handles, resident.error = [], None
        resident.state = State.READY
        self.copier.compute_waits(resident.uploaded)

    def discard(self) -> None:
        """Gives up every resident that did not train; rows newer than the store are written."""
        if self.training:
            raise ConfigError("a mini-batch is in training; call its step() or skip() first")
        staged = [resident for resident in self.live if resident.state < State.RETIRED]
        if not staged:
            return
        for resident in reversed(staged):
            for other, theirs, _ in resident.takes:
                other.passed_on[theirs] = False
            resident.takes = []
        for resident in staged:
            self.give_up(resident)
            self.retire(resident, updated=False)
        self.generation += 1

    def flush(self) -> None:
        """Brings every cold row to the store: nothing is live afterwards."""
        self.discard()
        self.settle()

    def _write(self, resident: Resident) -> None:
        count = int((resident.write_position >= 0).sum())
        now = time.perf_counter()
        resident.spans["scatter"] = (now, now)
        if count:
            staging = resident.tail.written
            staging.wait()
            resident.handles = self.store.scatter(staging.ids[:count], staging.records[:count])
        resident.state = State.WRITING

    def _collect(self, resident: Resident, name: str) -> None:
        """Takes the completions of a resident's jobs; notes the first error."""
        resident.error, cycles = None, 0
        for handle in resident.handles:
            completion = handle.wait(check=False)
            resident.error = resident.error or error_of(completion)
            cycles += completion.cycles
        resident.cycles[name] = cycles
        resident.spans[name] = (resident.spans[name][0], time.perf_counter())
        resident.handles = []

    def _finish_write(self, resident: Resident) -> bool:
        """Takes the completions of a write-back; returns whether it is done."""
        self._collect(resident, "scatter")
        if resident.error is not None:
            return False
        resident.state = State.DONE
        resident.dirty[:] = False
        self.live.remove(resident)
        return True

    def _wait_writes(self) -> None:
        for resident in list(self.live):
            if resident.state is State.RETIRED:
                self._write(resident)
            if resident.state is not State.WRITING:
                continue
            if resident.error is None and self._finish_write(resident):
                continue
            self._repeat_write(resident)
            if not self._finish_write(resident):
                assert resident.error is not None
                raise resident.error

    def _repeat_write(self, resident: Resident) -> None:
        """Starts a failed write-back again, without rows that a younger one has written since."""
        _LOG.warning("a write-back is repeated: %s", resident.error)
        keep = resident.write_position >= 0
        for younger in self.live[self.live.index(resident) + 1 :]:
            ranks, found = younger.find(resident.rows)
            if found.any():
                keep &= ~(found & (younger.write_position[ranks] >= 0))
        ranks, staging = np.flatnonzero(keep), resident.tail.written
        staging.wait()
        positions, count = resident.write_position[ranks], len(ranks)
        staging.ids[:count] = staging.ids[positions]
        staging.records[:count] = staging.records[positions]
        resident.write_position[:] = -1
        resident.write_position[ranks] = np.arange(count)
        if count:
            resident.handles = self.store.scatter(staging.ids[:count], staging.records[:count])

    def _finish_writes_of(self, tail: Tail) -> None:
        """Waits until no scatter reads the tail's write-back staging."""
        if any(r.tail is tail and r.state in (State.RETIRED, State.WRITING) for r in self.live):
            self._wait_writes()

    def _grow(self, tail: Tail, count: int) -> None:
        """Appends places to a tail that is too small for a mini-batch."""
        extra = -(-(count - len(tail.places)) // self.cold_rows) * self.cold_rows
        size = self.weights.shape[0]
        if size + extra >= 2**31:
            raise ConfigError(f"{count} cold rows in a mini-batch do not fit the working set")
        _LOG.warning(
            "a mini-batch has %d cold rows, a tail holds %d: the working set grows by %d rows; "
            "smaller mini-batches or a larger hot set avoid this",
            count,
            len(tail.places),
            extra,
        )
        if self.torch_device.type == "cuda":
            torch.cuda.synchronize(self.torch_device)
        for name, old in self.fields.items():
            new = old.new_zeros(size + extra, old.shape[1])
            new[:size] = old
            self.fields[name] = new
        tail.places = np.concatenate((tail.places, np.arange(size, size + extra)))

    def _copy(self, source: I64, destination: I64) -> None:
        """Copies whole records between distinct places of the working set."""
        if not len(source):
            return
        places = to_device(source, self.torch_device)
        targets = to_device(destination, self.torch_device)
        for f in self.fields.values():
            f.index_copy_(0, targets, f.index_select(0, places))

    def _pack(self, places: Tensor) -> Tensor:
        """Records [n, record_bytes] uint8 of some places."""
        records = torch.zeros(
            places.numel(), self.layout.record_bytes, dtype=torch.uint8, device=places.device
        )
        for f in self.layout.fields:
            view = records[:, f.offset : f.offset + f.nbytes].view(self.dtype)
            view.copy_(self.fields[f.name].index_select(0, places))
        return records

    def _unpack(self, records: Tensor, places: Tensor) -> None:
        """Puts records [n, record_bytes] uint8 to places."""
        for f in self.layout.fields:
            view = records[:, f.offset : f.offset + f.nbytes].view(self.dtype)
            self.fields[f.name].index_copy_(0, places, view)

    # -------------------------------------------------------------------------------- hot set
    def learn(self, ids: U32) -> None:
        """Starts LEARN jobs on row ids [n]; the working set does not change until ``install``."""
        chunk = max(self.device.capabilities.job_lookups_max, 1)
        for start in range(0, len(ids), chunk):
            part = ids[start : start + chunk]
            if len(self._learning) >= 2:
                buffer, handle = self._learning.pop(0)
                handle.wait()
                if len(buffer) < len(part):
                    self.device.free(buffer)
                    buffer = self.device.allocate(len(part), np.uint32)
            else:
                buffer = self.device.allocate(max(len(part), 16), np.uint32)
            buffer[: len(part)] = part
            job = Learn(
                buffer[: len(part)],
                total_rows=self.group.total_rows,
                pinned_rows=self.pinned_rows,
            )
            self._learning.append((buffer, self.device.submit(job)))

    def finish_learning(self) -> None:
        """Waits for the LEARN jobs and frees their buffers."""
        while self._learning:
            buffer, handle = self._learning.pop(0)
            handle.wait()
            self.device.free(buffer)

    def dump(self) -> npt.NDArray[Any]:
        """The directory's entries (``ENTRY``) in slot order."""
        self.finish_learning()
        entries = self.device.allocate(max(self.device.capabilities.eal_entries, 1), ENTRY)
        try:
            completion = self.device.run(Dump(entries, pinned_rows=self.pinned_rows))
            return entries[: completion.lookups].copy()
        finally:
            self.device.free(entries)

    def load(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.uint32]:
        """Makes exactly these rows the hot set, as far as their sets have ways.

        Args:
            rows: [n] row ids; pinned ones are skipped.

        Returns:
            the rows that found no way.
        """
        if self.training:
            raise ConfigError("a mini-batch is in training; call its step() or skip() first")
        self.finish_learning()
        self.device.run(Clear())
        rows = np.asarray(rows, dtype=np.uint32)
        rejected = []
        chunk = max(self.device.capabilities.job_lookups_max // 16 * 16, 16)
        size = max(min(len(rows), chunk), 1)
        ids, out = self.device.allocate(size, np.uint32), self.device.allocate(size, np.uint32)
        try:
            for start in range(0, len(rows), chunk):
                count = min(chunk, len(rows) - start)
                ids[:count] = rows[start : start + count]
                completion = self.device.run(
                    Load(
                        ids[:count],
                        out[:count],
                        total_rows=self.group.total_rows,
                        pinned_rows=self.pinned_rows,
                    )
                )
                rejected.append(out[: completion.cold_rows].copy())
        finally:
            self.device.free(ids)
            self.device.free(out)
        self.install()
        return np.concatenate(rejected) if rejected else np.zeros(0, np.uint32)

    def hot_rows_by_table(self) -> dict[str, I64]:
        """Rows of each table that lie in EAL slots (not the pinned ones), ascending."""
        table, local = self.group.locate(self.hot.rows)
        return {t.name: local[table == n] for n, t in enumerate(self.group.order)}

    def load_by_table(self, rows: dict[str, npt.NDArray[np.integer]]) -> U32:
        """``load`` for rows named by table; returns the row ids that found no way."""
        ids = [np.zeros(0, np.int64)]
        for name, local in rows.items():
            table = self._table(name)
            if len(local) and not 0 <= int(local.min()) <= int(local.max()) < table.rows:
                raise DataError(f"hot rows of table {name!r} are not below {table.rows}")
            ids.append(self.group.bases[name] + np.asarray(local, dtype=np.int64))
        return self.load(np.concatenate(ids))

    def install(self) -> HotSetChange:
        """Makes the directory's content the hot set; a barrier between two steps.

        Raises:
            ConfigError: a mini-batch is in training.
        """
        begin = time.perf_counter()
        self.flush()
        new, old = HotSet(self.pinned_rows, self.dump()), self.hot
        epoch = self.device.epoch
        was, now = new.slots_of(old.rows), old.slots_of(new.rows)
        evicted, added = was < 0, now < 0
        moved = (now >= 0) & (now != new.slots)
        # Slots are reused: take what leaves or moves before anything is put into a slot.
        moving = to_device(now[moved], self.torch_device)
        kept = {name: f.index_select(0, moving) for name, f in self.fields.items()}
        self._write_back(old.rows[evicted], old.slots[evicted])
        targets = to_device(new.slots[moved], self.torch_device)
        for name, f in self.fields.items():
            f.index_copy_(0, targets, kept[name])
        self._fetch(new.rows[added], new.slots[added])
        self.hot, self.epoch = new, epoch
        self.generation += 1
        return HotSetChange(
            int(added.sum()),
            int(evicted.sum()),
            int(moved.sum()),
            len(new),
            epoch,
            time.perf_counter() - begin,
        )

    def _chunks(self, count: int, move: Callable[[slice, int], None]) -> None:
        for start in range(0, count, MOVE_ROWS):
            size = min(MOVE_ROWS, count - start)
            self._moving.reserve(size)
            self._moving.wait()
            move(slice(start, start + size), size)
        self._moving.wait()
        self._moving.free()

    def _write_back(self, rows: U32, slots: I64) -> None:
        """Copies hot records to the store."""

        def move(part: slice, size: int) -> None:
            self._moving.ids[:size] = rows[part]
            records = self._pack(to_device(slots[part], self.torch_device))
            self.copier.hand_over(records)
            with self.copier.after_compute():
                self._moving.download(records)
            self._moving.wait()
            ids, staged = self._moving.ids[:size], self._moving.records[:size]
            for handle in self.store.scatter(ids, staged):
                handle.wait()

        self._chunks(len(rows), move)

    def _fetch(self, rows: U32, slots: I64) -> None:
        """Copies records of the store to hot slots."""

        def move(part: slice, size: int) -> None:
            self._moving.ids[:size] = rows[part]
            ids, staged = self._moving.ids[:size], self._moving.records[:size]
            for handle in self.store.gather(ids, staged):
                handle.wait()
            places = to_device(slots[part], self.torch_device)
            self.copier.hand_over(places)
            with self.copier.after_compute():
                self._unpack(self._moving.upload(size), places)
            self.copier.compute_waits(self.copier.event())

        self._chunks(len(rows), move)

    # ---------------------------------------------------------------------------- by row id
    def locate(self, rows: npt.NDArray[np.integer]) -> I64:
        """Place of each row [n] in the working set, -1 where the store owns it; settles first."""
        self.settle()
        places = self.hot.slots_of(rows)
        for resident in reversed(self.live):
            cold = np.flatnonzero(places < 0)
            ranks, found = resident.find(np.asarray(rows)[cold].astype(np.uint32))
            owned = found & resident.dirty[ranks] if len(resident.rows) else found
            places[cold[owned]] = resident.places[ranks[owned]]
        return places

    def read(self, name: str, rows: npt.NDArray[np.integer]) -> Tensor:
        """Field ``name`` of some rows, [n, elements], from each row's owner."""
        places = self.locate(rows)
        f = self.layout.field(name)
        out = torch.empty(len(places), f.elements, dtype=self.dtype, device=self.torch_device)
        inside, outside = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        out[to_device(inside, self.torch_device)] = self.fields[name].index_select(
            0, to_device(places[inside], self.torch_device)
        )
        out[to_device(outside, self.torch_device)] = to_device(
            self.store.read(name, np.asarray(rows)[outside]), self.torch_device
        )
        return out

    def write(self, name: str, rows: npt.NDArray[np.integer], values: Tensor) -> None:
        """Sets field ``name`` of distinct rows at their owners; a barrier like ``install``."""
        self.flush()
        places = self.locate(rows)
        inside, outside = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        values = values.to(self.torch_device, self.dtype)
        self.fields[name].index_copy_(
            0,
            to_device(places[inside], self.torch_device),
            values.index_select(0, to_device(inside, self.torch_device)),
        )
        self.store.write(
            np.asarray(rows)[outside],
            {name: values.index_select(0, to_device(outside, self.torch_device)).cpu().numpy()},
        )

    def update_rows(self, rows: I64, gradient: Tensor, lr: float) -> None:
        """Applies the optimizer to distinct rows at their owners; a barrier like ``install``."""
        self.flush()
        values = {f.name: self.read(f.name, rows) for f in self.layout.fields}
        weights = values.pop("weights")
        self.steps += 1
        self.optimizer.update(weights, values, gradient, self.steps, lr)
        for name, value in (("weights", weights), *values.items()):
            self.write(name, rows, value)

    def table(self, name: str, field_name: str = "weights") -> Tensor:
        """A whole table's field, [rows, elements] on the CPU, as one snapshot."""
        table = self._table(name)
        f = self.layout.field(field_name)
        out = torch.empty(table.rows, f.elements, dtype=self.dtype)
        base = self.group.bases[name]
        for start in range(0, table.rows, MOVE_ROWS):
            stop = min(start + MOVE_ROWS, table.rows)
            out[start:stop] = self.read(field_name, np.arange(base + start, base + stop)).cpu()
        return out

    def set_table(self, name: str, values: Tensor, field_name: str = "weights") -> None:
        """Replaces a whole table's field, [rows, elements]; a barrier like ``install``."""
        table = self._table(name)
        expected = (table.rows, self.layout.field(field_name).elements)
        if tuple(values.shape) != expected:
            raise DataError(f"table {name!r} is {expected}, not {tuple(values.shape)}")
        base = self.group.bases[name]
        for start in range(0, table.rows, MOVE_ROWS):
            stop = min(start + MOVE_ROWS, table.rows)
            self.write(field_name, np.arange(base + start, base + stop), values[start:stop])

    def _table(self, name: str) -> TableConfig:
        for table in self.group.tables:
            if table.name == name:
                return table
        raise ConfigError(f"no table {name!r}; there are {[t.name for t in self.group.tables]}")

    def close(self) -> None:
        """Waits for jobs in flight and frees all buffers of the device. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self.end()
        try:
            self.finish_learning()
            self.flush()
        finally:
            self._free()

    def _free(self) -> None:
        for tail in self.tails:
            for staging in (tail.gathered, tail.written):
                staging.wait()
                staging.free()
        self.store.close()
