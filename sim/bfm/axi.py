# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""AXI4 memory model and passive protocol checker for cocotb.

Both look at one `AxiPort`: the flat ports of a core (``m_ar_valid_o`` ..., with the guard's
``m_r_addr_i`` and ``m_b_addr_i``), or the AXI4 names of a kernel (``m_axi_gmem_arvalid`` ...).
Bursts are INCR, of the full bus width, with one ID, as the cores issue them::

    memory = AxiMemory(AxiPort(dut, bus_bytes=8), Timing(latency=100))
    memory.add_region(0x1_0000, 4096)
    memory.stall["r"] = 0.5
    memory.inject(0x1_0040, Response.SLVERR, reads=True)
    cocotb.start_soon(memory.run())
    ...
    memory.checker.assert_quiet()

All times are clock cycles. Randomness comes from ``random``, which cocotb seeds.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from cocotb.triggers import RisingEdge

CHANNELS = ("ar", "r", "aw", "w", "b")
"""The five channels of a port; keys of ``AxiMemory.stall``."""


class Response(IntEnum):
    """AXI response codes."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3


class AxiViolationError(AssertionError):
    """The device under test (or a memory) broke a rule of the bus."""


CORE_NAMES = {
    "ar_valid": "ar_valid_o", "ar_ready": "ar_ready_i", "ar_addr": "ar_addr_o",
    "ar_len": "ar_len_o",
    "r_valid": "r_valid_i", "r_ready": "r_ready_o", "r_data": "r_data_i", "r_resp": "r_resp_i",
    "r_last": "r_last_i", "r_addr": "r_addr_i",
    "aw_valid": "aw_valid_o", "aw_ready": "aw_ready_i", "aw_addr": "aw_addr_o",
    "aw_len": "aw_len_o",
    "w_valid": "w_valid_o", "w_ready": "w_ready_i", "w_data": "w_data_o", "w_strb": "w_strb_o",
    "w_last": "w_last_o",
    "b_valid": "b_valid_i", "b_ready": "b_ready_o", "b_resp": "b_resp_i", "b_addr": "b_addr_i",
}  # fmt: skip
"""Signal by channel and name -> its name at a core, without prefix."""


class AxiPort:
    """Handles of one AXI4 master port, by channel-and-signal name such as ``ar_valid``.

    Args:
        dut: handle of the module that has the port.
        bus_bytes: width of the data bus in bytes.
        prefix: what the names begin with; ``m_`` for a core, ``m_axi_gmem_`` for a kernel.
        axi4_names: True for names without separators and direction (``arvalid``).
        clock: clock handle; default ``dut.clk_i``.
        reset_n: active-low reset handle; default ``dut.rst_ni``.
        names: names that differ: key as above -> full name.
    """

    def __init__(
        self,
        dut: Any,
        bus_bytes: int,
        prefix: str = "m_",
        *,
        axi4_names: bool = False,
        clock: Any = None,
        reset_n: Any = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.bus_bytes = bus_bytes
        self.clock = clock if clock is not None else dut.clk_i
        self.reset_n = reset_n if reset_n is not None else dut.rst_ni
        self.handles: dict[str, Any] = {}
        for key, core_name in CORE_NAMES.items():
            name = prefix + (key.replace("_", "") if axi4_names else core_name)
            handle = getattr(dut, (names or {}).get(key, name), None)
            if handle is not None:
                self.handles[key] = handle
        self.reads = "ar_valid" in self.handles
        self.writes = "aw_valid" in self.handles
        if not (self.reads or self.writes):
            raise AttributeError(f"{dut}: no AXI port with prefix {prefix!r}")

    def value(self, key: str) -> int:
        """Present value of a signal."""
        return int(self.handles[key].value)

    def drive(self, key: str, value: int) -> None:
        """Drives a signal, if the port has it (the address sidebands are optional)."""
        handle = self.handles.get(key)
        if handle is not None:
            handle.value = value


class Cycle:
    """Values of a port at one clock edge; each signal is read at most once."""

    def __init__(self, port: AxiPort) -> None:
        self._port = port
        self._values: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = self._port.value(key)
        return value

    def fires(self, channel: str) -> bool:
        """True iff the channel transfers at this edge."""
        return bool(self[channel + "_valid"] and self[channel + "_ready"])


@dataclass
class Burst:
    """One burst: address, length in beats, and the cycle of its address transfer."""

    address: int
    beats: int
    accepted_at: int
    data_at: int = -1
    """Cycle of the last W beat (writes)."""
    data_seen: int = 0
    """Beats transferred so far."""
    strobes: list[int] = field(default_factory=list)


_PAYLOAD = {
    "ar": ("ar_addr", "ar_len"),
    "aw": ("aw_addr", "aw_len"),
    "w": ("w_data", "w_strb", "w_last"),
    "r": ("r_data", "r_resp", "r_last"),
    "b": ("b_resp",),
}


class AxiChecker:
    """Watches a port and raises `AxiViolationError` at the first broken rule.

    Rules: a burst never crosses 4 KiB, is at most ``burst_beats`` long and aligned to the bus;
    VALID once high stays, with a stable payload, until taken; no VALID in reset (from its second
    edge on); the number of W beats and ``last`` agree with the addresses in order, and no W beat
    comes before its address was offered; the same for R; B only after the last W beat; strobes are
    whole 32-bit words, contiguous from lane 0; at most the stated bursts are in flight.

    Attributes:
        reads, writes: every burst whose address was accepted since the last `clear`.
        answers: (address of the burst, response) of every B since the last `clear`.
        busy: per channel, cycles in which it transferred.
        reads_open, writes_open: bursts in flight, oldest first.
        early_w: (strobes, last, cycle) of W beats that came before their address was accepted.
        cycle: clock edges seen.
    """

    def __init__(
        self,
        port: AxiPort,
        *,
        burst_beats: int = 256,
        read_outstanding: int | None = None,
        write_outstanding: int | None = None,
        word_strobes: bool = True,
    ) -> None:
        self.port = port
        self.burst_beats = burst_beats
        self.read_outstanding = read_outstanding
        self.write_outstanding = write_outstanding
        self.word_strobes = word_strobes
        self.cycle = 0
        self.clear()
        self._forget()

    def clear(self) -> None:
        """Forgets the statistics (not what is in flight)."""
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self.answers: list[tuple[int, int]] = []
        self.busy = dict.fromkeys(CHANNELS, 0)

    def _forget(self) -> None:
        """Nothing is in flight: reset."""
        self._waiting: dict[str, tuple[int, ...]] = {}
        self.reads_open: deque[Burst] = deque()
        self.writes_open: deque[Burst] = deque()
        self.early_w: list[tuple[int, int, int]] = []
        self._in_reset = 0

    async def run(self) -> None:
        """Checks at every clock edge, for ever; start it with ``cocotb.start_soon``."""
        while True:
            await RisingEdge(self.port.clock)
            self.step(Cycle(self.port))

    def fail(self, text: str) -> None:
        """Raises the violation."""
        raise AxiViolationError(f"cycle {self.cycle}: {text}")

    def assert_quiet(self) -> None:
        """Raises unless every burst is complete."""
        if self.reads_open or self.writes_open or self.early_w or self._waiting:
            self.fail(
                f"not quiet: {len(self.reads_open)} reads, {len(self.writes_open)} writes open, "
                f"waiting {sorted(self._waiting)}"
            )

    def step(self, now: Cycle) -> None:
        """Checks one clock edge."""
        self.cycle += 1
        if not int(self.port.reset_n.value):
            in_reset = self._in_reset
            self._forget()
            self._in_reset = in_reset + 1
            if self._in_reset > 1:
                for channel in ("ar",) * self.port.reads + ("aw", "w") * self.port.writes:
                    if now[channel + "_valid"]:
                        self.fail(f"{channel}_valid is high in reset")
            return
        self._in_reset = 0
        channels = ("ar", "r") * self.port.reads + ("aw", "w", "b") * self.port.writes
        for channel in channels:
            self._stability(channel, now)
        if self.port.reads:
            self._step_reads(now)
        if self.port.writes:
            self._step_writes(now)

    def _stability(self, channel: str, now: Cycle) -> None:
        before = self._waiting.pop(channel, None)
        if not now[channel + "_valid"]:
            if before is not None:
                self.fail(f"{channel}_valid fell before it was taken")
            return
        taken = now[channel + "_ready"]
        if before is None and taken:
            self.busy[channel] += 1
            return
        payload = tuple(now[key] for key in _PAYLOAD[channel])
        if before is not None and payload != before:
            self.fail(f"payload of {channel} changed while it waited: {before} -> {payload}")
        if taken:
            self.busy[channel] += 1
        else:
            self._waiting[channel] = payload

    def _address(self, channel: str, now: Cycle) -> Burst:
        address, beats = now[channel + "_addr"], now[channel + "_len"] + 1
        size = self.port.bus_bytes
        if address % size:
            self.fail(f"{channel}: address {address:#x} is not aligned to {size} bytes")
        if address % 4096 + beats * size > 4096:
            self.fail(f"{channel}: {beats} beats from {address:#x} cross a 4 KiB boundary")
        if beats > self.burst_beats:
            self.fail(f"{channel}: {beats} beats, allowed are {self.burst_beats}")
        return Burst(address, beats, self.cycle)

    def _step_reads(self, now: Cycle) -> None:
        if now.fires("r"):
            if not self.reads_open:
                self.fail("R beat without a burst in flight")
            burst = self.reads_open[0]
            burst.data_seen += 1
            if bool(now["r_last"]) != (burst.data_seen == burst.beats):
                self.fail(f"r_last={now['r_last']} at beat {burst.data_seen} of {burst.beats}")
            if burst.data_seen == burst.beats:
                self.reads_open.popleft()
        if now.fires("ar"):
            burst = self._address("ar", now)
            self.reads.append(burst)
            self.reads_open.append(burst)
            if self.read_outstanding is not None and len(self.reads_open) > self.read_outstanding:
                self.fail(f"{len(self.reads_open)} read bursts in flight")

    def _strobe(self, strobe: int) -> None:
        if not self.word_strobes:
            return
        lanes = self.port.bus_bytes // 4
        if strobe not in {(1 << 4 * words) - 1 for words in range(lanes + 1)}:
            self.fail(f"w_strb={strobe:#x} is not a run of whole words from lane 0")

    def _beat(self, burst: Burst, strobe: int, last: int) -> None:
        burst.data_seen += 1
        burst.strobes.append(strobe)
        if bool(last) != (burst.data_seen == burst.beats):
            self.fail(f"w_last={last} at beat {burst.data_seen} of {burst.beats}")
        if last:
            burst.data_at = self.cycle

    def _step_writes(self, now: Cycle) -> None:
        if now.fires("b"):
            if not self.writes_open or self.writes_open[0].data_at < 0:
                self.fail("B without a complete burst in flight")
            self.answers.append((self.writes_open.popleft().address, now["b_resp"]))
        offered: Burst | None = None
        if now["aw_valid"]:
            offered = self._address("aw", now)
        if offered is not None and now["aw_ready"]:
            self.writes.append(offered)
            self.writes_open.append(offered)
            if (
                self.write_outstanding is not None
                and len(self.writes_open) > self.write_outstanding
            ):
                self.fail(f"{len(self.writes_open)} write bursts in flight")
            for strobe, last, _ in self.early_w:
                self._beat(offered, strobe, last)
            self.early_w = []
        if now.fires("w"):
            self._strobe(now["w_strb"])
            burst = next((b for b in self.writes_open if b.data_seen < b.beats), None)
            if burst is not None:
                self._beat(burst, now["w_strb"], now["w_last"])
            elif offered is None:
                self.fail("W beat before its address was offered")
            elif self.early_w and self.early_w[-1][1]:
                self.fail("W beat beyond the burst whose address is offered")
            else:
                # Legal: a memory may take data before the address. Counted when that comes.
                self.early_w.append((now["w_strb"], now["w_last"], self.cycle))


@dataclass(frozen=True)
class Timing:
    """When a memory answers.

    Attributes:
        latency: cycles from the AR transfer to the first R transfer that is possible, and from the
            last W transfer to B; at least 1.
        jitter: up to so many random cycles are added to each.
        read_depth, write_depth: bursts that the memory takes before it holds back addresses.
    """

    latency: int = 1
    jitter: int = 0
    read_depth: int = 1024
    write_depth: int = 1024

    def draw(self) -> int:
        """Latency of the next burst, in cycles."""
        return self.latency + (random.randint(0, self.jitter) if self.jitter else 0)


Stall = float | Callable[[], bool]
"""Share of withheld cycles, or a function that returns True for a withheld cycle."""


class AxiMemory:
    """Memory behind an AXI4 master port, with a checker on it.

    Addresses outside the regions answer DECERR, so that nothing wraps or aliases. Beats answer in
    order. ``m_r_addr_i`` and ``m_b_addr_i`` are driven if the port has them.

    Attributes:
        checker: the `AxiChecker` that looks at every edge.
        stall: per channel, the share of cycles withheld or a function; 0 at first. For ``ar``,
            ``aw``, ``w`` READY is withheld, for ``r``, ``b`` VALID (never once it was high).
        hold: names of channels that do nothing until removed (READY or new VALID stuck low).
    """

    def __init__(
        self,
        port: AxiPort,
        timing: Timing = Timing(),
        *,
        checker: AxiChecker | None = None,
    ) -> None:
        self.port = port
        self.timing = timing
        self.checker = checker if checker is not None else AxiChecker(port)
        self.stall: dict[str, Stall] = dict.fromkeys(CHANNELS, 0.0)
        self.hold: set[str] = set()
        self._regions: list[tuple[int, bytearray]] = []
        self._read_errors: dict[int, Response] = {}
        self._write_errors: dict[int, Response] = {}
        self._cycle = 0
        self._reset()

    # -- contents ---------------------------------------------------------------------------------

    def add_region(self, base: int, size: int, fill: int | bytes = 0) -> bytearray:
        """Makes ``size`` bytes from ``base`` on readable and writable.

        Args:
            base: address of the first byte.
            size: bytes.
            fill: initial value of each byte, or the contents from ``base`` on.

        Returns:
            The contents; changes to it are seen by later reads.
        """
        for other, data in self._regions:
            if base < other + len(data) and other < base + size:
                raise ValueError(f"region {base:#x} overlaps the one at {other:#x}")
        if isinstance(fill, bytes):
            contents = bytearray(size)
            contents[: len(fill)] = fill
        else:
            contents = bytearray([fill]) * size
        self._regions.append((base, contents))
        return contents

    def remove_regions(self) -> None:
        """Forgets all regions and injected errors."""
        self._regions.clear()
        self._read_errors.clear()
        self._write_errors.clear()

    def inject(
        self, address: int, response: Response, *, reads: bool = False, writes: bool = False
    ) -> None:
        """Lets the beat that holds ``address`` answer ``response``; OKAY removes the fault."""
        beat = address - address % self.port.bus_bytes
        for on, table in ((reads, self._read_errors), (writes, self._write_errors)):
            if on and response is Response.OKAY:
                table.pop(beat, None)
            elif on:
                table[beat] = response

    def read(self, address: int, size: int) -> bytes:
        """Contents, for the bench; raises ``IndexError`` outside the regions."""
        region, offset = self._find(address, size)
        return bytes(region[offset : offset + size])

    def write(self, address: int, data: bytes) -> None:
        """Changes the contents, for the bench; raises ``IndexError`` outside the regions."""
        region, offset = self._find(address, len(data))
        region[offset : offset + len(data)] = data

    def _find(self, address: int, size: int) -> tuple[bytearray, int]:
        for base, data in self._regions:
            if base <= address and address + size <= base + len(data):
                return data, address - base
        raise IndexError(f"{address:#x} + {size} lies in no region")

    # -- bus --------------------------------------------------------------------------------------

    def _reset(self) -> None:
        self._reads: deque[tuple[int, int, int]] = deque()  # address, beats, time of first beat
        self._read_beat = 0
        self._writes: deque[list[int]] = deque()  # address, beats, beats seen, response
        self._early: deque[tuple[int, int]] = deque()  # W beats before their address
        self._answers: deque[tuple[int, int, int]] = deque()  # address, response, time
        self._r_valid = False
        self._b_valid = False

    def _withheld(self, channel: str) -> bool:
        if channel in self.hold:
            return True
        stall = self.stall[channel]
        if callable(stall):
            return stall()
        return stall > 0 and random.random() < stall

    async def run(self) -> None:
        """Serves the port for ever; start it with ``cocotb.start_soon``."""
        port = self.port
        for key in ("ar_ready", "r_valid", "aw_ready", "w_ready", "b_valid"):
            port.drive(key, 0)
        while True:
            await RisingEdge(port.clock)
            now = Cycle(port)
            self.checker.step(now)
            self._cycle += 1
            if not int(port.reset_n.value):
                self._reset()
                for key in ("ar_ready", "r_valid", "aw_ready", "w_ready", "b_valid"):
                    port.drive(key, 0)
                continue
            if port.reads:
                self._serve_reads(now)
            if port.writes:
                self._serve_writes(now)

    def _serve_reads(self, now: Cycle) -> None:
        port = self.port
        if now.fires("ar"):
            # A beat driven now transfers at the next edge at the earliest: one cycle of latency.
            due = self._cycle + self.timing.draw() - 1
            self._reads.append((now["ar_addr"], now["ar_len"] + 1, due))
        if self._r_valid and now["r_ready"]:
            self._r_valid = False
            self._read_beat += 1
            if self._read_beat == self._reads[0][1]:
                self._reads.popleft()
                self._read_beat = 0
        if (
            not self._r_valid
            and self._reads
            and self._reads[0][2] <= self._cycle
            and not self._withheld("r")
        ):
            address, beats, _ = self._reads[0]
            address += self._read_beat * port.bus_bytes
            data, response = self._read_beat_at(address)
            port.drive("r_data", data)
            port.drive("r_resp", int(response))
            port.drive("r_last", int(self._read_beat + 1 == beats))
            port.drive("r_addr", address)
            self._r_valid = True
        port.drive("r_valid", int(self._r_valid))
        full = len(self._reads) >= self.timing.read_depth
        port.drive("ar_ready", int(not full and not self._withheld("ar")))

    def _read_beat_at(self, address: int) -> tuple[int, Response]:
        size = self.port.bus_bytes
        response = self._read_errors.get(address, Response.OKAY)
        try:
            region, offset = self._find(address, size)
        except IndexError:
            response = Response.DECERR
        if response is not Response.OKAY:
            return random.getrandbits(8 * size), response
        return int.from_bytes(region[offset : offset + size], "little"), response

    def _serve_writes(self, now: Cycle) -> None:
        port = self.port
        if self._b_valid and now["b_ready"]:
            self._b_valid = False
            self._answers.popleft()
        if now.fires("aw"):
            self._writes.append([now["aw_addr"], now["aw_len"] + 1, 0, int(Response.OKAY)])
        if now.fires("w"):
            self._early.append((now["w_data"], now["w_strb"]))
        while self._early and self._writes:
            self._write_beat(*self._early.popleft())
        if (
            not self._b_valid
            and self._answers
            and self._answers[0][2] <= self._cycle
            and not self._withheld("b")
        ):
            port.drive("b_resp", self._answers[0][1])
            port.drive("b_addr", self._answers[0][0])
            self._b_valid = True
        port.drive("b_valid", int(self._b_valid))
        full = len(self._writes) + len(self._answers) >= self.timing.write_depth
        port.drive("aw_ready", int(not full and not self._withheld("aw")))
        port.drive("w_ready", int(not self._withheld("w")))

    def _write_beat(self, data: int, strobe: int) -> None:
        burst = self._writes[0]
        size = self.port.bus_bytes
        address = burst[0] + burst[2] * size
        response = self._write_errors.get(address, Response.OKAY)
        try:
            region, offset = self._find(address, size)
        except IndexError:
            response = Response.DECERR
        if response is not Response.OKAY:
            burst[3] = max(burst[3], int(response))
        elif strobe:
            new = data.to_bytes(size, "little")
            if strobe == (1 << size) - 1:
                region[offset : offset + size] = new
            else:
                for lane in range(size):
                    if strobe >> lane & 1:
                        region[offset + lane] = new[lane]
        burst[2] += 1
        if burst[2] == burst[1]:
            self._writes.popleft()
            self._answers.append((burst[0], burst[3], self._cycle + self.timing.draw() - 1))
