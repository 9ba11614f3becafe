# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The simulated device: the RTL of both kernels, Verilated into this process.

The kernels' memory is NumPy memory, read and written in place, behind a model of an AXI memory
whose latency, bandwidth, stalls and faults can be set (``MemoryModel``). The rules of AXI are
checked all the time; a broken one ends the device with ``AxiProtocolError``.

Simulated time passes in register accesses, and

- ``background=True`` (the default): in a thread of the device while a job is in flight, so that the
  host does other work meanwhile. Jobs of one kernel start one after the other, so that the cycles
  of a job do not depend on how fast the host is.
- ``background=False``: while someone waits for a job or asks whether it is done. Both places of a
  kernel's queue are used, and a program with one thread gives the same cycles in every run.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import registers as reg
from hotline.config import KernelConfig, kernel_config
from hotline.device import simbuild
from hotline.device.buffers import aligned_bytes, host_address
from hotline.device.driver import DEFAULT_TIMEOUT, RegisterDevice
from hotline.device.transport import KERNELS, Bytes, Kernel
from hotline.errors import AxiProtocolError, ConfigError, DeviceDead, DeviceError

_CHUNK = 20_000
"""Cycles between two looks at the clock of a waiting thread."""
_POLL_CYCLES = 512
"""Cycles that pass while a job is asked whether it is done."""
_PAGE = 4096
_FIRST_ADDRESS = 1 << 40
"""Device address of the first buffer: not the host's, so that a mix-up cannot pass unnoticed."""
_CHANNELS = ("ar", "r", "aw", "w", "b")


