# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The simulated RTL under hostile memory: stalls, errors, silence, aborts, resets; its timing."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotline import reference
from hotline.arguments import POINTERS, Arguments
from hotline.codes import Operation, Reason, Status
from hotline.config import kernel_config
from hotline.device import simbuild
from hotline.device.base import (
    ENTRY,
    Clear,
    Completion,
    Dump,
    Evict,
    Fragment,
    Gather,
    Job,
    Learn,
    Load,
    Scatter,
)
from hotline.device.sim import MemoryModel, SimDevice, Waves
from hotline.device.transport import KERNELS, Kernel
from hotline.errors import (
    Aborted,
    AxiError,
    ConfigError,
    DeviceBufferError,
    DeviceDead,
    DeviceTimeout,
)
from hotline.testing import Case, JobGenerator, Scoreboard
from tests.system.conftest import SEED, config_of

U32 = np.uint32


class Buffers:
    """One set of buffers for a job of every operation on the same ids."""

    def __init__(self, device: SimDevice, count: int = 400, rows: int = 500) -> None:
        self.device, self.rows = device, rows
        rng = np.random.default_rng(count)
        self.ids = device.allocate(count, U32)
        self.ids[:] = rng.integers(rows, size=count)
        self.samples = count // 4
        self.outputs = {
            name: device.allocate(count, U32)
            for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows")
        }
        self.offsets = device.allocate(self.samples + 1, U32)
        self.offsets[:] = np.arange(self.samples + 1) * 4
        self.entries = device.allocate(count, ENTRY)
        self.entries["row"] = self.ids
        self.dump = device.allocate(device.capabilities.eal_entries, ENTRY)
        self.rejected = device.allocate(count, ENTRY)
        self.store = device.allocate((rows, 64), np.uint8)
        self.store[:] = rng.integers(256, size=self.store.shape)
        self.records = device.allocate((count, 64), np.uint8)
        self.records[:] = rng.integers(256, size=self.records.shape)

    def job(self, operation: Operation, *, jagged: bool = False) -> Job:
        match operation:
            case Operation.CLEAR:
                return Clear()
            case Operation.LEARN:
                return Learn(self.ids, self.rows)
            case Operation.EVICT:
                return Evict(self.ids, self.rows)
            case Operation.LOAD:
                return Load(self.entries, self.rejected, self.rows)
            case Operation.DUMP:
                return Dump(self.dump)
            case Operation.GATHER:
                return Gather(self.ids, self.records, self.store, self.rows)
            case Operation.SCATTER:
                return Scatter(self.ids, self.records, self.store, self.rows)
        pinned = self.rows - self.device.capabilities.cold_rows_max // 2
        return Fragment(
            ids=self.ids,
            samples=self.samples,
            total_rows=self.rows,
            pinned_rows=max(0, pinned),
            cold_base=1 << 24,
            cold_rows_max=self.device.capabilities.cold_rows_max,
            lookups_per_sample=0 if jagged else 4,
            offsets=self.offsets if jagged else None,
            bags=int(jagged),
            **self.outputs,
        )


def eal_equals(device: SimDevice, change: Callable[[reference.Eal], object]) -> None:
    """Holds the EAL to what a change of the oracle's empty one gives."""
    config = config_of(device)
    eal = reference.Eal(config.eal_sets, config.eal_ways)
    change(eal)
    entries = device.allocate(config.eal_entries, ENTRY)
    completion = device.run(Dump(entries))
    _, expected = eal.dump()
    assert completion.lookups == len(expected)
    assert np.array_equal(entries[: len(expected)], expected)
    device.free(entries)


def still_works(device: SimDevice) -> None:
    """Two short jobs against the oracle on the device as it is now, its EAL cleared first."""
    config = config_of(device)
    epoch = device.run(Clear()).epoch
    board = Scoreboard(device, config)
    board.eal.epoch = epoch
    rows = (np.arange(64) * 5 % 90).astype(U32)
    board.check(Case(Operation.LEARN, rows[::2].copy(), total_rows=300))
    board.check(
        Case(
            Operation.FRAGMENT,
            rows,
            samples=16,
            lookups_per_sample=4,
            total_rows=300,
            cold_base=1 << 20,
            cold_rows_max=100,
        )
    )
    board.check(Case(Operation.GATHER, rows, total_rows=300))
    board.close()


