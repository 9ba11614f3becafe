# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What every backend offers: buffers, jobs, completions, capabilities (``docs/architecture.md``).

A *job* is one operation of one kernel on arrays that lie in buffers of the device. Jobs of the
fragmenter and of the gatherer run at the same time; jobs of one kernel run in the order submitted,
one running and one queued. ``Device.submit`` returns a ``Handle``; ``Handle.wait`` gives the
``Completion`` or raises the typed error of its status.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hotline.codes import Operation, Policy, Reason, Status

ALIGNMENT = 64
"""Alignment of every pointer of a job, and the unit that buffers are rounded up to, in bytes."""

ENTRY = np.dtype([("row", "<u4"), ("slot_counter", "<u4")])
"""One EAL entry as DUMP writes it and LOAD takes it: row id; slot | counter << 30."""

U32 = npt.NDArray[np.uint32]
Entries = npt.NDArray[np.void]


@dataclass(frozen=True)
class Capabilities:
    """What a device can do; read from its identity block.

    Attributes:
        backend: name of the backend (``reference``, ``cpu``, ``sim`` ...).
        config: name of the hardware configuration, or ``custom``.
        operations: operations offered.
        bus_bits: width of the data bus, 0 where there is none.
        eal_sets, eal_ways, counter_bits: geometry of the EAL.
        lookups_max: most lookups of a sample.
        cold_rows_max: most distinct cold rows of a job.
        job_lookups_max, job_samples_max, bags_max: limits of a job.
        segments_max, record_bytes_max: limits of a cold store.
        burst_beats: longest AXI burst.
        clock_khz: clock of the build, 0 where there is none.
        build_id: first 32 bits of the hash of the sources.
        stores: where the cold store may live: ``host``, ``card``, ``ps``.
    """

    backend: str
    config: str
    operations: frozenset[Operation]
    bus_bits: int
    eal_sets: int
    eal_ways: int
    counter_bits: int
    lookups_max: int
    cold_rows_max: int
    job_lookups_max: int
    job_samples_max: int
    bags_max: int
    segments_max: int
    record_bytes_max: int
    burst_beats: int
    clock_khz: int
    build_id: int
    stores: frozenset[str] = frozenset({"host"})

    @property
    def eal_entries(self) -> int:
        """Rows that the EAL holds."""
        return self.eal_sets * self.eal_ways


@dataclass(frozen=True)
class Completion:
    """The completion record of a job (``docs/register_map.md``, RESULT). Counts are 0 where unused.

    Attributes:
        tag: the job's tag.
        status, operation, reason: codes.
        epoch: the EAL's epoch after the job (0 for the gatherer).
        samples: FRAGMENT: samples whose results are valid.
        popular: FRAGMENT: popular samples among them.
        cold_rows: FRAGMENT: distinct cold rows; LOAD: entries that found no way.
        pinned_lookups: lookups below ``pinned_rows`` (LOAD, EVICT: entries skipped as pinned).
        eal_lookups: lookups that hit the EAL (LOAD: entries already present; EVICT: entries found).
        cold_lookups: lookups that missed the EAL (LOAD: entries inserted or returned).
        lookups: lookups or entries applied, DUMP: entries written, GATHER/SCATTER: records moved.
        cycles: cycles from start (or the previous completion, if later) to this completion.
        stalls: cycles of them in which the data path waited.
        error_sample, error_lookup: place of a BAD_INDEX (a ReasonOffset: entry of ``offsets``).
        error_value: the offending row id or offset, or the failing AXI address.
    """

    tag: int
    status: Status
    operation: Operation
    reason: Reason = Reason.NONE
    epoch: int = 0
    samples: int = 0
    popular: int = 0
    cold_rows: int = 0
    pinned_lookups: int = 0
    eal_lookups: int = 0
    cold_lookups: int = 0
    lookups: int = 0
    cycles: int = 0
    stalls: int = 0
    error_sample: int = 0
    error_lookup: int = 0
    error_value: int = 0

    TIMING: ClassVar[frozenset[str]] = frozenset({"cycles", "stalls"})
    """Fields that may differ between implementations (and ``error_value`` of an AXI_ERROR)."""


# ------------------------------------------------------------------------------------------ jobs
# Arrays are C-contiguous and lie in buffers of the device (Device.allocate). `None` stands for an
# output that is not needed only where its count is certainly 0.


@dataclass(frozen=True)
class Job:
    """Base of all jobs. ``tag`` comes back in the completion."""

    tag: int = field(default=0, kw_only=True)
    operation: ClassVar[Operation]


@dataclass(frozen=True)
class Clear(Job):
    """Invalidates the whole EAL."""

    operation: ClassVar[Operation] = Operation.CLEAR


@dataclass(frozen=True)
class Learn(Job):
    """Applies lookups to the EAL in order.

    Attributes:
        ids: [lookups] uint32 row ids.
        total_rows, pinned_rows: bounds of the row space.
        policy: what a full set keeps.
    """

    ids: U32
    total_rows: int
    pinned_rows: int = 0
    policy: Policy = Policy.FREQUENCY
    operation: ClassVar[Operation] = Operation.LEARN


