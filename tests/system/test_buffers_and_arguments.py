# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What users get wrong: buffers, dtypes, numbers. Every backend says so before anything starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotline.device.base import Device, Evict, Fragment, Gather, Learn, Load, Scatter
from hotline.errors import (
    BadConfig,
    BadIndex,
    ColdOverflow,
    ConfigError,
    DeviceBufferError,
    HotlineError,
)


def learn(ids: Any, **changes: Any) -> Learn:
    return Learn(ids, **({"total_rows": 1000} | changes))


def fragment(device: Device, samples: int = 4, **changes: Any) -> Fragment:
    arrays: dict[str, Any] = {"ids": device.allocate(samples * 2, np.uint32)}
    for name in ("indices", "popular", "nonpopular", "bitmap", "cold_rows"):
        arrays[name] = device.allocate(samples * 2, np.uint32)
    values = {
        "samples": samples,
        "total_rows": 1000,
        "pinned_rows": 0,
        "cold_base": 1 << 20,
        "cold_rows_max": 64,
        "lookups_per_sample": 2,
    }
    return Fragment(**(arrays | values | changes))


def test_arrays_that_lie_in_no_buffer(device: Device) -> None:
    good = device.allocate(64, np.uint32)
    with pytest.raises(DeviceBufferError, match="no buffer"):
        device.submit(learn(np.zeros(64, dtype=np.uint32)))
    with pytest.raises(DeviceBufferError, match="no buffer"):
        device.submit(learn(good.copy()))
    with pytest.raises(DeviceBufferError):
        device.submit(learn([1, 2, 3]))
    assert device.run(learn(good)).lookups == 64


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.uint64, ">u4"])
def test_wrong_dtype(device: Device, dtype: Any) -> None:
    ids = device.allocate(64, dtype)
    with pytest.raises(DeviceBufferError, match="dtype"):
        device.submit(learn(ids))


def test_not_contiguous_or_misaligned(device: Device) -> None:
    ids = device.allocate(64, np.uint32)
    with pytest.raises(DeviceBufferError, match="contiguous"):
        device.submit(learn(ids[::2]))
    with pytest.raises(DeviceBufferError, match="64"):
        device.submit(learn(ids[1:]))
    assert device.run(learn(ids[16:])).lookups == 48


def test_output_too_small_or_read_only(device: Device) -> None:
    for name, size in (("indices", 7), ("popular", 3), ("nonpopular", 3), ("cold_rows", 7)):
        with pytest.raises(DeviceBufferError, match=name):
            device.submit(fragment(device, **{name: device.allocate(size, np.uint32)}))
    with pytest.raises(DeviceBufferError, match="bitmap"):
        device.submit(fragment(device, samples=33, bitmap=device.allocate(1, np.uint32)))
    locked = device.allocate(8, np.uint32)
    locked.flags.writeable = False
    with pytest.raises(DeviceBufferError, match="read-only"):
        device.submit(fragment(device, indices=locked))
    assert device.run(fragment(device)).samples == 4


def test_buffer_that_was_freed(device: Device) -> None:
    ids = device.allocate(64, np.uint32)
    device.free(ids)
    with pytest.raises(DeviceBufferError):
        device.submit(learn(ids))
    with pytest.raises(DeviceBufferError):
        device.free(ids)
    with pytest.raises(DeviceBufferError):
        device.free(device.allocate(64, np.uint32)[16:])


def test_store_and_records_that_do_not_fit(device: Device) -> None:
    ids = device.allocate(4, np.uint32)
    store = device.allocate((10, 64), np.uint8)
    records = device.allocate((4, 64), np.uint8)
    for job in (
        Gather(ids, device.allocate((3, 64), np.uint8), store, 10),
        Gather(ids, device.allocate((4, 128), np.uint8), store, 10),
        Gather(ids, records, store, 11),
        Scatter(ids, records, device.allocate((9, 64), np.uint8), 10),
        Scatter(ids, device.allocate((4, 64), np.float32), store, 10),
    ):
        with pytest.raises(DeviceBufferError):
            device.submit(job)
    assert device.run(Gather(ids, records, store, 10)).lookups == 4


def test_record_bytes_out_of_range(device: Device) -> None:
    ids = device.allocate(4, np.uint32)
    for size in (32, 96, 4160):
        store = device.allocate((10, size), np.uint8)
        records = device.allocate((4, size), np.uint8)
        with pytest.raises(BadConfig, match="64"):
            device.run(Gather(ids, records, store, 10))


@pytest.mark.parametrize("number", [int, np.int32, np.int64, np.uint32, np.uint64, np.int16])
def test_numpy_integers_are_numbers(device: Device, number: Any) -> None:
    ids = device.allocate(8, np.uint32)
    ids[:] = np.arange(8)
    completion = device.run(learn(ids, total_rows=number(1000), pinned_rows=number(3)))
    assert completion.pinned_lookups == 3
    assert device.run(Learn(ids, 1000, tag=number(77))).tag == 77


@pytest.mark.parametrize("value", [-1, 2**32, np.int64(-5), 2**70])
@pytest.mark.parametrize("name", ["total_rows", "pinned_rows", "tag"])
def test_numbers_that_fit_no_register(device: Device, name: str, value: Any) -> None:
    ids = device.allocate(8, np.uint32)
    with pytest.raises(ConfigError, match=name):
        device.submit(learn(ids, **{name: value}))
    assert device.run(learn(ids)).lookups == 8


def test_contradictory_sample_boundaries(device: Device) -> None:
    offsets = device.allocate(5, np.uint32)
    for changes in (
        {"offsets": offsets, "bags": 1},  # and lookups_per_sample
        {"offsets": offsets, "bags": 0, "lookups_per_sample": 0},
        {"bags": 1, "lookups_per_sample": 0},
    ):
        with pytest.raises(ConfigError):
            device.submit(fragment(device, **changes))


def test_messages_name_place_and_remedy(device: Device) -> None:
    ids = device.allocate(8, np.uint32)
    ids[5] = 1000
    with pytest.raises(BadIndex, match=r"LEARN.*1000.*lookup 5.*[Rr]emedy") as bad:
        device.run(learn(ids))
    assert bad.value.completion.lookups == 5
    ids[5] = 0
    with pytest.raises(BadConfig, match=r"total_rows.*[Rr]emedy"):
        device.run(learn(ids, total_rows=0))
    ids[:] = 10 + np.arange(8)
    with pytest.raises(ColdOverflow, match=r"sample 1 .*[Rr]emedy.*from sample 1 on"):
        device.run(fragment(device, ids=ids, cold_rows_max=3))


def test_entries_and_lists_of_load(device: Device) -> None:
    ids = device.allocate(8, np.uint32)
    with pytest.raises(DeviceBufferError, match="rejected"):
        device.submit(Load(ids, device.allocate(7, np.uint32), 100))
    with pytest.raises(DeviceBufferError):
        device.submit(Load(ids, device.allocate(8, np.uint64), 100))
    assert device.run(Load(ids, device.allocate(8, np.uint32), 100)).eal_lookups == 7
    assert device.run(Evict(ids, 100)).eal_lookups == 1


def test_allocation(device: Device) -> None:
    for shape, dtype in ((0, np.uint8), (1, np.uint8), ((3, 5), np.float64), (100, np.uint32)):
        array = device.allocate(shape, dtype)
        assert array.dtype == dtype and not array.any()
        assert array.ctypes.data % 64 == 0 or not array.size
    with pytest.raises(HotlineError):
        device.allocate(-1, np.uint8)
