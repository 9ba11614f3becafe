# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of scaling: its lines are well formed, its sentence follows its figures."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from hotline.bench import scaling


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[scaling.ScalingResult], Path]:
    out = tmp_path_factory.mktemp("scaling")
    results = scaling.run(
        out / "scaling.jsonl", png=out / "scaling.png", rows_max=100_000, samples_max=256,
        repetitions=1, wait_s=0,
    )  # fmt: skip
    return results, out


def test_it_runs(measured: tuple[list[scaling.ScalingResult], Path]) -> None:
    results, out = measured
    lines = [json.loads(line) for line in (out / "scaling.jsonl").read_text().splitlines()]
    assert [line["case"] for line in lines] == [result.case for result in results]
    assert len({line["case"] for line in lines}) == len(lines)
    assert [p.samples for p in scaling.sweep(results, "batch")] == [16, 64, 256]
    assert [p.rows for p in scaling.sweep(results, "rows")] == [100_022]
    for result, wanted in zip(scaling.sweep(results, "hot"), scaling.HOT_SHARES, strict=True):
        # What is drawn from all rows may be hot, and sets may be full.
        assert wanted - 0.05 < result.hot <= wanted + 0.6 * (1 - wanted) + 0.02
    for line in lines:
        assert line["bench"] == "scaling" and line["unit"] == "ns/lookup"
        assert line["fragment_ns"] > 0 and line["gather_ns"] > 0
        assert line["value"] == pytest.approx(line["fragment_ns"] + line["gather_ns"], abs=2e-3)
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], abs=1e-3)
    assert (out / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_the_sentence_follows_the_figures(
    measured: tuple[list[scaling.ScalingResult], Path],
) -> None:
    results, _ = measured
    given = [
        dataclasses.replace(point, value=2.0 + 18.0 * (1 - point.hot), gather_ns=5.0)
        if point.case.startswith("scaling/hot")
        else point
        for point in results
    ]
    first, last = scaling.sweep(given, "hot")[0], scaling.sweep(given, "hot")[-1]
    text = scaling.explain(given)
    assert f"A hot lookup costs {last.value:.1f} ns" in text
    assert f"{first.value:.1f} ns, 5.0 of them" in text
    assert f"cold share of {last.value / (first.value - last.value):.0%}" in text


def test_a_store_that_does_not_fit_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "available_bytes", lambda: 1 << 21)
    scene = scaling.Scene(100_000, 0)
    assert len(scene.store) == (1 << 20) // scaling.RECORD_BYTES < scene.total
    result = scaling.measure(scene, "folded", 64, 0.5, 1, scaling.Quiet(0))
    assert result.extra["store_bytes"] == 1 << 20 and result.value > 0
