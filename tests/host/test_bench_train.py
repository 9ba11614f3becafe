# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of training: it runs, its lines are well formed, and it notices a wrong variant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from hotline.bench import train
from hotline.errors import CompareError, ConfigError

SMALL = 20_000  # tables of up to 16,384 rows are pinned: there must be larger ones


def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH", 128)
    monkeypatch.setattr(train, "BLOCK", 2)
    out = tmp_path / "train.jsonl"
    chosen = ["plain", "merged", "split"]
    results = train.run(
        out, threads=(1,), variants=chosen, batches=6, rows_max=SMALL, wait_s=0, table=True
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["case"] for line in lines] == [f"train/1/{name}" for name in chosen]
    assert [line["case"] for line in lines] == [result.case for result in results]
    for line in lines:
        assert line["bench"] == "train" and line["unit"] == "samples/s" and line["value"] > 0
        assert line["limit"] == lines[0]["value"]  # TorchRec was not among them
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=1e-2)
        assert line["minimum_ms"] <= line["median_ms"] <= line["maximum_ms"]
        assert line["loss_difference"] < 1e-5
    split = lines[2]["extra"]
    assert 0 < split["popular"] <= 1
    assert {"ms_fragment", "ms_popular", "ms_update"} <= set(split)


def test_another_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(train.TorchRunner):
        def step(self) -> torch.Tensor:
            return super().step() + 0.01

    monkeypatch.setattr(train, "BATCH", 32)
    monkeypatch.setitem(
        train.VARIANTS,
        "torchrec-plain",
        lambda setting, _: Wrong(setting, train._Bags(setting.group), False),
    )
    with pytest.raises(CompareError, match=r"torchrec-plain: a loss differs .* by 0\.01"):
        train.run(
            threads=(1,), variants=["plain", "torchrec-plain"], batches=2, rows_max=500, wait_s=0
        )


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="merged"):
        train.run(variants=["tensorflow"])
    with pytest.raises(ConfigError, match="at least 1"):
        train.run(threads=(0,))
