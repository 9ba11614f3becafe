# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Staging buffers between the accelerator and the GPU, and the streams that copy them.

A staging buffer lies in memory that the gatherer reaches. Where the model is on a GPU, it is
page-locked if the driver allows, and copies run on a stream of their own; a buffer is used again
only after the event behind its last copy (``Staging.wait``). On the CPU all of this is nothing.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hotline.device.base import Device

_LOG = logging.getLogger(__name__)


class Copier:
    """The copy stream of a GPU; nothing on the CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = self._stream() if device.type == "cuda" else None

    def _stream(self) -> torch.cuda.Stream:
        stream: torch.cuda.Stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        return stream

    @staticmethod
    def _event_on(stream: torch.cuda.Stream) -> torch.cuda.Event:
        event: torch.cuda.Event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(stream)
        return event

    @contextlib.contextmanager
    def after_compute(self) -> Iterator[None]:
        """Runs the block on the copy stream, behind all work enqueued on the current stream."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            yield

    @contextlib.contextmanager
    def behind(self, event: torch.cuda.Event | None) -> Iterator[None]:
        """Runs the block on the copy stream, behind an event of another stream."""
        if self.stream is None:
            yield
            return
        if event is not None:
            self.stream.wait_event(event)
        with torch.cuda.stream(self.stream):
            yield

    def compute_event(self) -> torch.cuda.Event | None:
        """Marks the end of what was enqueued on the current stream; None on the CPU."""
        if self.stream is None:
            return None
        return self._event_on(torch.cuda.current_stream(self.device))

    def event(self) -> torch.cuda.Event | None:
        """Marks the end of what was enqueued on the copy stream; None on the CPU."""
        if self.stream is None:
            return None
        return self._event_on(self.stream)

    def compute_waits(self, event: torch.cuda.Event | None) -> None:
        """Makes the current stream wait for an event of the copy stream."""
        if event is not None:
            torch.cuda.current_stream(self.device).wait_event(event)

    def hand_over(self, tensor: Tensor) -> None:
        """Keeps a tensor of the current stream alive until the copy stream has used it."""
        if self.stream is not None:
            tensor.record_stream(self.stream)


class Staging:
    """Row ids and records of up to ``capacity`` rows, in buffers of the device."""

    def __init__(self, device: Device, record_bytes: int, copier: Copier, usual: int = 0) -> None:
        self.device, self.record_bytes, self.copier = device, record_bytes, copier
        self.usual = usual  # rows up to which it grows ahead of need
        self.capacity = 0
        self.ids: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.records: npt.NDArray[np.uint8] = np.zeros((0, record_bytes), np.uint8)
        self.event: torch.cuda.Event | None = None
        self._locked = False

    def reserve(self, rows: int) -> None:
        """Makes room for ``rows`` rows; no job or copy may use the buffers. Contents are lost."""
        if rows <= self.capacity:
            return
        self.wait()
        self.free()
        self.capacity = max(rows, min(2 * rows, self.usual))
        self.ids = self.device.allocate(self.capacity, np.uint32)
        self.records = self.device.allocate((self.capacity, self.record_bytes), np.uint8)
        self._locked = self._lock()

    def wait(self) -> None:
        """Waits for the last copy between the buffers and the GPU."""
        if self.event is not None:
            self.event.synchronize()
            self.event = None

    def copied(self) -> bool:
        """Whether the last copy has ended; never blocks."""
        return self.event is None or bool(self.event.query())  # type: ignore[no-untyped-call]

    def upload(self, count: int) -> Tensor:
        """Returns the first ``count`` records [count, record_bytes] on the model's device.

        On a GPU: to be called within a block of the copier.
        """
        tensor = torch.from_numpy(self.records[:count])
        if self.copier.stream is None:
            return tensor
        out = tensor.to(self.copier.device, non_blocking=self._locked)
        self.event = self.copier.event()
        return out

    def download(self, records: Tensor) -> None:
        """Copies records from the model's device to the buffer's start; sets ``event``."""
        tensor = torch.from_numpy(self.records[: records.shape[0]])
        tensor.copy_(records, non_blocking=self._locked)
        self.event = self.copier.event()

    def free(self) -> None:
        """Gives the buffers back."""
        if self.capacity:
            if self._locked:
                _cudart().cudaHostUnregister(self.records.ctypes.data)
            self.device.free(self.ids)
            self.device.free(self.records)
        self.capacity, self._locked = 0, False

    def _lock(self) -> bool:
        """Page-locks the records for the GPU; copies are synchronous where that is refused."""
        if self.copier.stream is None:
            return False
        code = int(_cudart().cudaHostRegister(self.records.ctypes.data, self.records.nbytes, 0))
        if code:
            _LOG.warning("staging memory could not be page-locked (CUDA error %d)", code)
        return code == 0


def _cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """The NumPy dtype of the same name."""
    return np.dtype(str(dtype).removeprefix("torch."))
