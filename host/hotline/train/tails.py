# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The ring of cold tails: who owns a cold row, and how it gets to its next owner.

A row lives in a hot slot, in one live cold tail, or in the cold store. A ``Resident`` is the set
of cold rows of one mini-batch in one tail:

    admit    rows of live residents are taken from them, the others are gathered
    ready    its records are in the tail
    retire   behind the mini-batch's update: rows that a younger resident takes are copied to it in
             the tensor, the others are scattered to the store, in step order

A resident is *live* until its scatter is done, and a row of a live resident is never gathered. So
look-ahead reads exactly what a loop without look-ahead reads.
"""

from __future__ import annotations

import logging
import time

import numpy as np
import torch
from torch import Tensor

from hotline.device.status import error_of
from hotline.errors import ConfigError
from hotline.tables import Group
from hotline.train.accelerator import Accelerator
from hotline.train.encode import to_device
from hotline.train.residents import I64, U32, Resident, State, Tail
from hotline.train.staging import Copier, Staging
from hotline.train.store import ColdStore, RecordLayout

_LOG = logging.getLogger(__name__)


class ColdTails:
    """Hot places and a ring of cold tails in one tensor per field, over a cold store.

    Args:
        group: the tables.
        accelerator: moves the records.
        layout: fields of a record.
        dtype: of all fields.
        hot_rows: places in front of the tails.
        tails: number of tails.
        cold_rows: places of a tail.
        torch_device: where the tensors lie.
        seed, segment_rows: see ``ColdStore``.

    Attributes:
        fields: weights and optimizer state by name, [places, elements] each.
        live: residents whose rows are not all in the store, oldest first.
        generation: grows when residents that did not train are given up.
    """

    def __init__(
        self,
        group: Group,
        accelerator: Accelerator,
        layout: RecordLayout,
        *,
        dtype: torch.dtype,
        hot_rows: int,
        tails: int,
        cold_rows: int,
        torch_device: torch.device,
        seed: int,
        segment_rows: int | None,
    ) -> None:
        places = hot_rows + tails * cold_rows
        if cold_rows < 1 or places >= 2**31:
            raise ConfigError(
                f"{hot_rows} hot rows and {tails} cold tails of {cold_rows} rows are no working "
                "set; indices must stay below 2**31"
            )
        self.group, self.accelerator, self.layout, self.dtype = group, accelerator, layout, dtype
        self.hot_rows, self.cold_rows = hot_rows, cold_rows
        self.torch_device = torch_device
        self.store = ColdStore(accelerator, group, layout, seed=seed, segment_rows=segment_rows)
        self.copier = Copier(torch_device)
        self.fields: dict[str, Tensor] = {
            f.name: torch.zeros(places, f.elements, dtype=dtype, device=torch_device)
            for f in layout.fields
        }
        self.tails = [
            Tail(base, np.arange(base, base + cold_rows), self._staging(), self._staging())
            for base in range(hot_rows, places, cold_rows)
        ]
        self.live: list[Resident] = []
        self.admitted = 0
        self.generation = 0

    def _staging(self) -> Staging:
        device, width = self.accelerator.device, self.layout.record_bytes
        return Staging(device, width, self.copier, self.cold_rows)

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
                self._move(other.places[theirs], resident.places[mine])
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
        if not block and (resident.error or not self._done(resident)):
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
                    self._move(resident.places[theirs], younger.places[mine])
                    younger.dirty[mine] = resident.dirty[theirs]
            younger.takes = [take for take in younger.takes if take[0] is not resident]
        ranks = np.flatnonzero(resident.dirty & ~resident.passed_on)
        if resident.tail.written.capacity < len(ranks):
            self._wait_writes()  # the old buffer may still be read by a scatter
            resident.tail.written.reserve(len(ranks))
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
        older_open = False
        for resident in list(self.live):
            if resident.state is State.RETIRED:
                if not resident.tail.written.copied():
                    break  # write-backs stay in step order
                self._write(resident)
            if resident.state is State.WRITING:
                if resident.error is not None:
                    break  # repeated before anything else happens
                # Taken in step order: else an older resident would look like the owner of a row
                # that a younger one, which is over, has written since.
                older_open = older_open or not self._done(resident)
                if not older_open and not self._finish_write(resident):
                    break
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
            self.accelerator.wait(handle)
        resident.handles, resident.error = [], None
        resident.state = State.READY
        self.copier.compute_waits(resident.uploaded)

    def discard(self) -> None:
        """Gives up every resident that did not train; rows newer than the store are written."""
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

    def _done(self, resident: Resident) -> bool:
        return all(self.accelerator.done(handle) for handle in resident.handles)

    def _collect(self, resident: Resident, name: str) -> None:
        """Takes the completions of a resident's jobs; notes the first error."""
        resident.error, cycles = None, 0
        for handle in resident.handles:
            completion = self.accelerator.wait(handle)
            if completion is None:
                resident.error = self.accelerator.lost
            else:
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
        size = self.fields["weights"].shape[0]
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

    def _move(self, source: I64, destination: I64) -> None:
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

    def _free(self) -> None:
        for tail in self.tails:
            for staging in (tail.gathered, tail.written):
                staging.wait()
                staging.free()
        self.store.close()
