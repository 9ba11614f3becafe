# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Backends of the system suite: the same tests run on the oracle and on the simulated RTL.

``device`` is every backend, ``sim`` the simulated ones, ``checked`` the small simulated one with
assertions and random initial values. All are reset before a test and shared between tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from hotline.config import KernelConfig, kernel_config
from hotline.device.base import Device
from hotline.device.cpu import CpuDevice
from hotline.device.reference import ReferenceDevice
from hotline.device.sim import MemoryModel, SimDevice

SEED = int(os.environ.get("HOTLINE_SEED", "0"))
"""Added to every seed of the suite; 0 is always run."""

_STALLS = MemoryModel(
    read_latency=20, write_latency=15, stall_probability=0.1, stall_r=0.3, stall_w=0.25, seed=SEED
)

SIMULATED: dict[str, Callable[[], Device]] = {
    "sim-tiny": lambda: SimDevice("tiny", check=True, background=False, seed=SEED),
    "sim-tiny-background": lambda: SimDevice("tiny", check=True, seed=SEED + 1, memory=_STALLS),
    "sim-tiny-copies": lambda: SimDevice(
        "tiny", check=True, background=False, seed=SEED + 2, separate_copies=True, memory=_STALLS
    ),
    "sim-zynq": lambda: SimDevice("zynq", background=False),
    "sim-kv260": lambda: SimDevice("kv260", background=False),
    "sim-alveo": lambda: SimDevice("alveo", background=False),
}
BACKENDS: dict[str, Callable[[], Device]] = {
    "reference-tiny": lambda: ReferenceDevice("tiny"),
    "cpu-tiny": lambda: CpuDevice("tiny", threads=2),
    **SIMULATED,
}
_SLOW = {"sim-zynq", "sim-kv260", "sim-alveo"}  # their builds take minutes


def _parameters(names: dict[str, Callable[[], Device]]) -> list[object]:
    return [pytest.param(n, marks=pytest.mark.slow if n in _SLOW else ()) for n in names]


@pytest.fixture(scope="session")
def _opened() -> Iterator[dict[str, Device]]:
    devices: dict[str, Device] = {}
    yield devices
    for device in devices.values():
        device.close()


def _device(opened: dict[str, Device], name: str) -> Device:
    if name not in opened:
        opened[name] = BACKENDS[name]()
    device = opened[name]
    device.reset()
    return device


@pytest.fixture(params=_parameters(BACKENDS))
def device(request: pytest.FixtureRequest, _opened: dict[str, Device]) -> Device:
    """Every backend, freshly reset."""
    return _device(_opened, request.param)


@pytest.fixture(params=_parameters(SIMULATED))
def sim(request: pytest.FixtureRequest, _opened: dict[str, Device]) -> Iterator[SimDevice]:
    """Every simulated backend, freshly reset; memory model and faults are restored afterwards."""
    yield from _restored(_opened, request.param)


@pytest.fixture
def checked(_opened: dict[str, Device]) -> Iterator[SimDevice]:
    """The small configuration with all checks; time passes only while the test waits."""
    yield from _restored(_opened, "sim-tiny")


def _restored(opened: dict[str, Device], name: str) -> Iterator[SimDevice]:
    device = _device(opened, name)
    assert isinstance(device, SimDevice)
    before = device.memory("fragmenter")
    yield device
    device.clear_faults()
    device.set_memory(before)


def config_of(device: Device) -> KernelConfig:
    """Configuration of a backend."""
    return kernel_config(device.capabilities.config)