@dataclass(frozen=True)
class MemoryModel:
    """Timing of the memory behind a kernel's AXI port.

    Attributes:
        read_latency: cycles from the acceptance of a read address to its first beat.
        write_latency: cycles from the acceptance of a burst's last beat to its response.
        outstanding_reads: read bursts that the memory takes at a time; None: as many as the kernel
            may issue.
        outstanding_writes: the same for writes.
        read_bandwidth: beats per cycle, above 0 and at most 1.
        write_bandwidth: beats per cycle.
        stall_probability: of a cycle without READY (AR, AW, W), or of a cycle by which VALID (R, B)
            comes later; every channel draws for itself.
        stall_ar, stall_r, stall_aw, stall_w, stall_b: the same for one channel; None: as above.
        answer_reads: False: read data never come.
        answer_writes: False: write responses never come.
        seed: of the stalls. The sequence starts anew when an idle kernel gets a job.
    """

    read_latency: int = 100
    write_latency: int = 100
    outstanding_reads: int | None = None
    outstanding_writes: int | None = None
    read_bandwidth: float = 1.0
    write_bandwidth: float = 1.0
    stall_probability: float = 0.0
    stall_ar: float | None = None
    stall_r: float | None = None
    stall_aw: float | None = None
    stall_w: float | None = None
    stall_b: float | None = None
    answer_reads: bool = True
    answer_writes: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("read_latency", "write_latency"):
            if not 0 <= getattr(self, name) < 1 << 31:
                raise ConfigError(f"MemoryModel: {name}={getattr(self, name)} is no latency")
        for name in ("outstanding_reads", "outstanding_writes"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= 1024:
                raise ConfigError(f"MemoryModel: {name}={value} is not in 1 ... 1024")
        for name in ("read_bandwidth", "write_bandwidth"):
            if not 1 / 65536 <= getattr(self, name) <= 1:
                raise ConfigError(f"MemoryModel: {name}={getattr(self, name)} is not in (0, 1]")
        for channel, probability in self.stalls().items():
            if not 0 <= probability < 1:
                raise ConfigError(f"MemoryModel: stall of {channel}={probability} is not in [0, 1)")

    def stalls(self) -> dict[str, float]:
        """Probability of a stall by channel."""
        own = {channel: getattr(self, f"stall_{channel}") for channel in _CHANNELS}
        return {c: self.stall_probability if p is None else p for c, p in own.items()}


@dataclass(frozen=True)
class Waves:
    """Records all signals of both kernels in a window of cycles.

    Attributes:
        path: ``<stem>-fragmenter<suffix>`` and ``<stem>-gatherer<suffix>`` are written; the suffix
            is ``.vcd``, or ``.fst`` where the headers of lz4 are installed.
        begin, end: first cycle and the one after the last, as ``SimDevice.cycles`` counts.
    """

    path: str | Path
    begin: int = 0
    end: int = 1 << 62


@dataclass(frozen=True)
class KernelState:
    """State of a simulated kernel and its memory; counts since ``measure`` or the start.

    Attributes:
        cycle: cycle of the device.
        interrupt, interrupts: level and number of rising edges of the interrupt.
        starts, resumes: jobs started and completions taken.
        first_start: cycle of the first start since the last ``measure``, 0 if there was none.
        last_done: cycle of the last rise of the interrupt.
        clocked: cycles in which the kernel was clocked.
        reads_in_flight, writes_in_flight: bursts in flight now.
        read_bursts, write_bursts, read_beats, write_beats: traffic.
        reads_most, writes_most: most bursts in flight at a time.
    """

    cycle: int
    interrupt: int
    interrupts: int
    starts: int
    resumes: int
    first_start: int
    last_done: int
    clocked: int
    reads_in_flight: int
    writes_in_flight: int
    read_bursts: int
    write_bursts: int
    read_beats: int
    write_beats: int
    reads_most: int
    writes_most: int


class _Timing(ctypes.Structure):
    """``Timing`` of ``verilated/axi_memory.hpp``."""

    _fields_ = (
        ("read_latency", ctypes.c_uint32),
        ("write_latency", ctypes.c_uint32),
        ("outstanding_reads", ctypes.c_uint32),
        ("outstanding_writes", ctypes.c_uint32),
        ("read_rate", ctypes.c_uint32),
        ("write_rate", ctypes.c_uint32),
        ("stall", ctypes.c_uint32 * 5),
        ("answer_reads", ctypes.c_uint32),
        ("answer_writes", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
    )


class _Fault(ctypes.Structure):
    """``Fault`` of ``verilated/axi_memory.hpp``."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("on", ctypes.c_uint32),
        ("response", ctypes.c_uint32),
        ("beat", ctypes.c_int32),
        ("left", ctypes.c_int32),
    )


_U8, _U32, _U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
_INTERFACE: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "hotline_new": (ctypes.c_void_p, (_U64, ctypes.c_int)),
    "hotline_delete": (None, (ctypes.c_void_p,)),
    "hotline_reset": (ctypes.c_int, (ctypes.c_void_p, _U32)),
    "hotline_timing": (ctypes.c_int, (ctypes.c_void_p, _U32, ctypes.POINTER(_Timing))),
    "hotline_gating": (None, (ctypes.c_void_p, ctypes.c_int)),
    "hotline_add_region": (ctypes.c_int, (ctypes.c_void_p, _U64, _U64, _U8)),
    "hotline_remove_region": (ctypes.c_int, (ctypes.c_void_p, _U64)),
    "hotline_add_fault": (None, (ctypes.c_void_p, ctypes.POINTER(_Fault))),
    "hotline_clear_faults": (None, (ctypes.c_void_p,)),
    "hotline_read": (ctypes.c_int, (ctypes.c_void_p, _U32, _U32, ctypes.POINTER(_U32))),
    "hotline_write": (ctypes.c_int, (ctypes.c_void_p, _U32, _U32, _U32)),
    "hotline_run": (ctypes.c_int, (ctypes.c_void_p, _U64, _U32, _U32, ctypes.POINTER(_U64))),
    "hotline_state": (None, (ctypes.c_void_p, _U32, ctypes.POINTER(_U64))),
    "hotline_clear_counters": (None, (ctypes.c_void_p, _U32)),
    "hotline_violation": (None, (ctypes.c_void_p, ctypes.c_char_p, _U32)),
    "hotline_coverage": (None, (ctypes.c_void_p, _U32, ctypes.c_char_p)),
    "hotline_trace": (ctypes.c_int, (ctypes.c_void_p, _U32, ctypes.c_char_p, _U64, _U64)),
}


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))  # CDLL: calls release the interpreter's lock
    for name, (result, arguments) in _INTERFACE.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)
    return library


class SimTransport:
    """Registers, memory and interrupts of the simulated kernels; see ``SimDevice``."""

    backend = "sim"
    kernels: tuple[Kernel, ...] = KERNELS
    stores = frozenset({"host"})

    def __init__(
        self,
        config: KernelConfig,
        library: simbuild.Library,
        *,
        memory: MemoryModel,
        background: bool,
        queue: int,
        check: bool,
        seed: int,
        waves: Waves | None,
        clock_gating: bool,
        separate_copies: bool,
    ) -> None:
        self.config, self.depth = config, queue
        self._lib = _load(library.path)
        self._model = ctypes.c_void_p(self._lib.hotline_new(seed & (1 << 64) - 1, int(check)))
        self._lib.hotline_gating(self._model, int(clock_gating))
        self._settle = config.eal_sets // config.eal_banks + 64
        self._background = background
        self._separate = separate_copies
        self._scatter = np.random.default_rng(seed) if check else None
        self._next_address = _FIRST_ADDRESS
        self._copies: dict[int, tuple[Bytes, Bytes, Bytes]] = {}
        self._failure: DeviceError | None = None
        self._closed = False
        self._handler: Callable[[Kernel], None] | None = None
        self._worker: threading.Thread | None = None
        # Guards the fields below; nobody holds it while the model runs.
        self._condition = threading.Condition()
        self._stepping = False
        self._waiters = dict.fromkeys(KERNELS, 0)
        for kernel in KERNELS:
            self.set_memory(memory, kernel)
        if waves is not None:
            self._trace(waves)
        self.reset()

    # ---------------------------------------------------------------------------- the simulation

    def _check(self, code: int) -> None:
        """Turns a broken rule into its error, now and in every later call until a reset."""
        if code == 0:
            return
        if self._failure is None:
            text = ctypes.create_string_buffer(1024)
            self._lib.hotline_violation(self._model, text, len(text))
            self._failure = AxiProtocolError(
                f"simulated device: {text.value.decode(errors='replace')}; this is a fault of the "
                "RTL, please report it with the job"
            )
        raise self._failure

    def _check_usable(self) -> None:
        if self._closed:
            raise DeviceDead("the simulated device is closed; open it again")
        if self._failure is not None:
            raise self._failure

    def _run(
        self, cycles: int, levels: int = 0, edges: int = 0, seen: tuple[int, ...] = (0, 0)
    ) -> None:
        numbers = (_U64 * len(KERNELS))(*seen)
        self._check(self._lib.hotline_run(self._model, cycles, levels, edges, numbers))

    def step(self, cycles: int) -> None:
        """Lets cycles pass."""
        self._check_usable()
        self._run(cycles)

    def state(self, kernel: Kernel) -> KernelState:
        """State of a kernel."""
        values = (_U64 * len(KernelState.__dataclass_fields__))()
        self._lib.hotline_state(self._model, KERNELS.index(kernel), values)
        return KernelState(*values)

    def measure(self, kernel: Kernel) -> None:
        """Clears the counts of ``state`` that begin anew with a measurement."""
        self._lib.hotline_clear_counters(self._model, KERNELS.index(kernel))

    def set_memory(self, memory: MemoryModel, kernel: Kernel) -> None:
        """Changes the memory of a kernel; bursts in flight keep their times."""
        reads, writes = memory.outstanding_reads, memory.outstanding_writes
        timing = _Timing(
            read_latency=memory.read_latency,
            write_latency=memory.write_latency,
            outstanding_reads=self.config.read_outstanding if reads is None else reads,
            outstanding_writes=self.config.write_outstanding if writes is None else writes,
            read_rate=round(memory.read_bandwidth * 65536),
            write_rate=round(memory.write_bandwidth * 65536),
            stall=(ctypes.c_uint32 * 5)(
                *(int(memory.stalls()[channel] * 2**32) for channel in _CHANNELS)
            ),
            answer_reads=int(memory.answer_reads),
            answer_writes=int(memory.answer_writes),
            seed=(memory.seed * 2 + KERNELS.index(kernel)) & (1 << 64) - 1,
        )
        self._lib.hotline_timing(self._model, KERNELS.index(kernel), timing)

    def add_fault(
        self, address: int, size: int, on: int, response: int, beat: int, count: int
    ) -> None:
        """See ``SimDevice.inject``."""
        self._lib.hotline_add_fault(self._model, _Fault(address, size, on, response, beat, count))

    def clear_faults(self) -> None:
        """Forgets all injected faults."""
        self._lib.hotline_clear_faults(self._model)

    def _trace(self, waves: Waves) -> None:
        path = Path(waves.path)
        for kernel in KERNELS:
            name = path.with_name(f"{path.stem}-{kernel}{path.suffix}")
            code = self._lib.hotline_trace(
                self._model, KERNELS.index(kernel), str(name).encode(), waves.begin, waves.end
            )
            if code:
                raise ConfigError(f"waves cannot be written to {name}; is its folder there?")

    # --------------------------------------------------------------------------------- registers

    def read(self, kernel: Kernel, offset: int) -> int:
        """Reads a register; some cycles pass."""
        self._check_usable()
        data = ctypes.c_uint32()
        self._check(self._lib.hotline_read(self._model, KERNELS.index(kernel), offset, data))
        return data.value

    def write(self, kernel: Kernel, offset: int, value: int) -> None:
        """Writes a register; some cycles pass."""
        self._check_usable()
        self._check(self._lib.hotline_write(self._model, KERNELS.index(kernel), offset, value))
        if offset == reg.CONTROL and self._handler is not None:
            with self._condition:
                self._condition.notify_all()

    # ------------------------------------------------------------------------------------ memory

    def reserve(self, size: int) -> tuple[Bytes, int]:
        """Gives memory at an address that is the same in every run, before an unmapped page."""
        memory = aligned_bytes(size)
        device = aligned_bytes(size) if self._separate else memory
        address = self._next_address
        if self._scatter is not None:  # tests: any place in a page
            address += 64 * int(self._scatter.integers(_PAGE // 64))
        self._next_address = -(-(address + size) // _PAGE) * _PAGE + _PAGE
        if self._scatter is not None:  # and anywhere in 64 bits
            address += int(self._scatter.integers(1 << 20)) << 44
        self._check_usable()
        code = self._lib.hotline_add_region(self._model, address, size, host_address(device))
        if code:
            raise DeviceError(f"simulated device: {size} bytes at {address:#x} overlap a buffer")
        self._copies[address] = (memory, device, memory.copy() if self._separate else memory)
        return memory, address

    def release(self, memory: Bytes, address: int) -> None:
        """Takes memory back; the kernels get DECERR there from now on."""
        if not self._closed:
            self._lib.hotline_remove_region(self._model, address)
        self._copies.pop(address, None)

    def _find_copy(self, address: int, array: npt.NDArray[Any]) -> tuple[Bytes, Bytes, Bytes]:
        """The part of host memory, device memory and shadow that an array takes."""
        for start, (memory, device, shadow) in self._copies.items():
            if start <= address < start + memory.nbytes:
                part = slice(address - start, address - start + array.nbytes)
                return memory[part], device[part], shadow[part]
        raise DeviceError(f"simulated device: {address:#x} lies in no buffer")

    def sync_to_device(self, address: int, array: npt.NDArray[Any]) -> None:
        """Separate copies: hands over the bytes that the host changed, as a cache would."""
        if self._separate and array.nbytes:
            host, device, shadow = self._find_copy(address, array)
            dirty = host != shadow
            device[dirty] = host[dirty]
            shadow[:] = host

    def sync_from_device(self, address: int, array: npt.NDArray[Any]) -> None:
        """Separate copies: the host sees what the kernels wrote."""
        if self._separate and array.nbytes:
            host, device, shadow = self._find_copy(address, array)
            host[:] = device
            shadow[:] = device

    # ---------------------------------------------------------------------------------- interrupt

    def wait_interrupt(self, kernel: Kernel, timeout: float) -> bool:
        """Waits for an interrupt; without a background thread the caller runs the model."""
        self._check_usable()
        index = KERNELS.index(kernel)
        if timeout <= 0:
            if self._handler is None:
                self._run(_POLL_CYCLES, 1 << index)
            return bool(self.state(kernel).interrupt)
        deadline = time.monotonic() + timeout
        with self._condition:
            self._waiters[kernel] += 1
        try:
            while True:
                state = self.state(kernel)
                if state.interrupt or state.starts == state.resumes:
                    return bool(state.interrupt)  # without a job in flight there will be none
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                self._check_usable()
                with self._condition:
                    if self._stepping or self._handler is not None:
                        # Another thread runs the model; it notifies at every interrupt.
                        self._condition.wait(min(remaining, 0.1))
                        continue
                    self._stepping = True
                    levels = sum(1 << KERNELS.index(k) for k in KERNELS if self._waiters[k])
                try:
                    # Lines of others that are up already are theirs to see.
                    for other in KERNELS:
                        if other != kernel and self.state(other).interrupt:
                            levels &= ~(1 << KERNELS.index(other))
                    self._run(_CHUNK, levels)
                finally:
                    with self._condition:
                        self._stepping = False
                        self._condition.notify_all()
        finally:
            with self._condition:
                self._waiters[kernel] -= 1
                self._condition.notify_all()

    def subscribe(self, handler: Callable[[Kernel], None]) -> bool:
        """With ``background``, starts the thread that runs the model while a job is in flight."""
        if not self._background:
            return False
        self._handler = handler
        self._worker = threading.Thread(target=self._work, name="hotline-sim", daemon=True)
        self._worker.start()
        return True

    def _work(self) -> None:
        handler = self._handler
        assert handler is not None
        seen = [0] * len(KERNELS)
        while not self._closed:
            states = [self.state(kernel) for kernel in KERNELS]
            risen = [k for k, s, n in zip(KERNELS, states, seen, strict=True) if s.interrupts != n]
            seen = [s.interrupts for s in states]
            if risen:
                with self._condition:
                    self._condition.notify_all()
                for kernel in risen:
                    handler(kernel)
                continue
            if self._failure is not None or all(s.starts == s.resumes for s in states):
                with self._condition:
                    if not self._closed:
                        self._condition.wait(0.5)
                continue
            try:
                self._run(_CHUNK, edges=(1 << len(KERNELS)) - 1, seen=tuple(seen))
            except DeviceError:
                for kernel in KERNELS:
                    handler(kernel)  # its register access raises the failure

    def describe(self) -> dict[str, int]:
        """State of the simulation, for the dump of a time-out."""
        return {
            f"sim.{kernel}.{name}": value
            for kernel in KERNELS
            for name, value in vars(self.state(kernel)).items()
        }

    def reset(self) -> None:
        """Resets both kernels and lets their memories be initialised."""
        if self._closed:
            raise DeviceDead("the simulated device is closed; open it again")
        self._failure = None
        self._check(self._lib.hotline_reset(self._model, self._settle))

    def close(self) -> None:
        """Ends the background thread and the model."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            self._condition.notify_all()
        if self._worker is not None and self._worker is not threading.current_thread():
            self._worker.join()
        with self._condition:  # a thread in `wait_interrupt` must leave the model first
            self._condition.wait_for(lambda: not any(self._waiters.values()))
        folder = os.environ.get("HOTLINE_COVERAGE")
        if folder:
            for index, kernel in enumerate(KERNELS):
                path = f"{folder}/sim-{kernel}-{os.getpid()}-{time.monotonic_ns()}.dat"
                self._lib.hotline_coverage(self._model, index, path.encode())
        self._lib.hotline_delete(self._model)
        self._copies.clear()


class SimDevice(RegisterDevice):
    """The RTL as a device. The first use of a configuration builds it (seconds to minutes).

    Args:
        config: a named configuration or a ``KernelConfig``.
        memory: timing of the memory of both kernels.
        background: run the model in a thread while jobs are in flight.
        queue: jobs of one kernel in the hardware at a time, 1 or 2; None: 1 with ``background``
            (the cycles of a job do not depend on the host then), else 2.
        check: for tests: assertions of the RTL, random initial values, buffers at random places in
            a page, completion records compared with RESULT.
        seed: of the random values of ``check``.
        waves: record signals.
        clock_gating: do not clock a kernel that has nothing to do; its cycle counter stands then.
        separate_copies: keep host and device memory apart, as a board without coherent caches
            does: what the driver forgets to synchronise is not seen.
        timeout: seconds that a job may take.

    Raises:
        BuildError: the library cannot be built; the message says what is missing.
    """

    transport: SimTransport

    def __init__(
        self,
        config: str | KernelConfig = "zynq",
        *,
        memory: MemoryModel | None = None,
        background: bool = True,
        queue: int | None = None,
        check: bool = False,
        seed: int = 0,
        waves: Waves | None = None,
        clock_gating: bool = True,
        separate_copies: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.config = kernel_config(config) if isinstance(config, str) else config
        if queue not in (None, 1, 2):
            raise ConfigError(f"SimDevice: queue={queue} is not 1 or 2")
        suffix = "" if waves is None else Path(waves.path).suffix.lstrip(".")
        if waves is not None and suffix not in ("vcd", "fst"):
            raise ConfigError(f"SimDevice: waves go to a .vcd or .fst file, not {waves.path}")
        options = simbuild.BuildOptions(
            check=check, waves=suffix, coverage="HOTLINE_COVERAGE" in os.environ
        )
        library = simbuild.build(self.config, options)
        self._memory = dict.fromkeys(KERNELS, memory or MemoryModel())
        transport = SimTransport(
            self.config,
            library,
            memory=self._memory["fragmenter"],
            background=background,
            queue=queue or (1 if background else 2),
            check=check,
            seed=seed,
            waves=waves,
            clock_gating=clock_gating,
            separate_copies=separate_copies,
        )
        super().__init__(
            transport,
            self.config,
            build_id=library.build_id,
            timeout=timeout,
            check_records=check,
        )

    @property
    def cycles(self) -> int:
        """Cycles since the device was opened."""
        return self.state("fragmenter").cycle

    def state(self, kernel: Kernel) -> KernelState:
        """State of a kernel and its memory."""
        self._check_open()
        return self.transport.state(kernel)

    def measure(self, kernel: Kernel) -> None:
        """Begins a measurement: ``state`` counts traffic and notes the first start from here."""
        self._check_open()
        self.transport.measure(kernel)

    def step(self, cycles: int) -> None:
        """Lets cycles pass, whether or not a job is in flight."""
        self._check_open()
        self.transport.step(cycles)

    def memory(self, kernel: Kernel) -> MemoryModel:
        """The memory model of a kernel."""
        return self._memory[kernel]

    def set_memory(
        self, memory: MemoryModel | None = None, kernel: Kernel | None = None, **changes: Any
    ) -> None:
        """Changes the memory of one or both kernels: a new model, or single fields of the old one.

        ``device.set_memory(answer_reads=False, kernel="gatherer")``
        """
        self._check_open()
        for name in KERNELS if kernel is None else (kernel,):
            self._memory[name] = replace(memory or self._memory[name], **changes)
            self.transport.set_memory(self._memory[name], name)

    def inject(
        self,
        array: npt.NDArray[Any],
        *,
        on: str = "read",
        response: str = "slverr",
        beat: int | None = None,
        count: int | None = None,
    ) -> None:
        """Makes accesses of the kernels to an array (a buffer or a part of one) fail.

        Args:
            array: the bytes concerned; a bus word that touches them fails.
            on: ``read``, ``write`` or ``both``.
            response: ``slverr`` or ``decerr``.
            beat: only this beat of a burst; None: any.
            count: how often; None: until ``clear_faults``.
        """
        self._check_open()
        kinds = {"read": 1, "write": 2, "both": 3}
        responses = {"slverr": 2, "decerr": 3}
        if on not in kinds or response not in responses:
            raise ConfigError(f"inject: on={on!r}, response={response!r} are not known")
        start = host_address(array)
        for address, (memory, _, _) in self.transport._copies.items():
            offset = start - host_address(memory)
            if 0 <= offset < memory.nbytes:
                self.transport.add_fault(
                    address + offset,
                    array.nbytes,
                    kinds[on],
                    responses[response],
                    -1 if beat is None else beat,
                    -1 if count is None else count,
                )
                return
        raise ConfigError("inject: the array lies in no buffer of this device")

    def clear_faults(self) -> None:
        """Ends all injected faults."""
        self._check_open()
        self.transport.clear_faults()
