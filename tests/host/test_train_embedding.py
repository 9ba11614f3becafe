# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding module: pooling, the path without a pipeline, checkpoints, refusals."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from hotline.errors import ConfigError, DataError
from hotline.tables import FeatureConfig, Group, RowBatch, TableConfig
from hotline.train import Adagrad, HotlineEmbedding, MiniBatch, Pipeline, PlainEmbedding
from tests.host.training import (
    LateDevice,
    Model,
    OracleEmbedding,
    assert_equal_models,
    entries_of,
    loss_sum,
    random_batches,
    random_group,
    rows_of_share,
    train_oracle,
    train_pipeline,
)


@pytest.fixture
def device() -> Iterator[LateDevice]:
    with LateDevice("tiny") as opened:
        yield opened


@pytest.mark.parametrize("seed", range(12))
def test_pooling_equals_embedding_bag(seed: int) -> None:
    """Fixed and jagged, empty bags, sum, mean, weights; by row ids and through the pipeline."""
    rng = np.random.default_rng([seed, 1])
    group = random_group(rng)
    weighted = all(feature.pooling == "sum" for feature in group.features)
    batch = random_batches(group, rng, (17,), weighted=weighted)[0]
    oracle = OracleEmbedding(group, 4, torch.float64)(batch).detach()
    plain = PlainEmbedding(group, seed=4, dtype=torch.float64)
    torch.testing.assert_close(plain(batch.rows, batch.weights).detach(), oracle)
    with (
        LateDevice("tiny") as opened,
        HotlineEmbedding(group, opened, seed=4, dtype=torch.float64) as embedding,
    ):
        embedding.working.load(rows_of_share(group, rng, 0.5))
        torch.testing.assert_close(embedding(batch.rows, batch.weights).detach(), oracle)
        for hot in Pipeline(embedding, [batch], schedule="split"):
            for part in hot:
                out = embedding(part.features).detach()
                torch.testing.assert_close(out, oracle[part.samples])


def test_an_empty_bag_is_zero_in_every_path(device: LateDevice) -> None:
    group = Group(
        (TableConfig("t", 9, 4),),
        (FeatureConfig("f", "t", None), FeatureConfig("g", "t", None, "mean")),
        pin_bytes=0,
    )
    rows = RowBatch(
        np.array([3, 8], np.uint32), 3, 2, None, np.array([0, 0, 1, 2, 2, 2, 2], np.uint32)
    )
    nothing = RowBatch(np.zeros(0, np.uint32), 2, 2, None, np.zeros(5, np.uint32))
    with HotlineEmbedding(group, device, torch_device="cpu") as embedding:
        out = embedding(rows)
        assert out.shape == (3, 2, 4)
        assert not out[0, 0].any() and not out[1, 1].any() and not out[2].any()
        assert out[0, 1].any() and out[1, 0].any()
        assert not embedding(nothing).any() and embedding(nothing).shape == (2, 2, 4)
        assert not PlainEmbedding(group)(nothing).any()
        for batch in Pipeline(embedding, [rows, nothing]):
            for part in batch:
                assert embedding(part.features).shape == (len(part), 2, 4)
            batch.step()


def test_ids_by_feature_and_row_batches_are_the_same(device: LateDevice) -> None:
    group = Group(
        (TableConfig("a", 50, 4), TableConfig("b", 7, 4)),
        (FeatureConfig("x", "a", 2), FeatureConfig("y", "b")),
        pin_bytes=0,
    )
    ids = {"x": np.array([[1, 49], [0, 2]]), "y": np.array([6, 0])}
    rows = RowBatch(np.array([8, 56, 6, 7, 9, 0], np.uint32), 2, 2, 3)
    with HotlineEmbedding(group, device) as embedding:
        assert torch.equal(embedding(ids), embedding(rows))
        with pytest.raises(DataError, match="'y'"):
            embedding({"x": ids["x"], "y": np.array([7, 0])})


def test_step_without_a_pipeline_equals_the_plain_loop(device: LateDevice) -> None:
    rng = np.random.default_rng(2)
    group = random_group(rng, jagged=True)
    batches = random_batches(group, rng, (12,) * 6)
    with HotlineEmbedding(group, device, dtype=torch.float64, lr=0.3) as embedding:
        embedding.working.load(rows_of_share(group, rng, 0.4))
        model = Model(embedding, torch.float64)
        dense = torch.optim.SGD(model.dense_parameters(), lr=0.3)
        for batch in batches:
            dense.zero_grad()
            for half in (slice(0, 5), slice(5, 12)):  # two backward passes, one update
                part = _half(group, batch, half)
                (loss_sum(model(part.dense, part.rows), part.labels) / 12).backward()
            embedding.step()
            dense.step()
        oracle, _ = train_oracle(group, batches, lr=0.3)
        assert_equal_models(model, oracle, group, 1e-12)


