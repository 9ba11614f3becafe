# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The promised shares of the bus's limit, in simulated cycles, and the benchmark itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotline.bench import rtl
from hotline.errors import ConfigError

PROMISE = {"fragment": 0.95, "learn": 0.25, "gather": 0.95, "scatter": 0.95}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("config", rtl.CONFIGURATIONS)
def test_promise_is_kept(config: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    results = rtl.run([f"*/{config}/*"], path, table=False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["case"] for line in lines] == [result.case for result in results]
    assert len(results) == len(PROMISE)
    for line in lines:
        assert line["bench"] == "rtl" and line["jobs"] == 16
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], abs=2e-4)
        assert line["ratio"] >= PROMISE[line["case"].split("/")[0]], line["case"]


def test_selection_of_cases() -> None:
    assert rtl.select(None) == list(rtl.CASES)
    assert rtl.select(["fragment/*"]) == [f"fragment/{c}/criteo" for c in rtl.CONFIGURATIONS]
    assert rtl.select(["*/zynq/*", "gather/zynq/64B"])[-1] == "scatter/zynq/64B"
    assert rtl.select(["gather/tiny/64B"]) == ["gather/tiny/64B"]
    for bad in ("gather/zynq/criteo", "sort/zynq/64B", "nothing", "gather/huge/64B"):
        with pytest.raises(ConfigError):
            rtl.select([bad])
    with pytest.raises(ConfigError):
        rtl.run(["gather/zynq/64B"], jobs=0)
