# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the devices share whose kernels are code of this process: buffers, checks, BAD_CONFIG."""

from __future__ import annotations

import abc
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
from hotline.device.base import Capabilities, Completion, Device, Job
from hotline.device.buffers import BufferPool, bind
from hotline.errors import ConfigError, DeviceError


class HostDevice(Device):
    """A device in this process; ``cycles`` and ``stalls`` are 0.

    Args:
        backend: name of the backend.
        config: named hardware configuration or a ``KernelConfig``: sets, ways and limits.
    """

    def __init__(self, backend: str, config: str | KernelConfig) -> None:
        self.config = kernel_config(config) if isinstance(config, str) else config
        named = CONFIGS.get(self.config.name) == self.config
        self.capabilities = Capabilities(
            backend=backend,
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
        self._closed = False

    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """See ``Device.allocate``."""
        self._check_open()
        return self._pool.allocate(shape, dtype)

    def free(self, array: npt.NDArray[Any]) -> None:
        """See ``Device.free``."""
        self._pool.free(array)

    def close(self) -> None:
        """See ``Device.close``."""
        self._closed = True
        self._pool.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed; open it again")

    def _bind(self, job: Job) -> Arguments:
        """Checks a job's arrays. What a device would read beside them is not kept for these."""
        self._check_open()
        if getattr(job, "operation", None) not in self.capabilities.operations:
            raise ConfigError(f"{type(job).__name__}: the device does not offer this operation")
        entries = self.capabilities.eal_entries
        bound = bind(job, self._pool, record=self._record, eal_entries=entries)
        for array in bound.scratch:
            self._pool.free(array)
        return bound.arguments

    def _execute(self, job: Job, arguments: Arguments) -> Completion:
        """Runs a job, or refuses it with BAD_CONFIG."""
        operation = Operation(arguments.operation)
        reason = reference.check_config(arguments, self.config)
        if reason is not Reason.NONE:
            epoch = self.epoch if operation in reference.FRAGMENTER else 0
            return Completion(arguments.tag, Status.BAD_CONFIG, operation, reason, epoch)
        return replace(self._run(job, arguments), tag=arguments.tag)

    @abc.abstractmethod
    def _run(self, job: Job, arguments: Arguments) -> Completion:
        """Runs a job whose arguments are in range and writes its outputs."""


def flat(array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """A job's array as a vector; None stands for an empty one."""
    return np.empty(0, dtype=np.uint32) if array is None else array.reshape(-1)
