# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The soak: a million lookups in the normal run, resumption, and a report that can fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hotline.device.sim import SimDevice
from sim import soak
from tests.system.conftest import SEED


def test_a_million_lookups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--state", str(tmp_path / "state.json")]
    options = ["--config", "tiny", "--check", "--seed", str(SEED), *state]
    assert soak.main([*options, "--lookups", "1e6", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["lookups"] >= 1_000_000
    assert totals["faults"] > 10 and totals["aborts"] > 10 and totals["resets"] > 0
    seen = totals["statuses"]
    for operation in ("FRAGMENT", "LEARN", "LOAD", "EVICT", "GATHER", "SCATTER"):
        assert seen[f"{operation} OK"] > 0 and seen[f"{operation} BAD_INDEX"] > 0
    for status in ("FRAGMENT COLD_OVERFLOW", "FRAGMENT AXI_ERROR", "FRAGMENT ABORTED"):
        assert seen[status] > 0
    # The same command finds that nothing is left to do.
    assert soak.main([*options, "--lookups", "1e6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"] == totals


@pytest.mark.slow
@pytest.mark.parametrize("config", ["wide", "zynq"])
def test_ten_million_lookups(config: str, tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "state.json")]
    assert soak.main(["--config", config, "--lookups", "1e7", "--seed", str(SEED + 1), *state]) == 0


def test_rounds_are_reproducible() -> None:
    tiny = soak.configuration("tiny")
    first, second = (soak.Round(tiny, SEED, 3, check=True).run() for _ in range(2))
    first.seconds = second.seconds = 0
    assert first == second


def test_a_wrong_device_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bit of an array that nobody writes flips behind the device's back."""
    original = SimDevice.submit

    def submit(device: SimDevice, job: object) -> object:
        handle = original(device, job)  # type: ignore[arg-type]
        ids = getattr(job, "ids", None)
        if isinstance(ids, np.ndarray) and len(ids) > 5:
            ids[len(ids) // 2] ^= 1
        return handle

    monkeypatch.setattr(SimDevice, "submit", submit)
    state = tmp_path / "state.json"
    options = ["--config", "tiny", "--check", "--lookups", "1e5", "--state", str(state)]
    assert soak.main(options) == 1
    assert "repeat it with: python -m sim.soak --config tiny --seed 0 --check --round 0" in (
        capsys.readouterr().err
    )
    assert not state.exists()
