# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the host: it runs, its lines are well formed, and it notices a wrong variant."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hotline.bench import host
from hotline.data.synthetic import Synthetic
from hotline.errors import CompareError, ConfigError

SMALL = 40_000  # tables of up to 16,384 rows are pinned: there must be larger ones


def test_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "host.jsonl"
    results = host.run(["0.7-0.9"], out, repetitions=2, rows_max=SMALL, wait_s=0, table=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["case"] for line in lines] == [result.case for result in results]
    cases = {line["case"].rpartition("/")[2]: line for line in lines}
    assert {host.OURS, "numpy", "torch-index-select", "torch-isin", "learn"} <= set(cases)
    if shutil.which("g++"):
        assert {"cpp-bitmap", "gather", "scatter"} <= set(cases)
        assert cases[host.OURS]["extra"]["over_cpp"] > 0
    for line in lines:
        assert line["bench"] == "host" and line["value"] > 0
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=1e-2)
        assert line["minimum_ms"] <= line["median_ms"] <= line["maximum_ms"]
    best = max(cases[name]["value"] for name in host.LIBRARIES if name in cases)
    assert cases[host.OURS]["limit"] == best


def test_a_wrong_variant_is_not_timed() -> None:
    setting = host.settle("1.05-1.2", SMALL, 0)
    output = host.numpy_slots(setting)(0)
    host.check(setting, 0, "numpy", output)
    for name in ("popular", "others", "cold", "indices", "rows"):
        wrong = np.array(getattr(output, name)).copy()
        wrong.reshape(-1)[-1] += 1
        with pytest.raises(CompareError):
            host.check(setting, 0, "numpy", dataclasses.replace(output, **{name: wrong}))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="numpy"):
        host.run(variants=["pandas"])
    with pytest.raises(ConfigError, match=r"0\.7-0\.9"):
        host.run(["2"])


def test_most_probable_ids_are_the_most_frequent() -> None:
    data = Synthetic(rows=(40, 2_000, 7), exponents=(1.2, 1.0, 0.6), lookups=(1, 3, 1))
    ids = data.ids(np.arange(60_000))
    found = data.most_probable(60)
    assert 60 <= sum(map(len, found)) <= 62
    for feature, columns in enumerate(([0], [1, 2, 3], [4])):
        counts = np.bincount(ids[:, columns[:1]].reshape(-1), minlength=data.rows[feature])
        # All columns of a feature have one distribution: one of them is as good as all.
        frequent = set(np.argsort(-counts, kind="stable")[: len(found[feature])].tolist())
        assert len(frequent & set(found[feature].tolist())) >= 0.8 * len(frequent)
