# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The register driver on made-up registers: wrong devices, broken devices, order of accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotline import registers as reg
from hotline.codes import Operation, Status
from hotline.config import kernel_config
from hotline.device.base import Clear, Gather, Learn
from hotline.device.driver import RegisterDevice
from hotline.errors import (
    ConfigError,
    DeviceDead,
    DeviceError,
    DeviceMismatch,
    DeviceTimeout,
)
from tests.system.fake import FakeTransport

TINY = kernel_config("tiny")


def opened(**changes: Any) -> RegisterDevice:
    return RegisterDevice(FakeTransport(TINY, **changes), TINY, timeout=0.2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fragmenter": {"magic": 0xFFFF_FFFF}}, ["fragmenter", "0xffffffff", "0x4c544f48"]),
        ({"gatherer": {"magic": 0}}, ["gatherer", "magic", "bitstream"]),
        ({"both": {"version": 0x0002_0003}}, ["2.3", "1.0"]),
        ({"fragmenter": {"eal_sets": 1024}}, ["eal_sets is 1024, wanted 16", "tiny"]),
        ({"fragmenter": {"cold_rows_max": 64}}, ["cold_rows_max is 64, wanted 128"]),
        ({"gatherer": {"bus_bits": 512}}, ["gatherer", "bus_bits is 512, wanted 64"]),
        ({"both": {"clock_khz": 1}}, ["clock_khz is 1, wanted 100000"]),
        ({"fragmenter": {"operations": 0x300}}, ["GATHER, SCATTER", "swapped"]),
        ({"gatherer": {"operations": 0}}, ["none"]),
        ({"gatherer": {"build_id": 0x99}}, ["00001234", "00000099"]),
    ],
)
def test_wrong_device_names_both_sides(changes: dict[str, Any], words: list[str]) -> None:
    transport = FakeTransport(TINY, **changes)
    with pytest.raises(DeviceMismatch) as error:
        RegisterDevice(transport, TINY)
    for word in words:
        assert word in str(error.value)
    assert transport.closed


def test_wrong_build_id() -> None:
    with pytest.raises(DeviceMismatch, match="build_id is 00001234, wanted 0000abcd"):
        RegisterDevice(FakeTransport(TINY), TINY, build_id=0xABCD)
    RegisterDevice(FakeTransport(TINY), TINY, build_id=0x1234).close()


def test_newer_minor_version_is_fine() -> None:
    opened(both={"version": 0x0001_0007}).close()


def test_capabilities_come_from_the_identity_block() -> None:
    device = RegisterDevice(FakeTransport(TINY, fragmenter={"eal_sets": 4096}), None)
    caps = device.capabilities
    assert (caps.eal_sets, caps.config, caps.backend) == (4096, "custom", "fake")
    assert caps.operations == frozenset(Operation)
    assert caps.job_lookups_max == 1 << 28


def test_operation_that_is_not_offered() -> None:
    device = opened(gatherer={"operations": 1 << Operation.SCATTER})
    ids = device.allocate(1, np.uint32)
    store = device.allocate((1, 64), np.uint8)
    with pytest.raises(ConfigError, match=r"GATHER.*SCATTER"):
        device.submit(Gather(ids, device.allocate((1, 64), np.uint8), store, 1))


def test_order_of_register_accesses() -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    ids = device.allocate(8, np.uint32)
    transport.writes.clear()
    assert device.run(Learn(ids, 100, tag=9)).tag == 9
    offsets = [offset for _, offset, _ in transport.writes]
    start = offsets.index(reg.CONTROL)
    assert reg.IDS_LO in offsets[:start] and reg.TAG in offsets[:start]
    assert offsets[start + 1 :] == [reg.ISR, reg.CONTROL]
    assert transport.writes[-1][2] == reg.CONTROL_RESUME_MASK
    assert all(kernel == "fragmenter" for kernel, _, _ in transport.writes)


def test_job_that_never_ends() -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    transport.answers = False
    first, second = device.submit(Clear(tag=4)), device.submit(Clear(tag=5))
    jobs = r"fragmenter.*CLEAR \(tag 4\), CLEAR \(tag 5\)"
    with pytest.raises(DeviceTimeout, match=jobs) as error:
        first.wait(0.05)
    assert "fragmenter.CONTROL" in error.value.dump
    assert "gatherer.IDENTITY.MAGIC" in error.value.dump
    assert (reg.ABORT, 1) in [(offset, value) for _, offset, value in transport.writes]
    for handle in (first, second):
        with pytest.raises(DeviceDead):
            handle.wait()
        assert handle.done()
    with pytest.raises(DeviceDead, match="reset"):
        device.submit(Clear())
    with pytest.raises(DeviceDead):
        _ = device.epoch
    transport.answers = True
    device.reset()
    assert device.run(Clear()).status is Status.OK


def test_submit_gives_up_while_both_places_are_taken() -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    transport.answers = False
    device.submit(Clear())
    device.submit(Clear())
    with pytest.raises(DeviceTimeout):
        device.submit(Clear())


def test_completion_of_another_job_is_noticed() -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    transport.tag_offset = 1
    handle = device.submit(Clear(tag=1))
    with pytest.raises(DeviceError, match="tag 2"):
        handle.wait()
    with pytest.raises(DeviceDead):
        device.submit(Clear())


@pytest.mark.parametrize("word", [0xFF, 0xEE_00_00, 0xFFFF_FFFF])
def test_unknown_status_is_no_python_error(word: int) -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    transport.status_word = word
    with pytest.raises(DeviceError, match="reset"):
        device.submit(Clear()).wait()


def test_closed_device() -> None:
    device = opened()
    ids = device.allocate(1, np.uint32)
    device.close()
    device.close()
    device.free(ids)
    for action in (lambda: device.submit(Clear()), device.reset, lambda: device.allocate(1, "u4")):
        with pytest.raises(DeviceDead, match="closed"):
            action()


def test_closing_ends_jobs_in_flight() -> None:
    device = opened()
    transport = device.transport
    assert isinstance(transport, FakeTransport)
    transport.answers = False
    handle = device.submit(Clear())
    device.close()
    with pytest.raises(DeviceDead, match="closed"):
        handle.wait()
    assert transport.closed
