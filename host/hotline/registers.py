# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
# Generated from hw/regs/hotline.rdl by `python hw/regs/generate.py`; do not edit.
"""Offsets and fields of the registers, and the layout of the completion record.

``<REGISTER>`` is the byte offset of a register; ``<REGISTER>_<FIELD>_MASK`` and
``_SHIFT`` place a field in it. Registers in a block have the block's name in front.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Field(NamedTuple):
    """One value in a block of registers (or in the completion record in memory).

    Attributes:
        name: name in lower case.
        offset: bytes from the block's start to the (first) 32-bit word that holds it.
        shift: lowest bit in that word.
        bits: width; a value of 64 bits takes two words, the low half first.
    """

    name: str
    offset: int
    shift: int
    bits: int

    @property
    def word(self) -> int:
        """Number of its (first) 32-bit word in the block."""
        return self.offset // 4

    @property
    def mask(self) -> int:
        """Its bits, in place."""
        return ((1 << self.bits) - 1) << self.shift


MAP_BYTES: Final = 0x1C8
"""Size of the map."""
CONTROL: Final = 0x000
"""Control: ap_ctrl_chain handshake."""
CONTROL_START_MASK: Final = 0x1
"""Write 1 to offer a job; cleared by hardware when the arguments are latched."""
CONTROL_START_SHIFT: Final = 0
CONTROL_DONE_MASK: Final = 0x2
"""A completion waits in RESULT; sticky until `resume`."""
CONTROL_DONE_SHIFT: Final = 1
CONTROL_IDLE_MASK: Final = 0x4
"""No job offered, accepted or waiting for its `resume`."""
CONTROL_IDLE_SHIFT: Final = 2
CONTROL_READY_MASK: Final = 0x8
"""The kernel can latch the arguments of another job."""
CONTROL_READY_SHIFT: Final = 3
CONTROL_RESUME_MASK: Final = 0x10
"""ap_continue: takes the completion, clears `done`; reads as 0."""
CONTROL_RESUME_SHIFT: Final = 4
GIE: Final = 0x004
"""Global interrupt enable: Gate of the interrupt output."""
GIE_ENABLE_MASK: Final = 0x1
"""Enables the interrupt output."""
GIE_ENABLE_SHIFT: Final = 0
IER: Final = 0x008
"""Interrupt enable: Which events raise the interrupt."""
IER_DONE_MASK: Final = 0x1
"""Enables the interrupt at `done`."""
IER_DONE_SHIFT: Final = 0
IER_READY_MASK: Final = 0x2
"""Enables the interrupt at `ready`."""
IER_READY_SHIFT: Final = 1
ISR: Final = 0x00C
"""Interrupt status: Events since they were last cleared, whether enabled or not. An event in
the cycle of its clearing is kept."""
ISR_DONE_MASK: Final = 0x1
"""A job is done; write 1 to clear."""
ISR_DONE_SHIFT: Final = 0
ISR_READY_MASK: Final = 0x2
"""A job's arguments were latched; write 1 to clear."""
ISR_READY_SHIFT: Final = 1
OPERATION: Final = 0x010
"""Operation: Operation code; bit n of IDENTITY.OPERATIONS says that code n is offered."""
TAG: Final = 0x014
"""Tag: Any number; comes back in the completion record."""
RECORD_LO: Final = 0x018
"""Completion record, low half: Where the 64-byte completion record goes. All pointers are
64-byte aligned."""
RECORD_HI: Final = 0x01C
"""Completion record, high half: High half of RECORD."""
IDS_LO: Final = 0x020
"""Row ids, low half: Row ids (LOAD: entries) to read."""
IDS_HI: Final = 0x024
"""Row ids, high half: High half of IDS."""
OFFSETS_LO: Final = 0x028
"""Offsets, low half: FRAGMENT with BAGS > 0: samples * bags + 1 offsets to read."""
OFFSETS_HI: Final = 0x02C
"""Offsets, high half: High half of OFFSETS."""
INDICES_LO: Final = 0x030
"""Encoded indices, low half: FRAGMENT: encoded indices. DUMP: entries. LOAD: entries that found
no way."""
INDICES_HI: Final = 0x034
"""Encoded indices, high half: High half of INDICES."""
POPULAR_LO: Final = 0x038
"""Popular samples, low half: FRAGMENT: numbers of the popular samples."""
POPULAR_HI: Final = 0x03C
"""Popular samples, high half: High half of POPULAR."""
NONPOPULAR_LO: Final = 0x040
"""Non-popular samples, low half: FRAGMENT: numbers of the other samples."""
NONPOPULAR_HI: Final = 0x044
"""Non-popular samples, high half: High half of NONPOPULAR."""
BITMAP_LO: Final = 0x048
"""Bitmap, low half: FRAGMENT: one bit per sample, 1 for popular."""
BITMAP_HI: Final = 0x04C
"""Bitmap, high half: High half of BITMAP."""
COLD_LO: Final = 0x050
"""Cold rows, low half: FRAGMENT: row ids by cold position."""
COLD_HI: Final = 0x054
"""Cold rows, high half: High half of COLD."""
RECORDS_LO: Final = 0x058
"""Records, low half: GATHER: where the records go. SCATTER: where they come from."""
RECORDS_HI: Final = 0x05C
"""Records, high half: High half of RECORDS."""
STORE_LO: Final = 0x060
"""Store, low half: The cold store, or with SEGMENTS > 1 the table of its segments' addresses."""
STORE_HI: Final = 0x064
"""Store, high half: High half of STORE."""
LOOKUPS: Final = 0x068
"""Lookups: Row ids, entries or records of the job."""
SAMPLES: Final = 0x06C
"""Samples: FRAGMENT: samples of the job."""
BAGS: Final = 0x070
"""Bags: FRAGMENT: bags per sample of jagged input, 0: samples of a fixed length."""
LOOKUPS_PER_SAMPLE: Final = 0x074
"""Lookups per sample: FRAGMENT with BAGS = 0: length of every sample."""
TOTAL_ROWS: Final = 0x078
"""Rows: Rows of the row space; a row id must be below."""
PINNED_ROWS: Final = 0x07C
"""Pinned rows: Row ids below are always hot and never looked up."""
COLD_BASE: Final = 0x080
"""Cold base: FRAGMENT: encoded index of cold position 0."""
COLD_ROWS_MAX: Final = 0x084
"""Cold rows, at most: FRAGMENT: distinct cold rows that the caller has room for."""
RECORD_BYTES: Final = 0x088
"""Record bytes: GATHER, SCATTER: size of a record, a multiple of 64."""
SEGMENTS: Final = 0x08C
"""Segments: GATHER, SCATTER: segments of the cold store."""
SEGMENT_SHIFT: Final = 0x090
"""Segment shift: GATHER, SCATTER with SEGMENTS > 1: row id >> shift picks the segment."""
FLAGS: Final = 0x094
"""Flags: Bit 0, LOAD: the input is a plain list of row ids. Bit 1, LEARN: keep frequent rows
instead of recent ones. Other bits: write 0."""
ABORT: Final = 0x0A0
"""Abort: Ends every job accepted before the write. A job offered but not yet accepted waits
until the bit is clear again and then runs."""
ABORT_ABORT_MASK: Final = 0x1
"""Write 1 to abort the accepted jobs; cleared by hardware when none is left."""
ABORT_ABORT_SHIFT: Final = 0

