# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The working set of a group: hot rows and cold tails in one tensor, optimizer, changes, access.

    | pinned rows | rows of the EAL's slots | tail 0 | tail 1 | ... | tail lookahead | (growth) |
    0             pinned_rows               hot_rows

``hotline.train.tails`` says who owns a cold row. A change of the hot set (``install``) is a barrier
between two steps: residents that did not train yet are given up (their newer rows are written
back), then the rows of the symmetric difference move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hotline.device.base import Device
from hotline.errors import ConfigError, DataError
from hotline.tables import Group, TableConfig
from hotline.train.accelerator import Accelerator
from hotline.train.directory import Directory
from hotline.train.encode import HotSet, to_device
from hotline.train.estimate import tail_rows
from hotline.train.optim import SGD, RowOptimizer
from hotline.train.residents import I64, U32
from hotline.train.staging import numpy_dtype
from hotline.train.store import RecordLayout
from hotline.train.tails import ColdTails

MOVE_ROWS = 1 << 16
"""Rows moved at a time when the hot set changes: bounds the staging memory."""


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


class WorkingSet(ColdTails):
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
        fallback: see ``Accelerator``.

    Attributes:
        hot: the hot set installed; ``epoch``: the directory's when it was.
        steps: optimizer steps.
        ticket: number of the mini-batch in training, 0 where there is none.
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
        fallback: bool = True,
    ) -> None:
        if lookahead < 0:
            raise ConfigError(f"lookahead={lookahead} is negative")
        self.optimizer: RowOptimizer = SGD() if optimizer is None else optimizer
        capabilities = device.capabilities
        super().__init__(
            group,
            Accelerator(device, fallback=fallback),
            RecordLayout.build(
                group.dim, numpy_dtype(dtype), self.optimizer.state, capabilities.record_bytes_max
            ),
            dtype=dtype,
            hot_rows=group.pinned_rows + capabilities.eal_entries,
            tails=lookahead + 1,
            cold_rows=tail_rows(group, capabilities, cold_rows),
            torch_device=torch.device(torch_device),
            seed=seed,
            segment_rows=segment_rows,
        )
        self.lookahead, self.pinned_rows = lookahead, group.pinned_rows
        pinned = np.arange(self.pinned_rows)
        for f in self.layout.fields:
            values = to_device(self.store.read(f.name, pinned), self.torch_device)
            self.fields[f.name][: self.pinned_rows] = values
        self.directory = Directory(self.accelerator, group)
        self.hot = HotSet(self.pinned_rows)
        self.epoch = self.accelerator.epoch or 0
        self.steps = 0
        self.ticket = 0
        self._tickets = 0
        self._moving = self._staging()
        self._closed = False

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

    def _check_between_steps(self) -> None:
        if self.training:
            raise ConfigError("a mini-batch is in training; call its step() or skip() first")

    def discard(self) -> None:
        """See ``ColdTails``; refused while a mini-batch is in training."""
        self._check_between_steps()
        super().discard()

    def update(self, places: Tensor, gradient: Tensor, lr: float) -> None:
        """Applies the optimizer to distinct places [n] with gradients [n, dim]; counts a step."""
        self.steps += 1
        if not places.numel():
            return
        # A subclass may have another update.
        if type(self.optimizer) is SGD and self.optimizer.update_places(
            self.weights, places, gradient, lr
        ):
            return
        values = {name: f.index_select(0, places) for name, f in self.fields.items()}
        weights = values.pop("weights")
        self.optimizer.update(weights, values, gradient, self.steps, lr)
        for name, value in (("weights", weights), *values.items()):
            self.fields[name].index_copy_(0, places, value)

    def load(self, rows: npt.NDArray[np.integer]) -> U32:
        """Makes exactly these rows the hot set, as far as their sets have ways.

        Args:
            rows: [n] row ids; pinned ones are skipped.

        Returns:
            the rows that found no way; all of them if the device is lost.
        """
        self._check_between_steps()
        left = self.directory.fill(np.asarray(rows, dtype=np.uint32))
        self.install()
        return left

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
        entries, epoch = self.directory.dump(), self.accelerator.epoch
        if entries is None or epoch is None:  # the device is lost: what is hot stays hot
            return HotSetChange(0, 0, 0, len(self.hot), self.epoch, time.perf_counter() - begin)
        new, old = HotSet(self.pinned_rows, entries), self.hot
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
            self.store.scatter_now(self._moving.ids[:size], self._moving.records[:size])

        self._chunks(len(rows), move)

    def _fetch(self, rows: U32, slots: I64) -> None:
        """Copies records of the store to hot slots."""

        def move(part: slice, size: int) -> None:
            self._moving.ids[:size] = rows[part]
            self.store.gather_now(self._moving.ids[:size], self._moving.records[:size])
            places = to_device(slots[part], self.torch_device)
            self.copier.hand_over(places)
            with self.copier.after_compute():
                self._unpack(self._moving.upload(size), places)
            self.copier.compute_waits(self.copier.event())

        self._chunks(len(rows), move)

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
            self.directory.finish()
            self.flush()
        finally:
            self._free()
