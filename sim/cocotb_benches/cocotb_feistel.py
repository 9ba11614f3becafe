# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hotline_feistel, permutation and inverse, against the oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from hotline.reference import permute

LATENCY = 9
EDGES = (
    [0, 1, 2, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF, 0xFFFF, 0x1_0000, 0xFFFF_0000]
    + [1 << bit for bit in range(32)]
    + [0xFFFF_FFFF ^ 1 << bit for bit in range(32)]
    # The operand of a round is 0 where a half equals the round's constant.
    + [c << 16 | c for c in (0x79B9, 0xCA6B, 0xAE35, 0x165F)]
)


class Beat(NamedTuple):
    """A vector of words, what travels with it, and the cycle it was seen in."""

    words: list[int]
    user: int
    cycle: int


class Testbench:
    """Sends beats; notes those that enter, leave the permutation, and leave the inverse."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.lanes = int(dut.Lanes.value)
        self.seen: dict[str, list[Beat]] = {"": [], "permuted_": [], "restored_": []}
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 4, unit="ns").start(start_high=False)

    async def reset(self) -> None:
        """Resets the block and starts the monitor."""
        self.dut.valid_i.value = 0
        self.dut.rst_ni.value = 0
        await ClockCycles(self.dut.clk_i, 2)
        self.dut.rst_ni.value = 1
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        cycle = 0
        while True:
            await RisingEdge(self.dut.clk_i)
            cycle += 1
            for prefix, beats in self.seen.items():
                port = prefix + "{}" + ("_o" if prefix else "_i")
                valid, data, user = (
                    getattr(self.dut, port.format(name)).value for name in ("valid", "data", "user")
                )
                if valid and self.dut.rst_ni.value:
                    packed = int(data)
                    words = [packed >> 32 * lane & 0xFFFF_FFFF for lane in range(self.lanes)]
                    beats.append(Beat(words, int(user), cycle))

    async def send(self, words: Sequence[int], user: int) -> None:
        """Sends one beat."""
        self.dut.valid_i.value = 1
        self.dut.data_i.value = sum(word << 32 * lane for lane, word in enumerate(words))
        self.dut.user_i.value = user
        await RisingEdge(self.dut.clk_i)
        self.dut.valid_i.value = 0

    async def check(self) -> None:
        """Waits for the pipelines to empty; compares with the oracle, latency included."""
        await ClockCycles(self.dut.clk_i, 2 * LATENCY + 2)
        sent = self.seen[""]
        expected = [
            Beat([int(word) for word in permute(beat.words)], beat.user, beat.cycle + LATENCY)
            for beat in sent
        ]
        assert self.seen["permuted_"] == expected
        assert self.seen["restored_"] == [
            beat._replace(cycle=beat.cycle + 2 * LATENCY) for beat in sent
        ]


@cocotb.test(timeout_time=100, timeout_unit="us")
async def equals_the_oracle(dut: Any) -> None:
    """Edge words and random ones, with gaps: same words, same order, 9 cycles each way."""
    tb = Testbench(dut)
    await tb.reset()
    words = EDGES + [random.getrandbits(32) for _ in range(2000)]
    words += [0] * (-len(words) % tb.lanes)
    for first in range(0, len(words), tb.lanes):
        while random.random() < 0.3:
            await RisingEdge(dut.clk_i)
        await tb.send(words[first : first + tb.lanes], random.getrandbits(4))
    await tb.check()
    assert len(tb.seen["restored_"]) == len(words) // tb.lanes


@cocotb.test(timeout_time=100, timeout_unit="us")
async def one_beat_per_cycle(dut: Any) -> None:
    """The header's throughput; distinct words have distinct images."""
    tb = Testbench(dut)
    await tb.reset()
    base = random.getrandbits(32)
    words = sorted({(base + 64 * i) & 0xFFFF_FFFF for i in range(1024)} | set(range(1024)))
    words = words[: len(words) // tb.lanes * tb.lanes]
    for first in range(0, len(words), tb.lanes):
        await tb.send(words[first : first + tb.lanes], 0)
    await tb.check()
    beats = tb.seen["permuted_"]
    assert beats[-1].cycle - beats[0].cycle == len(words) // tb.lanes - 1, "a bubble"
    assert len({word for beat in beats for word in beat.words}) == len(words)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def reset_drops_what_is_inside(dut: Any) -> None:
    """No beat sent before a reset comes out after it."""
    tb = Testbench(dut)
    await tb.reset()
    for _ in range(LATENCY - 2):
        await tb.send([1] * tb.lanes, 1)
    dut.rst_ni.value = 0
    await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    await ClockCycles(dut.clk_i, 3 * LATENCY)
    assert tb.seen["permuted_"] == tb.seen["restored_"] == []
    tb.seen[""].clear()
    await tb.send([2] * tb.lanes, 2)
    await tb.check()