RESULT: Final = 0x100
"""Completion record: Valid from `done` to the next `done`. The same 64 bytes are written to
RECORD. Counts that an operation does not have are 0."""
RESULT_BYTES: Final = 0x40
RESULT_TAG: Final = 0x100
"""Tag: Tag of the job."""
RESULT_STATUS: Final = 0x104
"""Status: How the job ended; codes in hotline_pkg.sv and hotline/codes.py."""
RESULT_STATUS_STATUS_MASK: Final = 0xFF
"""Status code."""
RESULT_STATUS_STATUS_SHIFT: Final = 0
RESULT_STATUS_OPERATION_MASK: Final = 0xFF00
"""Operation code."""
RESULT_STATUS_OPERATION_SHIFT: Final = 8
RESULT_STATUS_REASON_MASK: Final = 0xFF0000
"""Reason code, refines the status."""
RESULT_STATUS_REASON_SHIFT: Final = 16
RESULT_EPOCH: Final = 0x108
"""Epoch: Epoch of the EAL after the job; 0 for the gatherer."""
RESULT_SAMPLES: Final = 0x10C
"""Samples: FRAGMENT: samples whose results are valid."""
RESULT_POPULAR: Final = 0x110
"""Popular samples: FRAGMENT: popular samples among them."""
RESULT_COLD_ROWS: Final = 0x114
"""Cold rows: FRAGMENT: distinct cold rows. LOAD: entries that found no way."""
RESULT_PINNED_LOOKUPS: Final = 0x118
"""Pinned lookups: Lookups below PINNED_ROWS."""
RESULT_EAL_LOOKUPS: Final = 0x11C
"""EAL lookups: Lookups that the EAL held. LOAD: already present. EVICT: found."""
RESULT_COLD_LOOKUPS: Final = 0x120
"""Cold lookups: Lookups that the EAL did not hold. LOAD: inserted or returned."""
RESULT_LOOKUPS: Final = 0x124
"""Lookups: Lookups or entries applied. DUMP: entries written. GATHER, SCATTER: records."""
RESULT_CYCLES: Final = 0x128
"""Cycles: Cycles from acceptance, or the previous completion if later, to this one (the
record's own writing belongs to the next job)."""
RESULT_STALLS: Final = 0x12C
"""Stalls: Cycles among them in which the data path waited."""
RESULT_ERROR_SAMPLE: Final = 0x130
"""Error: sample: BAD_INDEX: number of the sample."""
RESULT_ERROR_LOOKUP: Final = 0x134
"""Error: lookup: BAD_INDEX: number of the lookup, or of the offsets entry."""
RESULT_ERROR_VALUE_LO: Final = 0x138
"""Error: value, low half: BAD_INDEX: the value. AXI_ERROR: a failing address."""
RESULT_ERROR_VALUE_HI: Final = 0x13C
"""Error: value, high half: High half of the error's value."""

