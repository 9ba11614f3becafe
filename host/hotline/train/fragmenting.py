# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""FRAGMENT jobs of a mini-batch: in parts where it must be, checked against the epoch, merged.

A mini-batch is one job unless it exceeds a limit of a job or ends in COLD_OVERFLOW at sample s;
then the next part starts at s. Each part has its own cold list; the parts' cold rows are mapped to
one rank per row. What the kernel cannot take at all (a sample with more lookups or cold rows than
its tables hold) and what meets a directory other than the installed one is encoded on the host.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hotline.codes import Operation, Status
from hotline.device.base import Device, Fragment, Handle
from hotline.device.status import error_of
from hotline.errors import JobError
from hotline.tables import RowBatch
from hotline.train.accelerator import Accelerator
from hotline.train.encode import Bags, HotSet, encode_on_host, first_occurrences

_LOG = logging.getLogger(__name__)
U32 = npt.NDArray[np.uint32]


@dataclass
class Fragmented:
    """A fragmented mini-batch.

    Attributes:
        indices: [lookups] uint32 encoded indices; cold ones are ``cold_base`` + rank.
        cold_base: index of rank 0.
        popular: [samples] bool.
        cold_rows: [n] uint32 distinct cold rows by rank.
        pinned, eal, cold: lookups of each kind.
        cycles: of the jobs.
        parts: jobs that it took; 0: encoded on the host.
        span: start and end, seconds of ``time.perf_counter``.
    """

    indices: U32
    cold_base: int
    popular: npt.NDArray[np.bool_]
    cold_rows: U32
    pinned: int = 0
    eal: int = 0
    cold: int = 0
    cycles: int = 0
    parts: int = 0
    span: tuple[float, float] = (0.0, 0.0)


