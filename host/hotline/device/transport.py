# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the register driver needs from the machine below it: registers, memory, an interrupt.

A ``Transport`` reaches the two kernels of one device: the simulated RTL, a board, a card. It knows
nothing of jobs; ``hotline.device.driver`` does all of that, the same way for every transport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

Kernel = Literal["fragmenter", "gatherer"]
"""Name of a kernel."""
KERNELS: Final[tuple[Kernel, ...]] = ("fragmenter", "gatherer")
"""Both kernels, in the order in which they are listed everywhere."""

Bytes = npt.NDArray[np.uint8]


class Transport(Protocol):
    """Access to the kernels of one device. All methods may be called from several threads.

    Attributes:
        backend: name of the backend (``sim``, ``pynq`` ...).
        kernels: the kernels that are there; one or both.
        stores: where the cold store may live: ``host``, ``card``, ``ps``.
        depth: jobs of one kernel that the driver starts before the first of them is done: 2 uses
            the kernel's queue; 1 where the timing of a job must not depend on the host's.
    """

    backend: str
    kernels: tuple[Kernel, ...]
    stores: frozenset[str]
    depth: int

    def read(self, kernel: Kernel, offset: int) -> int:
        """Reads the 32-bit register at a byte offset."""

    def write(self, kernel: Kernel, offset: int, value: int) -> None:
        """Writes the 32-bit register at a byte offset."""

    def reserve(self, size: int) -> tuple[Bytes, int]:
        """Gives ``size`` zeroed bytes that host and kernels see, and their device address.

        Both are aligned to 64 bytes.
        """

    def release(self, memory: Bytes, address: int) -> None:
        """Takes back what ``reserve`` gave."""

    def sync_to_device(self, address: int, array: npt.NDArray[np.generic]) -> None:
        """Makes the host's writes to ``array``, at a device address, visible to the kernels."""

    def sync_from_device(self, address: int, array: npt.NDArray[np.generic]) -> None:
        """Makes the kernels' writes to ``array``, at a device address, visible to the host."""

    def wait_interrupt(self, kernel: Kernel, timeout: float) -> bool:
        """Waits until the interrupt of a kernel is active, at most ``timeout`` seconds.

        0 polls. Returns whether it is active; transports without interrupts return False after a
        short sleep, and the driver looks at the registers anyway.
        """

    def subscribe(self, handler: Callable[[Kernel], None]) -> bool:
        """Asks for ``handler(kernel)`` from a thread of the transport at every interrupt.

        Returns False where the transport has no such thread; then the driver's callers wait with
        ``wait_interrupt``. After a failure of the transport the handler is called too, so that the
        next register access can raise it.
        """

    def describe(self) -> dict[str, int]:
        """Further state for the dump of a time-out, by name; may be empty."""

    def reset(self) -> None:
        """Resets both kernels; memory stays."""

    def close(self) -> None:
        """Gives everything back. Closing twice is fine."""
