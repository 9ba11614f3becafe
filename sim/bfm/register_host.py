# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""A host at a kernel's registers, for cocotb: offers jobs, takes completions."""

from __future__ import annotations

import logging
from typing import Any

from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from hotline import registers as reg
from hotline.arguments import Arguments

TIMEOUT = 20_000
"""Cycles (roughly) that a wait takes at most."""
Record = dict[str, int]
"""A completion record: value by name of the field."""


def decode(data: bytes) -> Record:
    """The fields of a completion record."""
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, 64, 4)]
    record: Record = {}
    for entry in reg.RESULT_FIELDS:
        value = words[entry.word] | (words[entry.word + 1] << 32 if entry.bits == 64 else 0)
        record[entry.name] = (value & entry.mask) >> entry.shift
    assert words[reg.RESULT_STATUS - reg.RESULT >> 2] >> 24 == 0, "the status word's top byte"
    return record


class RegisterHost:
    """The driver's side of a kernel: arguments, start, completions.

    Args:
        dut: module with the ports ``s_axi_control_*``.
        clock, reset_n: their handles.

    Attributes:
        axil: the master itself, for other accesses.
        written: arguments as the kernel has them; clear it at a reset.
    """

    def __init__(self, dut: Any, clock: Any, reset_n: Any) -> None:
        bus = AxiLiteBus.from_prefix(dut, "s_axi_control")
        bus_log = logging.getLogger(f"cocotb.{dut._name}.s_axi_control")
        bus_log.setLevel(logging.WARNING)  # two lines per access otherwise
        self.axil = AxiLiteMaster(bus, clock, reset_n, reset_active_level=False)
        self.written: dict[str, int] = {}

    async def read(self, offset: int) -> int:
        """One register."""
        data: bytes = (await self.axil.read(offset, 4)).data
        return int.from_bytes(data, "little")

    async def write(self, offset: int, value: int) -> None:
        """One register."""
        await self.axil.write(offset, value.to_bytes(4, "little"))

    async def control(self) -> int:
        """CONTROL."""
        return await self.read(reg.CONTROL)

    async def offer(self, arguments: Arguments) -> None:
        """Writes the arguments that changed, and ``start``."""
        for name, value in arguments.registers().items():
            if self.written.get(name) != value:
                await self.write(getattr(reg, name), value)
                self.written[name] = value
        await self.write(reg.CONTROL, reg.CONTROL_START_MASK)

    async def until(self, mask: int, value: int, timeout: int = TIMEOUT) -> None:
        """Polls CONTROL until the bits of ``mask`` are ``value``."""
        for _ in range(timeout // 4):
            if await self.control() & mask == value:
                return
        raise TimeoutError(f"CONTROL & {mask:#x} never became {value:#x}")

    async def start(self, arguments: Arguments) -> None:
        """Offers a job and waits until it is latched."""
        await self.offer(arguments)
        await self.until(reg.CONTROL_START_MASK, 0)

    async def result(self) -> Record:
        """RESULT."""
        return decode((await self.axil.read(reg.RESULT, 64)).data)

    async def resume(self) -> None:
        """Takes the completion."""
        await self.write(reg.CONTROL, reg.CONTROL_RESUME_MASK)

    async def finish(self) -> Record:
        """Waits for ``done`` and takes the completion."""
        await self.until(reg.CONTROL_DONE_MASK, reg.CONTROL_DONE_MASK)
        result = await self.result()
        await self.resume()
        return result