# ----------------------------------------------------------------------------------------- memory

MODELS = {
    "immediate": MemoryModel(read_latency=0, write_latency=0),
    "far": MemoryModel(read_latency=900, write_latency=700),
    "one-at-a-time": MemoryModel(outstanding_reads=1, outstanding_writes=1, read_latency=5),
    "narrow": MemoryModel(read_bandwidth=0.2, write_bandwidth=0.1, read_latency=10),
    "ar": MemoryModel(read_latency=3, write_latency=3, stall_ar=0.9),
    "r": MemoryModel(read_latency=3, write_latency=3, stall_r=0.9),
    "aw": MemoryModel(read_latency=3, write_latency=3, stall_aw=0.9),
    "w": MemoryModel(read_latency=3, write_latency=3, stall_w=0.9),
    "b": MemoryModel(read_latency=3, write_latency=3, stall_b=0.95),
    "all": MemoryModel(read_latency=7, write_latency=9, stall_probability=0.5),
    "reads-late": MemoryModel(read_latency=400, write_latency=0, stall_r=0.2),
    "writes-late": MemoryModel(read_latency=0, write_latency=600, stall_w=0.3),
}


@pytest.mark.parametrize("model", MODELS)
def test_results_do_not_depend_on_the_memory(sim: SimDevice, model: str) -> None:
    sim.set_memory(replace(MODELS[model], seed=SEED + len(model)))
    generator = JobGenerator(sim.capabilities, seed=len(model) * 31 + SEED, lookups=300)
    board = Scoreboard(sim, config_of(sim))
    board.check_all([generator.next() for _ in range(25)])
    board.close()


@pytest.mark.parametrize("seed", range(4))
def test_results_do_not_depend_on_initial_values(seed: int) -> None:
    with SimDevice("tiny", check=True, background=False, seed=1000 + seed + SEED) as device:
        generator = JobGenerator(device.capabilities, seed=5)
        board = Scoreboard(device, device.config)
        board.check_all([generator.next() for _ in range(30)])


NEVER = 1 - 2**-31
HELD = {
    "ar": ({"stall_ar": NEVER}, {"stall_ar": 0.0}),
    "r": ({"answer_reads": False}, {"answer_reads": True}),
    "aw": ({"stall_aw": NEVER}, {"stall_aw": 0.0}),
    "w": ({"stall_w": NEVER}, {"stall_w": 0.0}),
    "b": ({"answer_writes": False}, {"answer_writes": True}),
}


@pytest.mark.parametrize("channel", HELD)
def test_channel_held_for_long(checked: SimDevice, channel: str) -> None:
    """Ten thousand cycles without READY (AR, AW, W) or VALID (R, B) in mid-job change nothing."""
    hold, release = HELD[channel]
    generator = JobGenerator(checked.capabilities, seed=len(channel) + SEED, lookups=400, faults=0)
    board = Scoreboard(checked, config_of(checked))
    checked.set_memory(stall_probability=0.0)
    moves = (Operation.GATHER, Operation.SCATTER, Operation.SCATTER, Operation.GATHER)
    for operation, move in zip(reference.FRAGMENTER - {Operation.CLEAR}, moves * 2, strict=False):
        tickets = [board.submit(generator.next(op)) for op in (operation, operation, move, move)]
        checked.step(150 + 10 * SEED % 100)
        checked.set_memory(**hold)
        checked.step(10_000)
        before = [checked.state(kernel).read_beats for kernel in KERNELS]
        checked.step(100)
        if channel in ("r", "ar"):
            assert before == [checked.state(kernel).read_beats for kernel in KERNELS]
        checked.set_memory(**release)
        for ticket in tickets:
            board.finish(ticket)
    board.check_store()
    board.close()


# ----------------------------------------------------------------------------------------- errors

