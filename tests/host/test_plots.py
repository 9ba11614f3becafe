# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Records of runs, their comparison, and the plots: readable files from made-up runs."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from hotline.data.statistics import Popularity
from hotline.errors import CompareError, DataError
from hotline.metrics.reporting import (
    LOSS_TOLERANCE,
    RunRecord,
    Span,
    StepRecord,
    compare,
    load_run,
    metrics,
    save_run,
    write_json,
)
from hotline.plots import busy, choose_steps, plot_loss, plot_popularity, plot_timeline


def run_of(losses: list[float], name: str = "hotline", auc: float | None = 0.7) -> RunRecord:
    steps = [
        StepRecord(step, loss, 8, 2, 10, 60, 18, 12, 44, 100) for step, loss in enumerate(losses)
    ]
    spans = []
    for step in range(len(losses)):
        for number, stage in enumerate(("fragment", "gather", "popular", "non-popular", "update")):
            start = 0.01 * step + 0.002 * number
            spans.append(Span(step, stage, start, start + 0.002))
    return RunRecord(name, "reference (demo)", steps, spans, auc, 1.5)


LOSSES = [0.7 - 0.001 * step for step in range(100)]


def popularity_of(rows: int, samples: int = 500, total: int | None = None) -> Popularity:
    rng = np.random.default_rng(1)
    return Popularity(
        samples=samples,
        lookups=4000,
        total_rows=total or rows + 10,
        pinned_rows=10,
        counts=np.sort(rng.integers(1, 20, rows))[::-1].astype(np.int64),
        pinned_lookups=100,
        need=np.sort(rng.integers(0, rows + 1, samples)),
    )


def ink(path: Path) -> float:
    """Share of pixels that are not white; fails unless the file is an image."""
    image = imread(path)
    assert image.shape[0] >= 300 and image.shape[1] >= 1000
    return float(np.mean(image[..., :3].min(axis=2) < 0.95))


# --------------------------------------------------------------------------------- comparisons


def test_equal_runs_pass() -> None:
    found = compare(run_of(LOSSES), run_of(LOSSES, "plain"))
    found.check()
    assert found.max_loss_difference == 0 and found.auc_difference == 0


@pytest.mark.parametrize("step", [0, 50, 99])
def test_one_differing_step_fails_and_is_named(step: int) -> None:
    changed = list(LOSSES)
    changed[step] += 2 * LOSS_TOLERANCE
    with pytest.raises(CompareError, match=f"at step {step},"):
        compare(run_of(changed), run_of(LOSSES)).check()
    changed[step] = LOSSES[step] + LOSS_TOLERANCE / 2
    compare(run_of(changed), run_of(LOSSES)).check()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_fails(value: float) -> None:
    changed = [*LOSSES[:-1], value]
    with pytest.raises(CompareError, match="at step 99"):
        compare(run_of(changed), run_of(LOSSES)).check()
    with pytest.raises(CompareError, match="at step 99"):  # both wrong is not equal, either
        compare(run_of(changed), run_of(changed)).check()


def test_differing_auc_fails() -> None:
    with pytest.raises(CompareError, match="AUC"):
        compare(run_of(LOSSES, auc=0.7), run_of(LOSSES, auc=0.7021)).check()
    compare(run_of(LOSSES, auc=0.7), run_of(LOSSES, auc=0.7009)).check()
    with pytest.raises(CompareError, match="AUC"):
        compare(run_of(LOSSES, auc=math.nan), run_of(LOSSES)).check()


def test_runs_of_different_length_are_refused() -> None:
    with pytest.raises(CompareError, match=r"100 steps.*99"):
        compare(run_of(LOSSES), run_of(LOSSES[:-1]))


# ------------------------------------------------------------------------------------- records


def test_metrics_are_sums_over_the_run() -> None:
    found = metrics(run_of(LOSSES), run_of(LOSSES, "plain", 0.7001), seed=3)
    assert found["steps"] == 100 and found["samples"] == 800
    assert found["popular_share"] == 0.25
    assert (found["pinned_lookups"], found["eal_lookups"]) == (1000, 6000)
    assert (found["cold_lookups"], found["cold_rows"]) == (1800, 1200)
    assert found["lookups_per_cycle"] == 8800 / 4400
    assert found["cycles"] == 4400 + 10000
    assert found["max_abs_loss_difference"] == 0
    assert (found["auc"], found["plain_auc"]) == (0.7, 0.7001)
    assert found["settings"] == {"seed": 3}


def test_metrics_without_clock_or_comparison() -> None:
    run = RunRecord("hotline", "reference", [StepRecord(0, 0.5, 4)])
    found = metrics(run)
    assert found["lookups_per_cycle"] is None and found["plain_auc"] is None
    assert found["max_abs_loss_difference"] is None and found["popular_share"] == 0
    assert metrics(RunRecord("hotline", "reference"))["final_loss"] is None


