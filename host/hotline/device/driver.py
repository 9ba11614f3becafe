# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one driver of all devices with registers: simulated RTL, boards, cards.

``RegisterDevice`` checks the identity of both kernels, turns jobs into arguments, keeps up to two
jobs per kernel in flight, takes completions from RESULT, and turns them into typed errors. Any
thread may submit, wait and abort: one lock guards the order of register accesses and the jobs in
flight, nobody holds it while waiting for the hardware, and a completion is taken under it, so that
it lands in its handle exactly once.

Order of events for a job, as ``docs/architecture.md`` (section 6) demands::

    arguments -> CONTROL.start -> (start reads 0: latched) ... CONTROL.done
    -> clear ISR.done -> read RESULT -> CONTROL.resume
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hotline import registers as reg
from hotline.arguments import Arguments
from hotline.codes import MAGIC, VERSION, Operation, Reason, Status
from hotline.config import KernelConfig
from hotline.device.base import Capabilities, Completion, Device, Handle, Job
from hotline.device.buffers import Bound, BufferPool, bind, host_address
from hotline.device.status import raise_for
from hotline.device.transport import Kernel, Transport
from hotline.errors import (
    ConfigError,
    DeviceBufferError,
    DeviceDead,
    DeviceError,
    DeviceMismatch,
    DeviceTimeout,
)

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 60.0
"""Seconds that a job may take unless told otherwise."""
ABORT_TIMEOUT = 1.0
"""Seconds that a kernel gets to answer the abort of a job that took too long."""
_WATCH = 0.25
"""Seconds after which a thread that waits for an interrupt looks whether another took it."""
JOBS_MAX = 2
"""Jobs of one kernel in flight: one running, one queued."""

_PLACES: dict[Operation, Kernel] = {
    operation: "gatherer" if operation in (Operation.GATHER, Operation.SCATTER) else "fragmenter"
    for operation in Operation
}
_OUTPUTS: dict[Operation, frozenset[str]] = {
    Operation.FRAGMENT: frozenset({"indices", "popular", "nonpopular", "bitmap", "cold_rows"}),
    Operation.DUMP: frozenset({"entries"}),
    Operation.LOAD: frozenset({"rejected"}),
    Operation.GATHER: frozenset({"records"}),
    Operation.SCATTER: frozenset({"store"}),
}
_OFFSETS: dict[str, int] = {name: getattr(reg, name) for name in Arguments(operation=1).registers()}


def kernel_of(operation: Operation) -> Kernel:
    """The kernel that offers an operation."""
    return _PLACES[operation]


def decode_result(words: list[int]) -> Completion:
    """Turns the 16 words of RESULT (or of the record in memory) into a ``Completion``."""
    values: dict[str, int] = {}
    for entry in reg.RESULT_FIELDS:
        if entry.bits == 64:
            values[entry.name] = words[entry.word] | words[entry.word + 1] << 32
        else:
            values[entry.name] = (words[entry.word] & entry.mask) >> entry.shift
    try:
        status, operation = Status(values.pop("status")), values.pop("operation")
        reason = Reason(values.pop("reason"))
    except ValueError as error:
        raise DeviceError(
            f"RESULT holds no completion that this driver knows ({error}); the kernel's version "
            "and the driver's differ, or the device is broken: reset it"
        ) from None
    # A refused job may carry a code that is no operation; it stays a plain number then.
    known = operation in Operation._value2member_map_
    return Completion(
        status=status,
        reason=reason,
        operation=Operation(operation) if known else cast(Operation, operation),
        **values,
    )


@dataclass
class _Arrays:
    """Arrays of a job that need a flush before (all) and an invalidation after it (outputs)."""

    all: list[tuple[int, npt.NDArray[Any]]] = field(default_factory=list)
    outputs: list[tuple[int, npt.NDArray[Any]]] = field(default_factory=list)


class RegisterHandle(Handle):
    """A job of a ``RegisterDevice``; made by ``submit``."""

    def __init__(self, device: RegisterDevice, kernel: Kernel, job: Job | None) -> None:
        self._device, self.kernel, self.job = device, kernel, job
        self._completion: Completion | None = None
        self._error: DeviceError | None = None

    @property
    def _over(self) -> bool:
        return self._completion is not None or self._error is not None

    def done(self) -> bool:
        """Whether the completion (or the failure of the device) is there."""
        if not self._over:
            self._device._poll(self.kernel)
        return self._over

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        """Waits for the completion; see ``Handle.wait``."""
        self._device._wait(self, timeout)
        if self._error is not None:
            raise self._error
        assert self._completion is not None
        if check:
            raise_for(self._completion)
        return self._completion

    def abort(self) -> None:
        """Sets the abort bit of the job's kernel; a job that is done stays as it is."""
        self._device._abort(self)