def _half(group: Group, batch: MiniBatch, half: slice) -> MiniBatch:
    bags = len(group.features)
    assert batch.rows.offsets is not None and batch.dense is not None and batch.labels is not None
    offsets = batch.rows.offsets[half.start * bags : half.stop * bags + 1]
    rows = RowBatch(
        batch.rows.ids[offsets[0] : offsets[-1]],
        half.stop - half.start,
        bags,
        None,
        offsets - offsets[0],
    )
    return MiniBatch(rows, batch.dense[half], batch.labels[half])


def test_evaluation_leaves_no_trace(device: LateDevice) -> None:
    """Many forward passes: no job of the fragmenter, no buffer, no gradient, the same epoch."""
    rng = np.random.default_rng(3)
    group = random_group(rng)
    batches = random_batches(group, rng, (16,) * 4)
    with HotlineEmbedding(group, device, dtype=torch.float64) as embedding:
        train_pipeline(embedding, batches, lr=0.1, schedule="split", learn=2)
        before = (dict(device.counts), device.allocated, device.epoch, embedding.working.nbytes)
        entries = entries_of(embedding)
        before[0]["Dump"] += 1
        with torch.no_grad():
            for _ in range(50):
                for batch in batches:
                    embedding(batch.rows, batch.weights)
        assert entries_of(embedding) == entries
        before[0]["Dump"] += 1
        after = (dict(device.counts), device.allocated, device.epoch, embedding.working.nbytes)
        assert after == before
        assert not embedding._by_row and not embedding.recorded


def test_a_step_between_pipelined_batches_is_seen_by_the_next(device: LateDevice) -> None:
    rng = np.random.default_rng(4)
    group = Group((TableConfig("t", 30, 4),), (FeatureConfig("f", "t", 3),), pin_bytes=0)
    batches = random_batches(group, rng, (8,) * 10)
    with HotlineEmbedding(group, device, dtype=torch.float64, lookahead=2) as embedding:
        model = Model(embedding, torch.float64)
        dense = torch.optim.SGD(model.dense_parameters(), lr=0.2)

        def between(number: int) -> None:
            extra = batches[(number + 5) % 10]
            dense.zero_grad()
            (loss_sum(model(extra.dense, extra.rows), extra.labels) / 8).backward()
            embedding.step(0.2)
            dense.step()

        train_pipeline(embedding, batches, lr=0.2, schedule="split", model=model, between=between)
        order = [b for n, first in enumerate(batches) for b in (first, batches[(n + 5) % 10])]
        # The pipeline's own optimizer of the dense layers is another object; SGD has no state.
        oracle, _ = train_oracle(group, order, lr=0.2)
        assert_equal_models(model, oracle, group, 1e-12)


def test_gradient_of_weights_equals_torch(device: LateDevice) -> None:
    group = Group((TableConfig("t", 40, 4),), (FeatureConfig("f", "t", 3),), pin_bytes=0)
    rng = np.random.default_rng(5)
    batch = random_batches(group, rng, (6,), weighted=True)[0]
    assert batch.weights is not None
    ours = batch.weights.clone().requires_grad_()
    theirs = batch.weights.clone().requires_grad_()
    with HotlineEmbedding(group, device, dtype=torch.float64) as embedding:
        embedding(batch.rows, ours).square().sum().backward()
        oracle = OracleEmbedding(group, 0, torch.float64)
        oracle(MiniBatch(batch.rows, weights=theirs)).square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
        piped = MiniBatch(batch.rows, weights=batch.weights.clone().requires_grad_())
        for hot in Pipeline(embedding, [piped]):
            for part in hot:
                embedding(part.features).square().sum().backward()
        assert piped.weights is not None
        torch.testing.assert_close(piped.weights.grad, theirs.grad)


def test_weights_with_mean_are_refused(device: LateDevice) -> None:
    group = Group((TableConfig("t", 9, 4),), (FeatureConfig("f", "t", 2, "mean"),), pin_bytes=0)
    rows = RowBatch(np.array([1, 2], np.uint32), 1, 1, 2)
    with HotlineEmbedding(group, device) as embedding:
        with pytest.raises(ConfigError, match="'f' has 'mean'"):
            embedding(rows, torch.ones(2))
        with pytest.raises(ConfigError, match="'f' has 'mean'"):
            list(Pipeline(embedding, [MiniBatch(rows, weights=torch.ones(2))]))
        with pytest.raises(ConfigError, match=r"\[2\], one per lookup"):
            sums = Group(group.tables, (FeatureConfig("f", "t", 2),), pin_bytes=0)
            PlainEmbedding(sums)(rows, torch.ones(3))


