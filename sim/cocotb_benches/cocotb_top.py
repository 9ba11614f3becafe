# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs through the Verilog tops, against an AXI memory that is not ours (cocotbext-axi)."""

from __future__ import annotations

import logging
import random
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiRam

from hotline import registers as reg
from hotline.arguments import Arguments
from hotline.codes import FLAG_FREQUENCY, MAGIC, Operation, Status
from hotline.config import kernel_config
from hotline.reference import Eal, fragment, gather, scatter
from sim.bfm.axi import AxiChecker, AxiPort
from sim.bfm.power import power_up
from sim.bfm.register_host import Record, RegisterHost

CONFIG = kernel_config("tiny")
RECORD, IDS, INDICES, POPULAR, NONPOPULAR, BITMAP, COLD = (0x1000 * i for i in range(1, 8))
RECORDS, STORE = 0x1_0000, 0x2_0000
MEMORY_BYTES = 1 << 18
BURST_INCR = 1
CACHE_BUFFERABLE = 3


class Testbench:
    """A top between host and memory, with a checker on its AXI port.

    To be made in reset, after a clock edge: with four states outputs are unknown before it.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        for prefix in ("s_axi_control", "m_axi_gmem"):
            logging.getLogger(f"cocotb.{dut._name}.{prefix}").setLevel(logging.WARNING)
        self.host = RegisterHost(dut, dut.ap_clk, dut.ap_rst_n)
        bus = AxiBus.from_prefix(dut, "m_axi_gmem")
        self.ram = AxiRam(
            bus, dut.ap_clk, dut.ap_rst_n, reset_active_level=False, size=MEMORY_BYTES
        )
        port = AxiPort(
            dut, CONFIG.bus_bits // 8, "m_axi_gmem_", axi4_names=True,
            clock=dut.ap_clk, reset_n=dut.ap_rst_n,
        )  # fmt: skip
        self.checker = AxiChecker(
            port,
            burst_beats=CONFIG.burst_beats,
            read_outstanding=CONFIG.read_outstanding,
            write_outstanding=CONFIG.write_outstanding,
        )
        cocotb.start_soon(self.checker.run())

    async def reset(self) -> None:
        """The end of the reset."""
        await ClockCycles(self.dut.ap_clk, 5)
        self.dut.ap_rst_n.value = 1
        await ClockCycles(self.dut.ap_clk, 2)

    def put(self, address: int, values: npt.NDArray[Any]) -> None:
        """Writes an array into the memory."""
        self.ram.write(address, values.tobytes())

    def words(self, address: int, count: int) -> list[int]:
        """Reads 32-bit words of the memory."""
        return np.frombuffer(self.ram.read(address, 4 * count), dtype="<u4").tolist()  # type: ignore[no-any-return]

    async def job(self, **arguments: int) -> Record:
        """Runs one job by interrupt, and checks that record and RESULT agree."""
        host, tag = self.host, random.getrandbits(32)
        await host.write(reg.ISR, reg.ISR_DONE_MASK | reg.ISR_READY_MASK)
        await host.start(Arguments(tag=tag, record=RECORD, **arguments))
        for _ in range(20_000):
            await RisingEdge(self.dut.ap_clk)
            if self.dut.interrupt.value:
                break
        else:
            raise TimeoutError("no interrupt")
        result = await host.finish()
        assert result["tag"] == tag and result["operation"] == arguments["operation"]
        words = self.words(RECORD, 16)
        for entry in reg.RESULT_FIELDS:
            value = words[entry.word] | (words[entry.word + 1] << 32 if entry.bits == 64 else 0)
            assert (value & entry.mask) >> entry.shift == result[entry.name], entry.name
        return result


def same(result: Record, completion: Any) -> None:
    """Compares with the oracle's completion."""
    for name in result.keys() - {"tag", "cycles", "stalls"}:
        assert result[name] == getattr(completion, name), name


async def begin(dut: Any) -> Testbench:
    """Reset, magic, interrupts on."""
    power_up(dut.ap_clk, dut.ap_rst_n)
    await ClockCycles(dut.ap_clk, 2)
    tb = Testbench(dut)
    await tb.reset()
    assert await tb.host.read(reg.IDENTITY_MAGIC) == MAGIC
    assert await tb.host.read(reg.IDENTITY_BUS_BITS) == CONFIG.bus_bits
    assert await tb.host.read(reg.IDENTITY_CLOCK_KHZ) == CONFIG.clock_khz
    assert await tb.host.read(reg.IDENTITY_BUILD_ID) == 0xFEED_BEEF
    await tb.host.write(reg.IER, reg.IER_DONE_MASK)
    await tb.host.write(reg.GIE, reg.GIE_ENABLE_MASK)
    return tb


