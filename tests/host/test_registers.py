# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The generated register constants against the types that use them."""

from __future__ import annotations

import dataclasses
import itertools

from hotline import registers as reg
from hotline.arguments import Arguments
from hotline.device.base import Capabilities, Completion


def test_arguments_have_their_registers() -> None:
    wanted = Arguments().registers()
    assert {name: getattr(reg, name) for name in wanted}.keys() == wanted.keys()
    fields = {entry.name: entry for entry in reg.ARGUMENTS}
    assert fields.keys() == {field.name for field in dataclasses.fields(Arguments)}
    for name, entry in fields.items():
        words = Arguments(**{name: (1 << entry.bits) - 1}).registers()
        if entry.bits == 64:
            assert getattr(reg, f"{name.upper()}_LO") == entry.offset
            assert getattr(reg, f"{name.upper()}_HI") == entry.offset + 4
            assert words[f"{name.upper()}_HI"] == 0xFFFF_FFFF
        else:
            assert getattr(reg, name.upper()) == entry.offset


def test_the_record_is_the_completion_in_64_bytes() -> None:
    assert reg.RESULT_BYTES == 64
    assert {entry.name for entry in reg.RESULT_FIELDS} == {
        field.name for field in dataclasses.fields(Completion)
    }
    taken = 0
    for entry in reg.RESULT_FIELDS:
        mask = entry.mask << 8 * entry.offset
        assert not taken & mask, entry
        taken |= mask
    assert taken == (1 << 512) - 1 - (0xFF << 8 * 7)  # all but the top byte of STATUS


def test_identity_tells_the_capabilities() -> None:
    names = {entry.name for entry in reg.IDENTITY_FIELDS}
    own = {"backend", "config", "stores"}
    assert {field.name for field in dataclasses.fields(Capabilities)} - own <= names


def test_registers_do_not_overlap() -> None:
    blocks = [(entry.offset, entry.bits // 8) for entry in reg.ARGUMENTS] + [
        (reg.RESULT, reg.RESULT_BYTES),
        (reg.COUNTERS, reg.COUNTERS_BYTES),
        (reg.IDENTITY, reg.IDENTITY_BYTES),
        *((offset, 4) for offset in (reg.CONTROL, reg.GIE, reg.IER, reg.ISR, reg.ABORT)),
    ]
    blocks.sort()
    for (offset, size), (following, _) in itertools.pairwise(blocks):
        assert offset + size <= following
    assert blocks[-1][0] + blocks[-1][1] == reg.MAP_BYTES <= 1 << 12
    assert (reg.CONTROL, reg.GIE, reg.IER, reg.ISR, reg.OPERATION) == (0, 4, 8, 12, 16)
