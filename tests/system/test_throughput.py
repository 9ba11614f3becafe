# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The promised shares of the bus's limit, in simulated cycles, and the benchmark itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hotline.bench import rtl
from hotline.bench.traffic import BATCHES, traffic
from hotline.errors import ConfigError

PROMISE = {
    **{f"fragment/{config}/criteo": 0.95 for config in rtl.CONFIGURATIONS},
    "fragment/alveo/jagged": 0.95,
    **{f"learn/{config}/criteo": 0.25 for config in rtl.CONFIGURATIONS},
    "gather": 0.95,
    "scatter": 0.95,
    "overlap/alveo/criteo": 1 / 1.05,
}
"""Least ratio of a case, or of all cases of an operation."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("config", rtl.CONFIGURATIONS)
def test_promise_is_kept(config: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    results = rtl.run([f"*/{config}/*"], path, table=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["case"] for line in lines] == [result.case for result in results]
    assert len(results) >= 9
    for line in lines:
        case = line["case"]
        operation = case.split("/")[0]
        assert line["bench"] == "rtl" and line["jobs"] == 16
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=2e-3)
        assert line["ratio"] >= PROMISE.get(case, PROMISE.get(operation, 0.0)), case
        if operation == "fragment":
            assert line["value"] >= 1, case  # one lookup per cycle, whatever the ids
        if operation == "small":
            assert line["extra"]["alone_beyond"] <= 400, case


def test_selection_of_cases() -> None:
    assert rtl.select(None) == list(rtl.CASES)
    assert rtl.select(["learn/*"]) == [f"learn/{c}/criteo" for c in rtl.CONFIGURATIONS]
    assert rtl.select(["*/zynq/*B", "gather/zynq/64B"])[-1] == "scatter/zynq/256B"
    assert rtl.select(["gather/tiny/64B"]) == ["gather/tiny/64B"]
    assert rtl.select(["fragment/tiny/one-id"]) == ["fragment/tiny/one-id"]
    for bad in ("gather/zynq/criteo", "sort/zynq/64B", "nothing", "gather/huge/64B", "x/*/64B"):
        with pytest.raises(ConfigError):
            rtl.select([bad])
    with pytest.raises(ConfigError):
        rtl.run(["gather/zynq/64B"], jobs=0)


def test_traffic_is_what_its_name_says() -> None:
    for name, samples in BATCHES.items():
        made = traffic(name, 32, 8, samples=min(samples, 64))
        batch = next(made.batches)
        assert batch.samples == 64 and batch.ids.max() < made.total_rows
        known = (batch.ids < made.pinned_rows) | np.isin(batch.ids, made.hot)
        assert len(np.unique(made.hot)) == len(made.hot)
        assert len(made.hot) in ([0] if name == "cold" else range(200, 257))
        if name in ("all-popular", "one-id"):
            assert known.all()
        if name == "cold":
            assert not known.any()
        if name == "one-id":
            assert len(np.unique(batch.ids)) == 1 and batch.ids[0] >= made.pinned_rows
        if name == "hotspot":
            assert (batch.ids.reshape(64, -1) == made.hot[0]).any(axis=1).all()
        if name == "unpinned":
            assert made.pinned_rows == 0
        if name == "jagged":
            assert batch.offsets is not None and (np.diff(batch.offsets) == 0).any()
            assert 100 < batch.ids.size / 64 < 214
        else:
            assert batch.ids.size == 64 * 26


@pytest.mark.parametrize(
    "case",
    [
        "fragment/tiny/one-id",
        "gather/tiny/128B",
        pytest.param("small/zynq/criteo", marks=pytest.mark.slow),  # another simulator to build
    ],
)
def test_a_case_runs(case: str, tmp_path: Path) -> None:
    (result,) = rtl.run([case], tmp_path / "out.jsonl", jobs=2, table=False)
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert line["case"] == result.case == case and line["jobs"] == 2
    assert 0 < result.ratio <= 1 and result.ratio == pytest.approx(
        result.value / result.limit, rel=2e-3
    )
    if case.startswith("small"):
        assert result.extra["alone"] > result.extra["alone_beyond"] > 0