@dataclass(frozen=True)
class Fragment(Job):
    """Classifies samples and encodes indices.

    Exactly one of ``lookups_per_sample`` (fixed) or ``offsets`` with ``bags`` (jagged) is given.

    Attributes:
        ids: [lookups] uint32 row ids, sample-major.
        samples: number of samples.
        total_rows, pinned_rows: bounds of the row space.
        cold_base: encoded index of cold position 0; at least ``hot_rows``.
        cold_rows_max: most cold rows that the caller has room for; up to the tracker's depth.
        indices: out, [lookups] uint32 encoded indices.
        popular, nonpopular: out, [samples] uint32 sample numbers, ascending.
        bitmap: out, [ceil(samples / 32)] uint32, bit ``s & 31`` of word ``s >> 5``: s is popular.
        cold_rows: out, [min(lookups, cold_rows_max)] uint32 row ids by cold position.
        lookups_per_sample: fixed number of lookups of every sample; 0 is allowed.
        offsets: [samples * bags + 1] uint32.
        bags: bags per sample.
    """

    ids: U32
    samples: int
    total_rows: int
    pinned_rows: int
    cold_base: int
    cold_rows_max: int
    indices: U32
    popular: U32
    nonpopular: U32
    bitmap: U32
    cold_rows: U32
    lookups_per_sample: int = 0
    offsets: U32 | None = None
    bags: int = 0
    operation: ClassVar[Operation] = Operation.FRAGMENT


@dataclass(frozen=True)
class Dump(Job):
    """Writes the valid entries in slot order. ``entries`` out, [eal_entries] of ``ENTRY``."""

    entries: Entries
    pinned_rows: int = 0
    operation: ClassVar[Operation] = Operation.DUMP


@dataclass(frozen=True)
class Load(Job):
    """Inserts entries ([n] of ``ENTRY``) or row ids ([n] uint32, counter 2), in order.

    ``rejected`` (out, same dtype and length) takes those that found no way, in order.
    """

    entries: Entries | U32
    rejected: Entries | U32
    total_rows: int
    pinned_rows: int = 0
    operation: ClassVar[Operation] = Operation.LOAD


@dataclass(frozen=True)
class Evict(Job):
    """Invalidates the listed row ids ([n] uint32)."""

    ids: U32
    total_rows: int
    pinned_rows: int = 0
    operation: ClassVar[Operation] = Operation.EVICT


@dataclass(frozen=True)
class Gather(Job):
    """Copies records of the listed rows to ``records`` (out, [n, record_bytes] uint8).

    ``store`` is a [rows, record_bytes] uint8 array or a sequence of them, each but the last with
    ``1 << segment_shift`` rows: row id >> segment_shift picks the segment.
    """

    ids: U32
    records: npt.NDArray[np.uint8]
    store: npt.NDArray[np.uint8] | tuple[npt.NDArray[np.uint8], ...]
    rows: int
    segment_shift: int = 31
    operation: ClassVar[Operation] = Operation.GATHER


@dataclass(frozen=True)
class Scatter(Job):
    """Copies ``records`` ([n, record_bytes] uint8) to the listed rows of ``store``; last wins."""

    ids: U32
    records: npt.NDArray[np.uint8]
    store: npt.NDArray[np.uint8] | tuple[npt.NDArray[np.uint8], ...]
    rows: int
    segment_shift: int = 31
    operation: ClassVar[Operation] = Operation.SCATTER


class Handle(abc.ABC):
    """A submitted job."""

    @abc.abstractmethod
    def done(self) -> bool:
        """Whether the completion is there; never blocks."""

    @abc.abstractmethod
    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        """Waits for the completion; ``timeout`` in seconds, None: the device's default.

        Raises:
            JobError: its subclass for the status, unless ``check`` is False.
            DeviceTimeout: the job did not finish in time; the device is marked dead.
        """

    @abc.abstractmethod
    def abort(self) -> None:
        """Sets the abort bit of the job's kernel."""


class Device(abc.ABC):
    """A fragmenter and a gatherer, with memory that both can reach. Use as a context manager."""

    capabilities: Capabilities

    @abc.abstractmethod
    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Returns a zeroed array, 64-byte aligned, in memory that the kernels reach.

        The memory is rounded up to 64 bytes. It lives until ``free`` or ``close``.
        """

    @abc.abstractmethod
    def free(self, array: npt.NDArray[Any]) -> None:
        """Gives a buffer back; no job in flight may use it."""

    @abc.abstractmethod
    def submit(self, job: Job) -> Handle:
        """Starts a job, or queues it behind the running one; blocks while both places are taken.

        Raises:
            DeviceBufferError: an array lies in no buffer, is too small or has a wrong dtype.
            ConfigError: the operation is not offered.
            DeviceDead: an earlier time-out marked the device dead.
        """

    @property
    @abc.abstractmethod
    def epoch(self) -> int:
        """Changes of the EAL since reset: the CLEAR, LEARN, LOAD and EVICT jobs that ran."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Resets both kernels (the EAL is empty afterwards, the epoch 0); buffers stay."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees everything. Closing twice is fine."""

    def run(self, job: Job, timeout: float | None = None, *, check: bool = True) -> Completion:
        """Submits a job and waits for it; see ``Handle.wait``."""
        return self.submit(job).wait(timeout, check=check)

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
