# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""A line that shows how training goes; on a pipe or in a log, one line for every tenth."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from hotline.metrics.reporting import StepRecord
    from hotline.train.trainer import Progress as TrainerProgress

_STEPS = 20
"""Steps over which the figures are averaged."""
_AUC_SAMPLES = 16_384
"""Newest samples that make the running AUC."""
_INTERVAL_S = 0.25
"""Shortest time between two computations of the running AUC."""


class TrainingProgress:
    """A callback for the trainer that shows running figures on ``console``.

    The running AUC is that of the forward passes in training, each before its step: in the first
    epoch no sample has been trained on before.

    Args:
        name: of the run.
        console: where to.
        total: steps that there will be.
    """

    def __init__(self, name: str, console: Console, total: int) -> None:
        self.name, self.console = name, console
        self._steps: deque[StepRecord] = deque(maxlen=_STEPS)
        self._scores: deque[tuple[np.ndarray, np.ndarray]] = deque()
        self._held = 0
        self._auc: float | None = None
        self._next_auc = 0.0
        self._tenth = 0
        self._bar: Progress | None = None
        self._task = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=12),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(compact=True),
                console=console,
            )
            self._task = self._bar.add_task(name, total=total, figures="")

    def __enter__(self) -> TrainingProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: TrainerProgress) -> None:
        """Takes in one step."""
        record, done = progress.record, progress.record.step + 1
        self._steps.append(record)
        self._scores.append((progress.labels, progress.logits))
        self._held += record.samples
        while self._held - len(self._scores[0][0]) >= _AUC_SAMPLES:
            self._held -= len(self._scores.popleft()[0])
        last = done == progress.total
        line = self._bar is None and (10 * done // progress.total > self._tenth or last)
        # A bar is redrawn often: its AUC may be a little old. A line is read later, beside others.
        if last or line or (self._bar is not None and time.monotonic() >= self._next_auc):
            self._auc = _auc(self._scores)
            self._next_auc = time.monotonic() + _INTERVAL_S
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, total=progress.total, completed=done, figures=self.figures()
            )
        elif line:
            self._tenth = 10 * done // progress.total
            self.console.print(
                f"{self.name} {done}/{progress.total}: {self.figures()}", soft_wrap=True
            )

    def figures(self) -> str:
        """The running figures as text."""
        steps = self._steps
        shown = [f"loss {sum(step.loss for step in steps) / len(steps):.4f}"]
        if self._auc is not None:
            shown.append(f"AUC {self._auc:.3f}")
        if steps[-1].learning:
            shown.append("learning the hot set")
        elif steps[-1].lookups:
            timed = [step for step in steps if not step.learning]
            samples = sum(step.samples for step in timed)
            shown.append(f"popular {sum(step.popular for step in timed) / samples:.0%}")
            shown.append(f"cold rows {sum(step.cold_rows for step in timed) / len(timed):.0f}")
            cycles = sum(step.fragment_cycles for step in timed)
            if cycles:
                rate = sum(step.lookups for step in timed) / cycles
                shown.append(f"{rate:.2f} lookups/cycle")
        return "  ".join(shown)


def _auc(scores: deque[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Area under the ROC curve, None where only one class occurs."""
    from sklearn.metrics import roc_auc_score

    labels = np.concatenate([labels for labels, _ in scores])
    logits = np.concatenate([logits for _, logits in scores])
    if labels.min() == labels.max() or not np.isfinite(logits).all():
        return None
    return float(roc_auc_score(labels, logits))
