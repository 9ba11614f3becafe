# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Both kernels in native code: the operations of ``hotline.reference``, with the same results.

Outputs go straight into the caller's arrays, as a device would write them; what lies beyond the
counts of the completion is undefined. The interpreter's lock is released while a call runs.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.codes import Operation, Policy, Reason, Status
from hotline.device.base import ENTRY, U32, Completion, Entries
from hotline.errors import ConfigError, HotlineError
from hotline.native import library, pointer

Bytes = npt.NDArray[np.uint8]

_COUNTS = (
    "samples",
    "popular",
    "cold_rows",
    "pinned",
    "eal",
    "cold",
    "lookups",
    "error_sample",
    "error_lookup",
    "error_value",
)
_ARRAYS = ("ids", "offsets", "indices", "popular", "nonpopular", "bitmap", "cold")
_SIZES = ("lookups", "samples", "bags", "lookups_per_sample", "lookups_max")
_ROWS = ("total_rows", "pinned_rows", "cold_base", "cold_rows_max")


class Result(ctypes.Structure):
    """``HotlineResult`` of kernels.cpp."""

    _fields_ = (
        ("status", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        *((name, ctypes.c_uint32) for name in _COUNTS),
    )


class Job(ctypes.Structure):
    """``HotlineFragment`` of kernels.cpp."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_uint32) for name in _ROWS),
        ("workers", ctypes.c_void_p),
    )


POLICIES = {Policy.SRRIP: 0, Policy.FREQUENCY: 1}


def _completion(operation: Operation, result: Result, epoch: int) -> Completion:
    if result.status < 0:
        raise HotlineError(
            f"{operation.name}: the host has no memory or no thread left; use smaller jobs"
        )
    return Completion(
        tag=0,
        status=Status(result.status),
        operation=operation,
        reason=Reason(result.reason),
        epoch=epoch,
        samples=result.samples,
        popular=result.popular,
        cold_rows=result.cold_rows,
        pinned_lookups=result.pinned,
        eal_lookups=result.eal,
        cold_lookups=result.cold,
        lookups=result.lookups,
        error_sample=result.error_sample,
        error_lookup=result.error_lookup,
        error_value=result.error_value,
    )


def _address(array: npt.NDArray[Any] | None) -> int:
    return 0 if array is None or array.size == 0 else pointer(array)


class Workers:
    """Threads that share large jobs of one kernel; started when first needed.

    Args:
        threads: how many work on a job, the caller's among them.
    """

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ConfigError(f"threads={threads}: at least 1")
        self.handle = library().hotline_workers_new(threads)
        if not self.handle:
            raise HotlineError("no memory for threads")
        weakref.finalize(self, library().hotline_workers_free, self.handle)


class NativeFragmenter:
    """The EAL and the cold tracker; methods as those of ``reference.Eal``.

    Not for several threads at once. Arrays must be contiguous and of the dtypes named.

    Args:
        sets, ways: of the EAL, powers of two, ways up to 16; any number of sets up to 2**26.
        cold_rows_max: depth of the cold tracker.
        threads: how many share a large FRAGMENT.

    Raises:
        HotlineError: there is no memory for it.
    """

    def __init__(self, sets: int, ways: int, cold_rows_max: int, threads: int = 1) -> None:
        self.epoch = 0
        self._lib = library()
        self._workers = Workers(threads)
        self._handle = self._lib.hotline_fragmenter_new(sets, ways, cold_rows_max)
        if not self._handle:
            raise HotlineError(f"no memory for an EAL of {sets * ways} entries; choose fewer sets")
        weakref.finalize(self, self._lib.hotline_fragmenter_free, self._handle)

    def reset(self) -> None:
        """As after a reset of the hardware: empty, epoch 0."""
        self.epoch = 0
        self._lib.hotline_fragmenter_clear(self._handle)

    def _ran(self, operation: Operation, result: Result) -> Completion:
        self.epoch = (self.epoch + 1) & 0xFFFF_FFFF
        return _completion(operation, result, self.epoch)

    def clear(self) -> Completion:
        """CLEAR: invalidates everything."""
        self._lib.hotline_fragmenter_clear(self._handle)
        return self._ran(Operation.CLEAR, Result())

    def learn(
        self, ids: U32, total_rows: int, pinned_rows: int, policy: Policy = Policy.FREQUENCY
    ) -> Completion:
        """LEARN: applies lookups [n] in order."""
        result = Result()
        self._lib.hotline_fragmenter_learn(
            self._handle,
            _address(ids),
            ids.size,
            total_rows,
            pinned_rows,
            POLICIES[policy],
            ctypes.byref(result),
        )
        return self._ran(Operation.LEARN, result)

    def load(
        self,
        entries: Entries | U32,
        total_rows: int,
        pinned_rows: int,
        rejected: npt.NDArray[Any] | None,
    ) -> Completion:
        """LOAD of entries (``ENTRY``) or row ids [n]; ``rejected`` gets the returned ones."""
        result = Result()
        self._lib.hotline_fragmenter_load(
            self._handle,
            _address(entries),
            entries.size,
            total_rows,
            pinned_rows,
            int(entries.dtype != ENTRY),
            _address(rejected),
            ctypes.byref(result),
        )
        return self._ran(Operation.LOAD, result)

    def evict(self, ids: U32, total_rows: int, pinned_rows: int) -> Completion:
        """EVICT: invalidates the listed ids [n] that are present."""
        result = Result()
        self._lib.hotline_fragmenter_evict(
            self._handle, _address(ids), ids.size, total_rows, pinned_rows, ctypes.byref(result)
        )
        return self._ran(Operation.EVICT, result)

    def dump(self, entries: Entries, pinned_rows: int) -> Completion:
        """DUMP into ``entries`` [sets * ways]."""
        count = self._lib.hotline_fragmenter_dump(self._handle, pinned_rows, pointer(entries))
        result = Result()
        result.lookups = count
        return _completion(Operation.DUMP, result, self.epoch)

    def _job(self, arrays: tuple[U32 | None, ...], **numbers: int) -> Job:
        """One job: its arrays in the order of the fields, the rest by name."""
        return Job(*map(_address, arrays), **numbers, workers=self._workers.handle)

    def fragment(
        self,
        ids: U32,
        *,
        samples: int,
        total_rows: int,
        pinned_rows: int,
        cold_base: int,
        cold_rows_max: int,
        lookups_max: int,
        indices: U32,
        popular: U32,
        nonpopular: U32,
        bitmap: U32,
        cold_rows: U32,
        lookups_per_sample: int = 0,
        offsets: U32 | None = None,
        bags: int = 0,
    ) -> Completion:
        """FRAGMENT; arguments as those of ``reference.fragment`` and of ``Fragment``."""
        job = self._job(
            (ids, offsets, indices, popular, nonpopular, bitmap, cold_rows),
            lookups=ids.size,
            samples=samples,
            bags=bags,
            lookups_per_sample=lookups_per_sample,
            lookups_max=lookups_max,
            total_rows=total_rows,
            pinned_rows=pinned_rows,
            cold_base=cold_base,
            cold_rows_max=cold_rows_max,
        )
        result = Result()
        self._lib.hotline_fragmenter_fragment(self._handle, ctypes.byref(job), ctypes.byref(result))
        return _completion(Operation.FRAGMENT, result, self.epoch)

    def fragment_features(
        self,
        features: npt.NDArray[Any],
        *,
        lookups: int,
        samples: int,
        total_rows: int,
        pinned_rows: int,
        cold_base: int,
        cold_rows_max: int,
        lookups_max: int,
        indices: U32,
        popular: U32,
        nonpopular: U32,
        bitmap: U32,
        cold_rows: U32,
        ids: U32 | None = None,
        offsets: U32 | None = None,
    ) -> Completion | None:
        """FRAGMENT of the raw ids of features, which become row ids on the way.

        Args:
            features: [features] of ``native.FEATURE``, see ``hotline.ingest.describe``.
            lookups, samples: of the mini-batch, from ``describe``.
            total_rows, pinned_rows, cold_base, cold_rows_max, lookups_max: as in ``Fragment``.
            indices, popular, nonpopular, bitmap, cold_rows: out, as in ``Fragment``.
            ids: out, [lookups] row ids, sample-major; None: they are not needed.
            offsets: out, [samples * features + 1]; given if and only if the group is jagged.

        Returns:
            The completion; None if an id is out of its table or the lengths of jagged features are
            wrong: then ``hotline.ingest`` says what is wrong.
        """
        job = self._job(
            (ids, offsets, indices, popular, nonpopular, bitmap, cold_rows),
            lookups=lookups,
            samples=samples,
            bags=0 if offsets is None else len(features),
            lookups_per_sample=lookups // samples if samples else 0,
            lookups_max=lookups_max,
            total_rows=total_rows,
            pinned_rows=pinned_rows,
            cold_base=cold_base,
            cold_rows_max=cold_rows_max,
        )
        result = Result()
        refused = self._lib.hotline_fragmenter_fragment_features(
            self._handle, pointer(features), len(features), ctypes.byref(job), ctypes.byref(result)
        )
        return None if refused else _completion(Operation.FRAGMENT, result, self.epoch)


def move(
    operation: Operation,
    ids: U32,
    records: Bytes,
    store: Bytes | Sequence[Bytes],
    rows: int,
    segment_shift: int = 31,
    workers: Workers | None = None,
) -> Completion:
    """GATHER or SCATTER.

    Args:
        operation: which.
        ids: [n] row ids.
        records: [n, record_bytes], written by GATHER.
        store: [rows, record_bytes], or a sequence of such segments; written by SCATTER.
        rows: row ids are below this.
        segment_shift: row id >> this picks the segment, if there are several.
        workers: threads for a large GATHER; None: the caller's alone.
    """
    segments = (store,) if isinstance(store, np.ndarray) else tuple(store)
    addresses = np.array([pointer(segment) for segment in segments], dtype=np.uint64)
    result = Result()
    library().hotline_move(
        _address(ids),
        ids.size,
        rows,
        pointer(addresses),
        32 if len(segments) == 1 else segment_shift,
        segments[0].shape[1],
        _address(records),
        int(operation is Operation.SCATTER),
        None if workers is None else workers.handle,
        ctypes.byref(result),
    )
    return _completion(operation, result, 0)
