# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Random jobs on the simulated device, compared with the reference until enough lookups were made.

    make soak LOOKUPS=1e8 CONFIG=zynq SEED=0
    python -m sim.soak --config zynq --seed 0 --round 1234      # one round of it again

A *round* is a device of its own: a random memory, store, job size, and some hundred jobs of both
kernels with up to two of each in flight. Half of the rounds are *hostile*: errors of the memory on
parts of the arrays, aborts and resets after a random number of cycles. Whatever a round does comes
from the seed and its number. After each round the state is written to a file, from which the same
command goes on; a failing round ends the run with status 1 and the command that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotline import reference
from hotline.config import CONFIGS, KernelConfig, kernel_config
from hotline.device.sim import MemoryModel, SimDevice, Waves
from hotline.device.simbuild import build_id
from hotline.device.transport import KERNELS
from hotline.errors import HotlineError
from hotline.testing import Case, JobGenerator, Scoreboard, Ticket

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / "build" / "soak"

_CYCLES = 600_000
"""No job is submitted in a round after this many cycles: slow memories do not take all the time."""
_CYCLES_SHORT = 40_000

WIDE = KernelConfig("wide", 512, 64, 4, 8, 1024, 512, 4, 16, 32, 32, 100_000)
"""A small configuration of the widest bus, which builds faster than ``alveo``."""


def configuration(name: str) -> KernelConfig:
    """A named configuration, or ``wide``."""
    return WIDE if name == WIDE.name else kernel_config(name)


