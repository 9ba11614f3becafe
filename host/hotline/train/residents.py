# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The cold rows of a mini-batch, and the place in the ring where they live for a while."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from hotline.device.base import Handle
from hotline.errors import HotlineError
from hotline.train.staging import Staging

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]


class State(enum.IntEnum):
    """Life of a resident, in order."""

    ADMITTED = 0
    """Its gather is queued or running."""
    READY = 1
    """The gathered records are in the tail."""
    RETIRED = 2
    """The mini-batch is over; write-back not yet submitted."""
    WRITING = 3
    """The scatter is queued or running."""
    DONE = 4
    """The store is up to date, or the resident was given up."""


@dataclass
class Tail:
    """One place of the ring.

    Attributes:
        base: first index in the working set.
        places: [capacity] indices in the working set, by rank.
        gathered, written: staging of gathers and of write-backs.
        resident: the last one that was admitted here.
        released: end of the work that used the places, on the stream that trains.
    """

    base: int
    places: I64
    gathered: Staging
    written: Staging
    resident: Resident | None = None
    released: torch.cuda.Event | None = None


@dataclass(eq=False)
class Resident:
    """The cold rows of one mini-batch.

    Attributes:
        tail: where they lie.
        rows: [n] distinct row ids by rank.
        places: [n] index of each in the working set.
        dirty: [n] the record in the tail is newer than the store and nobody writes it back yet.
        passed_on: [n] a younger resident takes the row.
        takes: (older resident, ranks there, ranks here): rows to be copied when that one retires.
        fetched: [m] ranks that come through the staging buffer, in its order.
        gathering: number of those that the gather brings; the others were put there by the host.
        error: of the last gather or scatter, which is to be repeated.
        write_position: [n] position in the write-back staging buffer, -1 if not there.
        events: times for the timeline: name -> (start, end) in seconds of ``time.perf_counter``.
    """

    tail: Tail
    rows: U32
    places: I64
    state: State = State.ADMITTED
    dirty: Bools = field(init=False)
    passed_on: Bools = field(init=False)
    takes: list[tuple[Resident, I64, I64]] = field(default_factory=list)
    fetched: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    write_position: I64 = field(init=False)
    gathering: int = 0
    handles: list[Handle] = field(default_factory=list)
    error: HotlineError | None = None
    uploaded: torch.cuda.Event | None = None
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.rows)
        self.dirty = np.zeros(count, dtype=np.bool_)
        self.passed_on = np.zeros(count, dtype=np.bool_)
        self.write_position = np.full(count, -1, dtype=np.int64)
        self._order = np.argsort(self.rows)
        self._sorted = self.rows[self._order]

    def find(self, rows: U32) -> tuple[I64, Bools]:
        """Returns (rank of each row here, whether it is here)."""
        if not len(self.rows):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        place = np.minimum(np.searchsorted(self._sorted, rows), len(self._sorted) - 1)
        return self._order[place], self._sorted[place] == rows
