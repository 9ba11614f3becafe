# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The oracle as a device: ``hotline.reference`` behind the protocol of every backend."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import reference
from hotline.arguments import Arguments
from hotline.codes import (
    BAGS_MAX,
    COUNTER_BITS,
    JOB_LOOKUPS_MAX,
    JOB_SAMPLES_MAX,
    RECORD_BYTES_MAX,
    SEGMENTS_MAX,
    Operation,
    Reason,
    Status,
)
from hotline.config import CONFIGS, KernelConfig, kernel_config
from hotline.device.base import (
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
from hotline.device.buffers import BufferPool, bind
from hotline.device.status import raise_for
from hotline.errors import ConfigError, DeviceError


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


class ReferenceDevice(Device):
    """Fragmenter and gatherer in readable Python; ``cycles`` and ``stalls`` are 0.

    Args:
        config: named hardware configuration or a ``KernelConfig``: sets, ways and limits.
    """

    def __init__(self, config: str | KernelConfig = "zynq") -> None:
        self.config = kernel_config(config) if isinstance(config, str) else config
        named = CONFIGS.get(self.config.name) == self.config
        self.capabilities = Capabilities(
            backend="reference",
            config=self.config.name if named else "custom",
            operations=reference.FRAGMENTER | reference.GATHERER,
            bus_bits=0,
            eal_sets=self.config.eal_sets,
            eal_ways=self.config.eal_ways,
            counter_bits=COUNTER_BITS,
            lookups_max=self.config.lookups_max,
            cold_rows_max=self.config.cold_rows_max,
            job_lookups_max=JOB_LOOKUPS_MAX,
            job_samples_max=JOB_SAMPLES_MAX,
            bags_max=BAGS_MAX,
            segments_max=SEGMENTS_MAX,
            record_bytes_max=RECORD_BYTES_MAX,
            burst_beats=0,
            clock_khz=0,
            build_id=0,
        )
        self._pool = BufferPool()
        self._record = self._pool.address(self._pool.allocate(64, np.uint8))
        self._eal = reference.Eal(self.config.eal_sets, self.config.eal_ways)
        self._lock = threading.Lock()
        self._closed = False

    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """See ``Device.allocate``."""
        self._check_open()
        return self._pool.allocate(shape, dtype)

    def free(self, array: npt.NDArray[Any]) -> None:
        """See ``Device.free``."""
        self._pool.free(array)

    def submit(self, job: Job) -> Handle:
        """Runs a job; see ``Device.submit``."""
        self._check_open()
        if getattr(job, "operation", None) not in self.capabilities.operations:
            raise ConfigError(f"{type(job).__name__}: the device does not offer this operation")
        with self._lock:
            bound = bind(
                job, self._pool, record=self._record, eal_entries=self.capabilities.eal_entries
            )
            try:
                return ReferenceHandle(self._execute(job, bound.arguments))
            finally:
                for array in bound.scratch:
                    self._pool.free(array)

    @property
    def epoch(self) -> int:
        """See ``Device.epoch``."""
        return self._eal.epoch

    def reset(self) -> None:
        """See ``Device.reset``."""
        self._eal.reset()

    def close(self) -> None:
        """See ``Device.close``."""
        self._closed = True
        self._pool.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed; open it again")

    def _execute(self, job: Job, arguments: Arguments) -> Completion:
        operation = Operation(arguments.operation)
        reason = reference.check_config(arguments, self.config)
        if reason is not Reason.NONE:
            epoch = self._eal.epoch if operation in reference.FRAGMENTER else 0
            return Completion(arguments.tag, Status.BAD_CONFIG, operation, reason, epoch)
        return replace(self._run(job, arguments), tag=arguments.tag)

    def _run(self, job: Job, arguments: Arguments) -> Completion:
        """Runs a job whose arguments are in range and writes its outputs."""
        rows = {"total_rows": arguments.total_rows, "pinned_rows": arguments.pinned_rows}
        match job:
            case Clear():
                return self._eal.clear()
            case Learn():
                return self._eal.learn(_flat(job.ids), **rows, policy=job.policy)
            case Evict():
                return self._eal.evict(_flat(job.ids), **rows)
            case Dump():
                completion, entries = self._eal.dump(arguments.pinned_rows)
                _store(job.entries, entries)
                return completion
            case Load():
                completion, rejected = self._eal.load(_flat(job.entries), **rows)
                _store(job.rejected, rejected)
                return completion
            case Fragment():
                output = reference.fragment(
                    self._eal,
                    _flat(job.ids),
                    samples=arguments.samples,
                    cold_base=arguments.cold_base,
                    cold_rows_max=arguments.cold_rows_max,
                    lookups_max=self.config.lookups_max,
                    lookups_per_sample=arguments.lookups_per_sample,
                    offsets=None if job.offsets is None else _flat(job.offsets),
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
                    _flat(job.ids), job.store, arguments.total_rows, arguments.segment_shift
                )
                job.records[: len(records)] = records
                return completion
            case Scatter():
                return reference.scatter(
                    _flat(job.ids),
                    job.records,
                    job.store,
                    arguments.total_rows,
                    arguments.segment_shift,
                )
        raise AssertionError(f"unreachable: {job}")


def _flat(array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """A job's input as a vector; None stands for an empty one."""
    return np.empty(0, dtype=np.uint32) if array is None else array.reshape(-1)


def _store(target: npt.NDArray[Any] | None, values: npt.NDArray[Any]) -> None:
    """Writes a result to the start of its buffer, and nothing beyond it."""
    if len(values):
        assert target is not None  # bind refuses a missing output that may hold something
        target.reshape(-1)[: len(values)] = values
