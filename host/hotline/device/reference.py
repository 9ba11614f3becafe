# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The oracle as a device: ``hotline.reference`` behind the protocol of every backend."""

from __future__ import annotations

import threading
from typing import Any

import numpy.typing as npt

from hotline import reference
from hotline.arguments import Arguments
from hotline.config import KernelConfig
from hotline.device.base import (
    Clear,
    Completion,
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
from hotline.device.host import HostDevice, flat
from hotline.device.status import raise_for


class ReferenceHandle(Handle):
    """A job that is complete: the reference runs it within ``submit``."""

    def __init__(self, completion: Completion) -> None:
        self._completion = completion

    def done(self) -> bool:
        """Always true."""
        return True

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        """Returns the completion at once, see ``Handle.wait``."""
        if check:
            raise_for(self._completion)
        return self._completion

    def abort(self) -> None:
        """Does nothing: the job was complete before the abort."""


class ReferenceDevice(HostDevice):
    """Fragmenter and gatherer in readable Python.

    Args:
        config: named hardware configuration or a ``KernelConfig``: sets, ways and limits.
    """

    def __init__(self, config: str | KernelConfig = "zynq") -> None:
        super().__init__("reference", config)
        self._eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
        self._lock = threading.Lock()

    def submit(self, job: Job) -> Handle:
        """Runs a job; see ``Device.submit``."""
        with self._lock:
            return ReferenceHandle(self._execute(job, self._bind(job)))

    @property
    def epoch(self) -> int:
        """See ``Device.epoch``."""
        return self._eal.epoch

    def reset(self) -> None:
        """See ``Device.reset``."""
        self._eal.reset()

    def _run(self, job: Job, arguments: Arguments) -> Completion:
        """Runs a job whose arguments are in range and writes its outputs."""
        rows = {"total_rows": arguments.total_rows, "pinned_rows": arguments.pinned_rows}
        match job:
            case Clear():
                return self._eal.clear()
            case Learn():
                return self._eal.learn(flat(job.ids), **rows, policy=job.policy)
            case Evict():
                return self._eal.evict(flat(job.ids), **rows)
            case Dump():
                completion, entries = self._eal.dump(arguments.pinned_rows)
                _store(job.entries, entries)
                return completion
            case Load():
                completion, rejected = self._eal.load(flat(job.entries), **rows)
                _store(job.rejected, rejected)
                return completion
            case Fragment():
                output = reference.fragment(
                    self._eal,
                    flat(job.ids),
                    samples=arguments.samples,
                    cold_base=arguments.cold_base,
                    cold_rows_max=arguments.cold_rows_max,
                    lookups_max=self.config.lookups_max,
                    lookups_per_sample=arguments.lookups_per_sample,
                    offsets=None if job.offsets is None else flat(job.offsets),
                    bags=arguments.bags,
                    **rows,
                )
                _store(job.indices, output.indices)
                _store(job.popular, output.popular)
                _store(job.nonpopular, output.nonpopular)
                _store(job.bitmap, output.bitmap)
                _store(job.cold_rows, output.cold_rows)
                return output.completion
            case Gather():
                completion, records = reference.gather(
                    flat(job.ids), job.store, arguments.total_rows, arguments.segment_shift
                )
                job.records[: len(records)] = records
                return completion
            case Scatter():
                return reference.scatter(
                    flat(job.ids),
                    job.records,
                    job.store,
                    arguments.total_rows,
                    arguments.segment_shift,
                )
        raise AssertionError(f"unreachable: {job}")


def _store(target: npt.NDArray[Any] | None, values: npt.NDArray[Any]) -> None:
    """Writes a result to the start of its buffer, and nothing beyond it."""
    if len(values):
        assert target is not None  # bind refuses a missing output that may hold something
        target.reshape(-1)[: len(values)] = values