@dataclass
class _Pending:
    """A job accepted by the driver: waiting for a place in the kernel, or in it."""

    handle: RegisterHandle
    arguments: Arguments
    arrays: _Arrays
    scratch: tuple[npt.NDArray[Any], ...]
    record: npt.NDArray[np.uint32]


class _State:
    """One kernel's jobs; guarded by the device's lock."""

    def __init__(self) -> None:
        self.waiting: deque[_Pending] = deque()  # not started yet
        self.running: deque[_Pending] = deque()  # started, completion not taken
        self.records: list[npt.NDArray[np.uint32]] = []  # free completion records
        self.aborting = False
        self.watched = False  # a thread waits for the interrupt; the others wait for that thread

    @property
    def count(self) -> int:
        return len(self.waiting) + len(self.running)


class RegisterDevice(Device):
    """A device behind a ``Transport``.

    Args:
        transport: access to the kernels; closed with the device, also if opening it fails.
        config: the configuration that must be there; None takes whatever is.
        build_id: the build that must be there, or None.
        timeout: seconds that a job may take unless ``wait`` says otherwise.
        check_records: compare the completion record in memory with RESULT after every job.

    Raises:
        DeviceMismatch: the kernels are not the wanted ones; the message names both sides.
    """

    def __init__(
        self,
        transport: Transport,
        config: KernelConfig | None = None,
        *,
        build_id: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        check_records: bool = False,
    ) -> None:
        self.transport = transport
        self.timeout = timeout
        self.check_records = check_records
        self._closed = False
        self._dead: str | None = None
        self._lock = threading.Condition(threading.RLock())
        self._states: dict[Kernel, _State] = {kernel: _State() for kernel in transport.kernels}
        try:
            self._identity = {kernel: self._read_identity(kernel) for kernel in transport.kernels}
            self._check_identity(config, build_id)
            self.capabilities = self._capabilities(config)
            self._pool = BufferPool(transport.reserve, transport.release)
            for state in self._states.values():
                state.records = [self._pool.allocate(16, np.uint32) for _ in range(JOBS_MAX)]
            self._subscribed = transport.subscribe(self._on_interrupt)
            self._enable_interrupts()
        except BaseException:
            transport.close()
            raise

    # --------------------------------------------------------------------------------- identity

    def _read_identity(self, kernel: Kernel) -> dict[str, int]:
        return {
            entry.name: self.transport.read(kernel, reg.IDENTITY + entry.offset)
            for entry in reg.IDENTITY_FIELDS
        }

    def _check_identity(self, config: KernelConfig | None, build_id: int | None) -> None:
        where = f"{self.transport.backend} device"
        for kernel, found in self._identity.items():
            if found["magic"] != MAGIC:
                raise DeviceMismatch(
                    f"{where}, {kernel}: magic is {found['magic']:#010x}, a Hotline kernel has "
                    f"{MAGIC:#010x}; another bitstream is loaded, or its address is wrong"
                )
            if found["version"] >> 16 != VERSION >> 16:
                raise DeviceMismatch(
                    f"{where}, {kernel}: register map version is {_version(found['version'])}, "
                    f"this driver speaks {_version(VERSION)}; build the bitstream and install the "
                    "driver from the same release"
                )
            offered = _operations(found["operations"])
            wanted = {op for op in Operation if kernel_of(op) == kernel}
            if not offered & wanted:
                names = ", ".join(sorted(op.name for op in offered)) or "none"
                raise DeviceMismatch(
                    f"{where}: the kernel at the {kernel}'s place offers {names}, but a {kernel} "
                    f"offers {', '.join(op.name for op in sorted(wanted))}; are the two swapped?"
                )
            differences = []
            if config is not None:
                differences = [
                    f"{name} is {found[name]}, wanted {value}"
                    for name, value in _geometry(config, kernel).items()
                    if found[name] != value
                ]
            if build_id is not None and found["build_id"] != build_id:
                differences.append(f"build_id is {found['build_id']:08x}, wanted {build_id:08x}")
            if differences:
                name = config.name if config is not None else "custom"
                raise DeviceMismatch(
                    f"{where}, {kernel}: not the build of configuration {name!r}: "
                    f"{'; '.join(differences)}; load the matching bitstream, or open the device "
                    "with its configuration"
                )
        if len({found["build_id"] for found in self._identity.values()}) > 1:
            raise DeviceMismatch(
                f"{where}: the kernels come from different builds: "
                + ", ".join(f"{k} {v['build_id']:08x}" for k, v in self._identity.items())
            )

    def _capabilities(self, config: KernelConfig | None) -> Capabilities:
        operations = frozenset(
            operation
            for kernel, found in self._identity.items()
            for operation in _operations(found["operations"])
            if kernel_of(operation) == kernel
        )
        merged = {
            name: max(found[name] for found in self._identity.values())
            for name in next(iter(self._identity.values()))
        }
        names = {entry.name for entry in dataclasses.fields(Capabilities)}
        return Capabilities(
            backend=self.transport.backend,
            config=config.name if config is not None else "custom",
            operations=operations,
            stores=self.transport.stores,
            **{name: value for name, value in merged.items() if name in names - {"operations"}},
        )

    def _enable_interrupts(self) -> None:
        for kernel in self._states:
            self.transport.write(kernel, reg.IER, reg.IER_DONE_MASK)
            self.transport.write(kernel, reg.GIE, reg.GIE_ENABLE_MASK)

    # ---------------------------------------------------------------------------------- buffers

    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Returns a zeroed, 64-byte aligned array in memory that the kernels reach."""
        self._check_open()
        with self._lock:
            return self._pool.allocate(shape, dtype)

    def free(self, array: npt.NDArray[Any]) -> None:
        """Gives a buffer back; no job in flight may use it."""
        if self._closed:
            return
        with self._lock:
            start = host_address(array)
            for state in self._states.values():
                for pending in (*state.running, *state.waiting):
                    for _, used in pending.arrays.all:
                        if start <= host_address(used) < start + max(array.nbytes, 1):
                            raise DeviceBufferError(
                                "free: a job in flight uses this buffer; wait for it first"
                            )
            self._pool.free(array)

    def address(self, array: npt.NDArray[Any]) -> int:
        """Device address of an array that lies in a buffer of this device."""
        with self._lock:
            return self._pool.address(array)

    # ------------------------------------------------------------------------------------- jobs

    def submit(self, job: Job) -> RegisterHandle:
        """Starts a job or queues it; see ``Device.submit``."""
        if job.operation not in self.capabilities.operations:
            offered = ", ".join(op.name for op in sorted(self.capabilities.operations))
            raise ConfigError(
                f"{type(job).__name__}: this device does not offer {job.operation.name}; it offers "
                f"{offered}"
            )
        kernel = kernel_of(job.operation)

        def make(record: int) -> tuple[Bound, _Arrays]:
            with self._lock:
                bound = bind(
                    job, self._pool, record=record, eal_entries=self.capabilities.eal_entries
                )
                return bound, self._arrays_of(job, bound)

        return self._enqueue(kernel, job, make)

    def submit_arguments(self, kernel: Kernel, arguments: Arguments) -> RegisterHandle:
        """Starts a job with raw arguments, unchecked: for tests of the kernels' own checks.

        The caller owns all pointers, RECORD too; nothing is synchronised.
        """
        return self._enqueue(kernel, None, lambda record: (Bound(arguments), _Arrays()))

    def _enqueue(self, kernel: Kernel, job: Job | None, make: Any) -> RegisterHandle:
        state = self._states[kernel]
        deadline = time.monotonic() + self.timeout
        while True:
            self._check_open()
            with self._lock:
                self._check_alive()
                if state.count < JOBS_MAX:
                    record = state.records[-1]
                    bound, arrays = make(self.address(record))
                    state.records.pop()
                    handle = RegisterHandle(self, kernel, job)
                    state.waiting.append(
                        _Pending(handle, bound.arguments, arrays, bound.scratch, record)
                    )
                    self._guarded(kernel, self._start_waiting)
                    return handle
                oldest = (state.running or state.waiting)[0].handle
            self._wait(oldest, max(deadline - time.monotonic(), 0.0))

    def _arrays_of(self, job: Job, bound: Bound) -> _Arrays:
        outputs = _OUTPUTS.get(job.operation, frozenset())
        arrays = _Arrays()
        for entry in dataclasses.fields(job):
            value = getattr(job, entry.name)
            parts = value if isinstance(value, (tuple, list)) else (value,)
            for part in parts:
                if not isinstance(part, np.ndarray) or part.size == 0:
                    continue
                try:
                    item = (self._pool.address(part), part)
                except DeviceBufferError:
                    continue  # bind found that the job does not use it
                arrays.all.append(item)
                if entry.name in outputs:
                    arrays.outputs.append(item)
        arrays.all += [(self._pool.address(array), array) for array in bound.scratch]
        return arrays

    def _start_waiting(self, kernel: Kernel) -> None:
        """Writes jobs into the kernel while it has places. The kernel's lock is held."""
        state, transport = self._states[kernel], self.transport
        while state.waiting and len(state.running) < transport.depth:
            if state.running and not self._latched(kernel):
                return
            pending = state.waiting.popleft()
            for address, array in pending.arrays.all:
                transport.sync_to_device(address, array)
            for name, value in pending.arguments.registers().items():
                transport.write(kernel, _OFFSETS[name], value)
            state.running.append(pending)
            transport.write(kernel, reg.CONTROL, reg.CONTROL_START_MASK)

    def _latched(self, kernel: Kernel) -> bool:
        """Whether the arguments of the job started last have been taken over by the kernel.

        The kernel has a place for the job, so this takes a few cycles, except while it aborts.
        """
        deadline = time.monotonic() + self.timeout
        while self.transport.read(kernel, reg.CONTROL) & reg.CONTROL_START_MASK:
            if self._states[kernel].aborting:
                return False
            if time.monotonic() > deadline:
                self._fail_timeout(kernel, "did not latch the arguments of a job")
        return True

    def _on_interrupt(self, kernel: Kernel) -> None:
        """Called by a thread of the transport."""
        try:
            self._take(kernel)
        except DeviceError as error:
            log.debug("%s: %s", kernel, error)  # the waiters have it

    def _take(self, kernel: Kernel) -> None:
        """Takes the completions that are there and starts the jobs that waited for a place."""
        with self._lock:
            self._guarded(kernel, self._take_locked)

    def _guarded(self, kernel: Kernel, action: Any) -> None:
        """Runs an action on the kernel; a failure of the transport ends the device for everyone."""
        try:
            action(kernel)
        except (ConfigError, DeviceTimeout):
            raise
        except DeviceError as error:
            self._die(f"it failed: {error}", error)
            raise

    def _take_locked(self, kernel: Kernel) -> None:
        state, transport = self._states[kernel], self.transport
        while state.running and self._dead is None:
            if not transport.read(kernel, reg.CONTROL) & reg.CONTROL_DONE_MASK:
                break
            # ISR first: the completion behind this one may rise as soon as `resume` is written.
            transport.write(kernel, reg.ISR, reg.ISR_DONE_MASK)
            words = [transport.read(kernel, reg.RESULT + 4 * i) for i in range(16)]
            transport.write(kernel, reg.CONTROL, reg.CONTROL_RESUME_MASK)
            pending = state.running.popleft()
            completion = decode_result(words)
            for address, array in pending.arrays.outputs:
                transport.sync_from_device(address, array)
            self._check_completion(kernel, pending, completion, words)
            self._release(state, pending)
            pending.handle._completion = completion
            self._lock.notify_all()
        if not state.running:
            state.aborting = False
        if self._dead is None:
            self._start_waiting(kernel)

    def _check_completion(
        self, kernel: Kernel, pending: _Pending, completion: Completion, words: list[int]
    ) -> None:
        arguments = pending.arguments
        expected = (arguments.tag, arguments.operation & 0xFF)
        if (completion.tag, int(completion.operation)) != expected:
            raise DeviceError(
                f"{kernel}: the completion has tag {completion.tag} and operation "
                f"{int(completion.operation)}, the job in its turn has {expected}; completions "
                "were lost: reset the device"
            )
        if not self.check_records or pending.handle.job is None:
            return
        if completion.status is Status.AXI_ERROR:
            return  # the record itself may be what could not be written
        record = pending.record
        self.transport.sync_from_device(self.address(record), record)
        if record.tolist() != words:
            raise DeviceError(
                f"{kernel}: the completion record in memory {record.tolist()} differs from RESULT "
                f"{words}"
            )

    def _release(self, state: _State, pending: _Pending) -> None:
        state.records.append(pending.record)
        with self._lock:
            for array in pending.scratch:
                self._pool.free(array)

    def _poll(self, kernel: Kernel) -> None:
        if self._dead is not None or self._closed:
            return
        if not self._subscribed:
            self.transport.wait_interrupt(kernel, 0.0)
            self._take(kernel)

    def _wait(self, handle: RegisterHandle, timeout: float | None) -> None:
        """Returns when the handle is over; marks the device dead at the time-out."""
        kernel = handle.kernel
        state = self._states[kernel]
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while not handle._over:
            remaining = deadline - time.monotonic()
            with self._lock:
                if handle._over:
                    return
                self._check_open()
                self._check_alive()
                if remaining <= 0:
                    self._guarded(kernel, self._take_locked)  # a last look
                    if not handle._over:
                        self._fail_timeout(kernel, f"did not finish a job within {limit:g} s")
                    return
                if self._subscribed or state.watched:
                    self._lock.wait(remaining)
                    continue
                state.watched = True
            try:
                self._interrupt(kernel, min(remaining, _WATCH))
            finally:
                with self._lock:
                    state.watched = False
                    self._lock.notify_all()
            self._take(kernel)

    def _interrupt(self, kernel: Kernel, timeout: float) -> None:
        try:
            self.transport.wait_interrupt(kernel, timeout)
        except DeviceError as error:
            with self._lock:
                self._die(f"it failed: {error}", error)
            raise

    def _abort(self, handle: RegisterHandle) -> None:
        kernel = handle.kernel
        state = self._states[kernel]
        with self._lock:
            self._check_open()
            self._check_alive()
            self._guarded(kernel, self._until_latched)
            if handle._over:
                return
            state.aborting = True
            self.transport.write(kernel, reg.ABORT, reg.ABORT_ABORT_MASK)
            # Jobs that the driver still holds were submitted before the abort too.
            for pending in tuple(state.waiting):
                state.waiting.remove(pending)
                self._release(state, pending)
                pending.handle._completion = Completion(
                    tag=pending.arguments.tag,
                    status=Status.ABORTED,
                    operation=Operation(pending.arguments.operation),
                    epoch=self.epoch if kernel == "fragmenter" else 0,
                )
            self._lock.notify_all()

    def _until_latched(self, kernel: Kernel) -> None:
        """Waits until the kernel has accepted what was started: the abort bit spares the others.

        Right after an earlier abort that takes until the kernel is empty.
        """
        deadline = time.monotonic() + ABORT_TIMEOUT
        while self.transport.read(kernel, reg.CONTROL) & reg.CONTROL_START_MASK:
            self._take_locked(kernel)
            if time.monotonic() > deadline:
                return  # the memory does not answer; the time-out of the job will say so

    # -------------------------------------------------------------------------------- the end

    def registers(self) -> dict[str, int]:
        """Control, result, counters and identity of both kernels, by name: for bug reports."""
        dump: dict[str, int] = {}
        for kernel in self._states:
            for name in ("CONTROL", "GIE", "IER", "ISR", "ABORT"):
                dump[f"{kernel}.{name}"] = self.transport.read(kernel, getattr(reg, name))
            for block, entries in (
                ("RESULT", reg.RESULT_FIELDS),
                ("COUNTERS", reg.COUNTERS_FIELDS),
                ("IDENTITY", reg.IDENTITY_FIELDS),
            ):
                for entry in entries:
                    offset = getattr(reg, block) + entry.offset
                    word = (self.transport.read(kernel, offset) & _low(entry.mask)) >> entry.shift
                    if entry.bits == 64:
                        word |= self.transport.read(kernel, offset + 4) << 32
                    dump[f"{kernel}.{block}.{entry.name.upper()}"] = word
            for entry in reg.ARGUMENTS:
                word = self.transport.read(kernel, entry.offset)
                if entry.bits == 64:
                    word |= self.transport.read(kernel, entry.offset + 4) << 32
                dump[f"{kernel}.{entry.name.upper()}"] = word
        return dump | self.transport.describe()

    def counters(self, kernel: Kernel) -> dict[str, int]:
        """The free-running counters of a kernel, by name (``COUNTERS`` of the register map)."""
        self._check_open()
        return {
            entry.name: self.transport.read(kernel, reg.COUNTERS + entry.offset)
            for entry in reg.COUNTERS_FIELDS
        }

    def _fail_timeout(self, kernel: Kernel, what: str) -> None:
        """Dumps the registers, tries an abort, marks the device dead and raises."""
        state = self._states[kernel]
        answered = False
        dump: dict[str, int] = {}
        try:
            dump = self.registers()
            self.transport.write(kernel, reg.ABORT, reg.ABORT_ABORT_MASK)
            deadline = time.monotonic() + ABORT_TIMEOUT
            while not answered and time.monotonic() < deadline:
                self.transport.wait_interrupt(kernel, min(0.05, ABORT_TIMEOUT))
                answered = not self.transport.read(kernel, reg.ABORT) & reg.ABORT_ABORT_MASK
                answered |= bool(self.transport.read(kernel, reg.CONTROL) & reg.CONTROL_DONE_MASK)
        except DeviceError as error:
            log.warning("the dump after a time-out failed: %s", error)
        jobs = ", ".join(
            f"{_operation_name(pending.arguments.operation)} (tag {pending.arguments.tag})"
            for pending in (*state.running, *state.waiting)
        )
        counters = f"{kernel}.COUNTERS"
        timed_out = DeviceTimeout(
            f"{self.transport.backend} device, {kernel}: {what}; in flight: {jobs or 'none'}; "
            f"control {dump.get(f'{kernel}.CONTROL', 0):#x}, "
            f"reads in flight {dump.get(f'{counters}.READS_IN_FLIGHT', 0)}, "
            f"writes in flight {dump.get(f'{counters}.WRITES_IN_FLIGHT', 0)}; an abort was "
            f"{'answered' if answered else 'not answered'}. The device is marked dead: reset or "
            "reopen it, or give the job more time; all registers are in `dump`",
            dump=dump,
        )
        self._die(f"{kernel} {what}", timed_out)
        raise timed_out

    def _die(self, reason: str, error: DeviceError) -> None:
        """Marks the device dead and ends all jobs in flight with an error. The lock is held."""
        if self._dead is None:
            self._dead = reason
        for state in self._states.values():
            for pending in (*state.running, *state.waiting):
                if not pending.handle._over:
                    pending.handle._error = (
                        DeviceDead(f"the device died while the job was in flight: {reason}")
                        if isinstance(error, DeviceTimeout)
                        else error
                    )
        self._lock.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceDead("the device is closed; open it again")

    def _check_alive(self) -> None:
        if self._dead is not None:
            raise DeviceDead(f"the device is dead ({self._dead}); reset or reopen it")

    @property
    def epoch(self) -> int:
        """Changes of the EAL since reset."""
        self._check_open()
        self._check_alive()
        return self.transport.read("fragmenter", reg.IDENTITY_EPOCH)

    def reset(self) -> None:
        """Resets both kernels; jobs in flight end with ``DeviceDead``, buffers stay."""
        with self._lock:
            self._check_open()
            self._end_jobs("reset")
            self.transport.reset()
            self._dead = None
            self._enable_interrupts()

    def close(self) -> None:
        """Frees everything; jobs in flight end with ``DeviceDead``."""
        with self._lock:
            if self._closed:
                return
            in_flight = any(state.running for state in self._states.values())
            self._end_jobs("closed")
            self._closed = True
            try:
                if in_flight:  # memory must not go while a kernel still uses it
                    self.transport.reset()
            except DeviceError as error:
                log.warning("the reset before closing failed: %s", error)
            self._pool.clear()
        # Not under the lock: a thread of the transport may be waiting for it.
        self.transport.close()

    def _end_jobs(self, how: str) -> None:
        self._die(f"it was {how}", DeviceDead(f"the device was {how} while the job was in flight"))
        for state in self._states.values():
            for pending in (*state.running, *state.waiting):
                self._release(state, pending)
            state.running.clear()
            state.waiting.clear()
            state.aborting = False


def _low(mask: int) -> int:
    return mask & 0xFFFF_FFFF


def _version(version: int) -> str:
    return f"{version >> 16}.{version & 0xFFFF}"


def _operations(bits: int) -> frozenset[Operation]:
    return frozenset(operation for operation in Operation if bits >> operation & 1)


def _operation_name(code: int) -> str:
    return Operation(code).name if code in Operation._value2member_map_ else f"operation {code}"


def _geometry(config: KernelConfig, kernel: Kernel) -> dict[str, int]:
    """What the identity block must say for a configuration."""
    common = ("bus_bits", "burst_beats", "clock_khz")
    own = ("eal_sets", "eal_ways", "lookups_max", "cold_rows_max") if kernel == "fragmenter" else ()
    return {name: getattr(config, name) for name in (*common, *own)}
