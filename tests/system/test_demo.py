# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` claims: losses equal to plain training, and traffic that means something."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotline.data import movielens
from hotline.errors import FetchError

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
DEVICES = ["reference", pytest.param("sim", marks=pytest.mark.slow)]


def run_demo(device: str, out: Path) -> dict[str, Any]:
    """Runs the demo's own command line on a device; what it wrote."""
    (recipe,) = re.findall(r"^demo:.*\n\t\$\(BIN\)/hotline (.*)$", MAKEFILE.read_text(), re.M)
    arguments = shlex.split(recipe)
    arguments[arguments.index("--device") + 1] = device
    arguments[arguments.index("--out") + 1] = str(out)
    subprocess.run([sys.executable, "-m", "hotline", *arguments], check=True, timeout=500)
    found = json.loads((out / "metrics.json").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_demo_means_something(device: str, tmp_path: Path) -> None:
    try:
        movielens.fetch()
    except FetchError as error:
        pytest.skip(f"MovieLens-100K is not to be had: {error}")
    found = run_demo(device, tmp_path)
    assert found["device"] == device and found["steps"] > 100
    assert found["max_abs_loss_difference"] <= 1e-5
    assert abs(found["auc"] - found["plain_auc"]) <= 1e-3
    assert found["auc"] > 0.6  # a constant guess has 0.5
    assert 0.2 <= found["popular_share"] <= 0.9
    for kind in ("pinned_lookups", "eal_lookups", "cold_lookups", "cold_rows"):
        assert found[kind] > 0, kind
    if device == "sim":
        assert found["cycles"] > 0 and found["lookups_per_cycle"] > 0.5
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures >= {"popularity.png", "loss.png", "timeline.png"}