class FragmentBuffers:
    """Arrays of one FRAGMENT job, in buffers of the device; they grow by need."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._arrays: dict[str, U32] = {}

    def get(self, name: str, size: int) -> U32:
        """An array of at least ``size`` uint32; contents are undefined."""
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            if array is not None:
                self.device.free(array)
            array = self.device.allocate(max(16, 1 << (size - 1).bit_length()), np.uint32)
            self._arrays[name] = array
        return array

    def free(self) -> None:
        """Gives the buffers back."""
        for array in self._arrays.values():
            self.device.free(array)
        self._arrays.clear()


@dataclass
class _Part:
    first: int  # sample
    indices: U32
    popular: npt.NDArray[np.bool_]
    cold_rows: U32


@dataclass
class FragmentTask:
    """The jobs of one mini-batch, one after the other; ``advance`` moves it on.

    Attributes:
        accelerator: the device.
        buffers: arrays for the jobs; nobody else uses them meanwhile.
        rows, bags: the mini-batch.
        hot: the hot set installed in the working set.
        epoch: of the directory when ``hot`` was installed.
        total_rows, cold_base, cold_rows_max: see ``Fragment``.
        on_host: encode on the host (the directory is learning).
        result: when all jobs are done.
        error: of a job that failed twice.
    """

    accelerator: Accelerator
    buffers: FragmentBuffers
    rows: RowBatch
    bags: Bags
    hot: HotSet
    epoch: int
    total_rows: int
    cold_base: int
    cold_rows_max: int
    on_host: bool = False
    result: Fragmented | None = None
    error: JobError | None = None
    _repeated: int = -1
    _parts: list[_Part] = field(default_factory=list)
    _next: int = 0
    _submitted: int = 0
    _handle: Handle | None = None
    _totals: list[int] = field(default_factory=lambda: [0, 0, 0, 0, 0])
    _start: float = field(default_factory=time.perf_counter)

    def start(self) -> None:
        """Submits the first job, or encodes on the host at once."""
        if self.on_host or self.rows.samples == 0:
            self._encode_rest()
            return
        epoch = self.accelerator.epoch
        if epoch == self.epoch:
            self._submit()
            return
        if epoch is not None:
            _LOG.warning(
                "the directory changed outside of install() (epoch %d, not %d): the mini-batch is "
                "encoded on the host",
                epoch,
                self.epoch,
            )
        self._encode_rest()

    def advance(self, *, block: bool) -> bool:
        """Moves on as far as possible; returns whether ``result`` is there.

        Raises:
            JobError: of a job that failed twice, if ``block``: not in another mini-batch's turn.
        """
        while self.result is None:
            if self.error is not None and not block:
                return False
            if self.error is not None:
                raise self.error
            assert self._handle is not None
            if not block and not self.accelerator.done(self._handle):
                return False
            self._take()
        return True

    def cancel(self) -> None:
        """Waits for the job in flight and forgets it."""
        if self._handle is not None:
            self.accelerator.wait(self._handle)
            self._handle = None

    def _limits(self) -> int:
        """One past the last sample of the next job."""
        caps, starts, first = (
            self.accelerator.device.capabilities,
            self.bags.sample_offsets,
            self._next,
        )
        stop = min(self.rows.samples, first + caps.job_samples_max)
        if starts[stop] - starts[first] > caps.job_lookups_max:
            limit = int(starts[first]) + caps.job_lookups_max
            stop = int(np.searchsorted(starts, limit, side="right")) - 1
        lengths = np.diff(starts[first : stop + 1])
        too_long = np.flatnonzero(lengths > caps.lookups_max)
        return first + int(too_long[0]) if len(too_long) else stop

    def _submit(self) -> None:
        rows, bags, get = self.rows, self.bags, self.buffers.get
        first, stop = self._next, self._limits()
        jagged = rows.offsets is not None
        if stop <= first or (jagged and bags.bags > self.accelerator.device.capabilities.bags_max):
            self._encode_rest()  # the kernel cannot take this sample
            return
        start, end = (int(n) for n in bags.sample_offsets[[first, stop]])
        samples, lookups = stop - first, end - start
        ids = get("ids", lookups)[:lookups]
        ids[:] = rows.ids[start:end]
        offsets = None
        if jagged:
            size = samples * bags.bags + 1
            offsets = get("offsets", size)[:size]
            offsets[:] = bags.offsets[first * bags.bags : stop * bags.bags + 1] - start
        cold = min(lookups, self.cold_rows_max)
        job = Fragment(
            ids=ids,
            samples=samples,
            total_rows=self.total_rows,
            pinned_rows=self.hot.pinned_rows,
            cold_base=self.cold_base,
            cold_rows_max=self.cold_rows_max,
            indices=get("indices", lookups)[:lookups],
            popular=get("popular", samples)[:samples],
            nonpopular=get("nonpopular", samples)[:samples],
            bitmap=get("bitmap", -(-samples // 32))[: -(-samples // 32)],
            cold_rows=get("cold_rows", cold)[:cold],
            lookups_per_sample=0 if jagged else lookups // samples,
            offsets=offsets,
            bags=bags.bags if jagged else 0,
        )
        self._submitted = samples
        self._handle = self.accelerator.submit(job)
        if self._handle is None:
            self._encode_rest()

    def _take(self) -> None:
        handle, self._handle = self._handle, None
        assert handle is not None
        done = self.accelerator.wait(handle)
        if done is None:
            self._encode_rest()  # the device is lost; the parts before are good
            return
        if done.status not in (Status.OK, Status.COLD_OVERFLOW):
            if self._repeated == self._next:
                self.error = error_of(done)
                return
            _LOG.warning("a FRAGMENT is repeated: %s", error_of(done))
            self._repeated = self._next
            self._submit()
            return
        if done.operation is not Operation.FRAGMENT or done.epoch != self.epoch:
            _LOG.info("a FRAGMENT of epoch %d is done again, not %d", done.epoch, self.epoch)
            self._parts.clear()
            self._next, self._totals = 0, [0, 0, 0, 0, 0]
            self.start()
            return
        if done.samples == 0:
            self._encode_rest()  # one sample alone overflows the tracker
            return
        popular = np.zeros(done.samples, dtype=np.bool_)
        popular[self.buffers.get("popular", 0)[: done.popular]] = True
        self._parts.append(
            _Part(
                self._next,
                self.buffers.get("indices", 0)[: done.lookups].copy(),
                popular,
                self.buffers.get("cold_rows", 0)[: done.cold_rows].copy(),
            )
        )
        for n, value in enumerate(
            (done.pinned_lookups, done.eal_lookups, done.cold_lookups, done.cycles, 1)
        ):
            self._totals[n] += value
        self._next += done.samples
        if self._next < self.rows.samples:
            self._submit()
        else:
            self._merge()

    def _encode_rest(self) -> None:
        """Encodes what is left on the host."""
        rest = np.arange(self._next, self.rows.samples)
        bags, lookups = self.bags.select(rest)
        part = RowBatch(self.rows.ids[lookups], len(rest), self.rows.bags)
        indices, popular, cold_rows, counts = encode_on_host(self.hot, part, bags, self.cold_base)
        self._parts.append(_Part(self._next, indices, popular, cold_rows))
        for n, value in enumerate(counts):
            self._totals[n] += value
        self._merge()

    def _merge(self) -> None:
        """Maps the parts' cold positions to one rank per row."""
        parts = self._parts
        if len(parts) == 1:
            indices, popular, cold_rows = parts[0].indices, parts[0].popular, parts[0].cold_rows
        else:
            cold_rows, ranks = first_occurrences(np.concatenate([p.cold_rows for p in parts]))
            popular = np.concatenate([p.popular for p in parts])
            pieces, start = [], 0
            for part in parts:
                mapping = ranks[start : start + len(part.cold_rows)]
                start += len(part.cold_rows)
                piece = part.indices.astype(np.int64)
                cold = piece >= self.cold_base
                piece[cold] = self.cold_base + mapping[piece[cold] - self.cold_base]
                pieces.append(piece.astype(np.uint32))
            indices = np.concatenate(pieces)
        pinned, eal, cold_lookups, cycles, jobs = self._totals
        self.result = Fragmented(
            indices,
            self.cold_base,
            popular,
            cold_rows,
            pinned,
            eal,
            cold_lookups,
            cycles,
            jobs,
            (self._start, time.perf_counter()),
        )
