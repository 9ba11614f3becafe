# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a training run leaves behind: records of its steps and spans, a comparison, a summary.

The records are plain data, so that plots and reports need neither torch nor a device.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hotline.errors import CompareError, DataError

LOSS_TOLERANCE = 1e-5
"""Largest difference of two runs' losses at any step (float32, SGD)."""
AUC_TOLERANCE = 1e-3
"""Largest difference of two runs' AUC."""
STAGES = ("fragment", "gather", "popular", "non-popular", "update", "scatter")
"""Stages of a mini-batch, in the order in which they are drawn."""


@dataclass(frozen=True)
class Span:
    """A stage of one mini-batch on the wall clock.

    Attributes:
        step: number of the mini-batch, from 0.
        stage: one of ``STAGES``.
        start, end: seconds since the run began.
    """

    step: int
    stage: str
    start: float
    end: float


@dataclass(frozen=True)
class StepRecord:
    """One optimizer step.

    Attributes:
        step: from 0.
        loss: mean loss of the mini-batch, before the step.
        samples: samples of the mini-batch.
        popular: popular samples among them.
        pinned_lookups, eal_lookups, cold_lookups: lookups by where the row was found.
        cold_rows: distinct cold rows.
        fragment_cycles, gather_cycles: cycles of the kernels, 0 where the device has no clock.
        learning: the mini-batch trained while the hot set was still being learned; the host, not
            the device, found out where its rows are.
    """

    step: int
    loss: float
    samples: int
    popular: int = 0
    pinned_lookups: int = 0
    eal_lookups: int = 0
    cold_lookups: int = 0
    cold_rows: int = 0
    fragment_cycles: int = 0
    gather_cycles: int = 0
    learning: bool = False

    @property
    def lookups(self) -> int:
        """All lookups."""
        return self.pinned_lookups + self.eal_lookups + self.cold_lookups


