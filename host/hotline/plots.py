# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Plots of data sets and runs, as PNG files. They need no display (Matplotlib's Agg)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from hotline.bench.scaling import ScalingResult
from hotline.data.statistics import Popularity
from hotline.errors import DataError
from hotline.metrics.reporting import LOSS_TOLERANCE, STAGES, RunRecord, Span, compare

# Colours of Okabe and Ito, which stay apart for colour-blind readers and in print.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE, GREY = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"),
    "#8A8A8A",
)
STAGE_COLOUR = dict(zip(STAGES, (BLUE, ORANGE, GREEN, RED, PURPLE, SKY), strict=True))
STAGE_PLACE = {
    "fragment": "fragmenter",
    "gather": "gatherer",
    "scatter": "gatherer",
    "popular": "model",
    "non-popular": "model",
    "update": "model",
}
KERNELS = ("fragmenter", "gatherer")
DPI = 150
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}
_PERCENT = FuncFormatter(lambda share, _: f"{share:.0%}")
_LOG_ROWS = 50_000
"""Row spaces above this are drawn on a logarithmic axis."""


@contextmanager
def _figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure that is saved to ``path`` at the end. Bypasses pyplot, so nothing global changes."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)


def plot_popularity(
    path: Path,
    popularity: Popularity,
    *,
    eal_entries: int | None = None,
    measured_share: float | None = None,
    name: str = "",
) -> None:
    """Draws hot lookups and popular samples over the size of the hot set.

    Args:
        path: PNG file to write.
        popularity: counts of the data.
        eal_entries: rows of the EAL, marked together with the pinned rows.
        measured_share: popular share that a run had with them, marked, too.
        name: of the data set.
    """
    if not popularity.samples:
        raise DataError(f"no samples, so there is no popularity to draw in {path}")
    pinned, total = popularity.pinned_rows, popularity.total_rows
    logarithmic = total > _LOG_ROWS
    points = (
        np.unique(np.geomspace(1, len(popularity.counts) + 1, 600).astype(np.int64)) - 1
        if logarithmic
        else np.linspace(0, len(popularity.counts), 600).astype(np.int64)
    )
    with _figure(path, 8, 4.8) as figure:
        axes = figure.add_subplot()
        rows = points + pinned
        lookups = popularity.lookup_share(points)
        samples = popularity.popular_share(points)
        axes.plot(rows, lookups, color=GREY, linewidth=2, label="lookups that are hot")
        axes.plot(
            rows, samples, color=BLUE, linewidth=2.5, label="samples all of whose lookups are hot"
        )
        axes.fill_between(rows, samples, color=BLUE, alpha=0.08, linewidth=0)
        axes.set_title(
            f"{name + ': ' if name else ''}what a hot set buys ({popularity.samples:,} samples)"
        )
        axes.set_xlabel(
            f"rows in the hot set, most frequent first (of {total:,}; {pinned:,} pinned)"
        )
        axes.set_ylabel("share")
        axes.yaxis.set_major_formatter(_PERCENT)
        axes.set_ylim(0, 1.02)
        if logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            axes.set_xlim(max(pinned, 1), total)
        else:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
            axes.set_xlim(0, total)
        figure.legend(loc="outside lower center", ncols=2)
        if eal_entries is not None:
            _mark_hot_set(axes, popularity, eal_entries, measured_share)


def _mark_hot_set(
    axes: Axes, popularity: Popularity, eal_entries: int, measured_share: float | None
) -> None:
    """Marks the hot set's size; needs the final limits of the axes to find room for the text."""
    hot = min(popularity.pinned_rows + eal_entries, popularity.total_rows)
    ideal = float(popularity.popular_share(eal_entries))
    lines = [(f"hot set: {hot:,} rows", GREY), (f"{ideal:.0%} if chosen ideally", BLUE)]
    axes.axvline(hot, color=GREY, linewidth=1.5, linestyle="--")
    axes.plot([hot], [ideal], "o", color=BLUE, markersize=8)
    if measured_share is not None:
        axes.plot([hot], [measured_share], "D", color=RED, markersize=8)
        lines.append((f"{measured_share:.0%} in this run", RED))
    place = axes.transAxes.inverted().transform(axes.transData.transform((hot, 0)))[0]
    lower = ideal if measured_share is None else min(ideal, measured_share)
    # The curve of the samples rises to the right: below it there is room on the right of a point
    # that lies high, and above it on the left of one that lies low.
    low = ideal < 0.3 and place > 0.25
    left = low or place > 0.7
    top = 0.45 if low else 0.55 if left else max(lower - 0.03, 0.25)
    for number, (text, colour) in enumerate(lines):
        axes.annotate(
            text,
            (hot, top),
            xytext=(-9 if left else 9, -16 * number),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            color=colour,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )


