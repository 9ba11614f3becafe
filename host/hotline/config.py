# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Named kernel configurations: the one place that lists the hardware's parameters.

The simulator build, the cocotb benches, lint and the packaging scripts all read this table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from hotline.errors import ConfigError


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True)
class KernelConfig:
    """Parameters of one build of the two kernels.

    Attributes:
        name: name of the configuration.
        bus_bits: width of the AXI data bus: 64, 128, 256 or 512.
        eal_sets: sets of the EAL, a power of two.
        eal_ways: ways of a set, a power of two up to 16.
        eal_banks: memory banks that the sets are spread over, a power of two.
        cold_rows_max: distinct cold rows that the tracker holds, a power of two.
        lookups_max: most lookups of one sample; at most ``cold_rows_max``.
        cold_lanes: cold lookups that the tracker takes per cycle.
        burst_beats: longest AXI burst, in beats; a burst is at most 4 KiB.
        read_outstanding: read bursts in flight, at most.
        write_outstanding: write bursts in flight, at most.
        clock_khz: the clock that a build is meant for, in kHz.
    """

    name: str
    bus_bits: int
    eal_sets: int
    eal_ways: int
    eal_banks: int
    cold_rows_max: int
    lookups_max: int
    cold_lanes: int
    burst_beats: int
    read_outstanding: int
    write_outstanding: int
    clock_khz: int

    def __post_init__(self) -> None:
        for field in ("eal_sets", "eal_ways", "eal_banks", "cold_rows_max"):
            if not _power_of_two(getattr(self, field)):
                raise ConfigError(f"{self.name}: {field} must be a power of 2")
        if self.bus_bits not in (64, 128, 256, 512):
            raise ConfigError(f"{self.name}: bus_bits={self.bus_bits} is not 64, 128, 256 or 512")
        if self.eal_ways > 16 or self.eal_banks > self.eal_sets:
            raise ConfigError(f"{self.name}: eal_ways <= 16 and eal_banks <= eal_sets are required")
        if self.lookups_max > self.cold_rows_max:
            raise ConfigError(f"{self.name}: lookups_max must not exceed cold_rows_max")
        if self.burst_beats * self.bus_bits // 8 > 4096:
            raise ConfigError(f"{self.name}: a burst of {self.burst_beats} beats exceeds 4 KiB")

    @property
    def eal_entries(self) -> int:
        """Rows that the EAL holds."""
        return self.eal_sets * self.eal_ways

    @property
    def lanes(self) -> int:
        """32-bit words of a bus word."""
        return self.bus_bits // 32

    def verilog_parameters(self) -> dict[str, int]:
        """Parameters of the kernels' top modules, by their SystemVerilog names."""
        skip = {"name"}
        return {
            "".join(part.capitalize() for part in field.name.split("_")): getattr(self, field.name)
            for field in fields(self)
            if field.name not in skip
        }


CONFIGS: dict[str, KernelConfig] = {
    config.name: config
    for config in (
        KernelConfig("tiny", 64, 16, 16, 2, 128, 64, 1, 16, 16, 16, 100_000),
        # 1,024 rows make about a third of MovieLens-100K's samples popular: all paths occur.
        KernelConfig("demo", 64, 64, 16, 2, 2048, 256, 1, 16, 64, 64, 100_000),
        # One bank reads as many sets in a cycle as the bus brings ids; two would be half empty.
        KernelConfig("zynq", 64, 1024, 16, 1, 16_384, 4096, 1, 16, 64, 64, 100_000),
        KernelConfig("kv260", 128, 2048, 16, 4, 16_384, 4096, 1, 16, 64, 64, 200_000),
        KernelConfig("alveo", 512, 32_768, 16, 32, 65_536, 16_384, 4, 16, 256, 256, 300_000),
    )
}
"""The named configurations, by name."""


def kernel_config(name: str) -> KernelConfig:
    """Returns the named configuration; raises ``ConfigError`` that lists the names."""
    try:
        return CONFIGS[name]
    except KeyError:
        raise ConfigError(f"no configuration {name!r}; there are {', '.join(CONFIGS)}") from None
