# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The bus checker finds every rule's violation, and the memory answers by region; no simulator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sim.bfm import AxiChecker, AxiMemory, AxiPort, AxiViolationError, Response, Timing
from sim.bfm.axi import CORE_NAMES, Cycle


class Bench:
    """A port made of plain numbers: each `edge` is a clock edge with the values given."""

    def __init__(self, **rules: Any) -> None:
        self.dut = SimpleNamespace(
            clk_i=None,
            rst_ni=SimpleNamespace(value=1),
            **{f"m_{key}": SimpleNamespace(value=0) for key in CORE_NAMES.values()},
        )
        self.port = AxiPort(self.dut, 8)
        self.checker = AxiChecker(self.port, **rules)

    def edge(self, **values: int) -> None:
        for key, handle in self.port.handles.items():
            handle.value = values.get(key, 0)
        self.checker.step(Cycle(self.port))

    def ar(self, address: int, beats: int, ready: int = 1) -> None:
        self.edge(ar_valid=1, ar_ready=ready, ar_addr=address, ar_len=beats - 1)

    def aw(self, address: int, beats: int, ready: int = 1) -> None:
        self.edge(aw_valid=1, aw_ready=ready, aw_addr=address, aw_len=beats - 1)

    def r(self, last: int) -> None:
        self.edge(r_valid=1, r_ready=1, r_last=last)

    def w(self, last: int, strobe: int = 0xFF) -> None:
        self.edge(w_valid=1, w_ready=1, w_last=last, w_strb=strobe)

    def b(self) -> None:
        self.edge(b_valid=1, b_ready=1)


def test_legal_traffic_passes_and_is_counted() -> None:
    bench = Bench(burst_beats=16, read_outstanding=2, write_outstanding=2)
    bench.ar(4096 - 16 * 8, 16, ready=0)
    bench.ar(4096 - 16 * 8, 16)
    bench.ar(0, 1)
    for beat in range(16):
        bench.r(int(beat == 15))
    bench.r(1)
    bench.aw(0, 2, ready=0)
    bench.edge(  # data may be taken before the address
        aw_valid=1, aw_addr=0, aw_len=1, w_valid=1, w_ready=1, w_strb=0xFF
    )
    bench.aw(0, 2)
    bench.w(1, 0x0F)
    bench.b()
    bench.checker.assert_quiet()
    assert [(b.address, b.beats) for b in bench.checker.reads] == [(4096 - 128, 16), (0, 1)]
    assert bench.checker.writes[0].strobes == [0xFF, 0x0F]
    assert bench.checker.busy == {"ar": 2, "r": 17, "aw": 1, "w": 2, "b": 1}


def violations() -> dict[str, Any]:
    """Name -> what a bench does that must raise."""

    def beyond(bench: Bench) -> None:
        bench.aw(0, 1)
        bench.w(1)
        bench.w(1)

    def changed(channel: str, **payload: int) -> Any:
        def act(bench: Bench) -> None:
            bench.aw(0, 2) if channel == "w" else None
            bench.edge(**{f"{channel}_valid": 1})
            bench.edge(**{f"{channel}_valid": 1}, **payload)

        return act

    def withdrawn(channel: str) -> Any:
        def act(bench: Bench) -> None:
            bench.edge(**{f"{channel}_valid": 1})
            bench.edge()

        return act

    def in_reset(channel: str) -> Any:
        def act(bench: Bench) -> None:
            bench.dut.rst_ni.value = 0
            bench.edge()
            bench.edge(**{f"{channel}_valid": 1})

        return act

    def answered_early(bench: Bench) -> None:
        bench.aw(0, 2)
        bench.w(0)
        bench.b()

    def unanswered(bench: Bench) -> None:
        bench.aw(0, 1)
        bench.w(1)
        bench.checker.assert_quiet()

    return {
        "read crosses 4 KiB": lambda bench: bench.ar(4096 - 8, 2),
        "write crosses 4 KiB": lambda bench: bench.aw(4096 - 8, 2),
        "read too long": lambda bench: bench.ar(0, 17),
        "write too long": lambda bench: bench.aw(0, 17),
        "read not aligned": lambda bench: bench.ar(4, 1),
        "write not aligned": lambda bench: bench.aw(12, 1),
        "too many reads": lambda bench: [bench.ar(0, 1) for _ in range(3)],
        "too many writes": lambda bench: [bench.aw(0, 1) for _ in range(3)],
        "r without burst": lambda bench: bench.r(1),
        "r last early": lambda bench: [bench.ar(0, 2), bench.r(1)],
        "r last late": lambda bench: [bench.ar(0, 1), bench.r(0)],
        "w without address": lambda bench: bench.w(1),
        "w last early": lambda bench: [bench.aw(0, 2), bench.w(1)],
        "w last late": lambda bench: [bench.aw(0, 1), bench.w(0)],
        "w beyond": beyond,
        "strobe half a word": lambda bench: [bench.aw(0, 1), bench.w(1, 0x03)],
        "strobe not from lane 0": lambda bench: [bench.aw(0, 1), bench.w(1, 0xF0)],
        "b early": answered_early,
        "b without burst": lambda bench: bench.b(),
        "not quiet": unanswered,
        "ar changed": changed("ar", ar_addr=8),
        "ar length changed": changed("ar", ar_len=1),
        "aw changed": changed("aw", aw_addr=8),
        "w data changed": changed("w", w_data=1),
        "w strobe changed": changed("w", w_strb=0xF),
        "w last changed": changed("w", w_last=1),
        "r changed": changed("r", r_data=1),
        "b changed": changed("b", b_resp=2),
        **{f"{channel} withdrawn": withdrawn(channel) for channel in ("ar", "r", "aw", "w", "b")},
        **{f"{channel} in reset": in_reset(channel) for channel in ("ar", "aw", "w")},
    }


@pytest.mark.parametrize("name", violations())
def test_violation_is_found(name: str) -> None:
    bench = Bench(burst_beats=16, read_outstanding=2, write_outstanding=2)
    with pytest.raises(AxiViolationError):
        violations()[name](bench)


def test_memory_answers_by_region_and_fault() -> None:
    bench = Bench()
    memory = AxiMemory(bench.port, Timing(1))
    contents = memory.add_region(0x1000, 64, bytes(range(64)))
    assert memory._read_beat_at(0x1008) == (0x0F0E0D0C0B0A0908, Response.OKAY)
    # Nothing wraps: a byte before, a byte behind.
    assert memory._read_beat_at(0x0FF8)[1] is Response.DECERR
    assert memory._read_beat_at(0x1040)[1] is Response.DECERR
    memory.inject(0x100B, Response.SLVERR, reads=True)
    assert memory._read_beat_at(0x1008)[1] is Response.SLVERR
    memory.inject(0x1008, Response.OKAY, reads=True)
    assert memory._read_beat_at(0x1008)[1] is Response.OKAY
    memory.write(0x1000, b"\xff\xfe")
    assert contents[:2] == b"\xff\xfe" and memory.read(0x1000, 2) == b"\xff\xfe"
    with pytest.raises(IndexError):
        memory.read(0x103C, 8)
    with pytest.raises(ValueError, match="overlaps"):
        memory.add_region(0x1030, 64)
