# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""AXI4 master for cocotb that stands in for a core: flat ports, one ID, responses with addresses.

It drives the core's side of a guard or shell (``core_ar_valid_i``, ``core_r_addr_o`` ...)::

    master = AxiMaster(dut, "core_", bus_bytes=8)
    cocotb.start_soon(master.run())
    read = master.read(0x1_0000, beats=4)
    write = master.write(0x2_0000, data)
    await master.wait(read, write)
    assert read.data == ... and write.response == 0

All times are clock cycles. Randomness comes from ``random``, which cocotb seeds.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cocotb.triggers import RisingEdge

CHANNELS = ("ar", "r", "aw", "w", "b")


@dataclass
class Read:
    """One read burst, and what came back."""

    address: int
    beats: int
    data: bytes = b""
    responses: list[int] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)
    done_at: int = -1
    """Cycle of the last beat; -1 before it."""

    @property
    def done(self) -> bool:
        """Whether the last beat has come."""
        return self.done_at >= 0


@dataclass
class Write:
    """One write burst, and its response."""

    address: int
    beats: int
    user: int = 0
    response: int = -1
    address_back: int = -1
    user_back: int = -1
    done_at: int = -1
    """Cycle of the response; -1 before it."""

    @property
    def done(self) -> bool:
        """Whether the response has come."""
        return self.done_at >= 0


