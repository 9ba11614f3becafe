# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Training through the pipeline equals the plain loop, whatever is hot and however far ahead."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from hotline.config import CONFIGS
from hotline.tables import FeatureConfig, Group, RowBatch, TableConfig
from hotline.train import Adagrad, HotlineEmbedding, MiniBatch, Pipeline, PlainEmbedding
from hotline.train.pipeline import plain_part
from tests.host.training import (
    LateDevice,
    Model,
    assert_equal_models,
    loss_sum,
    random_batches,
    random_group,
    rows_of_share,
    train_oracle,
    train_pipeline,
)

LR = 0.3
SIZES = (9, 16, 1, 16, 16, 5, 16, 16, 2, 16, 7)
"""Sizes of mini-batches: with a batch of one and a partial one at the end."""


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("schedule", ["split", "merged"])
def test_random_groups_equal_the_plain_loop(seed: int, schedule: str) -> None:
    rng = np.random.default_rng([seed, 7])
    group = random_group(rng)
    sum_only = all(feature.pooling == "sum" for feature in group.features)
    batches = random_batches(group, rng, SIZES, weighted=sum_only and bool(rng.random() < 0.5))
    lookahead = seed % 4
    cold_rows = [None, 3, 17, 64][int(rng.integers(0, 4))]
    with (
        LateDevice("tiny", seed=seed) as device,
        HotlineEmbedding(
            group, device, dtype=torch.float64, seed=5, lookahead=lookahead, cold_rows=cold_rows
        ) as embedding,
    ):
        embedding.working.load(rows_of_share(group, rng, [0.0, 0.3, 1.0][seed % 3]))
        ours, losses = train_pipeline(embedding, batches, lr=LR, schedule=schedule)
        oracle, expected = train_oracle(group, batches, lr=LR, seed=5)
        np.testing.assert_allclose(losses, expected, atol=1e-12)
        assert_equal_models(ours, oracle, group, 1e-12)
        assert not embedding.working.live


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("schedule", ["split", "merged"])
def test_float32_keeps_to_one_hundred_thousandth(share: float, schedule: str) -> None:
    rng = np.random.default_rng(3)
    tables = (TableConfig("a", 150, 16), TableConfig("b", 60, 16), TableConfig("c", 1, 16))
    features = (
        FeatureConfig("f", "a", 2),
        FeatureConfig("g", "b"),
        FeatureConfig("h", "c"),
        FeatureConfig("i", "a", 3, "mean"),
    )
    group = Group(tables, features, pin_bytes=0)
    batches = random_batches(group, rng, (32,) * 20, dtype=torch.float32)
    with LateDevice("tiny") as device, HotlineEmbedding(group, device, lookahead=2) as embedding:
        embedding.working.load(rows_of_share(group, rng, share))
        assert len(embedding.working.hot) == pytest.approx(share * 211, rel=0.1)
        ours, losses = train_pipeline(
            embedding, batches, lr=0.1, schedule=schedule, dtype=torch.float32
        )
        oracle, expected = train_oracle(group, batches, lr=0.1, dtype=torch.float32)
        np.testing.assert_allclose(losses, expected, atol=1e-5)
        assert_equal_models(ours, oracle, group, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(6))