READS = [
    (Operation.LEARN, "ids"),
    (Operation.EVICT, "ids"),
    (Operation.LOAD, "entries"),
    (Operation.FRAGMENT, "ids"),
    (Operation.FRAGMENT, "offsets"),
    (Operation.GATHER, "ids"),
    (Operation.GATHER, "store"),
    (Operation.SCATTER, "ids"),
    (Operation.SCATTER, "records"),
]
WRITES = [
    (Operation.DUMP, "dump"),
    (Operation.LOAD, "rejected"),
    (Operation.FRAGMENT, "indices"),
    (Operation.FRAGMENT, "popular"),
    (Operation.FRAGMENT, "nonpopular"),
    (Operation.FRAGMENT, "bitmap"),
    (Operation.FRAGMENT, "cold_rows"),
    (Operation.GATHER, "records"),
    (Operation.SCATTER, "store"),
]


@pytest.mark.parametrize("response", ["slverr", "decerr"])
@pytest.mark.parametrize("place", ["first", "middle", "last", "all"])
@pytest.mark.parametrize(
    ("operation", "name", "on"),
    [(op, name, "read") for op, name in READS] + [(op, name, "write") for op, name in WRITES],
)
def test_memory_error(
    checked: SimDevice, operation: Operation, name: str, on: str, place: str, response: str
) -> None:
    buffers = Buffers(checked)
    array = buffers.outputs.get(name)
    array = getattr(buffers, name) if array is None else array
    used = array.size
    if operation in (Operation.DUMP, Operation.FRAGMENT):
        checked.run(Learn(buffers.ids, buffers.rows))
    if name in buffers.outputs and name != "indices":
        good = checked.run(buffers.job(operation))
        used = {
            "popular": good.popular,
            "nonpopular": good.samples - good.popular,
            "bitmap": -(-good.samples // 32),
            "cold_rows": good.cold_rows,
        }[name]
        assert used
    if name == "rejected":  # entries of one set, so that some are rejected
        permuted = (np.arange(len(buffers.entries), dtype=np.uint64) * 16 + 3).astype(U32)
        buffers.entries["row"] = reference.unpermute(permuted)
        buffers.rows = reference.TOTAL_ROWS_MAX
        used = 100
    elif name == "dump":
        used = 100
    flat = array.reshape(-1)
    if array is buffers.store:
        wanted = {"first": 0, "middle": len(buffers.ids) // 2, "last": -1}
        if place != "all":
            flat = buffers.store[buffers.ids[wanted[place]]]
    else:
        bounds = {"first": (0, 1), "middle": (used // 2, used // 2 + 1), "last": (used - 1, used)}
        first, last = bounds.get(place, (0, used))
        flat = flat[first:last]
    checked.inject(flat, on=on, response=response)
    with pytest.raises(AxiError, match="0x") as error:
        checked.run(buffers.job(operation, jagged=name == "offsets"))
    completion = error.value.completion
    assert isinstance(completion, Completion)
    assert completion.reason is (Reason.READ if on == "read" else Reason.WRITE)
    start = checked.address(array)
    assert start <= completion.error_value < start + array.nbytes
    for count in ("samples", "popular", "cold_rows", "pinned_lookups"):
        assert getattr(completion, count) == 0
    if operation in (Operation.LEARN, Operation.LOAD, Operation.EVICT):
        applied = completion.lookups
        assert 0 <= applied <= len(buffers.ids)
        if operation is Operation.LEARN:
            eal_equals(checked, lambda eal: eal.learn(buffers.ids[:applied], buffers.rows))
        elif operation is Operation.LOAD:
            eal_equals(checked, lambda eal: eal.load(buffers.entries[:applied], buffers.rows))
    else:
        assert completion.lookups == 0
    checked.clear_faults()
    still_works(checked)


def test_record_that_cannot_be_written(checked: SimDevice) -> None:
    buffers = Buffers(checked)
    for kernel, operation in (("fragmenter", Operation.LEARN), ("gatherer", Operation.GATHER)):
        for record in checked._states[kernel].records:
            checked.inject(record, on="write", response="slverr")
        completion = checked.run(buffers.job(operation), check=False)
        assert (completion.status, completion.reason) == (Status.AXI_ERROR, Reason.WRITE)
        records = [checked.address(record) for record in checked._states[kernel].records]
        assert completion.error_value in records
        checked.clear_faults()
    still_works(checked)


def test_arrays_that_do_not_exist(checked: SimDevice) -> None:
    record = checked.address(checked.allocate(16, U32))
    arguments = Arguments(
        operation=Operation.LEARN, record=record, ids=1 << 60, lookups=100, total_rows=100
    )
    completion = checked.submit_arguments("fragmenter", arguments).wait(check=False)
    assert (completion.status, completion.reason) == (Status.AXI_ERROR, Reason.READ)
    assert completion.error_value >> 4 == (1 << 60) >> 4


# ------------------------------------------------------------------------------------- BAD_CONFIG


def raw_arguments(kernel: Kernel, pointer: int) -> list[dict[str, int]]:
    """Good arguments for every operation of a kernel; all pointers are the same buffer."""
    good = dict.fromkeys(POINTERS, pointer) | {
        "lookups": 8,
        "total_rows": 1000,
        "pinned_rows": 0,
        "tag": 5,
    }
    if kernel == "gatherer":
        more = {"record_bytes": 64, "segments": 1, "segment_shift": 31}
        return [good | more | {"operation": op} for op in sorted(reference.GATHERER)]
    fragment = {"samples": 4, "lookups_per_sample": 2, "cold_base": 4096, "cold_rows_max": 16}
    jagged = {"operation": Operation.FRAGMENT, "bags": 1, "lookups_per_sample": 0}
    fixed = [good | fragment | {"operation": op} for op in sorted(reference.FRAGMENTER)]
    return [*fixed, good | fragment | jagged]


CHANGES: list[dict[str, int]] = [
    {"operation": 0},
    {"operation": 7},
    {"operation": 10},
    {"operation": 0x103},
    {"operation": 2**32 - 1},
    *({name: value} for name in sorted(POINTERS) for value in (0, 4, 63)),
    {"lookups": 2**28 + 1},
    {"lookups": 2**32 - 1},
    {"lookups": 9},
    {"samples": 2**28 + 1, "lookups": 0, "lookups_per_sample": 0},
    {"bags": 65536},
    {"bags": 2**32 - 1},
    {"lookups_per_sample": 65, "samples": 1, "lookups": 65},
    {"samples": 2**31, "lookups_per_sample": 2, "lookups": 0},
    {"total_rows": 0},
    {"total_rows": 2**32 - 1},
    {"pinned_rows": 1001},
    {"pinned_rows": 2**30},
    {"cold_rows_max": 0},
    {"cold_rows_max": 129},
    {"cold_base": 2**31 - 16},
    {"cold_base": 2**32 - 1},
    {"cold_base": 255},
    {"record_bytes": 0},
    {"record_bytes": 96},
    {"record_bytes": 4160},
    {"segments": 0},
    {"segments": 65},
    {"segments": 2, "segment_shift": 9, "total_rows": 1025},
    {"segment_shift": 32, "segments": 2},
    {"lookups": 9, "total_rows": 0, "ids": 4},  # the first rule in order counts
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_bad_config(checked: SimDevice, change: dict[str, int]) -> None:
    """Whatever is refused has the oracle's reason, touches nothing, and the next job runs."""
    config = config_of(checked)
    target = checked.allocate(4096, np.uint8)
    refused = 0
    for kernel in KERNELS:
        offered = reference.FRAGMENTER if kernel == "fragmenter" else reference.GATHERER
        for good in raw_arguments(kernel, checked.address(target)):
            arguments = Arguments(**(good | change))
            reason = reference.check_config(arguments, config, offered)
            if reason is Reason.NONE:
                continue  # the operation does not use what was changed
            refused += 1
            target[:] = 0x77
            completion = checked.submit_arguments(kernel, arguments).wait(check=False)
            assert (completion.status, completion.reason) == (Status.BAD_CONFIG, reason), good
            assert completion.tag == 5 and int(completion.operation) == arguments.operation & 0xFF
            assert completion.lookups == completion.error_value == 0
            record_written = reason is not Reason.RECORD_POINTER and arguments.record != 0
            if reason is Reason.OPERATION:
                record_written = arguments.record % 64 == 0 and arguments.record != 0
            if record_written:
                words = target[:64].view(U32)
                assert words[0] == 5 and words[1] >> 16 == int(reason)
            assert (target[64:] == 0x77).all()
            if not record_written:
                assert (target == 0x77).all()
    assert refused
    still_works(checked)


# ---------------------------------------------------------------------------- silence, abort, reset


@pytest.mark.parametrize("silent", ["answer_reads", "answer_writes"])
@pytest.mark.parametrize("operation", sorted(reference.FRAGMENTER | reference.GATHERER))
def test_memory_that_never_answers(checked: SimDevice, operation: Operation, silent: str) -> None:
    if operation in (Operation.CLEAR, Operation.DUMP) and silent == "answer_reads":
        pytest.skip("does not read")
    buffers = Buffers(checked)
    checked.set_memory(**{silent: False})
    handle = checked.submit(buffers.job(operation))
    other = checked.submit(buffers.job(operation))
    with pytest.raises(DeviceTimeout, match=operation.name) as error:
        handle.wait(0.2)
    kernel = "gatherer" if operation in reference.GATHERER else "fragmenter"
    counters = f"{kernel}.COUNTERS"
    in_flight = "READS" if silent == "answer_reads" else "WRITES"
    assert error.value.dump[f"{counters}.{in_flight}_IN_FLIGHT"] > 0
    for waits in (handle, other):
        with pytest.raises(DeviceDead):
            waits.wait()
    with pytest.raises(DeviceDead):
        checked.submit(Clear())
    checked.set_memory(**{silent: True})
    checked.reset()
    assert checked.epoch == 0
    eal_equals(checked, lambda eal: None)
    still_works(checked)


@pytest.mark.parametrize("cycles", [0, 3, 20, 60, 111, 150, 300, 1000])
@pytest.mark.parametrize("operation", sorted(reference.FRAGMENTER | reference.GATHERER))
def test_abort(sim: SimDevice, operation: Operation, cycles: int) -> None:
    buffers = Buffers(sim, count=4000)
    if operation is Operation.DUMP:
        sim.run(Learn(buffers.ids, buffers.rows))
    before = buffers.ids.copy()
    epoch = sim.epoch
    first, second = sim.submit(buffers.job(operation)), sim.submit(buffers.job(operation))
    sim.step(cycles)
    first.abort()
    completions = [handle.wait(check=False) for handle in (first, second)]
    assert np.array_equal(buffers.ids, before)
    for completion in completions:
        assert completion.status in (Status.OK, Status.ABORTED)
        if completion.status is Status.ABORTED and operation not in (
            Operation.LEARN,
            Operation.LOAD,
            Operation.EVICT,
        ):
            assert completion.lookups == 0
    if operation is Operation.LEARN:
        applied = [completion.lookups for completion in completions]
        eal_equals(sim, lambda eal: [eal.learn(before[:n], buffers.rows) for n in applied])
    if operation in (Operation.CLEAR, Operation.LEARN, Operation.LOAD, Operation.EVICT):
        # A job that the driver still held never ran.
        assert sim.epoch - epoch in ((2,) if sim.transport.depth == 2 else (1, 2))
    still_works(sim)


def test_aborted_job_raises(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=4000)
    handle = checked.submit(buffers.job(Operation.GATHER))
    handle.abort()
    with pytest.raises(Aborted, match="abort"):
        handle.wait()
    handle.abort()  # of a job that is over: no effect on the next
    assert checked.run(buffers.job(Operation.GATHER)).status is Status.OK


def test_abort_spares_later_jobs(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=4000)
    first = checked.submit(buffers.job(Operation.GATHER))
    first.abort()
    later = checked.submit(buffers.job(Operation.GATHER))
    assert later.wait().status is Status.OK
    assert first.wait(check=False).status is Status.ABORTED


@pytest.mark.parametrize("cycles", [*range(100, 400, 20), 2000])
def test_abort_of_a_scatter_with_a_bad_row(checked: SimDevice, cycles: int) -> None:
    """BAD_INDEX promises the records before the row; an abort that may have lost them is told."""
    buffers = Buffers(checked)
    buffers.ids[:] = np.arange(400)
    buffers.ids[30] = buffers.rows
    before = buffers.store[:30].copy()
    handle = checked.submit(buffers.job(Operation.SCATTER))
    checked.step(cycles)
    handle.abort()
    completion = handle.wait(check=False)
    if completion.status is Status.BAD_INDEX:
        assert (completion.lookups, completion.error_value) == (30, buffers.rows)
        assert np.array_equal(buffers.store[:30], buffers.records[:30])
    else:
        assert completion.status is Status.ABORTED and completion.reason is Reason.NONE
        assert completion.lookups == completion.error_lookup == completion.error_value == 0
        found = buffers.store[:30]
        assert ((found == before) | (found == buffers.records[:30])).all()
    assert (completion.status is Status.BAD_INDEX) >= (cycles == 2000)
    still_works(checked)


def test_write_error_of_a_scatter_with_a_bad_row(checked: SimDevice) -> None:
    buffers = Buffers(checked)
    buffers.ids[:] = np.arange(400)
    buffers.ids[30] = buffers.rows
    checked.inject(buffers.store[7], on="write")
    completion = checked.run(buffers.job(Operation.SCATTER), check=False)
    assert (completion.status, completion.reason) == (Status.AXI_ERROR, Reason.WRITE)
    assert completion.error_value == checked.address(buffers.store[7])
    assert completion.lookups == completion.error_lookup == 0
    checked.inject(buffers.records[29], on="write")  # GATHER: void, so the error changes nothing
    assert checked.run(buffers.job(Operation.GATHER), check=False).status is Status.BAD_INDEX
    checked.clear_faults()
    still_works(checked)


@pytest.mark.parametrize("cycles", [0, 1, 50, 105, 200, 500])
def test_reset_in_mid_job(checked: SimDevice, cycles: int) -> None:
    buffers = Buffers(checked, count=4000)
    handles = [
        checked.submit(buffers.job(operation))
        for operation in (Operation.LEARN, Operation.FRAGMENT, Operation.GATHER, Operation.SCATTER)
    ]
    checked.step(cycles)
    checked.reset()
    for handle in handles:
        with pytest.raises(DeviceDead, match="reset"):
            handle.wait()
    assert checked.epoch == 0
    eal_equals(checked, lambda eal: None)
    still_works(checked)


def test_reset_of_one_run_does_not_reach_into_the_next(checked: SimDevice) -> None:
    for _ in range(20):
        checked.reset()
        assert checked.run(Clear()).epoch == 1


# ------------------------------------------------------------------------------------ concurrency


def test_many_threads_wait_for_one_kernel(sim: SimDevice) -> None:
    buffers = Buffers(sim)
    tags: list[int] = []
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(5):
                tag = number * 100 + i
                job = replace(buffers.job(Operation.LEARN), tag=tag)
                tags.append(sim.submit(job).wait().tag - tag)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    assert tags == [0] * 30
    assert sim.epoch == 30


def test_waiting_twice_gives_the_same_completion(sim: SimDevice) -> None:
    handle = sim.submit(Clear(tag=3))
    assert handle.wait() is handle.wait()
    assert handle.done()


def test_polling_makes_progress(sim: SimDevice) -> None:
    buffers = Buffers(sim)
    handle = sim.submit(buffers.job(Operation.FRAGMENT))
    deadline = time.monotonic() + 60
    while not handle.done():
        assert time.monotonic() < deadline
    assert handle.wait().samples == buffers.samples


def test_background_job_ends_without_anyone_waiting() -> None:
    with SimDevice("tiny", check=True) as device:
        buffers = Buffers(device)
        handle = device.submit(buffers.job(Operation.FRAGMENT))
        second = device.submit(buffers.job(Operation.FRAGMENT))
        deadline = time.monotonic() + 60
        while device.state("fragmenter").resumes < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        assert handle.done() and second.done()


def test_both_kernels_overlap(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=4000)
    alone = [
        checked.run(buffers.job(operation)).cycles
        for operation in (Operation.FRAGMENT, Operation.GATHER)
    ]
    before = checked.cycles
    handles = [
        checked.submit(buffers.job(operation))
        for operation in (Operation.FRAGMENT, Operation.GATHER)
    ]
    together = [handle.wait().cycles for handle in handles]
    assert together == alone  # each has a memory of its own
    assert checked.cycles - before < max(alone) + 1500


def test_buffer_in_use_is_not_freed(checked: SimDevice) -> None:
    buffers = Buffers(checked)
    handle = checked.submit(buffers.job(Operation.LEARN))
    with pytest.raises(DeviceBufferError, match="in flight"):
        checked.free(buffers.ids)
    handle.wait()
    checked.free(buffers.ids)


# ---------------------------------------------------------------------------------------- timing


def cycles_of(device: SimDevice, pause: float) -> list[int]:
    buffers = Buffers(device)
    operations = [Operation.LEARN, Operation.FRAGMENT, Operation.GATHER, Operation.SCATTER] * 3
    handles = []
    for operation in operations:
        handles.append(device.submit(buffers.job(operation)))
        time.sleep(pause)
    return [handle.wait().cycles for handle in handles]


def test_cycles_are_the_same_in_every_run() -> None:
    memory = MemoryModel(stall_probability=0.2, seed=3)
    runs = []
    for background in (False, True):
        for pause in (0.0, 0.004):
            with SimDevice("tiny", check=True, background=background, memory=memory) as device:
                runs.append(cycles_of(device, pause))
    assert runs[0] == runs[1]
    assert runs[2] == runs[3]


def test_queue_hides_the_latency_between_jobs(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=2000)
    alone = checked.run(buffers.job(Operation.GATHER)).cycles
    checked.measure("gatherer")
    handles = [checked.submit(buffers.job(Operation.GATHER)) for _ in range(2)]
    for _ in range(6):
        handles.pop(0).wait()
        handles.append(checked.submit(buffers.job(Operation.GATHER)))
    for handle in handles:
        handle.wait()
    state = checked.state("gatherer")
    assert state.last_done - state.first_start < 8 * alone - 7 * 100


def test_latency_of_the_memory_is_seen(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=2)
    cycles = []
    for latency in (10, 110):
        checked.set_memory(read_latency=latency, write_latency=latency)
        cycles.append(checked.run(buffers.job(Operation.LEARN)).cycles)
    assert cycles[1] - cycles[0] == 100  # ids; the record's response comes after `cycles` ends


@pytest.mark.parametrize("channel", ["read_bandwidth", "write_bandwidth"])
def test_stalls_say_what_the_memory_cost(checked: SimDevice, channel: str) -> None:
    buffers = Buffers(checked, count=1200)
    operations = [Operation.FRAGMENT, Operation.GATHER, Operation.SCATTER]
    operations += [Operation.LEARN] if channel == "read_bandwidth" else []
    for operation in operations:
        checked.set_memory(MemoryModel(read_latency=2, write_latency=2))
        fast = checked.run(buffers.job(operation))
        checked.set_memory(**{channel: 0.1})
        slow = checked.run(buffers.job(operation))
        lost = slow.cycles - fast.cycles
        assert lost > fast.cycles, operation
        assert 0.7 * lost < slow.stalls - fast.stalls < 1.1 * lost, operation
        assert slow.stalls < slow.cycles
        if operation is not Operation.LEARN:  # whose rate is the EAL's
            assert fast.stalls < 0.5 * fast.cycles, operation


def test_counters(checked: SimDevice) -> None:
    buffers = Buffers(checked, count=1000)
    before = checked.counters("gatherer")
    checked.measure("gatherer")
    completion = checked.run(buffers.job(Operation.GATHER))
    after = checked.counters("gatherer")
    state = checked.state("gatherer")
    assert after["jobs"] - before["jobs"] == 1
    assert after["read_beats"] - before["read_beats"] == state.read_beats == 1000 * 8 + 500
    assert after["write_beats"] - before["write_beats"] == state.write_beats == 1000 * 8 + 8
    assert after["busy"] - before["busy"] <= completion.cycles
    assert after["reads_in_flight"] == after["writes_in_flight"] == 0


def test_idle_kernel_is_not_clocked_but_its_registers_answer(checked: SimDevice) -> None:
    checked.run(Clear())
    checked.step(1000)
    clocked = checked.state("gatherer").clocked
    checked.step(5000)
    assert checked.state("gatherer").clocked == clocked
    assert checked.counters("gatherer")["jobs"] >= 0
    assert checked.state("gatherer").clocked > clocked


# ------------------------------------------------------------------------------------- the options


def test_waves(tmp_path: Path) -> None:
    waves = Waves(tmp_path / "run.vcd", begin=100, end=140)
    with SimDevice("tiny", waves=waves, background=False) as device:
        device.run(Clear())
        assert device.cycles > 140
    for kernel in KERNELS:
        text = (tmp_path / f"run-{kernel}.vcd").read_text()
        assert "m_axi_gmem_araddr" in text and "u_core" in text
        times = [int(line[1:]) for line in re.findall(r"^#\d+$", text, re.MULTILINE)]
        assert times and min(times) >= 200 and max(times) < 280


def test_options_out_of_range(tmp_path: Path) -> None:
    for options in (
        {"queue": 3},
        {"waves": Waves(tmp_path / "run.txt")},
        {"config": "large"},
    ):
        with pytest.raises(ConfigError):
            SimDevice(**{"config": "tiny"} | options)  # type: ignore[arg-type]
    for values in (
        {"read_latency": -1},
        {"outstanding_reads": 0},
        {"read_bandwidth": 0.0},
        {"write_bandwidth": 1.5},
        {"stall_probability": 1.0},
        {"stall_r": -0.1},
    ):
        with pytest.raises(ConfigError):
            MemoryModel(**values)  # type: ignore[arg-type]


def test_inject_wants_a_buffer(checked: SimDevice) -> None:
    with pytest.raises(ConfigError, match="no buffer"):
        checked.inject(np.zeros(4))
    buffer = checked.allocate(4, U32)
    with pytest.raises(ConfigError):
        checked.inject(buffer, on="never")


def test_fault_that_occurs_once(checked: SimDevice) -> None:
    buffers = Buffers(checked)
    checked.inject(buffers.ids, on="read", count=1)
    assert checked.run(buffers.job(Operation.LEARN), check=False).status is Status.AXI_ERROR
    assert checked.run(buffers.job(Operation.LEARN)).status is Status.OK


def test_identity_of_the_build(checked: SimDevice) -> None:
    caps = checked.capabilities
    assert caps.build_id == simbuild.build_id()
    assert (caps.backend, caps.config) == ("sim", "tiny")
    assert caps.operations == frozenset(Operation)
    config = asdict(kernel_config("tiny"))
    for name in ("bus_bits", "eal_sets", "eal_ways", "lookups_max", "cold_rows_max", "clock_khz"):
        assert getattr(caps, name) == config[name]


def test_two_devices_are_independent(checked: SimDevice) -> None:
    with SimDevice("tiny", check=True, background=False) as other:
        mine, theirs = Buffers(checked), Buffers(other)
        checked.run(mine.job(Operation.LEARN))
        assert (checked.epoch, other.epoch) == (1, 0)
        with pytest.raises(DeviceBufferError):
            other.submit(mine.job(Operation.LEARN))
        assert other.run(theirs.job(Operation.LEARN)).epoch == 1


def any_array(device: SimDevice) -> Any:
    return device.allocate(16, U32)


def test_addresses_are_not_the_hosts(checked: SimDevice) -> None:
    array = any_array(checked)
    assert checked.address(array) != array.ctypes.data
    assert checked.address(array) >> 32
