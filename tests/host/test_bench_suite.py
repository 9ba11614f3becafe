# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The suite of benchmarks: lines, page and names are right; its parts have tests of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotline.bench import scaling, suite
from hotline.bench.output import append_json
from hotline.bench.train import TrainResult
from hotline.errors import ConfigError


def test_lines_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train_part(lines: Path, _: Path | None) -> list[TrainResult]:
        result = TrainResult(
            "train", "train/1/merged", 25_000.0, "samples/s", 20_000.0, 1.25, quiet=0.5,
            extra={"cold_rows_a_step": 3.5},
        )  # fmt: skip
        append_json(lines, result)
        return [result]

    def scaling_part(lines: Path, png: Path | None) -> list[scaling.ScalingResult]:
        return scaling.run(
            lines, png=png, rows_max=30_000, samples_max=16, repetitions=1, wait_s=0, table=False
        )

    monkeypatch.setattr(suite, "PARTS", {"train": train_part, "scaling": scaling_part})
    out, document = tmp_path / "bench", tmp_path / "docs" / "benchmarks.md"
    for _ in range(2):  # the second run does not append to the first
        found = suite.run(out, document)
        assert list(found) == ["train", "scaling"]
        for name, results in found.items():
            lines = [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]
            assert [line["case"] for line in lines] == [result.case for result in results]
    text = document.read_text()
    assert "| train/1/merged | 25,000 | samples/s | 20,000 | 1.250 | cold rows a step 3.5 |" in text
    assert text.count("The machine was not quiet") >= 1
    assert scaling.explain(list(found["scaling"])) in text  # type: ignore[arg-type]
    for name in ("date", "machine", "torch"):
        assert f"- {name}: " in text
    assert (out / "scaling.png").exists()


def test_unknown_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scaling"):
        suite.run(tmp_path, parts=["speed"])


def test_every_part_has_a_title() -> None:
    assert set(suite.PARTS) == set(suite.TITLES)
