# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The cold store: every row of a group as one record in memory that the gatherer reaches.

    record (64 bytes here)   | weights: 8 x float32 | sum: 8 x float32 |
    offset                   0                      32                 64

``RecordLayout`` names the fields of a record. Initial weights are a pure function of (seed, table,
row, column), so they depend neither on where a row lies nor on what is hot, and a plain model of
the same seed starts equal (``initial_weights``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.device.base import ALIGNMENT, Gather, Handle, Scatter
from hotline.device.status import raise_for
from hotline.errors import ConfigError
from hotline.tables import Group, TableConfig
from hotline.train.accelerator import Accelerator

Bytes = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_CHUNK_ELEMENTS = 1 << 20
"""Elements initialised at a time: bounds the temporary memory to a few tens of megabytes."""


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Bijective 64-bit finaliser (the constants of splitmix64); wraps on purpose."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def initial_weights(
    seed: int, table: TableConfig, rows: npt.NDArray[np.integer], dtype: npt.DTypeLike = np.float32
) -> npt.NDArray[Any]:
    """Returns the initial weights of some rows of a table, [len(rows), dim].

    Uniform in [-1/sqrt(table.rows), 1/sqrt(table.rows)), a function of (seed, name of the table,
    row, column) only.
    """
    name = hashlib.blake2b(table.name.encode(), digest_size=8).digest()
    key = _mix(np.array([seed % 2**64], dtype=np.uint64) + _GOLDEN)
    key = _mix(key ^ np.uint64(int.from_bytes(name, "little")))
    row_keys = _mix(key + np.asarray(rows).astype(np.uint64) * _GOLDEN)
    columns = np.arange(1, table.dim + 1, dtype=np.uint64) * _GOLDEN
    bits = _mix(row_keys[:, None] + columns[None, :])
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    weights: npt.NDArray[Any] = ((2.0 * uniform - 1.0) / np.sqrt(table.rows)).astype(dtype)
    return weights