@dataclass
class Totals:
    """What was done. ``statuses`` counts completions by operation and status."""

    rounds: int = 0
    jobs: int = 0
    lookups: int = 0
    cycles: int = 0
    resets: int = 0
    aborts: int = 0
    faults: int = 0
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, other: Totals) -> None:
        """Adds another's numbers."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Round:
    """One round; ``run`` raises whatever differs.

    Args:
        config: of the device.
        seed, number: everything random comes from these two.
        check: assertions of the RTL and random initial values (another build of the device).
        waves: path of a recording of all signals.
        short: few cycles: small jobs, a near memory, an early time-out, for mutation tests; else a
            job may take an hour, as on a machine that does other things too.
    """

    def __init__(
        self,
        config: KernelConfig,
        seed: int,
        number: int,
        *,
        check: bool = False,
        waves: Path | None = None,
        short: bool = False,
    ) -> None:
        self._config, self._short = config, short
        self._random = np.random.default_rng([seed, number])
        self.totals = Totals(rounds=1)
        self._tickets: dict[bool, list[Ticket]] = {False: [], True: []}  # by "of the gatherer"
        self._device = SimDevice(
            config,
            background=False,
            check=check,
            seed=int(self._random.integers(1 << 31)),
            waves=None if waves is None else Waves(waves),
            timeout=5.0 if short else 3600.0,
        )

    def _pick(self, *values: int, p: Sequence[float] | None = None) -> int:
        return int(self._random.choice(np.array(values), p=p))

    def _memory(self) -> MemoryModel:
        random = self._random
        stalls: dict[str, Any] = dict.fromkeys(
            ("stall_ar", "stall_r", "stall_aw", "stall_w", "stall_b"), 0.0
        )
        style = random.integers(4)
        for name in stalls:
            if style == 1:
                stalls[name] = float(random.random() * 0.3)
            elif style == 2 and random.random() < 0.4:
                stalls[name] = 0.6
        latencies = (0, 1, 7, 30) if style == 3 or self._short else (0, 1, 7, 30, 100, 250)
        return MemoryModel(
            read_latency=self._pick(*latencies),
            write_latency=self._pick(*latencies),
            outstanding_reads=self._pick(1, 2, 5, 64) if style == 3 else None,
            outstanding_writes=self._pick(1, 2, 5, 64) if style == 3 else None,
            seed=int(random.integers(1 << 31)),
            **stalls,
        )

    def run(self) -> Totals:
        """Runs the round to its end."""
        began = time.monotonic()
        device = self._device
        with contextlib.closing(device):
            for kernel in KERNELS:
                device.set_memory(self._memory(), kernel)
            rows, record = self._pick(1, 7, 64, 300), 64 * self._pick(1, 1, 1, 2, 3, 4, 16, 64)
            shifts = [s for s in range(9) if -(-rows >> s) <= 64]
            shift = self._pick(*shifts) if self._random.random() < 0.5 else None
            board = Scoreboard(
                device,
                self._config,
                store=(rows, record),
                segment_shift=shift,
                seed=int(self._random.integers(1 << 31)),
            )
            size = self._pick(40, 600, 6_000, 40_000, p=(0.1, 0.2, 0.3, 0.4))
            size = min(size, 600) if self._short else size
            generators = [
                JobGenerator(
                    device.capabilities,
                    seed=int(self._random.integers(1 << 31)),
                    operations=sorted(operations),
                    lookups=min(size, most),
                    faults=0.05,
                    store=(rows, record),
                )
                for operations, most in (
                    (reference.FRAGMENTER, size),
                    (reference.GATHERER, max(20, 40_000 // record)),
                )
            ]
            hostile = self._random.random() < 0.5
            for _ in range(self._pick(50, 100, 200)):
                gatherer = bool(self._random.random() < 0.3)
                if device.cycles > (_CYCLES_SHORT if self._short else _CYCLES):
                    break
                self._submit(board, gatherer, generators[gatherer].next())
                if hostile:
                    self._disturb(board)
            for gatherer in (False, True):
                self._drain(board, gatherer)
            board.check_store()
            self.totals.cycles = device.cycles
        self.totals.seconds = time.monotonic() - began
        return self.totals

    def _submit(self, board: Scoreboard, gatherer: bool, case: Case) -> None:
        tickets = self._tickets[gatherer]
        # A GATHER and a SCATTER in flight together have no order.
        if gatherer and any(ticket.case.operation != case.operation for ticket in tickets):
            self._drain(board, gatherer)
        while len(tickets) >= 2 or (tickets and self._random.random() < 0.1):
            self._finish(board, gatherer)
        tickets.append(board.submit(case))

    def _finish(self, board: Scoreboard, gatherer: bool) -> None:
        ticket = self._tickets[gatherer].pop(0)
        completion = board.finish(ticket)
        self.totals.jobs += 1
        self.totals.lookups += len(ticket.case.ids)
        self.totals.statuses[f"{completion.operation.name} {completion.status.name}"] += 1

    def _drain(self, board: Scoreboard, gatherer: bool) -> None:
        while self._tickets[gatherer]:
            self._finish(board, gatherer)

    # -------------------------------------------------------------------------------- disturbances

    def _disturb(self, board: Scoreboard) -> None:
        """Now and then: an error of the memory, an abort, or a reset."""
        chance = self._random.random()
        gatherer = bool(self._random.random() < 0.5)
        if chance < 0.15:
            self._fault(board, gatherer)
        elif chance < 0.25:
            self._abort(board, gatherer)
        elif chance < 0.27:
            self._reset(board)

    def _wait(self) -> None:
        """Lets cycles pass, few or so many that a job of this size is well under way."""
        self._device.step(int(self._random.integers(self._pick(2, 60, 600, 6000))))

    def _fault(self, board: Scoreboard, gatherer: bool) -> None:
        """An error on a part of an array of the job submitted last; gone when it is over."""
        tickets = self._tickets[gatherer]
        if not tickets:
            return
        ticket = tickets[-1]
        arrays = [g.array.reshape(-1).view(np.uint8) for g in ticket.arrays.values()]
        arrays = [array for array in arrays if array.size]
        if not arrays:
            return
        array = arrays[int(self._random.integers(len(arrays)))]
        first = int(self._random.integers(array.size))
        first = self._pick(0, first, array.size - 1)
        part = array[first : first + self._pick(1, 8, 64, 5000)]
        on = ("read", "write")[self._random.integers(2)]
        beat = self._pick(-1, -1, -1, 0, 1, 15)
        self._device.inject(
            part,
            on=on,
            response=("slverr", "decerr")[self._random.integers(2)],
            beat=None if beat < 0 else beat,
            count=1 if self._random.random() < 0.3 else None,
        )
        ticket.disturbance.faults.append((on, self._device.address(array) + first, part.nbytes))
        self.totals.faults += 1
        self._wait()
        self._drain(board, gatherer)
        self._device.clear_faults()

    def _abort(self, board: Scoreboard, gatherer: bool) -> None:
        tickets = self._tickets[gatherer]
        self._wait()
        for ticket in tickets:
            ticket.disturbance.aborted = True
        if tickets:
            tickets[0].handle.abort()
            self.totals.aborts += 1
        if self._random.random() < 0.5:  # else the next job is offered while the bit is set
            self._drain(board, gatherer)

    def _reset(self, board: Scoreboard) -> None:
        self._wait()
        board.reset([ticket for tickets in self._tickets.values() for ticket in tickets])
        for tickets in self._tickets.values():
            tickets.clear()
        self.totals.resets += 1


# --------------------------------------------------------------------------------------------- run


@dataclass
class Soak:
    """A run of many rounds with a state file.

    Attributes:
        config, seed, check: as in ``Round``.
        state: file of the state, or None.
        totals: of all rounds so far.
    """

    config: KernelConfig
    seed: int
    check: bool = False
    state: Path | None = None
    totals: Totals = field(default_factory=Totals)

    def _identity(self) -> dict[str, Any]:
        return {
            "config": self.config.name,
            "seed": self.seed,
            "check": self.check,
            "build_id": f"{build_id():08x}",
        }

    def resume(self) -> None:
        """Goes on from the state file, if there is one of the same run and the same RTL."""
        if self.state is None or not self.state.is_file():
            return
        saved = json.loads(self.state.read_text())
        if {name: saved.get(name) for name in self._identity()} != self._identity():
            return
        self.totals = Totals(**saved["totals"] | {"statuses": Counter(saved["totals"]["statuses"])})

    def report(self) -> dict[str, Any]:
        """Identity and totals."""
        return self._identity() | {"totals": vars(self.totals)}

    def save(self) -> None:
        """Writes the state file, in one piece."""
        if self.state is not None:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            part = self.state.with_suffix(".part")
            part.write_text(json.dumps(self.report(), indent=1, sort_keys=True))
            part.replace(self.state)

    def run(self, lookups: int, *, every: float = 10.0) -> None:
        """Runs rounds until that many lookups were made in all; logs progress every some seconds.

        Raises:
            HotlineError: a round failed; the state is that before it.
        """
        said = time.monotonic()
        while self.totals.lookups < lookups:
            number = self.totals.rounds
            totals = Round(self.config, self.seed, number, check=self.check).run()
            self.totals.add(totals)
            self.save()
            if time.monotonic() - said > every:
                said = time.monotonic()
                rate = self.totals.lookups / max(self.totals.seconds, 1e-9)
                print(
                    f"{self.config.name}: {self.totals.lookups:.3g} of {lookups:.3g} lookups, "
                    f"{self.totals.rounds} rounds, {rate:,.0f} lookups/s, about "
                    f"{(lookups - self.totals.lookups) / rate / 60:.0f} min left",
                    file=sys.stderr,
                    flush=True,
                )


def repeat(soak: Soak) -> str:
    """The command that repeats the round at which a run stands."""
    check = " --check" if soak.check else ""
    return (
        f"python -m sim.soak --config {soak.config.name} --seed {soak.seed}{check} "
        f"--round {soak.totals.rounds}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m sim.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = ", ".join([*CONFIGS, WIDE.name])
    parser.add_argument("--config", default="tiny", help=f"configuration: {names}")
    parser.add_argument("--lookups", type=float, default=1e6, help="in all, with those of before")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="RTL assertions, random start values")
    parser.add_argument("--round", type=int, help="run only this round")
    parser.add_argument("--waves", type=Path, help="with --round: record signals (.vcd)")
    parser.add_argument("--state", type=Path, help="state file [build/soak/<config>-<seed>.json]")
    parser.add_argument("--fresh", action="store_true", help="start anew, whatever the state says")
    parser.add_argument("--json", action="store_true", help="the totals as JSON on standard output")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING)

    state = options.state or STATE / f"{options.config}-{options.seed}.json"
    soak = Soak(configuration(options.config), options.seed, options.check, state)
    try:
        if options.round is not None:
            soak.totals.rounds = options.round
            soak.totals = Round(
                soak.config, soak.seed, options.round, check=options.check, waves=options.waves
            ).run()
        else:
            if not options.fresh:
                soak.resume()
            soak.run(int(options.lookups))
    except HotlineError as error:
        print(f"round {soak.totals.rounds}: {type(error).__name__}: {error}", file=sys.stderr)
        print(f"repeat it with: {repeat(soak)}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(soak.report(), sort_keys=True))
    else:
        totals = soak.totals
        print(
            f"{soak.config.name}, seed {soak.seed}: {totals.lookups:,} lookups in {totals.jobs:,} "
            f"jobs, {totals.rounds} rounds and {totals.cycles:,} cycles equal the reference; "
            f"{totals.faults:,} errors injected, {totals.aborts:,} aborts, {totals.resets:,} "
            f"resets; {totals.seconds:.0f} s"
        )
        for name, count in sorted(totals.statuses.items()):
            print(f"  {name:24} {count:>10,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
