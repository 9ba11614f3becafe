# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Cold store, record layout, initial weights, optimizers, sums by row, memory estimate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from hotline import native
from hotline.config import CONFIGS
from hotline.device.reference import ReferenceDevice
from hotline.errors import ConfigError
from hotline.tables import FeatureConfig, Group, TableConfig
from hotline.train import SGD, Adagrad, HotlineEmbedding, PlainEmbedding, estimate, row_optimizer
from hotline.train.accelerator import Accelerator
from hotline.train.coalesce import LookupGradient, coalesce
from hotline.train.encode import Bags, HotSet, encode_on_host, first_occurrences, ranges
from hotline.train.store import ColdStore, RecordLayout, initial_weights, table_weights
from tests.host.training import random_batches, random_group, random_rows, train_pipeline

GROUP = Group(
    (TableConfig("a", 70, 3), TableConfig("b", 5, 3)),
    (FeatureConfig("f", "a"), FeatureConfig("g", "b")),
    pin_bytes=0,
)


def test_initial_weights_depend_on_seed_table_row_and_column_only() -> None:
    table = TableConfig("a", 1000, 16)
    whole = table_weights(3, table, np.float64)
    rows = np.array([999, 0, 17])
    np.testing.assert_array_equal(initial_weights(3, table, rows, np.float64), whole[rows])
    np.testing.assert_array_equal(table_weights(3, table), whole.astype(np.float32))
    bound = 1 / np.sqrt(1000)
    assert whole.min() >= -bound and whole.max() < bound
    assert abs(whole.mean()) < 0.02 * bound and whole.std() == pytest.approx(
        bound / np.sqrt(3), rel=0.02
    )
    assert len(np.unique(whole)) == whole.size
    for other in (table_weights(4, table), table_weights(3, TableConfig("b", 1000, 16))):
        assert abs(np.corrcoef(other.ravel(), whole.ravel())[0, 1]) < 0.05
    for axis in (0, 1):  # neighbours are not alike
        shifted = np.roll(whole, 1, axis)
        assert abs(np.corrcoef(shifted.ravel(), whole.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize("segment_rows", [None, 16, 128])
def test_store_reads_back_and_moves_by_jobs(segment_rows: int | None) -> None:
    with ReferenceDevice("tiny") as device:
        layout = RecordLayout.build(3, np.float32, (("sum", 0.5),))
        store = ColdStore(Accelerator(device), GROUP, layout, seed=1, segment_rows=segment_rows)
        rows = np.array([74, 0, 16, 15, 31, 33])
        tables = {t.name: table_weights(1, t) for t in GROUP.tables}
        whole = np.concatenate([tables["b"], tables["a"]])
        np.testing.assert_array_equal(store.read("weights", rows), whole[rows])
        assert (store.read("sum", rows) == 0.5).all()
        ids = device.allocate(6, np.uint32)
        records = device.allocate((6, layout.record_bytes), np.uint8)
        ids[:] = rows
        for handle in store.gather(ids, records):
            handle.wait()
        np.testing.assert_array_equal(layout.field("weights").view(records), whole[rows])
        layout.field("weights").view(records)[:] = 7
        for handle in store.scatter(ids, records):
            handle.wait()
        assert (store.read("weights", rows) == 7).all()
        np.testing.assert_array_equal(store.read("weights", [1, 17]), whole[[1, 17]])
        assert store.nbytes == 75 * 64
        store.close()


def test_segments_that_cannot_be_are_refused() -> None:
    layout = RecordLayout.build(3)
    with ReferenceDevice("tiny") as device:
        for rows in (0, 3, 1):  # 75 segments of one row are too many
            with pytest.raises(ConfigError, match="segment"):
                ColdStore(Accelerator(device), GROUP, layout, segment_rows=rows)


def test_record_layout() -> None:
    layout = RecordLayout.build(16, np.float32, (("sum", 0.0),))
    assert [(f.name, f.offset, f.nbytes) for f in layout.fields] == [
        ("weights", 0, 64),
        ("sum", 64, 64),
    ]
    assert layout.record_bytes == 128
    assert RecordLayout.build(1).record_bytes == 64
    assert RecordLayout.build(17).record_bytes == 128
    assert RecordLayout.build(1024).record_bytes == 4096
    with pytest.raises(ConfigError, match="4160 bytes"):
        RecordLayout.build(1025)
    with pytest.raises(ConfigError, match="no field"):
        layout.field("momentum")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_row_optimizers_equal_torch(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(7, 5, generator=generator, dtype=dtype)
    for ours, theirs in (
        (SGD(), lambda p: torch.optim.SGD(p, lr=0.1)),
        (
            Adagrad(eps=1e-3, lr_decay=0.2, initial_accumulator_value=0.3),
            lambda p: torch.optim.Adagrad(
                p, lr=0.1, eps=1e-3, lr_decay=0.2, initial_accumulator_value=0.3
            ),
        ),
    ):
        mine = weights.clone()
        state = {name: torch.full_like(mine, value) for name, value in ours.state}
        parameter = torch.nn.Parameter(weights.clone())
        optimizer = theirs([parameter])
        for step in range(1, 6):
            gradient = torch.randn(7, 5, generator=generator, dtype=dtype)
            ours.update(mine, state, gradient.clone(), step, 0.1)
            parameter.grad = gradient
            optimizer.step()
        assert torch.equal(mine, parameter.detach())


def test_what_is_not_row_local_is_refused() -> None:
    for options in ({"momentum": 0.9}, {"weight_decay": 1e-4}):
        with pytest.raises(ConfigError, match="every row at every step"):
            row_optimizer("sgd", **options)
    with pytest.raises(ConfigError, match="not row-local"):
        row_optimizer("adam")
    with pytest.raises(ConfigError, match="there are sgd, adagrad"):
        row_optimizer("ftrl")
    with pytest.raises(ConfigError, match="nesterov"):
        row_optimizer("sgd", nesterov=1.0)
    assert row_optimizer("sgd", momentum=0.0) == SGD()
    assert row_optimizer("adagrad", eps=1e-8) == Adagrad(eps=1e-8)


@pytest.mark.parametrize("use_native", [False, True])
def test_sums_by_row(use_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several backward passes, bags, weights, another gradient dtype; both implementations."""
    if not use_native:
        monkeypatch.setattr(native, "library_path", lambda: __import__("pathlib").Path("/nowhere"))
    rng = np.random.default_rng(0)
    records, expected = [], np.zeros((50, 4))
    for weighted, bagged in itertools.product((False, True), repeat=2):
        indices = rng.integers(0, 50, size=300)
        bags = np.sort(rng.integers(0, 60, size=300)) if bagged else np.arange(300)
        gradient = rng.normal(size=(300, 4)).astype(np.float32)
        weights = rng.normal(size=300) if weighted else np.ones(300)
        np.add.at(expected, indices, gradient[bags].astype(np.float64) * weights[:, None])
        records.append(
            LookupGradient(
                torch.from_numpy(indices.astype(np.int32 if weighted else np.int64)),
                torch.from_numpy(bags) if bagged else None,
                torch.from_numpy(gradient),
                torch.from_numpy(weights) if weighted else None,
            )
        )
    if not use_native:
        records = [LookupGradient(r.indices.long(), r.bags, r.gradient, r.weights) for r in records]
    rows, sums = coalesce(records, 4, torch.float64)
    assert sums.dtype == torch.float64
    np.testing.assert_array_equal(rows, np.flatnonzero(expected.any(1)))
    np.testing.assert_allclose(sums, expected[rows], atol=1e-12)
    empty_rows, empty = coalesce([], 4, torch.float64)
    assert empty_rows.numel() == 0 and empty.shape == (0, 4)


@pytest.mark.parametrize("seed", range(8))
def test_host_encoding_equals_the_reference(seed: int) -> None:
    """Popular samples, cold order and indices of FRAGMENT, from the mirror of the directory."""
    from hotline.reference import fragment

    rng = np.random.default_rng([seed, 2])
    group = random_group(rng)
    rows = random_rows(group, rng, 30)
    with ReferenceDevice("tiny") as device, HotlineEmbedding(group, device) as embedding:
        warm = random_rows(group, rng, 20)
        embedding.working.directory.learn(warm.ids)
        change = embedding.working.install()
        assert change.added == len(embedding.working.hot) and change.epoch == device.epoch
        base = embedding.working.hot_rows + 5
        bags = Bags.of(group, rows)
        indices, popular, cold, counts = encode_on_host(embedding.working.hot, rows, bags, base)
        expected = fragment(
            device._eal,
            rows.ids,
            samples=30,
            cold_base=base,
            cold_rows_max=4096,
            lookups_max=4096,
            lookups_per_sample=rows.lookups_per_sample or 0,
            offsets=rows.offsets,
            bags=rows.bags if rows.offsets is not None else 0,
            total_rows=group.total_rows,
            pinned_rows=group.pinned_rows,
        )
        np.testing.assert_array_equal(indices, expected.indices)
        np.testing.assert_array_equal(np.flatnonzero(popular), expected.popular)
        np.testing.assert_array_equal(cold, expected.cold_rows)
        done = expected.completion
        assert counts == (done.pinned_lookups, done.eal_lookups, done.cold_lookups)


def test_small_helpers() -> None:
    np.testing.assert_array_equal(ranges([5, 0, 9], [2, 0, 3]), [5, 6, 9, 10, 11])
    assert not len(ranges([], []))
    rows, ranks = first_occurrences(np.array([7, 3, 7, 9, 3], np.uint32))
    np.testing.assert_array_equal(rows, [7, 3, 9])
    np.testing.assert_array_equal(ranks, [0, 1, 0, 2, 1])
    assert HotSet(4).slots_of(np.array([0, 3, 4])).tolist() == [0, 3, -1]


def test_installing_moves_the_difference_only() -> None:
    group = Group((TableConfig("t", 200, 4),), (FeatureConfig("f", "t"),), pin_bytes=0)
    with ReferenceDevice("tiny") as device, HotlineEmbedding(group, device) as embedding:
        working = embedding.working
        working.load(np.arange(0, 60))
        kept, gone = working.table("t")[20:60], working.table("t")[:20]
        for row in working.hot.slots_of(np.arange(60)):  # as training does
            working.weights[row] += 1
        submit, moved = device.submit, []
        device.submit = lambda job: moved.append(job) or submit(job)  # type: ignore[method-assign]
        working.load(np.arange(20, 80))
        counts = {
            name: sum(len(j.ids) for j in moved if type(j).__name__ == name)
            for name in ("Gather", "Scatter")
        }
        assert counts == {"Gather": 20, "Scatter": 20}
        torch.testing.assert_close(working.table("t")[20:60], kept + 1)
        torch.testing.assert_close(working.table("t")[:20], gone + 1)
        assert (working.install().added, working.install().evicted) == (0, 0)


@pytest.mark.parametrize("optimizer", [SGD(), Adagrad()])
@pytest.mark.parametrize("lookahead", [0, 2])
def test_estimate_is_what_is_used(optimizer: SGD | Adagrad, lookahead: int) -> None:
    rng = np.random.default_rng(1)
    group = Group(
        (TableConfig("a", 900, 24), TableConfig("b", 3, 24)),
        (FeatureConfig("f", "a", 2), FeatureConfig("g", "b")),
        pin_bytes=1000,
    )
    for cold_rows in (None, 50):
        guess = estimate(
            group, CONFIGS["tiny"], optimizer=optimizer, lookahead=lookahead, cold_rows=cold_rows
        )
        with (
            ReferenceDevice("tiny") as device,
            HotlineEmbedding(
                group, device, optimizer=optimizer, lookahead=lookahead, cold_rows=cold_rows
            ) as embedding,
        ):
            working = embedding.working
            train_pipeline(
                embedding,
                random_batches(group, rng, (10,) * 6, dtype=torch.float32),
                lr=0.1,
                schedule="split",
                dtype=torch.float32,
            )
            assert guess.working_set == working.nbytes
            assert guess.cold_store == working.store.nbytes
            assert guess.hot_rows == working.hot_rows and guess.cold_rows == working.cold_rows
            used = sum(
                s.ids.nbytes + s.records.nbytes
                for tail in working.tails
                for s in (tail.gathered, tail.written)
            )
            assert 0 < used <= guess.staging
            assert guess.host_bytes == guess.cold_store + guess.staging


def test_plain_and_hotline_start_equal() -> None:
    with ReferenceDevice("tiny") as device, HotlineEmbedding(GROUP, device, seed=8) as embedding:
        plain = PlainEmbedding(GROUP, seed=8)
        for table in GROUP.tables:
            assert torch.equal(embedding.table_weights(table.name), plain.table_weights(table.name))
        for module in (embedding, plain):
            with pytest.raises(ConfigError, match="no table"):
                module.table_weights("c")