def table_weights(
    seed: int, table: TableConfig, dtype: npt.DTypeLike = np.float32
) -> npt.NDArray[Any]:
    """Returns the initial weights of a whole table, [rows, dim], in bounded temporary memory."""
    out: npt.NDArray[Any] = np.empty((table.rows, table.dim), dtype=dtype)
    step = max(_CHUNK_ELEMENTS // table.dim, 1)
    for start in range(0, table.rows, step):
        rows = np.arange(start, min(start + step, table.rows))
        out[rows] = initial_weights(seed, table, rows, dtype)
    return out


@dataclass(frozen=True)
class RecordField:
    """One field of a record: ``elements`` values of ``dtype`` from byte ``offset`` on."""

    name: str
    dtype: np.dtype[Any]
    elements: int
    offset: int
    initial: float = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the field."""
        return self.elements * self.dtype.itemsize

    def view(self, records: Bytes) -> npt.NDArray[Any]:
        """The field in ``records`` [n, record_bytes], as a view [n, elements]."""
        return records[:, self.offset : self.offset + self.nbytes].view(self.dtype)


@dataclass(frozen=True)
class RecordLayout:
    """Fields of a record; the first is always ``weights``."""

    fields: tuple[RecordField, ...]
    record_bytes: int

    @classmethod
    def build(
        cls,
        dim: int,
        dtype: npt.DTypeLike = np.float32,
        state: Sequence[tuple[str, float]] = (),
        record_bytes_max: int = 4096,
    ) -> RecordLayout:
        """Lays out weights and per-element optimizer state.

        Args:
            dim: elements of a row.
            dtype: of weights and state.
            state: name and initial value of each per-element state.
            record_bytes_max: limit of the device.
        """
        kind = np.dtype(dtype)
        fields, offset = [], 0
        for name, initial in (("weights", 0.0), *state):
            fields.append(RecordField(name, kind, dim, offset, initial))
            offset += dim * kind.itemsize
        record_bytes = -(-offset // ALIGNMENT) * ALIGNMENT
        if record_bytes > record_bytes_max:
            raise ConfigError(
                f"a record of {dim} x {kind} weights and {len(state)} state field(s) takes "
                f"{record_bytes} bytes, the device moves at most {record_bytes_max}; use a smaller "
                "dimension or an optimizer with less state"
            )
        return cls(tuple(fields), record_bytes)

    def field(self, name: str) -> RecordField:
        """The field of that name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise ConfigError(f"no field {name!r}; there are {[f.name for f in self.fields]}")


class ColdStore:
    """All rows of a group, one record each, in buffers of a device.

    Args:
        accelerator: moves records; its device owns the memory.
        group: the tables.
        layout: fields of a record.
        seed: of the initial weights.
        segment_rows: rows of a segment, a power of two; None: one segment. Stacks that limit a
            buffer to 4 GB need several.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        group: Group,
        layout: RecordLayout,
        *,
        seed: int = 0,
        segment_rows: int | None = None,
    ) -> None:
        self.accelerator, self.group, self.layout = accelerator, group, layout
        device = accelerator.device
        rows = group.total_rows
        if segment_rows is None:
            sizes, self.shift = [rows], 31
        else:
            if segment_rows <= 0 or segment_rows & (segment_rows - 1) or segment_rows > 2**31:
                raise ConfigError(f"segment_rows={segment_rows} is not a power of two up to 2**31")
            self.shift = segment_rows.bit_length() - 1
            count = -(-rows // segment_rows)
            if count > device.capabilities.segments_max:
                raise ConfigError(
                    f"{rows} rows in segments of {segment_rows} need {count} segments, the device "
                    f"has {device.capabilities.segments_max}; use larger segments"
                )
            sizes = [min(segment_rows, rows - n * segment_rows) for n in range(count)]
        self.segments: tuple[Bytes, ...] = tuple(
            device.allocate((size, layout.record_bytes), np.uint8) for size in sizes
        )
        self._fill(seed)

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return sum(segment.nbytes for segment in self.segments)

    def _fill(self, seed: int) -> None:
        step = max(_CHUNK_ELEMENTS // self.group.dim, 1)
        for table in self.group.tables:
            base = self.group.bases[table.name]
            for start in range(0, table.rows, step):
                rows = np.arange(start, min(start + step, table.rows))
                weights = self.layout.fields[0]
                self.write(
                    rows + base,
                    {
                        field.name: initial_weights(seed, table, rows, field.dtype)
                        if field is weights
                        else np.full((rows.size, field.elements), field.initial, field.dtype)
                        for field in self.layout.fields
                    },
                )

    def _split(
        self, rows: npt.NDArray[np.integer]
    ) -> list[tuple[Bytes, npt.NDArray[np.integer], slice | npt.NDArray[np.bool_]]]:
        """Pairs each segment with the rows in it and their positions in ``rows``."""
        if len(self.segments) == 1:
            return [(self.segments[0], rows, slice(None))]
        number = np.asarray(rows, dtype=np.int64) >> self.shift
        local = np.asarray(rows, dtype=np.int64) & ((1 << self.shift) - 1)
        return [
            (segment, local[mask], mask)
            for n, segment in enumerate(self.segments)
            if (mask := number == n).any()
        ]

    def read(self, name: str, rows: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Reads a field of some rows directly, [n, elements]; no write-back may be in flight."""
        field = self.layout.field(name)
        out = np.empty((len(rows), field.elements), dtype=field.dtype)
        for segment, local, place in self._split(rows):
            out[place] = field.view(segment)[local]
        return out

    def write(self, rows: npt.NDArray[np.integer], values: dict[str, npt.NDArray[Any]]) -> None:
        """Writes fields of distinct rows directly; no job on them may be in flight."""
        for segment, local, place in self._split(rows):
            for name, array in values.items():
                self.layout.field(name).view(segment)[local] = array[place]

    def gather(self, ids: U32, records: Bytes) -> list[Handle]:
        """Starts jobs that copy the records of ``ids`` [n] to ``records`` [n, record_bytes].

        Both lie in buffers of the device and start at a multiple of 64 bytes. If the device is
        lost, the host has copied what no handle stands for.
        """
        return self._move(Gather, ids, records)

    def scatter(self, ids: U32, records: Bytes) -> list[Handle]:
        """Starts jobs that copy ``records`` [n, record_bytes] to the rows ``ids`` [n]."""
        return self._move(Scatter, ids, records)

    def gather_now(self, ids: U32, records: Bytes) -> None:
        """Gathers and waits."""
        self._now(Gather, ids, records)

    def scatter_now(self, ids: U32, records: Bytes) -> None:
        """Scatters and waits."""
        self._now(Scatter, ids, records)

    def _now(self, kind: type[Gather] | type[Scatter], ids: U32, records: Bytes) -> None:
        lost = False
        for handle in self._move(kind, ids, records):
            completion = self.accelerator.wait(handle)
            if completion is None:
                lost = True
            else:
                raise_for(completion)
        if lost:
            self._by_host(kind, ids, records)

    def _move(self, kind: type[Gather] | type[Scatter], ids: U32, records: Bytes) -> list[Handle]:
        # 16 ids are 64 bytes, so a chunk of a multiple of 16 rows keeps both pointers aligned.
        chunk = max(self.accelerator.device.capabilities.job_lookups_max // 16 * 16, 16)
        store = self.segments[0] if len(self.segments) == 1 else self.segments
        handles = []
        for start in range(0, len(ids), chunk):
            part = slice(start, start + chunk)
            handle = self.accelerator.submit(
                kind(
                    ids=ids[part],
                    records=records[part],
                    store=store,
                    rows=self.group.total_rows,
                    segment_shift=self.shift,
                )
            )
            if handle is None:
                self._by_host(kind, ids[part], records[part])
            else:
                handles.append(handle)
        return handles

    def _by_host(self, kind: type[Gather] | type[Scatter], ids: U32, records: Bytes) -> None:
        for segment, local, place in self._split(ids):
            if kind is Gather:
                records[place] = segment[local]
            else:
                segment[local] = records[place]

    def close(self) -> None:
        """Frees the memory."""
        for segment in self.segments:
            self.accelerator.device.free(segment)
        self.segments = ()
