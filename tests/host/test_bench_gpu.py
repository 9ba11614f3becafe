# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The benchmark for a GPU, on the CPU: what has a CPU path trains right, the rest is refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from hotline.bench import gpu, train
from hotline.errors import CompareError, ConfigError

ANYWHERE = ("hybrid", "fae", "ours", "ours-zero-copy")
FBGEMM = ("uva", "uvm", "gpu")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH", 64)


def test_every_variant_reaches_the_same_losses(tmp_path: Path) -> None:
    out = tmp_path / "gpu.jsonl"
    results = gpu.run(
        out, device="cpu", zipfs=[1.2], hot_rows=[1024], batches=12, rows_max=3_000, dim=8
    )
    has = importlib.util.find_spec("fbgemm_gpu") is not None
    expected = [name for name in gpu.VARIANTS if has or name not in FBGEMM]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["case"] for line in lines] == [f"gpu/1.2/1024/{name}" for name in expected]
    assert [line["case"] for line in lines] == [result.case for result in results]
    assert set(ANYWHERE) <= set(expected)
    for line in lines:
        assert line["bench"] == "gpu" and line["unit"] == "samples/s" and line["value"] > 0
        assert line["ratio"] == pytest.approx(line["value"] / line["limit"], rel=1e-2)
        assert line["minimum_ms"] <= line["median_ms"] <= line["maximum_ms"]
        assert line["loss_difference"] < 1e-5 and line["device"] == "cpu"
        assert line["extra"]["link_bytes"] > 0
    values = {line["case"].rpartition("/")[2]: line for line in lines}
    limit = max(
        line["value"] for name, line in values.items() if name not in (*gpu.OWN, *gpu.HOLDS_ALL)
    )
    assert all(line["limit"] == limit for line in lines)
    cold = [values[name]["extra"]["cold_rows_a_step"] for name in gpu.OWN]
    assert cold[0] == pytest.approx(cold[1], rel=1e-3) and cold[0] > 0


def test_fae_trains_every_sample_once() -> None:
    setting = train.settle(3_000, 6, 0, zipf=1.2, dim=8, pin_bytes=0)
    place = gpu.Place(setting, torch.device("cpu"), 2_048, 8)
    runner = gpu.FaeRunner(place)
    assert sum(len(labels) for *_, labels in runner.work) == 6 * 64
    assert 0 < runner.hot_samples < 6 * 64
    before = runner.weights.clone()
    for _ in range(runner.steps_of_its_own):
        runner.step()
    assert runner.on_gpu and runner.number == len(runner.work)
    # Popular samples train the rows on the GPU, and these come back at the end.
    assert torch.equal(runner.weights[runner.frequent], runner.hot)
    touched = torch.unique(torch.cat(setting.ids) + place.bases)
    changed = torch.nonzero((runner.weights != before).any(dim=1)).view(-1)
    assert set(changed.tolist()) <= set(touched.tolist())
    assert len(changed) > len(touched) // 2


def test_another_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(gpu.TorchHybridRunner):
        def step(self) -> torch.Tensor:
            return super().step() + 0.01

    monkeypatch.setitem(gpu.VARIANTS, "uva", Wrong)
    with pytest.raises(CompareError, match=r"uva: a loss differs .* by 0\.01"):
        gpu.run(
            device="cpu", zipfs=[1.2], hot_rows=[64], variants=["hybrid", "uva"], batches=2,
            rows_max=300,
        )  # fmt: skip


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"needs a CUDA GPU .*`--device cpu`"):
        gpu.run()
    with pytest.raises(ConfigError, match="uvm"):
        gpu.run(device="cpu", variants=["hps"])
    with pytest.raises(ConfigError, match="power of two"):
        gpu.run(device="cpu", hot_rows=[1000])
    with pytest.raises(ConfigError, match="at least 1"):
        gpu.run(device="cpu", batches=0)