def test_runs_survive_the_file(tmp_path: Path) -> None:
    run = run_of(LOSSES)
    save_run(tmp_path / "run.json", run)
    assert load_run(tmp_path / "run.json") == run
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": math.nan, "b": [math.inf, 1.5], "c": None})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [None, 1.5], "c": None}
    save_run(tmp_path / "run.json", run_of([0.5, math.nan]))
    assert math.isnan(load_run(tmp_path / "run.json").steps[1].loss)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"steps": [1], "spans": []}'])
def test_file_that_is_no_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(DataError, match=r"run\.json"):
        load_run(tmp_path / "run.json")


# --------------------------------------------------------------------------------------- plots


@pytest.mark.parametrize(
    ("rows", "hot", "share"),
    [(1, None, None), (1, 16, 1.0), (40, 16, 0.0), (3000, 1024, None), (3000, 2900, 0.3)],
)
def test_popularity_is_drawn(
    tmp_path: Path, rows: int, hot: int | None, share: float | None
) -> None:
    file = tmp_path / "new" / "popularity.png"
    plot_popularity(file, popularity_of(rows), eal_entries=hot, measured_share=share, name="x")
    assert ink(file) > 0.02


def test_popularity_of_large_tables_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "popularity.png"
    plot_popularity(file, popularity_of(70_000, total=10**9), eal_entries=1 << 14)
    assert ink(file) > 0.02


def test_hot_set_changes_the_drawing(tmp_path: Path) -> None:
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    plot_popularity(one, popularity_of(3000))
    plot_popularity(two, popularity_of(3000), eal_entries=1000)
    assert (imread(one) != imread(two)).any()


@pytest.mark.parametrize("steps", [1, 2, 15, 400])
def test_loss_is_drawn(tmp_path: Path, steps: int) -> None:
    losses = [0.7 + 0.01 * math.sin(step) for step in range(steps)]
    plot_loss(tmp_path / "one.png", run_of(losses))
    assert ink(tmp_path / "one.png") > 0.01
    plot_loss(tmp_path / "two.png", run_of(losses), run_of(losses, "plain"))
    assert ink(tmp_path / "two.png") > 0.01


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 5.0])
def test_loss_that_went_wrong_is_drawn(tmp_path: Path, wrong: float) -> None:
    """A run that failed its comparison is the one that is looked at."""
    plot_loss(tmp_path / "x.png", run_of([*LOSSES, wrong]), run_of([*LOSSES, 0.6], "plain"))
    assert ink(tmp_path / "x.png") > 0.01


def test_timeline_shows_usual_steps_from_the_middle(tmp_path: Path) -> None:
    spans = run_of(LOSSES).spans
    assert choose_steps(spans) == (48, 49, 50, 51, 52)
    assert choose_steps(spans[:5]) == (0,)
    slow = [replace(span, end=span.end + 1) if span.step == 50 else span for span in spans]
    assert 50 not in choose_steps(slow)
    plot_timeline(tmp_path / "x.png", spans, device="sim")
    assert ink(tmp_path / "x.png") > 0.02


def test_jobs_of_one_kernel_do_not_overlap() -> None:
    """A job begins where the one before ended, and ends at the latest when a later one did."""
    spans = [
        Span(0, "fragment", 0.0, 2.0),
        Span(1, "fragment", 1.0, 3.0),  # queued for a second
        Span(0, "scatter", 1.0, 6.0),  # the host looked late: the gather behind it was done at 5
        Span(1, "gather", 2.0, 5.0),
        Span(1, "scatter", 7.0, 8.0),
        Span(0, "popular", 1.0, 6.0),  # of another place: not touched
    ]
    assert set(busy(spans)) == {
        Span(0, "fragment", 0.0, 2.0),
        Span(1, "fragment", 2.0, 3.0),
        Span(0, "scatter", 1.0, 3.0),
        Span(1, "gather", 3.0, 5.0),
        Span(1, "scatter", 7.0, 8.0),
        Span(0, "popular", 1.0, 6.0),
    }


def test_busy_times_lie_within_the_spans() -> None:
    rng = np.random.default_rng(4)
    starts = np.sort(rng.random(200))
    spans = [
        Span(n, ("gather", "scatter")[n % 2], float(s), float(s + rng.random() * 0.05))
        for n, s in enumerate(starts)
    ]
    found = busy(spans)
    by_job = {(span.step, span.stage): span for span in spans}
    assert len(found) > 100
    for span in found:
        whole = by_job[span.step, span.stage]
        assert whole.start <= span.start < span.end <= whole.end + 1e-12
    found.sort(key=lambda span: span.start)
    for before, after in itertools.pairwise(found):
        assert before.end <= after.start + 1e-12


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        plot_timeline(tmp_path / "x.png", [])
    with pytest.raises(DataError):
        plot_loss(tmp_path / "x.png", run_of([]))
    with pytest.raises(DataError):
        plot_popularity(tmp_path / "x.png", popularity_of(5, samples=0))
    assert not list(tmp_path.iterdir())


def test_plots_leave_the_users_settings_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    plot_loss(tmp_path / "x.png", run_of(LOSSES))
    assert dict(matplotlib.rcParams) == before