class AxiMaster:
    """Drives the five channels of one port.

    Args:
        dut: module that has the port.
        prefix: what the names begin with.
        bus_bytes: width of the data bus in bytes.
        clock: clock handle; default ``dut.clk_i``.
        reset_n: reset handle; default ``dut.rst_ni``.

    Attributes:
        stall: per channel, the share of cycles in which VALID (ar, aw, w) or READY (r, b) is
            withheld; a VALID once high stays.
        hold: names of channels that do nothing until removed.
        data_ahead: whether write data may be offered before their address was taken.
        cycle: clock edges seen.
    """

    def __init__(
        self, dut: Any, prefix: str, bus_bytes: int, *, clock: Any = None, reset_n: Any = None
    ) -> None:
        self.clock = clock if clock is not None else dut.clk_i
        self.reset_n = reset_n if reset_n is not None else dut.rst_ni
        self.bus_bytes = bus_bytes
        self.stall: dict[str, float] = dict.fromkeys(CHANNELS, 0.0)
        self.hold: set[str] = set()
        self.data_ahead = True
        self.cycle = 0

        def port(name: str) -> Any:
            for suffix in ("_i", "_o"):
                handle = getattr(dut, prefix + name + suffix, None)
                if handle is not None:
                    return handle
            return None

        names = {
            "ar": "valid ready addr len",
            "r": "valid ready data resp last addr",
            "aw": "valid ready addr len user",
            "w": "valid ready data strb last",
            "b": "valid ready resp addr user",
        }
        self._ports = {
            f"{channel}_{name}": port(f"{channel}_{name}")
            for channel, signals in names.items()
            for name in signals.split()
        }
        self._forget()

    def _forget(self) -> None:
        self._ar: deque[Read] = deque()
        self._aw: deque[Write] = deque()
        self._w: deque[tuple[int, int, int]] = deque()
        self.reads_open: deque[Read] = deque()
        self.writes_open: deque[Write] = deque()
        self._valid = dict.fromkeys(("ar", "aw", "w"), False)
        self._bursts_allowed = 0  # address taken, last beat not yet offered

    @property
    def quiet(self) -> bool:
        """Whether every burst is complete."""
        return not (self._ar or self._aw or self._w or self.reads_open or self.writes_open)

    def read(self, address: int, beats: int) -> Read:
        """Queues a read burst."""
        burst = Read(address, beats)
        self._ar.append(burst)
        self.reads_open.append(burst)
        return burst

    def write(self, address: int, data: bytes, *, user: int = 0) -> Write:
        """Queues a write burst; ``data`` is a whole number of beats."""
        size = self.bus_bytes
        beats = [data[i : i + size] for i in range(0, len(data), size)]
        burst = Write(address, len(beats), user)
        self._aw.append(burst)
        self.writes_open.append(burst)
        for number, beat in enumerate(beats):
            last = int(number == len(beats) - 1)
            self._w.append((int.from_bytes(beat, "little"), (1 << size) - 1, last))
        return burst

    async def wait(self, *bursts: Read | Write, timeout: int = 20_000) -> None:
        """Waits until the bursts are done, at most ``timeout`` cycles."""
        for _ in range(timeout):
            if all(burst.done for burst in bursts):
                return
            await RisingEdge(self.clock)
        raise TimeoutError(f"no response within {timeout} cycles")

    # -- the bus ----------------------------------------------------------------------------------

    def _get(self, name: str) -> int:
        return int(self._ports[name].value)

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            if self._ports[name] is not None:
                self._ports[name].value = value

    def _withheld(self, channel: str) -> bool:
        share = self.stall[channel]
        return channel in self.hold or (share > 0 and random.random() < share)

    async def run(self) -> None:
        """Serves the port for ever; start it with ``cocotb.start_soon``."""
        ready = {"r": False, "b": False}
        while True:
            # READY of r and b stays as driven until the next edge.
            if not int(self.reset_n.value if self.reset_n.value.is_resolvable else 0):
                self._forget()
                self._set(ar_valid=0, aw_valid=0, w_valid=0, r_ready=0, b_ready=0)
                ready = {"r": False, "b": False}
            await RisingEdge(self.clock)
            self.cycle += 1
            if not int(self.reset_n.value):
                continue
            self._take_read(ready["r"])
            self._take_response(ready["b"])
            self._offer("ar", self._ar, self._address)
            self._offer("aw", self._aw, self._address)
            self._offer("w", self._w, self._beat)
            for channel in ready:
                ready[channel] = not self._withheld(channel)
                self._set(**{f"{channel}_ready": int(ready[channel])})

    def _offer(self, channel: str, queue: deque[Any], drive: Any) -> None:
        if self._valid[channel]:
            if not self._get(f"{channel}_ready"):
                return
            self._taken(channel, queue.popleft())
            self._valid[channel] = False
        early = channel == "w" and not self.data_ahead and not self._bursts_allowed
        if queue and not early and not self._withheld(channel):
            drive(channel, queue[0])
            self._valid[channel] = True
        self._set(**{f"{channel}_valid": int(self._valid[channel])})

    def _taken(self, channel: str, item: Any) -> None:
        if channel == "aw":
            self._bursts_allowed += 1
        elif channel == "w":
            self._bursts_allowed -= item[2]

    def _address(self, channel: str, burst: Read | Write) -> None:
        self._set(**{f"{channel}_addr": burst.address, f"{channel}_len": burst.beats - 1})
        if isinstance(burst, Write):
            self._set(aw_user=burst.user)

    def _beat(self, channel: str, beat: Sequence[int]) -> None:
        self._set(w_data=beat[0], w_strb=beat[1], w_last=beat[2])

    def _take_read(self, ready: bool) -> None:
        if not (ready and self._get("r_valid")):
            return
        assert self.reads_open, "R beat that no burst waits for"
        burst = self.reads_open[0]
        burst.data += self._get("r_data").to_bytes(self.bus_bytes, "little")
        burst.responses.append(self._get("r_resp"))
        burst.addresses.append(self._get("r_addr"))
        last = len(burst.responses) == burst.beats
        assert bool(self._get("r_last")) == last, "r_last at the wrong beat"
        if last:
            burst.done_at = self.cycle
            self.reads_open.popleft()

    def _take_response(self, ready: bool) -> None:
        if not (ready and self._get("b_valid")):
            return
        assert self.writes_open, "B that no burst waits for"
        burst = self.writes_open.popleft()
        burst.response = self._get("b_resp")
        burst.address_back = self._get("b_addr")
        if self._ports["b_user"] is not None:
            burst.user_back = self._get("b_user")
        burst.done_at = self.cycle