COUNTERS: Final = 0x140
"""Counters: Free running since reset, wrap at 2**32. Read two of them at a known distance to
measure a rate; `*_IN_FLIGHT` are current values."""
COUNTERS_BYTES: Final = 0x2C
COUNTERS_CYCLES: Final = 0x140
"""Cycles: Clock cycles since reset."""
COUNTERS_BUSY: Final = 0x144
"""Busy: Cycles in which the core worked on a job."""
COUNTERS_STALL_READ: Final = 0x148
"""Stalls: read: Cycles in which the core waited for read data."""
COUNTERS_STALL_WRITE: Final = 0x14C
"""Stalls: write: Cycles in which the core waited for room to write."""
COUNTERS_STALL_BANK: Final = 0x150
"""Stalls: bank: Cycles lost to conflicts of EAL banks."""
COUNTERS_STALL_TRACKER: Final = 0x154
"""Stalls: tracker: Cycles in which the core waited for the cold tracker."""
COUNTERS_READ_BEATS: Final = 0x158
"""Read beats: Beats read from memory."""
COUNTERS_WRITE_BEATS: Final = 0x15C
"""Write beats: Beats written to memory, records included."""
COUNTERS_READS_IN_FLIGHT: Final = 0x160
"""Reads in flight: Read bursts that the memory has not completed."""
COUNTERS_WRITES_IN_FLIGHT: Final = 0x164
"""Writes in flight: Write bursts that the memory has not answered."""
COUNTERS_JOBS: Final = 0x168
"""Jobs: Jobs accepted."""

IDENTITY: Final = 0x180
"""Identity: What the kernel is: constant for a build, EPOCH excepted. Limits of operations that
a kernel does not offer read as 0."""
IDENTITY_BYTES: Final = 0x48
IDENTITY_MAGIC: Final = 0x180
"""Magic: 0x4C544F48, `HOTL`."""
IDENTITY_VERSION: Final = 0x184
"""Version: Version of this map: major << 16 | minor."""
IDENTITY_OPERATIONS: Final = 0x188
"""Operations: Bit n: operation code n is offered."""
IDENTITY_BUS_BITS: Final = 0x18C
"""Bus bits: Width of the AXI data bus."""
IDENTITY_EAL_SETS: Final = 0x190
"""EAL sets: Sets of the EAL."""
IDENTITY_EAL_WAYS: Final = 0x194
"""EAL ways: Ways of a set."""
IDENTITY_COUNTER_BITS: Final = 0x198
"""Counter bits: Width of an entry's counter."""
IDENTITY_LOOKUPS_MAX: Final = 0x19C
"""Lookups of a sample: Most lookups of a sample."""
IDENTITY_COLD_ROWS_MAX: Final = 0x1A0
"""Cold rows: Depth of the cold tracker."""
IDENTITY_JOB_LOOKUPS_MAX: Final = 0x1A4
"""Lookups of a job: Most lookups of a job."""
IDENTITY_JOB_SAMPLES_MAX: Final = 0x1A8
"""Samples of a job: Most samples of a job."""
IDENTITY_BAGS_MAX: Final = 0x1AC
"""Bags: Most bags of a sample."""
IDENTITY_SEGMENTS_MAX: Final = 0x1B0
"""Segments: Most segments of a cold store."""
IDENTITY_RECORD_BYTES_MAX: Final = 0x1B4
"""Record bytes: Longest record of a cold store."""
IDENTITY_BURST_BEATS: Final = 0x1B8
"""Burst beats: Longest AXI burst."""
IDENTITY_CLOCK_KHZ: Final = 0x1BC
"""Clock: Clock that the build is meant for, in kHz."""
IDENTITY_BUILD_ID: Final = 0x1C0
"""Build id: First 32 bits of the hash of the sources."""
IDENTITY_EPOCH: Final = 0x1C4
"""Epoch: CLEAR, LEARN, LOAD and EVICT jobs that ran since reset."""