def _smooth(values: npt.NDArray[np.float64], window: int) -> npt.NDArray[np.float64]:
    """Mean over the last ``window`` values, fewer at the start."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def plot_loss(path: Path, run: RunRecord, plain: RunRecord | None = None) -> None:
    """Draws the loss of one or both runs, and below it their difference at every step."""
    if not run.steps:
        raise DataError(f"no steps, so there is no loss to draw in {path}")
    with _figure(path, 8, 5.6 if plain else 4) as figure:
        if plain is None:
            upper, lower = figure.add_subplot(), None
        else:
            upper, lower = figure.subplots(
                2, 1, sharex=True, gridspec_kw={"height_ratios": [2.2, 1]}
            )
        steps = np.arange(1, len(run.steps) + 1)
        losses = np.array([step.loss for step in run.steps])
        window = max(1, len(steps) // 20)
        upper.plot(steps, losses, color=GREY, alpha=0.35, linewidth=0.8, label="mini-batches")
        if plain is not None:
            other = _smooth(np.array([step.loss for step in plain.steps]), window)
            steps_plain = np.arange(1, len(other) + 1)
            upper.plot(
                steps_plain, other, color=ORANGE, linewidth=6, alpha=0.75, label="plain training"
            )
        upper.plot(
            steps,
            _smooth(losses, window),
            color=BLUE,
            linewidth=1.8,
            label=f"Hotline, {run.device}",
        )
        title = "Training loss"
        if run.auc is not None:
            title += f" (test AUC {run.auc:.4f}"
            title += f", plain {plain.auc:.4f})" if plain and plain.auc is not None else ")"
        upper.set_title(title)
        upper.set_ylabel(f"log loss, mean of {window} steps" if window > 1 else "log loss")
        finite = losses[np.isfinite(losses)]
        if len(finite) > 20:  # single outliers at the start must not flatten the curve
            low, high = np.quantile(finite, [0.001, 0.995])
            margin = 0.08 * (high - low) or 0.01
            upper.set_ylim(low - margin, high + margin)
        upper.legend(loc="upper right", ncols=3)
        bottom = upper
        if lower is not None and plain is not None:
            _plot_difference(lower, steps, run, plain)
            bottom = lower
        bottom.set_xlabel("optimizer step")
        bottom.set_xlim(1, max(len(steps), 2))
        bottom.xaxis.set_major_locator(MaxNLocator(integer=True))


def _plot_difference(
    axes: Axes, steps: npt.NDArray[np.int64], run: RunRecord, plain: RunRecord
) -> None:
    differences = np.array(compare(run, plain).differences)
    exact = differences == 0
    floor = 1e-9
    axes.set_yscale("log")
    largest = np.max(differences[np.isfinite(differences)], initial=0)
    axes.set_ylim(floor / 2, max(2e-4, 3 * largest))
    axes.plot(steps[~exact], differences[~exact], ".", color=BLUE, markersize=4)
    if exact.any():
        axes.plot(
            steps[exact], np.full(exact.sum(), floor), "|", color=GREEN, markersize=5, alpha=0.7
        )
        axes.text(
            0.99,
            0.97,
            f"| equal to the bit: {exact.sum():,} of {len(exact):,} steps",
            transform=axes.transAxes,
            ha="right",
            va="top",
            color=GREEN,
            fontsize=10,
        )
    axes.axhline(LOSS_TOLERANCE, color=RED, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"allowed: {LOSS_TOLERANCE:g}",
        (1, LOSS_TOLERANCE),
        xytext=(6, 4),
        textcoords="offset points",
        color=RED,
        fontsize=10,
    )
    axes.set_ylabel("difference\nof the losses")


def busy(spans: Sequence[Span]) -> list[Span]:
    """Cuts the spans of the kernels to the times in which they can have worked.

    The host knows when it submitted a job and when it saw that the job was done. A kernel works in
    order: a job begins when the one before has ended, and has ended when a later one has. Jobs
    that the host saw done at the same moment share the time between them.
    """
    cut = [span for span in spans if STAGE_PLACE.get(span.stage) not in KERNELS]
    for kernel in KERNELS:
        jobs = [span for span in spans if STAGE_PLACE.get(span.stage) == kernel]
        jobs.sort(key=lambda span: (span.start, span.end))
        ends: npt.NDArray[np.float64] = np.minimum.accumulate(
            np.array([job.end for job in reversed(jobs)], dtype=np.float64)
        )[::-1]
        now = -np.inf
        for number, (job, end) in enumerate(zip(jobs, ends, strict=True)):
            start = max(job.start, now)
            sharing = int(np.searchsorted(ends, end, side="right")) - number
            now = start + max(end - start, 0.0) / sharing
            if now > start:
                cut.append(Span(job.step, job.stage, float(start), float(now)))
    return cut


def choose_steps(spans: Sequence[Span], count: int = 5) -> tuple[int, ...]:
    """Picks ``count`` successive mini-batches that took as long as most did.

    That is the window of median duration; among equal ones that nearest to the middle of the run.
    """
    edges: dict[int, tuple[float, float]] = {}
    for span in spans:
        start, end = edges.get(span.step, (span.start, span.end))
        edges[span.step] = (min(start, span.start), max(end, span.end))
    steps = sorted(edges)
    if len(steps) <= count:
        return tuple(steps)
    windows = range(len(steps) - count + 1)
    lengths = np.array(
        [
            max(edges[s][1] for s in steps[w : w + count])
            - min(edges[s][0] for s in steps[w : w + count])
            for w in windows
        ]
    )
    usual = np.abs(lengths - np.median(lengths)).round(6)
    first = min(windows, key=lambda w: (usual[w], abs(w - len(windows) / 2)))
    return tuple(steps[first : first + count])


def plot_timeline(
    path: Path,
    spans: Sequence[Span],
    *,
    steps: Sequence[int] | None = None,
    device: str = "",
) -> None:
    """Draws when the stages of some mini-batches ran (a Gantt chart).

    Args:
        path: PNG file to write.
        spans: of a whole run; drawn are their ``busy`` parts.
        steps: mini-batches to draw; None: ``choose_steps``.
        device: what the stages ran on; the times are those of this run, not of a board.
    """
    spans = busy(spans)
    shown = set(choose_steps(spans) if steps is None else steps)
    drawn = [span for span in spans if span.step in shown]
    if not drawn:
        raise DataError(f"no spans were recorded, so there is no timeline to draw in {path}")
    begin = min(span.start for span in drawn)
    extent = max(span.end for span in drawn) - begin
    unit, factor = ("ms", 1e3) if extent < 2 else ("s", 1.0)
    places = {STAGE_PLACE.get(span.stage, span.stage) for span in drawn}
    order = list(dict.fromkeys(STAGE_PLACE.values()))
    lanes = sorted(places, key=lambda place: order.index(place) if place in order else len(order))
    with _figure(path, 9, 1.6 + 0.75 * len(lanes)) as figure:
        axes = figure.add_subplot()
        for span in drawn:
            lane = lanes.index(STAGE_PLACE.get(span.stage, span.stage))
            start, length = (span.start - begin) * factor, (span.end - span.start) * factor
            axes.barh(
                lane,
                length,
                left=start,
                height=0.62,
                color=STAGE_COLOUR.get(span.stage, GREY),
                edgecolor="white",
                linewidth=0.8,
            )
            if length > (0.006 + 0.009 * len(str(span.step))) * extent * factor:  # else no room
                axes.text(
                    start + length / 2,
                    lane,
                    str(span.step),
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=9,
                    fontweight="bold",
                )
        axes.set_yticks(range(len(lanes)), lanes)
        axes.set_ylim(len(lanes) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, extent * factor)
        axes.set_xlabel(f"wall clock in {unit}" + (f", {device}" if device else ""))
        first, last = min(shown), max(shown)
        axes.set_title(f"Mini-batches {first} to {last}: who works when")
        present = {span.stage for span in drawn}
        figure.legend(
            handles=[
                Patch(color=colour, label=stage)
                for stage, colour in STAGE_COLOUR.items()
                if stage in present
            ],
            loc="outside lower center",
            ncols=len(present),
        )


def plot_scaling(path: Path, results: Sequence[ScalingResult]) -> None:
    """Draws the cost of a lookup, by step, over mini-batch, rows and cold share."""
    from hotline.bench.scaling import sweep

    panels: tuple[tuple[str, str, Callable[[ScalingResult], float]], ...] = (
        ("batch", "samples in a mini-batch", lambda point: point.samples),
        ("rows", "rows of all tables", lambda point: point.rows),
        ("hot", "share of cold lookups", lambda point: 1 - point.hot),
    )
    with _figure(path, 11, 4.2) as figure:
        every = figure.subplots(1, len(panels), sharey=True)
        for axes, (name, label, place) in zip(every, panels, strict=True):
            points = sorted(sweep(results, name), key=place)
            x = [place(point) for point in points]
            fragment = [point.fragment_ns for point in points]
            both = [point.value for point in points]
            axes.fill_between(x, fragment, color=BLUE, alpha=0.35, lw=0, label="FRAGMENT")
            axes.fill_between(x, fragment, both, color=ORANGE, alpha=0.45, lw=0, label="GATHER")
            axes.plot(x, both, "o-", color=GREY, ms=4, lw=1, label="both")
            axes.set_xlabel(label)
            if name == "hot":
                axes.xaxis.set_major_formatter(_PERCENT)
            else:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        every[0].set_ylim(bottom=0)
        every[0].set_ylabel("ns per lookup")
        every[0].legend(loc="upper right")
        figure.suptitle("What a lookup costs on the host, one thread", x=0.01, ha="left")