@dataclass
class RunRecord:
    """A whole run.

    Attributes:
        name: ``hotline`` or ``plain``.
        device: backend and configuration, for the reader.
        steps: one for each optimizer step.
        spans: stages on the wall clock, where they were recorded.
        auc: area under the ROC curve on the test part, or None.
        seconds: wall clock of the training alone.
    """

    name: str
    device: str
    steps: list[StepRecord] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    auc: float | None = None
    seconds: float = 0.0

    @property
    def accelerated(self) -> list[StepRecord]:
        """The steps after the learning phase: those whose mini-batch the device fragmented."""
        return [step for step in self.steps if not step.learning]

    def total(self, count: str) -> int:
        """Sum of one of the counts of ``StepRecord`` over the accelerated steps."""
        return sum(int(getattr(step, count)) for step in self.accelerated)

    @property
    def popular_share(self) -> float:
        """Popular samples among those of the accelerated steps."""
        return self.total("popular") / max(self.total("samples"), 1)

    @property
    def lookups_per_cycle(self) -> float | None:
        """Lookups fragmented per cycle of the fragmenter, None where there is no clock."""
        timed = [step for step in self.accelerated if step.fragment_cycles]
        cycles = sum(step.fragment_cycles for step in timed)
        return sum(step.lookups for step in timed) / cycles if cycles else None


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same batches, step by step.

    Attributes:
        differences: |loss - plain loss| of every step.
        auc_difference: |AUC - plain AUC|, None where one was not measured.
    """

    differences: tuple[float, ...]
    auc_difference: float | None

    @property
    def max_loss_difference(self) -> float:
        """Largest difference of the losses; NaN if any loss is none."""
        if any(math.isnan(difference) for difference in self.differences):
            return math.nan
        return max(self.differences, default=0.0)

    def check(
        self,
        loss_tolerance: float = LOSS_TOLERANCE,
        auc_tolerance: float = AUC_TOLERANCE,
        *,
        steps: int | None = None,
    ) -> None:
        """Raises ``CompareError`` at the first step where the runs differ by more.

        Args:
            loss_tolerance, auc_tolerance: largest differences.
            steps: losses compared; None: all. Adaptive optimizers amplify rounding from the second
                step on, so that only their first two losses say something.
        """
        for step, difference in enumerate(self.differences[:steps]):
            if not difference <= loss_tolerance:  # NaN must fail, too
                raise CompareError(
                    f"the losses differ by {difference:.3g} at step {step}, more than "
                    f"{loss_tolerance:g}: this was not the plain training. A small learning rate "
                    "or float64 (--double) tells rounding, which both shrink, from a fault"
                )
        if self.auc_difference is not None and not self.auc_difference <= auc_tolerance:
            raise CompareError(
                f"the AUC differs by {self.auc_difference:.3g}, more than {auc_tolerance:g}: this "
                "was not the plain training"
            )


def compare(run: RunRecord, plain: RunRecord) -> Comparison:
    """Compares a run with the plain one.

    Raises:
        CompareError: the runs have different numbers of steps.
    """
    if len(run.steps) != len(plain.steps):
        raise CompareError(
            f"{len(run.steps)} steps cannot be compared with {len(plain.steps)}: "
            "the runs did not see the same batches"
        )
    differences = tuple(abs(a.loss - b.loss) for a, b in zip(run.steps, plain.steps, strict=True))
    auc = None if run.auc is None or plain.auc is None else abs(run.auc - plain.auc)
    return Comparison(differences, auc)


def metrics(run: RunRecord, plain: RunRecord | None = None, **settings: Any) -> dict[str, Any]:
    """The figures of a run, for ``metrics.json``; ``settings`` go in under that name.

    Shares, lookups, cold rows and cycles are those of the steps after the learning phase.
    """
    comparison = None if plain is None else compare(run, plain)
    return {
        "device": run.device,
        "steps": len(run.steps),
        "learning_steps": len(run.steps) - len(run.accelerated),
        "samples": sum(step.samples for step in run.steps),
        "final_loss": run.steps[-1].loss if run.steps else None,
        "auc": run.auc,
        "plain_auc": None if plain is None else plain.auc,
        "max_abs_loss_difference": (None if comparison is None else comparison.max_loss_difference),
        "popular_share": run.popular_share,
        "pinned_lookups": run.total("pinned_lookups"),
        "eal_lookups": run.total("eal_lookups"),
        "cold_lookups": run.total("cold_lookups"),
        "cold_rows": run.total("cold_rows"),
        "lookups_per_cycle": run.lookups_per_cycle,
        "cycles": run.total("fragment_cycles") + run.total("gather_cycles"),
        "fragment_cycles": run.total("fragment_cycles"),
        "gather_cycles": run.total("gather_cycles"),
        "seconds": run.seconds,
        "plain_seconds": None if plain is None else plain.seconds,
        "settings": settings,
    }


def write_json(path: Path, value: Any) -> None:
    """Writes JSON (NaN as null), whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(plain_json(value), indent=2, allow_nan=False) + "\n")
    part.replace(path)


def plain_json(value: Any) -> Any:
    """``value`` with NaN and infinities, which JSON does not have, as None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    return value


def save_run(path: Path, run: RunRecord) -> None:
    """Writes a run's records; ``load_run`` reads them."""
    write_json(path, asdict(run))


def load_run(path: Path) -> RunRecord:
    """Reads what ``save_run`` wrote.

    Raises:
        DataError: the file is none of these.
    """
    try:
        found = json.loads(path.read_text())
        steps = [StepRecord(**{**s, "loss": _loss(s["loss"])}) for s in found.pop("steps")]
        spans = [Span(**span) for span in found.pop("spans")]
        return RunRecord(**found, steps=steps, spans=spans)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: no record of a run ({error})") from error


def _loss(value: float | None) -> float:
    return math.nan if value is None else value
