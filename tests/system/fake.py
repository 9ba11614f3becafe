# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""A transport without kernels: registers that a test sets, jobs that do nothing, for the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import registers as reg
from hotline.codes import MAGIC, VERSION
from hotline.config import KernelConfig
from hotline.device.buffers import aligned_bytes, host_address
from hotline.device.driver import kernel_of
from hotline.device.transport import KERNELS, Kernel
from hotline.reference import FRAGMENTER, GATHERER


def identity(config: KernelConfig, kernel: Kernel) -> dict[str, int]:
    """Identity block of a kernel, by field name."""
    operations = FRAGMENTER if kernel == "fragmenter" else GATHERER
    values = {
        "magic": MAGIC,
        "version": VERSION,
        "operations": sum(1 << operation for operation in operations),
        "bus_bits": config.bus_bits,
        "burst_beats": config.burst_beats,
        "clock_khz": config.clock_khz,
        "build_id": 0x1234,
        "job_lookups_max": 1 << 28,
    }
    if kernel == "fragmenter":
        for name in ("eal_sets", "eal_ways", "lookups_max", "cold_rows_max"):
            values[name] = getattr(config, name)
    return values


class FakeTransport:
    """See ``Transport``. ``answers`` False: no job is ever done."""

    backend = "fake"
    kernels: tuple[Kernel, ...] = KERNELS
    stores = frozenset({"host"})
    depth = 2

    def __init__(self, config: KernelConfig, **changes: Any) -> None:
        self.registers: dict[tuple[Kernel, int], int] = {}
        self.writes: list[tuple[Kernel, int, int]] = []
        self.answers = True
        self.status_word: int | None = None
        self.tag_offset = 0
        self.closed = False
        self.jobs: dict[Kernel, int] = dict.fromkeys(KERNELS, 0)
        for kernel in KERNELS:
            values = identity(config, kernel)
            values |= changes.get(kernel, {}) | changes.get("both", {})
            for entry in reg.IDENTITY_FIELDS:
                self.registers[kernel, reg.IDENTITY + entry.offset] = values.get(entry.name, 0)

    def read(self, kernel: Kernel, offset: int) -> int:
        return self.registers.get((kernel, offset), 0)

    def write(self, kernel: Kernel, offset: int, value: int) -> None:
        self.writes.append((kernel, offset, value))
        if offset != reg.CONTROL:
            self.registers[kernel, offset] = value
            return
        if value & reg.CONTROL_START_MASK:
            self.jobs[kernel] += 1
        if value & reg.CONTROL_RESUME_MASK:
            self.jobs[kernel] -= 1
            self.registers[kernel, reg.CONTROL] = 0
        if self.jobs[kernel] and self.answers:
            self._done(kernel)

    def _done(self, kernel: Kernel) -> None:
        operation = self.read(kernel, reg.OPERATION)
        status = operation << 8 if self.status_word is None else self.status_word
        self.registers[kernel, reg.RESULT_TAG] = self.read(kernel, reg.TAG) + self.tag_offset
        self.registers[kernel, reg.RESULT_STATUS] = status
        self.registers[kernel, reg.CONTROL] = reg.CONTROL_DONE_MASK

    def reserve(self, size: int) -> tuple[npt.NDArray[np.uint8], int]:
        memory = aligned_bytes(size)
        return memory, host_address(memory)

    def release(self, memory: npt.NDArray[np.uint8], address: int) -> None:
        pass

    def sync_to_device(self, address: int, array: npt.NDArray[Any]) -> None:
        pass

    def sync_from_device(self, address: int, array: npt.NDArray[Any]) -> None:
        pass

    def wait_interrupt(self, kernel: Kernel, timeout: float) -> bool:
        return bool(self.read(kernel, reg.CONTROL) & reg.CONTROL_DONE_MASK)

    def subscribe(self, handler: Callable[[Kernel], None]) -> bool:
        return False

    def describe(self) -> dict[str, int]:
        return {}

    def reset(self) -> None:
        self.jobs = dict.fromkeys(KERNELS, 0)
        for kernel in KERNELS:
            self.registers[kernel, reg.CONTROL] = 0

    def close(self) -> None:
        self.closed = True


__all__ = ["FakeTransport", "identity", "kernel_of"]