def test_merged_on_the_cpu_equals_our_plain_loop_to_the_bit(seed: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng([seed, 11])
    group = random_group(rng)
    batches = random_batches(group, rng, SIZES, dtype=dtype)
    plain = Model(PlainEmbedding(group, seed=2, dtype=dtype), dtype)
    steps = torch.optim.SGD(plain.parameters(), lr=LR)
    for batch in batches:
        part = plain_part(plain.embedding, batch)  # type: ignore[arg-type]
        steps.zero_grad()
        loss = loss_sum(plain(part.dense, part.features), part.labels) / part.normaliser
        loss.backward()
        steps.step()
    with (
        LateDevice("tiny", seed=seed) as device,
        HotlineEmbedding(group, device, dtype=dtype, seed=2, lookahead=1) as embedding,
    ):
        embedding.working.load(rows_of_share(group, rng, 0.3))
        ours, _ = train_pipeline(embedding, batches, lr=LR, schedule="merged", dtype=dtype)
        assert_equal_models(ours, plain, group, 0.0)


@pytest.mark.parametrize("lookahead", range(4))
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_same_rows_in_every_batch(lookahead: int, share: float) -> None:
    """Each batch reads what the one before it updates; every second one skips a row."""
    group = Group((TableConfig("t", 20, 4),), (FeatureConfig("f", "t", 5),), pin_bytes=0)
    rng = np.random.default_rng(4)
    batches = []
    for number in range(24):
        ids = rng.integers(0, 10 if number % 2 else 20, size=(6, 5))
        rows = RowBatch(ids.astype(np.uint32).ravel(), 6, 1, 5)
        dense = torch.from_numpy(rng.normal(size=(6, 3)))
        batches.append(MiniBatch(rows, dense, torch.ones(6, dtype=torch.float64)))
    for seed in range(4):
        with (
            LateDevice("tiny", seed=seed) as device,
            HotlineEmbedding(group, device, dtype=torch.float64, lookahead=lookahead) as embedding,
        ):
            embedding.working.load(rows_of_share(group, rng, share))
            ours, _ = train_pipeline(embedding, batches, lr=1.0, schedule="split")
            oracle, _ = train_oracle(group, batches, lr=1.0)
            assert_equal_models(ours, oracle, group, 1e-12)


@pytest.mark.parametrize("lookahead", range(4))
def test_disjoint_and_returning_rows(lookahead: int) -> None:
    """Rows that come back after 1, 2, 3 ... batches meet every state of a write-back."""
    group = Group((TableConfig("t", 64, 2),), (FeatureConfig("f", "t", 2),), pin_bytes=0)
    rng = np.random.default_rng(8)
    batches = []
    for number in range(60):
        period = 1 + number % 7
        ids = (np.arange(8) * 2 + number % period * 16 + rng.integers(0, 2, 8)) % 64
        rows = RowBatch(ids.astype(np.uint32), 4, 1, 2)
        dense = torch.from_numpy(rng.normal(size=(4, 3)))
        batches.append(MiniBatch(rows, dense, torch.zeros(4, dtype=torch.float64)))
    for seed in range(6):
        with (
            LateDevice("tiny", seed=seed) as device,
            HotlineEmbedding(group, device, dtype=torch.float64, lookahead=lookahead) as embedding,
        ):
            ours, _ = train_pipeline(embedding, batches, lr=1.0, schedule="split")
            oracle, _ = train_oracle(group, batches, lr=1.0)
            assert_equal_models(ours, oracle, group, 1e-12)


@pytest.mark.parametrize("lookahead", [1, 2])
def test_a_write_back_that_outlives_its_tail(lookahead: int) -> None:
    """Batches between pass all their rows on, so nothing pushes the first scatter to its end.

    Its tail has been used again when its rows are needed: they must come from elsewhere.
    """
    group = Group((TableConfig("t", 64, 2),), (FeatureConfig("f", "t", 2),), pin_bytes=0)
    rng = np.random.default_rng(15)
    batches = []
    for number in range(48):
        first = [0, *[10 + number // 4 * 2] * (lookahead + 1), 0, 0][number % (lookahead + 3)]
        ids = np.array([first, first + 1] * 3)
        rows = RowBatch(ids.astype(np.uint32), 3, 1, 2)
        dense = torch.from_numpy(rng.normal(size=(3, 3)))
        batches.append(MiniBatch(rows, dense, torch.zeros(3, dtype=torch.float64)))
    for seed in range(8):
        with (
            LateDevice("tiny", seed=seed) as device,
            HotlineEmbedding(group, device, dtype=torch.float64, lookahead=lookahead) as embedding,
        ):
            ours, _ = train_pipeline(embedding, batches, lr=1.0, schedule="split")
            oracle, _ = train_oracle(group, batches, lr=1.0)
            assert_equal_models(ours, oracle, group, 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_skipped_steps_changes_of_the_hot_set_and_evaluation_in_between(seed: int) -> None:
    rng = np.random.default_rng([seed, 13])
    group = random_group(rng)
    batches = random_batches(group, rng, (12,) * 25)
    skip = frozenset(int(n) for n in rng.integers(0, 25, size=5))
    with (
        LateDevice("tiny", seed=seed) as device,
        HotlineEmbedding(
            group, device, dtype=torch.float64, lookahead=seed % 4, cold_rows=40
        ) as embedding,
    ):

        def between(number: int) -> None:
            choice = rng.integers(0, 5)
            if choice == 0:
                embedding.working.load(rows_of_share(group, rng, float(rng.random())))
            elif choice == 1:  # learns elsewhere; the working set keeps its hot set until install
                embedding.working.directory.learn(batches[number].rows.ids)
            elif choice == 2:
                with torch.no_grad():
                    embedding(batches[0].rows)
            elif choice == 3:
                embedding.table_weights(group.tables[0].name)

        ours, losses = train_pipeline(
            embedding, batches, lr=LR, schedule="split", skip=skip, between=between
        )
        oracle, expected = train_oracle(group, batches, lr=LR, skip=skip)
        np.testing.assert_allclose(losses, expected, atol=1e-12)
        assert_equal_models(ours, oracle, group, 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_learning_phase_then_acceleration(seed: int) -> None:
    rng = np.random.default_rng([seed, 17])
    group = random_group(rng)
    batches = random_batches(group, rng, (12,) * 20)
    learn = [1, 5, 20, 30][seed % 4]
    with (
        LateDevice("tiny", seed=seed) as device,
        HotlineEmbedding(group, device, dtype=torch.float64, lookahead=seed % 3) as embedding,
    ):
        ours, losses = train_pipeline(embedding, batches, lr=LR, schedule="split", learn=learn)
        oracle, expected = train_oracle(group, batches, lr=LR)
        np.testing.assert_allclose(losses, expected, atol=1e-12)
        assert_equal_models(ours, oracle, group, 1e-12)
        assert ("Fragment" in device.counts) == (learn < 20)
        cold = {int(row) for batch in batches[:learn] for row in batch.rows.ids}
        cold = {row for row in cold if row >= group.pinned_rows}
        assert set(embedding.working.hot.rows.tolist()) <= cold
        assert bool(len(embedding.working.hot)) == bool(cold)


def test_jobs_are_split_at_the_limits_of_the_device() -> None:
    rng = np.random.default_rng(5)
    for jagged in (False, True):
        group = random_group(rng, jagged=jagged)
        batches = random_batches(group, rng, (40, 33, 64))
        with (
            LateDevice("tiny", job_lookups_max=48, job_samples_max=11) as device,
            HotlineEmbedding(group, device, dtype=torch.float64) as embedding,
        ):
            embedding.working.load(rows_of_share(group, rng, 0.3))
            ours, _ = train_pipeline(embedding, batches, lr=LR, schedule="split", learn=1)
            oracle, _ = train_oracle(group, batches, lr=LR)
            assert_equal_models(ours, oracle, group, 1e-12)
            assert device.counts["Fragment"] > 8


def test_samples_that_the_kernel_cannot_take_are_encoded_on_the_host() -> None:
    rng = np.random.default_rng(6)
    group = Group((TableConfig("t", 400, 4),), (FeatureConfig("f", "t", None),), pin_bytes=0)
    lengths = np.array([3, 0, 70, 2, 64, 65, 1])  # tiny takes 64
    batches = []
    for _ in range(4):
        ids = rng.integers(0, 400, size=int(lengths.sum())).astype(np.uint32)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32)
        rows = RowBatch(ids, 7, 1, None, offsets)
        dense = torch.from_numpy(rng.normal(size=(7, 3)))
        batches.append(MiniBatch(rows, dense, torch.ones(7, dtype=torch.float64)))
    with (
        LateDevice("tiny") as device,
        HotlineEmbedding(group, device, dtype=torch.float64) as embedding,
    ):
        embedding.working.load(rows_of_share(group, rng, 0.3))
        ours, _ = train_pipeline(embedding, batches, lr=LR, schedule="split")
        oracle, _ = train_oracle(group, batches, lr=LR)
        assert_equal_models(ours, oracle, group, 1e-12)


@pytest.mark.parametrize("lookahead", [0, 2])
def test_adagrad_updates_each_row_once(lookahead: int) -> None:
    """Two updates of a row in a step would add two squares: the sum is not linear."""
    rng = np.random.default_rng(9)
    group = random_group(rng, jagged=True)
    batches = random_batches(group, rng, SIZES)
    with (
        LateDevice("tiny") as device,
        HotlineEmbedding(
            group,
            device,
            dtype=torch.float64,
            optimizer=Adagrad(),
            lookahead=lookahead,
            cold_rows=30,
        ) as embedding,
    ):
        embedding.working.load(rows_of_share(group, rng, 0.4))
        ours, _ = train_pipeline(
            embedding, batches, lr=0.1, schedule="split", optimizer=torch.optim.Adagrad
        )
        oracle, _ = train_oracle(group, batches, lr=0.1, optimizer=torch.optim.Adagrad)
        assert_equal_models(ours, oracle, group, 1e-10)


@pytest.mark.parametrize("lookahead", [0, 1, 3])
def test_leaving_the_loop_early_loses_no_update(lookahead: int) -> None:
    rng = np.random.default_rng(10)
    group = random_group(rng)
    batches = random_batches(group, rng, (10,) * 12)
    with (
        LateDevice("tiny") as device,
        HotlineEmbedding(group, device, dtype=torch.float64, lookahead=lookahead) as embedding,
    ):
        model = Model(embedding, torch.float64)
        steps = torch.optim.SGD(model.dense_parameters(), lr=LR)
        for batch in Pipeline(model, batches):
            steps.zero_grad()
            for part in batch:
                loss = loss_sum(model(part.dense, part.features), part.labels) / part.normaliser
                loss.backward()
            if batch.number == 7:
                break  # without its step: nothing of it may stay
            batch.step(LR)
            steps.step()
        assert not embedding.working.live
        rest, _ = train_pipeline(embedding, batches[7:], lr=LR, schedule="split", model=model)
        oracle, _ = train_oracle(group, batches, lr=LR)
        assert_equal_models(rest, oracle, group, 1e-12)


def test_buffers_are_given_back() -> None:
    rng = np.random.default_rng(12)
    group = random_group(rng)
    batches = random_batches(group, rng, (10,) * 5)
    with LateDevice("tiny") as device:
        with HotlineEmbedding(group, device, dtype=torch.float64) as embedding:
            train_pipeline(embedding, batches, lr=LR, schedule="split", learn=2)
            held = device.allocated
            for _ in range(3):
                train_pipeline(embedding, batches, lr=LR, schedule="split")
                with torch.no_grad():
                    embedding(batches[0].rows)
            assert device.allocated == held
        assert device.allocated == 0


@pytest.mark.parametrize("schedule", ["split", "merged"])
def test_hotter_sets_give_the_same_losses(schedule: str) -> None:
    """0 %, 30 %, 100 % hot: one curve."""
    config = dataclasses.replace(CONFIGS["tiny"], name="wide", eal_sets=64)
    rng = np.random.default_rng(14)
    group = Group((TableConfig("t", 500, 8),), (FeatureConfig("f", "t", 3),), pin_bytes=0)
    batches = random_batches(group, rng, (32,) * 15)
    curves: list[Any] = []
    for share in (0.0, 0.3, 1.0):
        with (
            LateDevice(config) as device,
            HotlineEmbedding(group, device, dtype=torch.float64) as embedding,
        ):
            assert not len(embedding.working.load(rows_of_share(group, rng, share)))
            model = Model(embedding, torch.float64)
            popular = sum(
                batch.stats.popular for batch in Pipeline(model, batches, schedule=schedule)
            )
            assert (popular == 0) == (share == 0) and (popular == 480) == (share == 1)
            _, losses = train_pipeline(embedding, batches, lr=LR, schedule=schedule, model=model)
            curves.append(losses)
    np.testing.assert_allclose(curves[0], curves[1], atol=1e-12)
    np.testing.assert_allclose(curves[0], curves[2], atol=1e-12)
