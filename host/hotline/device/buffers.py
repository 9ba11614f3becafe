# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Buffers of a device, and the checks that a job's arrays pass before it is submitted.

Every backend uses this one place: a ``BufferPool`` knows the memory that the kernels reach, and
``bind`` turns a job into raw ``Arguments`` after it has checked each array: in a buffer, 64-byte
aligned, large enough, of the right dtype, contiguous, and no output overlapping another array.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.arguments import Arguments
from hotline.codes import FLAG_FREQUENCY, FLAG_PLAIN_LIST, Policy
from hotline.device.base import (
    ALIGNMENT,
    ENTRY,
    Clear,
    Dump,
    Evict,
    Fragment,
    Gather,
    Job,
    Learn,
    Load,
    Scatter,
)
from hotline.errors import ConfigError, DeviceBufferError

Bytes = npt.NDArray[np.uint8]
U32_DTYPE = np.dtype(np.uint32)


def aligned_bytes(size: int) -> Bytes:
    """Returns ``size`` zeroed bytes that start at a multiple of ``ALIGNMENT``."""
    raw = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def host_address(array: npt.NDArray[Any]) -> int:
    """Address of an array's first byte on the host."""
    return int(array.__array_interface__["data"][0])


@dataclass(frozen=True)
class _Buffer:
    start: int
    size: int
    address: int
    memory: Bytes  # keeps the memory alive