ARGUMENTS: Final[tuple[Field, ...]] = (
    Field("operation", 0x010, 0, 32),
    Field("tag", 0x014, 0, 32),
    Field("record", 0x018, 0, 64),
    Field("ids", 0x020, 0, 64),
    Field("offsets", 0x028, 0, 64),
    Field("indices", 0x030, 0, 64),
    Field("popular", 0x038, 0, 64),
    Field("nonpopular", 0x040, 0, 64),
    Field("bitmap", 0x048, 0, 64),
    Field("cold", 0x050, 0, 64),
    Field("records", 0x058, 0, 64),
    Field("store", 0x060, 0, 64),
    Field("lookups", 0x068, 0, 32),
    Field("samples", 0x06C, 0, 32),
    Field("bags", 0x070, 0, 32),
    Field("lookups_per_sample", 0x074, 0, 32),
    Field("total_rows", 0x078, 0, 32),
    Field("pinned_rows", 0x07C, 0, 32),
    Field("cold_base", 0x080, 0, 32),
    Field("cold_rows_max", 0x084, 0, 32),
    Field("record_bytes", 0x088, 0, 32),
    Field("segments", 0x08C, 0, 32),
    Field("segment_shift", 0x090, 0, 32),
    Field("flags", 0x094, 0, 32),
)
"""Arguments of a job; offsets from the start of the map."""

RESULT_FIELDS: Final[tuple[Field, ...]] = (
    Field("tag", 0x000, 0, 32),
    Field("status", 0x004, 0, 8),
    Field("operation", 0x004, 8, 8),
    Field("reason", 0x004, 16, 8),
    Field("epoch", 0x008, 0, 32),
    Field("samples", 0x00C, 0, 32),
    Field("popular", 0x010, 0, 32),
    Field("cold_rows", 0x014, 0, 32),
    Field("pinned_lookups", 0x018, 0, 32),
    Field("eal_lookups", 0x01C, 0, 32),
    Field("cold_lookups", 0x020, 0, 32),
    Field("lookups", 0x024, 0, 32),
    Field("cycles", 0x028, 0, 32),
    Field("stalls", 0x02C, 0, 32),
    Field("error_sample", 0x030, 0, 32),
    Field("error_lookup", 0x034, 0, 32),
    Field("error_value", 0x038, 0, 64),
)
"""Values of RESULT; offsets from its start."""

COUNTERS_FIELDS: Final[tuple[Field, ...]] = (
    Field("cycles", 0x000, 0, 32),
    Field("busy", 0x004, 0, 32),
    Field("stall_read", 0x008, 0, 32),
    Field("stall_write", 0x00C, 0, 32),
    Field("stall_bank", 0x010, 0, 32),
    Field("stall_tracker", 0x014, 0, 32),
    Field("read_beats", 0x018, 0, 32),
    Field("write_beats", 0x01C, 0, 32),
    Field("reads_in_flight", 0x020, 0, 32),
    Field("writes_in_flight", 0x024, 0, 32),
    Field("jobs", 0x028, 0, 32),
)
"""Values of COUNTERS; offsets from its start."""

IDENTITY_FIELDS: Final[tuple[Field, ...]] = (
    Field("magic", 0x000, 0, 32),
    Field("version", 0x004, 0, 32),
    Field("operations", 0x008, 0, 32),
    Field("bus_bits", 0x00C, 0, 32),
    Field("eal_sets", 0x010, 0, 32),
    Field("eal_ways", 0x014, 0, 32),
    Field("counter_bits", 0x018, 0, 32),
    Field("lookups_max", 0x01C, 0, 32),
    Field("cold_rows_max", 0x020, 0, 32),
    Field("job_lookups_max", 0x024, 0, 32),
    Field("job_samples_max", 0x028, 0, 32),
    Field("bags_max", 0x02C, 0, 32),
    Field("segments_max", 0x030, 0, 32),
    Field("record_bytes_max", 0x034, 0, 32),
    Field("burst_beats", 0x038, 0, 32),
    Field("clock_khz", 0x03C, 0, 32),
    Field("build_id", 0x040, 0, 32),
    Field("epoch", 0x044, 0, 32),
)
"""Values of IDENTITY; offsets from its start."""
