# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Jobs that change or read the EAL, the directory of the hot set. They do not move any row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.device.base import ENTRY, Clear, Dump, Handle, Learn, Load
from hotline.device.status import raise_for
from hotline.tables import Group
from hotline.train.accelerator import Accelerator

U32 = npt.NDArray[np.uint32]


class Directory:
    """The EAL of a device, for one group.

    Args:
        accelerator: the device; what its EAL holds is dropped.
        group: the tables.
    """

    def __init__(self, accelerator: Accelerator, group: Group) -> None:
        self.accelerator, self.group = accelerator, group
        self._learning: list[tuple[U32, Handle | None]] = []
        if accelerator.epoch:  # it may hold rows of another group
            accelerator.run(Clear())

    @property
    def capacity(self) -> int:
        """Rows that it holds, at most."""
        return self.accelerator.device.capabilities.eal_entries

    def learn(self, ids: U32) -> None:
        """Starts LEARN jobs on row ids [n]; at most two are open."""
        device = self.accelerator.device
        chunk = max(device.capabilities.job_lookups_max, 1)
        for start in range(0, len(ids), chunk):
            part = ids[start : start + chunk]
            if len(self._learning) >= 2:
                buffer, handle = self._learning.pop(0)
                self._wait(handle)
                if len(buffer) < len(part):
                    device.free(buffer)
                    buffer = device.allocate(len(part), np.uint32)
            else:
                buffer = device.allocate(max(len(part), 16), np.uint32)
            buffer[: len(part)] = part
            job = Learn(
                buffer[: len(part)],
                total_rows=self.group.total_rows,
                pinned_rows=self.group.pinned_rows,
            )
            self._learning.append((buffer, None))
            self._learning[-1] = (buffer, self.accelerator.submit(job))

    def _wait(self, handle: Handle | None) -> None:
        completion = None if handle is None else self.accelerator.wait(handle)
        if completion is not None:
            raise_for(completion)

    def finish(self) -> None:
        """Waits for the LEARN jobs and frees their buffers."""
        while self._learning:
            buffer, handle = self._learning.pop(0)
            try:
                self._wait(handle)
            finally:
                self.accelerator.device.free(buffer)

    def dump(self) -> npt.NDArray[Any] | None:
        """The entries (``ENTRY``) in slot order; None if the device is lost."""
        self.finish()
        device = self.accelerator.device
        entries = device.allocate(max(device.capabilities.eal_entries, 1), ENTRY)
        try:
            done = self.accelerator.run(Dump(entries, pinned_rows=self.group.pinned_rows))
            return None if done is None else entries[: done.lookups].copy()
        finally:
            device.free(entries)

    def fill(self, rows: U32) -> U32:
        """Makes these rows [n] the content, as far as their sets have ways; returns the others."""
        self.finish()
        accelerator, device = self.accelerator, self.accelerator.device
        accelerator.run(Clear())
        chunk = max(device.capabilities.job_lookups_max // 16 * 16, 16)
        size = max(min(len(rows), chunk), 1)
        ids, out = device.allocate(size, np.uint32), device.allocate(size, np.uint32)
        rejected = [np.zeros(0, np.uint32)]
        try:
            for start in range(0, len(rows), chunk):
                count = min(chunk, len(rows) - start)
                ids[:count] = rows[start : start + count]
                done = accelerator.run(
                    Load(
                        ids[:count],
                        out[:count],
                        total_rows=self.group.total_rows,
                        pinned_rows=self.group.pinned_rows,
                    )
                )
                if done is None:
                    return rows
                rejected.append(out[: done.cold_rows].copy())
        finally:
            device.free(ids)
            device.free(out)
        return np.concatenate(rejected)
