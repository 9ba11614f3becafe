# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Devices: one protocol, several backends. ``open`` picks one by name."""

from __future__ import annotations

from typing import Any

from hotline.device.base import Device
from hotline.errors import ConfigError

BACKENDS = ("reference", "cpu", "sim")


def open(backend: str = "sim", config: str = "zynq", **options: Any) -> Device:
    """Opens a device.

    Args:
        backend: ``reference`` (NumPy, the oracle), ``cpu`` (native code) or ``sim`` (the RTL in
            Verilator).
        config: named hardware configuration (``hotline.config.CONFIGS``), or a ``KernelConfig``.
        options: options of the backend, see its class.

    Raises:
        ConfigError: there is no such backend or configuration.
        DeviceMismatch: what was found is not what was asked for.
    """
    if backend == "reference":
        from hotline.device.reference import ReferenceDevice

        return ReferenceDevice(config, **options)
    if backend == "cpu":
        from hotline.device.cpu import CpuDevice

        return CpuDevice(config, **options)
    if backend == "sim":
        from hotline.device.sim import SimDevice

        return SimDevice(config, **options)
    raise ConfigError(f"no backend {backend!r}; there are {', '.join(BACKENDS)}")
