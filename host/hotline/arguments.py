# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a job as the kernels' registers hold them (``docs/register_map.md``)."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields

from hotline.errors import ConfigError

POINTERS = frozenset(
    {
        "record",
        "ids",
        "offsets",
        "indices",
        "popular",
        "nonpopular",
        "bitmap",
        "cold",
        "records",
        "store",
    }
)
"""Arguments of 64 bits (two registers); all others have 32."""


@dataclass(frozen=True)
class Arguments:
    """Raw arguments of one job: unsigned integers, pointers are byte addresses.

    The names are those of the registers in lower case, without ``_LO`` and ``_HI``.
    """

    operation: int = 0
    tag: int = 0
    record: int = 0
    ids: int = 0
    offsets: int = 0
    indices: int = 0
    popular: int = 0
    nonpopular: int = 0
    bitmap: int = 0
    cold: int = 0
    records: int = 0
    store: int = 0
    lookups: int = 0
    samples: int = 0
    bags: int = 0
    lookups_per_sample: int = 0
    total_rows: int = 0
    pinned_rows: int = 0
    cold_base: int = 0
    cold_rows_max: int = 0
    record_bytes: int = 0
    segments: int = 0
    segment_shift: int = 0
    flags: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            try:
                value = operator.index(getattr(self, field.name))  # NumPy integers become Python's
            except TypeError as error:
                raise ConfigError(f"argument {field.name}: {error}") from None
            bits = 64 if field.name in POINTERS else 32
            if not 0 <= value < 1 << bits:
                raise ConfigError(f"argument {field.name}={value} does not fit {bits} bits")
            object.__setattr__(self, field.name, value)

    @classmethod
    def of(cls, values: Mapping[str, int] | Arguments) -> Arguments:
        """Takes a mapping by argument name (missing ones are 0)."""
        return values if isinstance(values, Arguments) else cls(**values)

    def registers(self) -> dict[str, int]:
        """Register name -> 32-bit value, pointers as ``*_LO`` and ``*_HI``."""
        words: dict[str, int] = {}
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.upper()
            if field.name in POINTERS:
                words[f"{name}_LO"] = value & 0xFFFF_FFFF
                words[f"{name}_HI"] = value >> 32
            else:
                words[name] = value
        return words