class BufferPool:
    """The buffers of a device.

    Args:
        reserve: gives ``n`` bytes of zeroed memory, 64-byte aligned for host and device, and the
            address at which the device sees it. Default: NumPy memory at its own host address.
        release: takes back what ``reserve`` gave (memory, device address).
    """

    def __init__(
        self,
        reserve: Callable[[int], tuple[Bytes, int]] | None = None,
        release: Callable[[Bytes, int], None] | None = None,
    ) -> None:
        self._reserve = reserve
        self._release = release
        self._starts: list[int] = []
        self._buffers: dict[int, _Buffer] = {}

    def __len__(self) -> int:
        return len(self._buffers)

    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Returns a zeroed array in a new buffer, whose size is rounded up to 64 bytes."""
        kind = np.dtype(dtype)
        dims = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if any(n < 0 for n in dims):
            raise ConfigError(f"a buffer of shape {dims} cannot be: sizes are not negative")
        size = kind.itemsize
        for n in dims:
            size *= int(n)
        rounded = max(-(-size // ALIGNMENT), 1) * ALIGNMENT
        if self._reserve is None:
            memory = aligned_bytes(rounded)
            address = host_address(memory)
        else:
            memory, address = self._reserve(rounded)
        start = host_address(memory)
        if start % ALIGNMENT or address % ALIGNMENT or memory.nbytes < rounded:
            raise DeviceBufferError(
                f"the device's allocator gave {memory.nbytes} bytes at {address:#x} for {rounded}; "
                f"it must be aligned to {ALIGNMENT} bytes"
            )
        self._buffers[start] = _Buffer(start, rounded, address, memory)
        bisect.insort(self._starts, start)
        return memory[:size].view(kind).reshape(dims)

    def free(self, array: npt.NDArray[Any]) -> None:
        """Gives the buffer that starts where ``array`` starts back."""
        start = host_address(array)
        buffer = self._buffers.pop(start, None)
        if buffer is None:
            raise DeviceBufferError(
                f"free: no buffer of this device starts at {start:#x} (freed twice, a slice, or "
                "from another device?); pass the array that allocate returned"
            )
        self._starts.remove(start)
        if self._release is not None:
            self._release(buffer.memory, buffer.address)

    def clear(self) -> None:
        """Gives all buffers back."""
        for buffer in self._buffers.values():
            if self._release is not None:
                self._release(buffer.memory, buffer.address)
        self._buffers.clear()
        self._starts.clear()

    def address(self, array: npt.NDArray[Any], name: str = "array") -> int:
        """Device address of an array that lies in a buffer; raises ``DeviceBufferError`` if not."""
        start = host_address(array)
        index = bisect.bisect_right(self._starts, start) - 1
        buffer = self._buffers[self._starts[index]] if index >= 0 else None
        if buffer is None or start + array.nbytes > buffer.start + buffer.size:
            raise DeviceBufferError(
                f"{name}: its {array.nbytes} bytes lie in no buffer of this device; take the array "
                "from Device.allocate (a copy or a torch tensor of it has memory of its own)"
            )
        address = buffer.address + start - buffer.start
        if address % ALIGNMENT:
            raise DeviceBufferError(
                f"{name}: starts {address % ALIGNMENT} bytes past a multiple of {ALIGNMENT}; slice "
                "buffers at multiples of 64 bytes only"
            )
        return address


@dataclass(frozen=True)
class Bound:
    """A checked job.

    Attributes:
        arguments: its raw arguments.
        scratch: arrays of the pool that belong to the job; free them when it is done.
    """

    arguments: Arguments
    scratch: tuple[npt.NDArray[Any], ...] = ()


class _Checker:
    """Checks the arrays of one job and gives their device addresses."""

    def __init__(self, pool: BufferPool, job: Job) -> None:
        self.pool, self.kind = pool, type(job).__name__
        self.spans: list[tuple[int, int, str, bool]] = []  # start, end, name, written

    def array(
        self,
        name: str,
        array: npt.NDArray[Any] | None,
        dtype: np.dtype[Any],
        count: int,
        *,
        written: bool = False,
    ) -> int:
        """Device address of an array of at least ``count`` elements; 0 if there are none."""
        name = f"{self.kind}.{name}"
        if count == 0 and (array is None or array.size == 0):
            return 0
        if not isinstance(array, np.ndarray):
            raise DeviceBufferError(
                f"{name}: a NumPy array of {count} {dtype} in a buffer of the device is needed, "
                f"not {type(array).__name__}"
            )
        if array.dtype != dtype:
            raise DeviceBufferError(f"{name}: dtype is {array.dtype}, must be {dtype}")
        if not array.flags.c_contiguous:
            raise DeviceBufferError(f"{name}: must be C-contiguous; slice without a step")
        if array.size < count:
            raise DeviceBufferError(f"{name}: has {array.size} elements, {count} are needed")
        if written and not array.flags.writeable:
            raise DeviceBufferError(f"{name}: is written by the job but is read-only")
        if count == 0:
            return 0
        address = self.pool.address(array, name)
        self._no_overlap(address, address + count * dtype.itemsize, name, written)
        return address

    def _no_overlap(self, start: int, end: int, name: str, written: bool) -> None:
        for start_, end_, name_, written_ in self.spans:
            if (written or written_) and start < end_ and start_ < end:
                raise DeviceBufferError(f"{name} overlaps {name_}; a job's output needs its own")
        self.spans.append((start, end, name, written))


def bind(job: Job, pool: BufferPool, *, record: int, eal_entries: int) -> Bound:
    """Checks a job's arrays and returns its raw arguments.

    Args:
        job: the job.
        pool: the buffers of the device.
        record: device address for the completion record.
        eal_entries: entries of the EAL: what a DUMP may write.

    Raises:
        DeviceBufferError: an array lies in no buffer, is too small, misaligned, of a wrong dtype,
            not contiguous, or an output overlaps another array of the job.
        ConfigError: the job contradicts itself, or a value does not fit its register.
    """
    check = _Checker(pool, job)
    common = {"operation": int(job.operation), "tag": job.tag, "record": record}
    match job:
        case Clear():
            return Bound(Arguments(**common))
        case Learn() | Evict():
            ids = check.array("ids", job.ids, U32_DTYPE, _length(job.ids))
            return Bound(
                Arguments(
                    **common,
                    ids=ids,
                    lookups=_length(job.ids),
                    total_rows=job.total_rows,
                    pinned_rows=job.pinned_rows,
                    flags=learn_flags(job.policy) if isinstance(job, Learn) else 0,
                )
            )
        case Dump():
            entries = check.array("entries", job.entries, ENTRY, eal_entries, written=True)
            return Bound(Arguments(**common, indices=entries, pinned_rows=job.pinned_rows))
        case Load():
            return Bound(_load(job, check, common))
        case Fragment():
            return Bound(_fragment(job, check, common))
        case Gather() | Scatter():
            return _move(job, check, common, pool)
    raise ConfigError(f"{type(job).__name__} is no job that a device knows")


def learn_flags(policy: Policy) -> int:
    """``FLAGS`` of a LEARN job."""
    return FLAG_FREQUENCY if policy is Policy.FREQUENCY else 0


def _length(array: npt.NDArray[Any] | None) -> int:
    return 0 if array is None else int(np.size(array))


def _load(job: Load, check: _Checker, common: dict[str, int]) -> Arguments:
    plain = _length(job.entries) == 0 or job.entries.dtype != ENTRY
    dtype = U32_DTYPE if plain else ENTRY
    count = _length(job.entries)
    return Arguments(
        **common,
        ids=check.array("entries", job.entries, dtype, count) if count else 0,
        indices=check.array("rejected", job.rejected, dtype, count, written=True) if count else 0,
        lookups=count,
        total_rows=job.total_rows,
        pinned_rows=job.pinned_rows,
        flags=FLAG_PLAIN_LIST if plain else 0,
    )


def _fragment(job: Fragment, check: _Checker, common: dict[str, int]) -> Arguments:
    jagged = job.bags > 0
    if jagged == (job.offsets is None) or (jagged and job.lookups_per_sample):
        raise ConfigError(
            "Fragment: give either lookups_per_sample, or offsets together with bags > 0; not "
            f"lookups_per_sample={job.lookups_per_sample}, bags={job.bags}, offsets="
            f"{'None' if job.offsets is None else 'an array'}"
        )
    lookups, samples = _length(job.ids), int(job.samples)
    if samples < 0 or job.cold_rows_max < 0:
        raise ConfigError(f"Fragment: samples={samples}, cold_rows_max={job.cold_rows_max} < 0")

    def out(name: str, array: npt.NDArray[Any] | None, count: int) -> int:
        return check.array(name, array, U32_DTYPE, count, written=True)

    cold = min(lookups, max(int(job.cold_rows_max), 1))  # the kernel refuses cold_rows_max = 0
    return Arguments(
        **common,
        ids=check.array("ids", job.ids, U32_DTYPE, lookups),
        offsets=check.array("offsets", job.offsets, U32_DTYPE, samples * int(job.bags) + 1)
        if jagged
        else 0,
        indices=out("indices", job.indices, lookups),
        popular=out("popular", job.popular, samples),
        nonpopular=out("nonpopular", job.nonpopular, samples),
        bitmap=out("bitmap", job.bitmap, -(-samples // 32)),
        cold=out("cold_rows", job.cold_rows, cold),
        lookups=lookups,
        samples=samples,
        bags=job.bags,
        lookups_per_sample=job.lookups_per_sample,
        total_rows=job.total_rows,
        pinned_rows=job.pinned_rows,
        cold_base=job.cold_base,
        cold_rows_max=job.cold_rows_max,
    )


def _move(
    job: Gather | Scatter, check: _Checker, common: dict[str, int], pool: BufferPool
) -> Bound:
    """GATHER and SCATTER; with several segments their table is a scratch buffer of the job."""
    scatter = isinstance(job, Scatter)
    byte, kind = np.dtype(np.uint8), check.kind
    segments = (job.store,) if isinstance(job.store, np.ndarray) else tuple(job.store)
    lookups, rows, shift = _length(job.ids), int(job.rows), int(job.segment_shift)
    if not segments or any(np.ndim(array) != 2 for array in (*segments, job.records)):
        raise DeviceBufferError(f"{kind}: store and records are [rows, record_bytes] arrays")
    record_bytes = int(job.records.shape[1])
    if any(segment.shape[1] != record_bytes for segment in segments):
        raise DeviceBufferError(f"{kind}: records of store and records differ in length")
    if rows < 0 or shift < 0:
        raise ConfigError(f"{kind}: rows={rows}, segment_shift={shift} < 0")
    span = 1 << min(shift, 32)  # rows of a segment; the kernel refuses a shift above 31
    addresses = []
    for number, segment in enumerate(segments):
        # Rows beyond the last segment are the kernel's to refuse, too.
        needed = rows if len(segments) == 1 else min(max(rows - number * span, 0), span)
        name = f"store[{number}]" if len(segments) > 1 else "store"
        addresses.append(check.array(name, segment, byte, needed * record_bytes, written=scatter))
    arguments = {
        **common,
        "ids": check.array("ids", job.ids, U32_DTYPE, lookups),
        "records": check.array(
            "records", job.records, byte, lookups * record_bytes, written=not scatter
        ),
        "lookups": lookups,
        "total_rows": rows,
        "record_bytes": record_bytes,
        "segments": len(segments),
        "segment_shift": shift,
    }
    if len(segments) == 1:
        return Bound(Arguments(**arguments, store=addresses[0]))
    bound = Arguments(**arguments)  # checked before the table is allocated
    table = pool.allocate(len(segments), np.uint64)
    table[:] = addresses
    values = {**bound.__dict__, "store": pool.address(table)}
    return Bound(Arguments(**values), (table,))
