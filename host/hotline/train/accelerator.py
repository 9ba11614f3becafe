# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The device as training sees it: jobs that may find it dead, and what then happens.

If a job does not finish in time or the device is dead, it is reset, so that nothing writes to
memory any more, and the host takes over: it encodes mini-batches and moves records itself, with
equal results, only slower. What was in flight is done again; each of these jobs can be repeated.
"""

from __future__ import annotations

import logging

from hotline.device.base import Completion, Device, Handle, Job
from hotline.device.status import raise_for
from hotline.errors import DeviceDead, DeviceError, DeviceTimeout, HotlineError

_LOG = logging.getLogger(__name__)
_DEATHS = (DeviceTimeout, DeviceDead)


class Accelerator:
    """A device, until it is lost.

    Args:
        device: the device.
        fallback: the host takes over when the device is lost; otherwise its error is raised.

    Attributes:
        lost: why the host took over, or None.
    """

    def __init__(self, device: Device, *, fallback: bool = True) -> None:
        self.device, self.fallback = device, fallback
        self.lost: DeviceError | None = None

    def submit(self, job: Job) -> Handle | None:
        """Starts a job; None if the device is lost."""
        if self.lost is not None:
            return None
        try:
            return self.device.submit(job)
        except _DEATHS as error:
            self._lose(error)
            return None

    def done(self, handle: Handle) -> bool:
        """Whether ``wait`` returns at once; never blocks."""
        if self.lost is not None:
            return True
        try:
            return handle.done()
        except _DEATHS as error:
            self._lose(error)
            return True

    def wait(self, handle: Handle) -> Completion | None:
        """The completion, whatever its status; None if the device was lost before."""
        try:
            return handle.wait(check=False)
        except _DEATHS as error:
            self._lose(error)
            return None

    def run(self, job: Job) -> Completion | None:
        """Runs a job; None if the device is lost.

        Raises:
            JobError: the job's status is not OK.
        """
        handle = self.submit(job)
        completion = None if handle is None else self.wait(handle)
        if completion is not None:
            raise_for(completion)
        return completion

    @property
    def epoch(self) -> int | None:
        """Changes of the EAL; None if the device is lost."""
        if self.lost is None:
            try:
                return self.device.epoch
            except _DEATHS as error:
                self._lose(error)
        return None

    def _lose(self, error: DeviceError) -> None:
        if self.lost is not None:
            return
        if not self.fallback:
            raise error
        self.lost = error
        _LOG.error(
            "the accelerator is lost, the host does its work from here on (slower, with equal "
            "results): %s",
            error,
        )
        try:
            self.device.reset()
        except HotlineError as failure:
            _LOG.warning("the lost device cannot be reset: %s", failure)
