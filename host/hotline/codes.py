# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Operation, status and reason codes: the host's copy of ``hw/rtl/hotline_pkg.sv``."""

from __future__ import annotations

import enum

MAGIC = 0x4C544F48
"""``IDENTITY.MAGIC``: "HOTL" read as a little-endian word."""
VERSION = 0x0001_0000
"""``IDENTITY.VERSION``: major << 16 | minor; another major is refused."""
FLAG_PLAIN_LIST = 1 << 0
"""``FLAGS``: LOAD takes row ids (4 bytes each) instead of 8-byte entries."""
FLAG_FREQUENCY = 1 << 1
"""``FLAGS``: LEARN keeps frequent rows (``Policy.FREQUENCY``) instead of recent ones."""

JOB_LOOKUPS_MAX = 1 << 28
"""Most lookups (row ids, entries, records) of a job."""
JOB_SAMPLES_MAX = 1 << 28
"""Most samples of a job."""
BAGS_MAX = 0xFFFF
"""Most bags of a sample."""
SEGMENTS_MAX = 64
"""Most segments of a cold store."""
RECORD_BYTES_MAX = 4096
"""Largest record, in bytes."""
TOTAL_ROWS_MAX = 2**32 - 2
"""Most rows of a row space."""

COUNTER_BITS = 2
"""Width of an EAL entry's counter."""
COUNTER_HIT = 0
"""Counter of an entry that was hit."""
COUNTER_INSERT = 2
"""Counter of an entry that LEARN by SRRIP, or LOAD of a plain list, has inserted."""
COUNTER_VICTIM = 3
"""Counter at which LEARN replaces an entry."""


class Policy(enum.Enum):
    """How LEARN chooses what a full set keeps (docs/architecture.md, section 4)."""

    SRRIP = "srrip"
    FREQUENCY = "frequency"


class Operation(enum.IntEnum):
    """Operation codes (argument ``OPERATION``)."""

    CLEAR = 1
    LEARN = 2
    FRAGMENT = 3
    DUMP = 4
    LOAD = 5
    EVICT = 6
    GATHER = 8
    SCATTER = 9


class Status(enum.IntEnum):
    """Status codes of the completion record."""

    OK = 0
    BAD_CONFIG = 1
    BAD_INDEX = 2
    COLD_OVERFLOW = 3
    AXI_ERROR = 4
    ABORTED = 5


class Reason(enum.IntEnum):
    """What exactly was wrong; ``NONE`` where the status needs no refinement."""

    NONE = 0
    ROW_ID = 1
    OFFSET = 2
    SAMPLE_TOO_LONG = 3
    OPERATION = 16
    RECORD_POINTER = 17
    POINTER = 18
    LOOKUPS = 19
    SAMPLES = 20
    BAGS = 21
    LOOKUPS_PER_SAMPLE = 22
    ROWS = 23
    COLD_RANGE = 24
    RECORD_BYTES = 25
    SEGMENTS = 26
    READ = 32
    WRITE = 33
