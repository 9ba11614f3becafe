# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The reference device: buffers, the checks of jobs, and results equal to the oracle's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hotline
from hotline.codes import FLAG_FREQUENCY, Operation, Policy, Reason, Status
from hotline.config import CONFIGS, KernelConfig
from hotline.device.base import (
    ENTRY,
    Clear,
    Device,
    Dump,
    Evict,
    Fragment,
    Gather,
    Job,
    Learn,
    Load,
    Scatter,
)
from hotline.device.buffers import BufferPool, bind, host_address
from hotline.errors import (
    BadConfig,
    BadIndex,
    ColdOverflow,
    ConfigError,
    DeviceBufferError,
    DeviceError,
)
from hotline.reference import Eal, fragment

GUARD = 0xDEADBEEF


@pytest.fixture(params=["reference", "cpu"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with hotline.open(request.param, "tiny") as opened:
        yield opened


def put(device: Device, values: Any, dtype: Any = np.uint32) -> np.ndarray:
    values = np.asarray(values, dtype=dtype)
    array = device.allocate(values.shape, dtype)
    array[...] = values
    return array


def guarded(device: Device, count: int) -> np.ndarray:
    array = device.allocate(count, np.uint32)
    array[:] = GUARD
    return array


def fragment_job(device: Device, ids: Any, samples: int, /, **change: Any) -> Fragment:
    lookups = len(ids)
    job = Fragment(
        ids=put(device, ids),
        samples=samples,
        total_rows=1000,
        pinned_rows=10,
        cold_base=266,
        cold_rows_max=128,
        indices=guarded(device, lookups + 4),
        popular=guarded(device, samples + 4),
        nonpopular=guarded(device, samples + 4),
        bitmap=guarded(device, -(-samples // 32) + 4),
        cold_rows=guarded(device, lookups + 4),
        lookups_per_sample=lookups // max(samples, 1),
    )
    return replace(job, **change)


# ---------------------------------------------------------------------------------------- buffers


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["u1", "u4", "u8"])), max_size=20))
def test_buffers_are_zeroed_aligned_and_apart(shapes: list[tuple[int, str]]) -> None:
    pool = BufferPool()
    spans = []
    for count, dtype in shapes:
        array = pool.allocate(count, dtype)
        assert (array.shape, array.dtype, array.any()) == ((count,), np.dtype(dtype), False)
        start = host_address(array)
        assert start % 64 == 0
        size = max(-(-array.nbytes // 64), 1) * 64
        assert all(start + size <= a or b <= start for a, b in spans)
        spans.append((start, start + size))
        assert pool.address(array) == start
    assert len(pool) == len(shapes)
    pool.clear()
    assert len(pool) == 0


def test_a_pool_maps_to_device_addresses_and_gives_memory_back() -> None:
    given_back = []

    def reserve(size: int) -> tuple[np.ndarray, int]:
        return BufferPool().allocate(size, np.uint8), 0x4_0000_0000

    pool = BufferPool(reserve, lambda memory, address: given_back.append((memory.nbytes, address)))
    array = pool.allocate((3, 64), np.uint8)
    assert pool.address(array) == 0x4_0000_0000
    assert pool.address(array[2:]) == 0x4_0000_0080
    pool.free(array)
    assert given_back == [(192, 0x4_0000_0000)]
    with pytest.raises(DeviceBufferError, match="no buffer"):
        pool.address(array)
    bad = BufferPool(lambda size: (BufferPool().allocate(size, np.uint8), 0x20))
    with pytest.raises(DeviceBufferError, match="aligned"):
        bad.allocate(1, np.uint8)


def test_an_array_that_begins_in_a_buffer_must_end_there() -> None:
    backing = BufferPool().allocate(256, np.uint8)
    pool = BufferPool(lambda size: (backing[:size], host_address(backing)))
    pool.allocate(100, np.uint8)  # rounded up to 128
    assert pool.address(backing[64:128]) == host_address(backing) + 64
    for start, end in ((0, 129), (64, 256), (128, 192)):
        with pytest.raises(DeviceBufferError, match="no buffer"):
            pool.address(backing[start:end])


def test_outputs_that_overlap_in_part_are_refused(device: Device) -> None:
    memory = guarded(device, 256)
    job = fragment_job(device, range(100, 132), 2)
    apart = replace(job, indices=memory[:32], cold_rows=memory[32:64])
    assert device.run(apart).samples == 2
    for indices, cold_rows in ((memory[16:], memory), (memory, memory[16:]), (memory, memory)):
        with pytest.raises(DeviceBufferError, match="overlaps"):
            device.submit(replace(job, indices=indices, cold_rows=cold_rows))
    with pytest.raises(DeviceBufferError, match="overlaps"):
        device.submit(replace(job, ids=memory[:32], popular=memory[16:]))


def test_free_and_close(device: Device) -> None:
    array = put(device, range(100))
    for wrong in (array[16:], np.zeros(4, np.uint32)):
        with pytest.raises(DeviceBufferError, match="free"):
            device.free(wrong)
    device.free(array)
    with pytest.raises(DeviceBufferError, match="freed twice"):
        device.free(array)
    with pytest.raises(DeviceBufferError, match=r"Learn\.ids"):
        device.submit(Learn(array, 1000))
    device.close()
    device.close()
    for action in (lambda: device.submit(Clear()), lambda: device.allocate(1, np.uint8)):
        with pytest.raises(DeviceError, match="closed"):
            action()


def test_ids_of_the_wrong_kind_are_refused(device: Device) -> None:
    good = put(device, range(64))
    assert device.run(Learn(good[16:32], 1000)).lookups == 16  # a slice at 64 bytes is fine
    for bad, words in (
        (good.astype(np.uint32), "lie in no buffer"),
        (good[1:], "4 bytes past a multiple of 64"),
        (good[::2], "contiguous"),
        (good.view(np.int32), "dtype is int32"),
        (put(device, range(8), np.uint64), "dtype is uint64"),
        (list(range(4)), "not list"),
    ):
        with pytest.raises(DeviceBufferError, match=words):
            device.submit(Learn(bad, 1000))  # type: ignore[arg-type]
    assert device.epoch == 1


@pytest.mark.parametrize("name", ["indices", "popular", "nonpopular", "bitmap", "cold_rows"])
def test_each_output_of_fragment_is_checked(device: Device, name: str) -> None:
    job = fragment_job(device, range(100, 166), 33)
    sizes = {"indices": 66, "popular": 33, "nonpopular": 33, "bitmap": 2, "cold_rows": 66}
    array = getattr(job, name)
    assert device.run(replace(job, **{name: array[: sizes[name]]})).samples == 33
    read_only = array.view()
    read_only.flags.writeable = False
    for bad, words in (
        (array[: sizes[name] - 1], f"{sizes[name]} are needed"),
        (None, "not NoneType"),
        (read_only, "read-only"),
        (array.copy(), "no buffer"),
        (job.ids, "overlaps"),
    ):
        with pytest.raises(DeviceBufferError, match=words) as caught:
            device.submit(replace(job, **{name: bad}))
        assert f"Fragment.{name}" in str(caught.value) or words == "overlaps"


def test_outputs_that_are_certainly_empty_may_be_left_out(device: Device) -> None:
    none: Any = None
    job = Fragment(none, 0, 1000, 10, 266, 128, none, none, none, none, none)
    completion = device.run(job)
    assert (completion.status, completion.samples, completion.lookups) == (Status.OK, 0, 0)
    assert device.run(Learn(none, 10)).lookups == 0
    assert device.run(Load(none, none, 10)).lookups == 0
    assert device.run(Evict(put(device, []), 10)).lookups == 0
    assert device.epoch == 3


def test_jobs_that_contradict_themselves(device: Device) -> None:
    ids = [20, 30]
    offsets = put(device, [0, 1, 2])
    for change in (
        {"offsets": offsets},
        {"bags": 1, "lookups_per_sample": 0},
        {"bags": 1, "offsets": offsets},
        {"samples": -1},
        {"cold_rows_max": -1},
        {"tag": -1},
        {"tag": 1 << 32},
        {"total_rows": 1 << 32},
        {"cold_base": 1.5},
    ):
        with pytest.raises(ConfigError):
            device.submit(replace(fragment_job(device, ids, 2), **change))
    with pytest.raises(ConfigError, match="does not offer"):
        device.submit(Job())


# --------------------------------------------------------------------------------------- results


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_session_equals_the_oracle(data: st.DataObject) -> None:
    """LEARN, FRAGMENT, EVICT, DUMP and LOAD through buffers; nothing is written past the counts."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    with hotline.open("reference", "tiny") as device:
        eal = Eal(16, 16)
        ids = rng.integers(0, 1000, 500)
        tag = data.draw(st.integers(0, 2**32 - 1))
        done = device.run(Learn(put(device, ids), 1000, 10, tag=tag))
        assert done == replace(eal.learn(ids, 1000, 10), tag=tag)
        samples = data.draw(st.sampled_from([0, 1, 31, 32, 33, 60]))
        if data.draw(st.booleans()):
            offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 4, samples * 2))])
            shape: dict[str, Any] = {"offsets": offsets, "bags": 2}
            lookups = int(offsets[-1])
        else:
            shape, lookups = {"lookups_per_sample": 3}, samples * 3
        ids = rng.integers(0, 1010 if data.draw(st.booleans()) else 1000, lookups)
        job = fragment_job(device, ids, samples, lookups_per_sample=0)
        extra = {**shape, "offsets": put(device, shape["offsets"])} if "bags" in shape else shape
        completion = device.run(replace(job, **extra, tag=5), check=False)
        output = fragment(
            eal, ids, samples=samples, total_rows=1000, pinned_rows=10, cold_base=266,
            cold_rows_max=128, lookups_max=64, **shape,
        )  # fmt: skip
        assert completion == replace(output.completion, tag=5)
        for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows"):
            array, expected = getattr(job, name), getattr(output, name)
            assert array[: len(expected)].tolist() == expected.tolist()
            assert (array[len(expected) :] == GUARD).all()

        evicted = rng.integers(0, 1000, 50)
        assert device.run(Evict(put(device, evicted), 1000, 10)) == eal.evict(evicted, 1000, 10)
        entries = device.allocate(256, ENTRY)
        dumped = device.run(Dump(entries, 10))
        expected_dump = eal.dump(10)
        assert dumped == expected_dump[0]
        assert entries[: dumped.lookups].tolist() == expected_dump[1].tolist()
        device.run(Clear())
        eal.clear()
        for source in (entries[: dumped.lookups], put(device, rng.integers(0, 1000, 300))):
            rejected = device.allocate(source.shape, source.dtype)
            loaded = device.run(Load(source, rejected, 1000, 10))
            expected_load = eal.load(source, 1000, 10)
            assert loaded == expected_load[0]
            assert rejected[: loaded.cold_rows].tolist() == expected_load[1].tolist()
            assert not rejected[loaded.cold_rows :].view(np.uint8).any()
        assert device.epoch == eal.epoch == 5
        device.reset()
        assert device.epoch == 0
        assert device.run(Dump(entries)).lookups == 0


def test_typed_errors_carry_the_completion(device: Device) -> None:
    with pytest.raises(BadIndex, match="row id 1000 at lookup 2") as bad:
        device.run(Learn(put(device, [1, 2, 1000]), 1000))
    assert bad.value.completion.lookups == 2  # type: ignore[attr-defined]
    with pytest.raises(ColdOverflow, match="sample 2") as overflow:
        device.run(fragment_job(device, range(100, 250), 3, cold_rows_max=120))
    assert overflow.value.completion.samples == 2  # type: ignore[attr-defined]
    epoch = device.epoch
    for change, reason in (
        ({"lookups_per_sample": 3}, Reason.LOOKUPS),
        ({"total_rows": 0, "pinned_rows": 0}, Reason.ROWS),
        ({"cold_rows_max": 0}, Reason.COLD_RANGE),
        ({"cold_rows_max": 129}, Reason.COLD_RANGE),
        ({"cold_base": 265}, Reason.COLD_RANGE),
        ({"ids": put(device, range(130)), "lookups_per_sample": 65,
          "indices": guarded(device, 130), "cold_rows": guarded(device, 130)},
         Reason.LOOKUPS_PER_SAMPLE),
    ):  # fmt: skip
        job = fragment_job(device, range(100, 110), 2, tag=9, **change)
        with pytest.raises(BadConfig):
            device.run(job)
        completion = device.run(job, check=False)
        assert (completion.status, completion.reason) == (Status.BAD_CONFIG, reason)
        assert (completion.tag, completion.epoch, completion.lookups) == (9, epoch, 0)
        assert (job.indices == GUARD).all()
    assert device.epoch == epoch


@pytest.mark.parametrize("segments", [1, 3])
def test_gather_and_scatter_through_buffers(device: Device, segments: int) -> None:
    rng = np.random.default_rng(0)
    content = rng.integers(0, 256, (40, 128)).astype(np.uint8)
    parts = tuple(put(device, content[16 * s : 16 * s + 16], np.uint8) for s in range(3))
    store = put(device, content, np.uint8) if segments == 1 else parts
    ids, records = put(device, [39, 0, 16, 16]), device.allocate((4, 128), np.uint8)
    done = device.run(Gather(ids, records, store, 40, 4))
    assert (done.lookups, done.epoch) == (4, 0)
    assert np.array_equal(records, content[[39, 0, 16, 16]])
    records[:] = np.arange(4, dtype=np.uint8)[:, None]
    device.run(Scatter(ids, records, store, 40, 4))
    content[[39, 0]], content[16] = [[0], [1]], 3
    assert np.array_equal(store if segments == 1 else np.concatenate(store), content)
    with pytest.raises(BadIndex):
        device.run(Gather(put(device, [40]), records, store, 40, 4))
    if segments == 3:
        for shift, rows in ((3, 40), (32, 40), (4, 49)):
            needed = tuple(device.allocate((64, 128), np.uint8) for _ in range(3))
            completion = device.run(Gather(ids, records, needed, rows, shift), check=False)
            assert completion.reason is Reason.SEGMENTS
    for bad, words in (
        ((ids, records, parts[0], 17, 4), "store: has 2048 elements, 2176"),
        ((ids, records, (parts[0], parts[1][:15]), 32, 4), r"store\[1\]"),
        ((ids, records[:3], store, 40, 4), "records"),
        ((ids, records[:, :64], store, 40, 4), "differ in length"),
        ((ids, records, (), 40, 4), "record_bytes"),
        ((ids, records.copy(), store, 40, 4), "no buffer"),
    ):
        with pytest.raises(DeviceBufferError, match=words):
            device.submit(Gather(*bad))  # type: ignore[arg-type]
    with pytest.raises(DeviceBufferError, match="overlaps"):
        device.submit(Gather(ids, parts[0], parts[0], 16, 4))
    narrow = put(device, np.zeros((16, 96)), np.uint8)
    into = device.allocate((4, 96), np.uint8)
    completion = device.run(Gather(put(device, [1]), into, narrow, 16), check=False)
    assert completion.reason is Reason.RECORD_BYTES
    pool = device._pool  # type: ignore[attr-defined]
    held = len(pool)
    device.run(Gather(ids, records, store, 40, 4))
    assert len(pool) == held  # the table of segments is given back


def test_arguments_of_a_job(device: Device) -> None:
    """What a register driver would write."""
    pool = device._pool  # type: ignore[attr-defined]
    ids = put(device, range(6))
    bound = bind(Learn(ids, 100, np.int64(5), tag=3), pool, record=64, eal_entries=256)  # type: ignore[arg-type]
    arguments = bound.arguments
    assert (arguments.operation, arguments.tag, arguments.record) == (Operation.LEARN, 3, 64)
    assert (arguments.ids, arguments.lookups) == (host_address(ids), 6)
    assert (arguments.total_rows, arguments.pinned_rows) == (100, 5)
    assert arguments.flags == FLAG_FREQUENCY
    recent = Learn(ids, 100, policy=Policy.SRRIP)
    assert bind(recent, pool, record=64, eal_entries=256).arguments.flags == 0
    plain = bind(Load(ids, put(device, range(6)), 100), pool, record=64, eal_entries=256)
    assert plain.arguments.flags == 1
    entries = device.allocate(256, ENTRY)
    job = Load(entries[:8], device.allocate(8, ENTRY), 100)
    assert bind(job, pool, record=64, eal_entries=256).arguments.flags == 0
    with pytest.raises(DeviceBufferError, match="dtype"):
        device.submit(Load(entries[:8], ids, 100))
    with pytest.raises(DeviceBufferError, match="256 are needed"):
        device.submit(Dump(entries[:255]))


def test_capabilities_follow_the_configuration() -> None:
    for name, config in CONFIGS.items():
        with hotline.open("reference", name) as device:
            capabilities = device.capabilities
            assert (capabilities.backend, capabilities.config) == ("reference", name)
            assert capabilities.eal_entries == config.eal_entries
            assert capabilities.lookups_max == config.lookups_max
            assert capabilities.operations == frozenset(Operation)
    custom = KernelConfig("mine", 64, 4, 2, 1, 64, 32, 1, 16, 8, 8, 1)
    with hotline.open("reference", custom) as device:  # type: ignore[arg-type]
        assert device.capabilities.config == "custom"
        assert device.capabilities.eal_entries == 8
    with pytest.raises(ConfigError, match="no configuration"):
        hotline.open("reference", "huge")
