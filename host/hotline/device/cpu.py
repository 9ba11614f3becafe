# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Both kernels in native code on the host: no board, no simulator, the same results."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout

from hotline import reference
from hotline.arguments import Arguments
from hotline.codes import Operation
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
from hotline.errors import DeviceDead, DeviceTimeout
from hotline.native.kernels import NativeFragmenter, Workers, move

TIMEOUT_S = 30.0
"""Longest wait for a job, unless told otherwise."""
QUEUE = 2
"""Jobs of a kernel that are accepted and not done, as on the hardware."""


class CpuHandle(Handle):
    """A job that runs on the kernel's thread."""

    def __init__(self, device: CpuDevice, job: Job, future: Future[Completion]) -> None:
        self._device, self._job, self._future = device, job, future

    def done(self) -> bool:
        """Whether the completion is there; never blocks."""
        return self._future.done()

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        """See ``Handle.wait``."""
        limit = self._device.timeout if timeout is None else timeout
        try:
            completion = self._future.result(limit)
        except FutureTimeout:
            self._device._dead = True
            raise DeviceTimeout(
                f"{self._job.operation.name} did not finish within {limit:g} s on the cpu backend; "
                "the device is dead now, open another one. Is the machine overloaded, or the job "
                "very large (then wait longer)?"
            ) from None
        if check:
            raise_for(completion)
        return completion

    def abort(self) -> None:
        """Does nothing: a job that runs is complete before an abort would be noticed."""


class CpuDevice(HostDevice):
    """Fragmenter and gatherer as native code, each with a thread and a queue of its own.

    Args:
        config: named hardware configuration or a ``KernelConfig``; any power of two of sets.
        threads: how many share one large FRAGMENT or GATHER.
        timeout: longest wait for a job, in seconds.
    """

    def __init__(
        self, config: str | KernelConfig = "zynq", *, threads: int = 1, timeout: float = TIMEOUT_S
    ) -> None:
        super().__init__("cpu", config)
        shape = (self.config.eal_sets, self.config.eal_ways, self.config.cold_rows_max)
        self._fragmenter = NativeFragmenter(*shape, threads=threads)
        self._movers = Workers(threads)
        self.timeout = timeout
        self._dead = False
        self._threads = {
            kernel: ThreadPoolExecutor(1, thread_name_prefix=f"hotline-{kernel}")
            for kernel in ("fragmenter", "gatherer")
        }
        self._places = {kernel: threading.BoundedSemaphore(QUEUE) for kernel in self._threads}

    def submit(self, job: Job) -> Handle:
        """Queues a job; see ``Device.submit``."""
        if self._dead:
            raise DeviceDead("an earlier job did not finish in time; open another device")
        arguments = self._bind(job)
        kernel = "fragmenter" if job.operation in reference.FRAGMENTER else "gatherer"
        places = self._places[kernel]
        if not places.acquire(timeout=self.timeout):
            self._dead = True
            raise DeviceTimeout(
                f"the {kernel} did not become free within {self.timeout:g} s; the device is dead "
                "now, open another one"
            )

        def run() -> Completion:
            try:
                return self._execute(job, arguments)
            finally:
                places.release()

        return CpuHandle(self, job, self._threads[kernel].submit(run))

    @property
    def epoch(self) -> int:
        """See ``Device.epoch``."""
        return self._fragmenter.epoch

    def reset(self) -> None:
        """Empties the EAL, behind the jobs in flight; see ``Device.reset``."""
        self._check_open()
        self._threads["fragmenter"].submit(self._fragmenter.reset).result()
        self._threads["gatherer"].submit(lambda: None).result()

    def close(self) -> None:
        """See ``Device.close``; waits for the jobs in flight."""
        for thread in self._threads.values():
            thread.shutdown()
        super().close()

    def _run(self, job: Job, arguments: Arguments) -> Completion:
        rows = (arguments.total_rows, arguments.pinned_rows)
        native = self._fragmenter
        match job:
            case Clear():
                return native.clear()
            case Learn():
                return native.learn(flat(job.ids), *rows, policy=job.policy)
            case Evict():
                return native.evict(flat(job.ids), *rows)
            case Dump():
                return native.dump(flat(job.entries), arguments.pinned_rows)
            case Load():
                return native.load(flat(job.entries), *rows, job.rejected)
            case Fragment():
                return native.fragment(
                    flat(job.ids),
                    samples=arguments.samples,
                    total_rows=arguments.total_rows,
                    pinned_rows=arguments.pinned_rows,
                    cold_base=arguments.cold_base,
                    cold_rows_max=arguments.cold_rows_max,
                    lookups_max=self.config.lookups_max,
                    indices=job.indices,
                    popular=job.popular,
                    nonpopular=job.nonpopular,
                    bitmap=job.bitmap,
                    cold_rows=job.cold_rows,
                    lookups_per_sample=arguments.lookups_per_sample,
                    offsets=job.offsets,
                    bags=arguments.bags,
                )
            case Gather() | Scatter():
                return move(
                    Operation(arguments.operation),
                    flat(job.ids),
                    job.records,
                    job.store,
                    arguments.total_rows,
                    arguments.segment_shift,
                    self._movers,
                )
        raise AssertionError(f"unreachable: {job}")
