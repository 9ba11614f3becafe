# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Training through every backend equals the plain loop; statistics equal the oracle's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hotline.device.base import Device
from hotline.device.reference import ReferenceDevice
from hotline.device.sim import SimDevice
from hotline.device.transport import KERNELS, Kernel
from hotline.errors import DeviceDead, DeviceTimeout
from hotline.tables import FeatureConfig, Group, TableConfig
from hotline.train import HotlineEmbedding, Pipeline
from tests.host.training import (
    Model,
    assert_equal_models,
    entries_of,
    random_batches,
    random_group,
    rows_of_share,
    train_oracle,
    train_pipeline,
)
from tests.system.conftest import SEED, config_of

LR = 0.3
GROUP = Group(
    (TableConfig("a", 150, 8), TableConfig("b", 40, 8), TableConfig("c", 3, 8)),
    (FeatureConfig("f", "a", 2), FeatureConfig("g", "b", None), FeatureConfig("h", "c")),
    pin_bytes=100,
)


@pytest.mark.parametrize("schedule", ["split", "merged"])
@pytest.mark.parametrize("seed", range(3))
def test_training_equals_the_plain_loop(device: Device, seed: int, schedule: str) -> None:
    """Learning, change of the hot set, acceleration; look-ahead; tails that overflow."""
    rng = np.random.default_rng([seed, SEED, 3])
    group = random_group(rng)
    batches = random_batches(group, rng, (12, 16, 1, 16, 16, 16, 5))
    with HotlineEmbedding(
        group, device, dtype=torch.float64, lookahead=seed, cold_rows=[None, 9, 40][seed]
    ) as embedding:
        ours, losses = train_pipeline(embedding, batches, lr=LR, schedule=schedule, learn=2)
        oracle, expected = train_oracle(group, batches, lr=LR)
        np.testing.assert_allclose(losses, expected, atol=1e-12)
        assert_equal_models(ours, oracle, group, 1e-12)


def test_hot_set_changes_between_steps(device: Device) -> None:
    rng = np.random.default_rng([SEED, 4])
    group = GROUP
    batches = random_batches(group, rng, (10,) * 9)
    with HotlineEmbedding(group, device, dtype=torch.float64, lookahead=2) as embedding:

        def between(number: int) -> None:
            if number % 3 == 1:
                embedding.working.load(rows_of_share(group, rng, 0.5))
            elif number == 5:
                embedding.table_weights("a")
                with torch.no_grad():
                    embedding(batches[0].rows)

        ours, _ = train_pipeline(embedding, batches, lr=LR, schedule="split", between=between)
        oracle, _ = train_oracle(group, batches, lr=LR)
        assert_equal_models(ours, oracle, group, 1e-12)


def test_statistics_and_hot_set_equal_those_on_the_oracle(device: Device) -> None:
    rng = np.random.default_rng([SEED, 5])
    group = random_group(rng)
    batches = random_batches(group, rng, (20,) * 5)

    def run(target: Device) -> tuple[list[Any], bytes]:
        with HotlineEmbedding(group, target, dtype=torch.float64) as embedding:
            stats = []
            for batch in Pipeline(embedding, batches, learn=2):
                values = dict(vars(batch.stats))
                del values["fragment_cycles"]
                stats.append(values)
            return stats, entries_of(embedding)

    with ReferenceDevice(config_of(device)) as oracle:
        assert run(device) == run(oracle)


def test_cycles_are_reported(sim: Device) -> None:
    rng = np.random.default_rng(6)
    group = Group((TableConfig("t", 200, 4),), (FeatureConfig("f", "t", 3),), pin_bytes=0)
    with HotlineEmbedding(group, sim) as embedding:
        embedding.working.load(rows_of_share(group, rng, 0.3))
        model = Model(embedding, torch.float32)
        batches = random_batches(group, rng, (16,) * 3, dtype=torch.float32)
        for batch in Pipeline(model, batches):
            assert batch.stats.fragment_cycles >= 48 * 32 // sim.capabilities.bus_bits
            assert batch.resident.cycles.get("gather", 1) > 0
            batch.step()


@pytest.mark.parametrize("on", ["read", "write"])
def test_a_memory_error_is_repeated(sim: SimDevice, on: str) -> None:
    """One SLVERR in the cold store, at whatever job comes first: the job is done again."""
    rng = np.random.default_rng([SEED, 7])
    batches = random_batches(GROUP, rng, (16,) * 8)
    with HotlineEmbedding(GROUP, sim, dtype=torch.float64) as embedding:
        embedding.working.load(rows_of_share(GROUP, rng, 0.3))
        model = Model(embedding, torch.float64)

        def between(number: int) -> None:
            if number == 3:
                sim.inject(embedding.working.store.segments[0], on=on, count=1)

        train_pipeline(embedding, batches, lr=LR, schedule="split", model=model, between=between)
        oracle, _ = train_oracle(GROUP, batches, lr=LR)
        assert_equal_models(model, oracle, GROUP, 1e-12)
        assert embedding.working.accelerator.lost is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_host_takes_over_when_the_memory_does_not_answer(
    sim: SimDevice, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([SEED, 8])
    batches = random_batches(GROUP, rng, (16,) * 8)
    monkeypatch.setattr(sim, "timeout", 1.0)
    with HotlineEmbedding(GROUP, sim, dtype=torch.float64, lookahead=2) as embedding:
        embedding.working.load(rows_of_share(GROUP, rng, 0.3))
        model = Model(embedding, torch.float64)

        def between(number: int) -> None:
            if number == 3:
                sim.set_memory(answer_reads=False, kernel=kernel)

        train_pipeline(embedding, batches, lr=LR, schedule="split", model=model, between=between)
        oracle, _ = train_oracle(GROUP, batches, lr=LR)
        assert_equal_models(model, oracle, GROUP, 1e-12)
        assert isinstance(embedding.working.accelerator.lost, DeviceTimeout | DeviceDead)