def test_stale_features_are_refused(device: LateDevice) -> None:
    rng = np.random.default_rng(6)
    group = random_group(rng)
    batches = random_batches(group, rng, (4, 4))
    with HotlineEmbedding(group, device, dtype=torch.float64) as embedding:
        pipeline = iter(Pipeline(embedding, batches))
        first = next(pipeline)
        part = next(iter(first))
        late = embedding(part.features).sum()
        first.step()
        with pytest.raises(ConfigError, match="mini-batch that is over"):
            embedding(part.features)
        with pytest.raises(ConfigError, match="mini-batch that is over"):
            late.backward()
        with pytest.raises(ConfigError, match="is over"):
            first.step()
        next(pipeline)
        with pytest.raises(ConfigError, match="mini-batch that is over"):
            embedding(part.features)


def test_the_hot_set_does_not_change_within_a_batch(device: LateDevice) -> None:
    rng = np.random.default_rng(6)
    group = random_group(rng)
    batches = random_batches(group, rng, (4, 4))
    first = group.tables[0]
    with HotlineEmbedding(group, device, dtype=torch.float64) as embedding:
        for batch in Pipeline(embedding, batches):
            for change in (
                embedding.working.install,
                lambda: embedding.working.load(np.zeros(0, np.uint32)),
                lambda: embedding.set_table_weights(first.name, torch.zeros(first.rows, group.dim)),
                embedding.step,
            ):
                with pytest.raises(ConfigError, match="in training"):
                    change()
            batch.step()


@pytest.mark.parametrize("optimizer", [None, Adagrad()])
def test_checkpoint_goes_into_another_hot_set(optimizer: Any) -> None:
    """Saved in mid-run with dirty hot rows and gathers in flight; restored into other EALs."""
    rng = np.random.default_rng(7)
    group = random_group(rng)
    batches = random_batches(group, rng, (12,) * 14)
    torch_optimizer = torch.optim.SGD if optimizer is None else torch.optim.Adagrad
    saved = io.BytesIO()
    with (
        LateDevice("tiny") as first,
        HotlineEmbedding(
            group, first, dtype=torch.float64, optimizer=optimizer, lookahead=2
        ) as embedding,
    ):
        model = Model(embedding, torch.float64)
        dense = torch_optimizer(model.dense_parameters(), lr=0.1)

        def save(number: int) -> None:
            if number == 6:
                torch.save((model.state_dict(), dense.state_dict()), saved)

        def loop(
            this: Model, steps: torch.optim.Optimizer, part: list[MiniBatch], **more: Any
        ) -> None:
            train_pipeline(
                this.embedding,
                part,
                lr=0.1,
                schedule="split",
                model=this,  # type: ignore[arg-type]
                optimizer=lambda parameters, lr: steps,
                **more,
            )

        loop(model, dense, batches, learn=3, between=save)
        for config in ("tiny", "demo", "zynq"):
            saved.seek(0)
            weights, state = torch.load(saved)
            with (
                LateDevice(config) as second,
                HotlineEmbedding(
                    group, second, dtype=torch.float64, optimizer=optimizer, seed=99, lookahead=1
                ) as other,
            ):
                restored = Model(other, torch.float64)
                restored.load_state_dict(weights)
                steps = torch_optimizer(restored.dense_parameters(), lr=0.1)
                steps.load_state_dict(state)
                loop(restored, steps, batches[7:])
                assert_equal_models(restored, model, group, 1e-12)


def test_a_checkpoint_of_other_tables_is_refused(device: LateDevice) -> None:
    group = Group((TableConfig("t", 9, 4),), (FeatureConfig("f", "t"),), pin_bytes=0)
    other = Group((TableConfig("u", 9, 4),), (FeatureConfig("f", "u"),), pin_bytes=0)
    with HotlineEmbedding(group, device) as embedding:
        state = embedding.state_dict()
    for target, optimizer in ((other, None), (group, Adagrad())):
        with (
            HotlineEmbedding(target, device, optimizer=optimizer) as embedding,
            pytest.raises(DataError, match="table"),
        ):
            embedding.load_state_dict(state)
    with HotlineEmbedding(group, device) as embedding, pytest.raises(DataError, match="is \\(9, 4"):
        embedding.set_table_weights("t", torch.zeros(8, 4))
