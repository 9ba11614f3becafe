# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The comparison of hot sets: its figures, its input, and what chose the default policy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hotline.bench import hotset
from hotline.errors import DataError


def test_frequency_beats_srrip_where_the_hot_set_is_small() -> None:
    """The reason for the default, on one small case; exact is the limit and LOAD close to it."""
    traffic = hotset.synthetic(1.05, 24, seed=0)
    shares = {method: hotset.judge(traffic, 8192, method) for method in hotset.METHODS}
    lookups, samples = ({method: found[n] for method, found in shares.items()} for n in range(2))
    for kind in (lookups, samples):
        assert kind["srrip"] < kind["frequency"] < kind["exact"]
        assert kind["frequency"] < kind["load"] <= kind["exact"]
    assert samples["frequency"] > 1.2 * samples["srrip"]


@pytest.mark.parametrize("header", [True, False])
def test_csv_and_output(tmp_path: Path, header: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hotset, "EXPONENTS", ())
    random = np.random.default_rng(0)
    ids = np.minimum(random.zipf(1.6, size=(600, 26)), 900) - 1
    names = ["label,I1", *(f"C{n + 1}" for n in range(26))]
    lines = [",".join(["1", "-3", *map(str, row)]) for row in ids.tolist()]
    file = tmp_path / "some.csv"
    file.write_text("\n".join([*([",".join(names)] if header else []), *lines]))
    out, table = tmp_path / "out.jsonl", tmp_path / "table.md"
    results = hotset.run([file], out, markdown=table, table=False)
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["case"] for line in found] == [result.case for result in results]
    sizes = {int(line["case"].split("/")[1]) for line in found}
    assert len(found) == 4 * len(sizes) and sizes
    for line in found:
        assert line["bench"] == "hotset" and line["learned"] == 450 * 26
        if line["limit"]:
            assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=2e-2)
        if line["case"].endswith("exact"):
            assert line["ratio"] == 1
    rows = [row for row in table.read_text().splitlines() if row.startswith("|")]
    assert len(rows) == 2 * (2 + len(sizes)) and {row.count("|") for row in rows} == {7}


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "no column"), ("a,b\n1,2\n", "starts with C"), ("C1\nx\n", "integers"), ("1\n2\n", "8")],
)
def test_csv_is_refused_with_the_reason(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=what):
        hotset.from_csv(file)
    with pytest.raises(DataError, match="cannot be read"):
        hotset.from_csv(tmp_path / "absent.csv")