async def end(tb: Testbench) -> None:
    """Everything is quiet, and the constant signals are what AXI wants."""
    dut = tb.dut
    await ClockCycles(dut.ap_clk, 20)
    tb.checker.assert_quiet()
    assert await tb.host.control() == reg.CONTROL_IDLE_MASK | reg.CONTROL_READY_MASK
    for channel in ("aw", "ar"):
        values = {
            name: int(getattr(dut, f"m_axi_gmem_{channel}{name}").value)
            for name in ("id", "size", "burst", "lock", "cache", "prot", "qos", "region")
        }
        size = (CONFIG.bus_bits // 8).bit_length() - 1
        assert values == {
            "id": 0, "size": size, "burst": BURST_INCR, "lock": 0, "cache": CACHE_BUFFERABLE,
            "prot": 0, "qos": 0, "region": 0,
        }  # fmt: skip


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def fragmenter_runs_jobs(dut: Any) -> None:
    """LEARN, then FRAGMENT of other ids; counts, outputs and epoch as the oracle has them."""
    tb = await begin(dut)
    eal = Eal(CONFIG.eal_sets, CONFIG.eal_ways)
    rows, pinned, samples, length = 5000, 20, 40, 4
    draw = np.random.default_rng(random.getrandbits(32))
    ids = (rows * draw.random(300) ** 12).astype("<u4")
    tb.put(IDS, ids)
    result = await tb.job(
        operation=Operation.LEARN, ids=IDS, lookups=len(ids), total_rows=rows, pinned_rows=pinned,
        flags=FLAG_FREQUENCY,
    )  # fmt: skip
    same(result, eal.learn(ids, rows, pinned))

    ids = (rows * draw.random(samples * length) ** 12).astype("<u4")
    cold_base = pinned + CONFIG.eal_entries
    want = fragment(
        eal, ids, samples=samples, total_rows=rows, pinned_rows=pinned, cold_base=cold_base,
        cold_rows_max=CONFIG.cold_rows_max, lookups_max=CONFIG.lookups_max,
        lookups_per_sample=length,
    )  # fmt: skip
    tb.put(IDS, ids)
    result = await tb.job(
        operation=Operation.FRAGMENT, ids=IDS, indices=INDICES, popular=POPULAR,
        nonpopular=NONPOPULAR, bitmap=BITMAP, cold=COLD, lookups=len(ids), samples=samples,
        lookups_per_sample=length, total_rows=rows, pinned_rows=pinned, cold_base=cold_base,
        cold_rows_max=CONFIG.cold_rows_max,
    )  # fmt: skip
    same(result, want.completion)
    assert result["status"] == Status.OK and 0 < result["popular"] < samples
    for address, values in [
        (INDICES, want.indices),
        (POPULAR, want.popular),
        (NONPOPULAR, want.nonpopular),
        (BITMAP, want.bitmap),
        (COLD, want.cold_rows),
    ]:
        assert tb.words(address, len(values)) == values.tolist(), hex(address)
    assert await tb.host.read(reg.IDENTITY_EPOCH) == 1
    await end(tb)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def gatherer_runs_jobs(dut: Any) -> None:
    """GATHER, then SCATTER with duplicates, and a row out of bounds."""
    tb = await begin(dut)
    rows, record_bytes, count = 100, 192, 37
    draw = np.random.default_rng(random.getrandbits(32))
    store = draw.integers(0, 256, (rows, record_bytes), dtype=np.uint8)
    ids = draw.integers(0, rows, count).astype("<u4")
    common = {
        "ids": IDS, "records": RECORDS, "store": STORE, "lookups": count, "total_rows": rows,
        "record_bytes": record_bytes, "segments": 1, "segment_shift": 31,
    }  # fmt: skip
    tb.put(IDS, ids)
    tb.put(STORE, store)
    result = await tb.job(operation=Operation.GATHER, **common)
    completion, records = gather(ids, store, rows)
    same(result, completion)
    assert tb.ram.read(RECORDS, records.nbytes) == records.tobytes()

    records = draw.integers(0, 256, (count, record_bytes), dtype=np.uint8)
    ids[-1] = ids[0]
    tb.put(IDS, ids)
    tb.put(RECORDS, records)
    result = await tb.job(operation=Operation.SCATTER, **common)
    same(result, scatter(ids, records, store, rows))
    assert tb.ram.read(STORE, store.nbytes) == store.tobytes()

    ids[20] = rows
    tb.put(IDS, ids)
    result = await tb.job(operation=Operation.GATHER, **common)
    same(result, gather(ids, store, rows)[0])
    assert result["status"] == Status.BAD_INDEX
    await end(tb)
