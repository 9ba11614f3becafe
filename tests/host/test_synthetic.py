# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The made-up data set: bounds, skew, determinism, and labels that can be learned."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from hotline.data import Dataset, Jagged
from hotline.data.synthetic import (
    CRITEO_KAGGLE,
    MLPERF_LOOKUPS,
    Scatter,
    Synthetic,
    _keys,
    zipf_ranks,
)
from hotline.errors import ConfigError
from hotline.ingest import ingest


def same(first: object, second: object) -> bool:
    a, b = vars(first), vars(second)
    return (
        np.array_equal(a["dense"], b["dense"])
        and np.array_equal(a["labels"], b["labels"])
        and all(
            np.array_equal(np.asarray(x), np.asarray(y))
            if not isinstance(x, Jagged)
            else np.array_equal(x.values, y.values) and np.array_equal(x.lengths, y.lengths)
            for x, y in zip(a["features"].values(), b["features"].values(), strict=True)
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_scatter_is_a_bijection(first: int, second: int, seed: int) -> None:
    """Two columns at once, each over its own range."""
    scatter = Scatter([first, second], _keys(seed, 0, 2))
    count = max(first, second)
    values = np.stack([np.arange(count) % first, np.arange(count) % second], axis=1)
    out = scatter(values)
    assert sorted(set(out[:, 0].tolist())) == list(range(first))
    assert sorted(set(out[:, 1].tolist())) == list(range(second))
    assert np.array_equal(scatter(values), out)


def test_scatter_of_large_tables_spreads_the_head() -> None:
    for rows in (10_131_227, 2**32):
        places = Scatter([rows], _keys(3, 0, 1))(np.arange(100_000)[:, None])[:, 0]
        assert 0 <= places.min() < places.max() < rows
        assert len(np.unique(places)) == len(places)
        # Tenths of the table get a tenth each, and neighbours in rank are not neighbours in place.
        counts = np.bincount(places * 10 // rows, minlength=10)
        assert np.abs(counts - 10_000).max() < 500
        assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.1, 2.0])
def test_ranks_follow_the_bounded_law(exponent: float) -> None:
    rows = 1000
    edges = np.arange(1, rows + 2, dtype=np.float64)
    if exponent == 1:
        mass = np.diff(np.log(edges))
    else:
        mass = np.diff(edges ** (1 - exponent)) / (1 - exponent)
    mass /= mass.sum()
    # The inverse at the middle of each rank's stretch of the distribution is that rank.
    middle = np.cumsum(mass) - mass / 2
    assert zipf_ranks(middle, rows, exponent).tolist() == list(range(rows))
    ends = np.array([0.0, np.nextafter(1.0, 0.0)])
    assert zipf_ranks(ends, rows, exponent).tolist() == [0, rows - 1]
    for one in (1, 2**32):
        assert zipf_ranks(ends, one, exponent).max() < one


def test_frequencies_of_rows_have_the_skew_that_was_asked_for() -> None:
    data = Synthetic((5000, 5000), exponents=(1.1, 0.0), dense_width=0)
    ids = data.ids(np.arange(200_000))
    edges = np.arange(1, 5002, dtype=np.float64) ** -0.1
    mass = -np.diff(edges) / (edges[0] - edges[-1])
    skewed = np.sort(np.bincount(ids[:, 0], minlength=5000))[::-1] / 200_000
    assert np.allclose(skewed[:5], mass[:5], rtol=0.03)
    assert abs(skewed[:100].sum() - mass[:100].sum()) < 0.01
    uniform = np.bincount(ids[:, 1], minlength=5000)
    chi = ((uniform - 40.0) ** 2 / 40).sum()
    assert abs(chi - 4999) < 5 * np.sqrt(2 * 4999)
    # Columns are independent: equal ranks meet as often as chance has it.
    assert abs(np.corrcoef(ids[:, 0], ids[:, 1])[0, 1]) < 0.01


def test_criteo_shape_and_bounds() -> None:
    data = Synthetic(seed=5)
    assert isinstance(data, Dataset)
    group = data.group(16)
    assert group.total_rows == sum(CRITEO_KAGGLE) == 33_762_577
    assert group.lookups_per_sample == 26
    pinned = sum(n for n in CRITEO_KAGGLE if n * 64 <= 1 << 20)
    assert group.pinned_rows == pinned
    assert data.group(16, pin_bytes=0).pinned_rows == 0
    batch = next(data.batches("train", 4096))
    assert (batch.dense.shape, batch.dense.dtype) == ((4096, 13), np.float32)
    assert (batch.labels.dtype, set(batch.labels.tolist())) == (np.float32, {0.0, 1.0})
    assert np.isfinite(batch.dense).all()
    ids = np.concatenate([batch.features[f.name] for f in group.features], axis=1)
    assert (ids.min(axis=0) >= 0).all()
    assert (ids.max(axis=0) < CRITEO_KAGGLE).all()
    rows = ingest(group, batch.features)
    assert rows.ids.size == 4096 * 26


def test_multi_hot_with_empty_bags() -> None:
    data = Synthetic(lookups=MLPERF_LOOKUPS, rows_max=1000, empty_share=0.25, seed=1)
    batch = data.batch(np.arange(1000))
    empty = 0
    for f, lookups in zip(data.group(8).features, MLPERF_LOOKUPS, strict=True):
        bag = batch.features[f.name]
        assert isinstance(bag, Jagged)
        assert set(bag.lengths.tolist()) == {0, lookups}
        assert bag.values.size == bag.lengths.sum()
        empty += int((bag.lengths == 0).sum())
    assert abs(empty / 26_000 - 0.25) < 0.02
    assert ingest(data.group(8), batch.features).offsets is not None
    fixed = Synthetic(lookups=MLPERF_LOOKUPS, rows_max=1000, seed=1)
    assert fixed.group(8).lookups_per_sample == sum(MLPERF_LOOKUPS) == 214
    # The same bags, where they are not empty.
    other = fixed.batch(np.arange(1000)).features["C4"]
    mine = batch.features["C4"]
    assert isinstance(mine, Jagged)
    assert np.array_equal(other[mine.lengths > 0].reshape(-1), mine.values)  # type: ignore[index]


def test_samples_do_not_depend_on_what_was_drawn_before() -> None:
    data = Synthetic((100, 50, 7), lookups=(1, 3, 2), empty_share=0.2, seed=9)
    whole = data.batch(np.arange(60))
    again = Synthetic((100, 50, 7), lookups=(1, 3, 2), empty_share=0.2, seed=9)
    list(again.batches("test", 10_000))
    assert same(again.batch(np.arange(60)), whole)
    backwards = again.batch(np.arange(60)[::-1])
    assert np.array_equal(backwards.dense[::-1], whole.dense)
    assert np.array_equal(backwards.labels[::-1], whole.labels)
    single = again.batch([17])
    assert np.array_equal(single.dense[0], whole.dense[17])
    other = Synthetic((100, 50, 7), lookups=(1, 3, 2), empty_share=0.2, seed=10)
    assert not np.array_equal(other.batch(np.arange(60)).dense, whole.dense)


def test_a_pass_takes_each_sample_once_in_an_order_of_its_own() -> None:
    data = Synthetic((100,), dense_width=1, train_samples=1003, test_samples=101, seed=2)
    reference = data.batch(np.arange(1104)).dense[:, 0]

    def order(split: str, size: int, **options: int) -> np.ndarray:
        batches = list(data.batches(split, size, **options))
        assert all(batch.samples == size for batch in batches[:-1])
        return np.concatenate([batch.dense[:, 0] for batch in batches])

    passes = [order("train", 100, seed=s, epoch=e) for s, e in ((0, 0), (0, 1), (1, 0))]
    for one in passes:
        assert np.array_equal(np.sort(one), np.sort(reference[:1003]))
        assert not np.array_equal(one, reference[:1003])
    assert not np.array_equal(passes[0], passes[1])
    assert not np.array_equal(passes[0], passes[2])
    assert np.array_equal(order("train", 7), passes[0])  # whatever the size of the batches
    assert np.array_equal(order("test", 25, seed=5), reference[1003:])
    assert list(Synthetic((5,), test_samples=0).batches("test", 10)) == []


def test_labels_can_be_learned() -> None:
    """Rows' mean labels, learned on one half, predict the other; without a signal they do not."""

    def auc(data: Synthetic) -> tuple[float, float]:
        ids, numbers = data.ids(np.arange(40_000)), np.arange(40_000)
        labels = data.batch(numbers).labels
        train, test = slice(0, 30_000), slice(30_000, None)
        score = np.zeros(10_000)
        for column, rows in enumerate(data.rows):
            count = np.bincount(ids[train, column], minlength=rows)
            clicks = np.bincount(ids[train, column], labels[train], minlength=rows)
            score += ((clicks + 5 * labels[train].mean()) / (count + 5))[ids[test, column]]
        truth = data.logits(numbers[test]) if data.signal else score
        return roc_auc_score(labels[test], score), roc_auc_score(labels[test], truth)

    data = Synthetic(rows_max=5000, dense_width=2, seed=4)
    learned, best = auc(data)
    assert 0.65 < learned < best
    assert best > 0.75
    assert abs(data.batch(np.arange(20_000)).labels.mean() - 0.256) < 0.02
    noise, _ = auc(Synthetic(rows_max=5000, dense_width=2, seed=4, signal=0.0))
    assert abs(noise - 0.5) < 0.03


@pytest.mark.parametrize(
    "options",
    [
        {"rows": ()},
        {"rows": (0, 5)},
        {"rows": (5, 5), "exponents": (1.0,)},
        {"rows": (5, 5), "exponents": -1.0},
        {"rows": (5, 5), "lookups": (1, -1)},
        {"rows": (5, 5), "empty_share": 1.0},
        {"rows": (5, 5), "train_samples": -1},
        {"rows": (5, 5), "click_rate": 0.0},
    ],
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Synthetic(**options)  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    data = Synthetic((5,))
    with pytest.raises(ConfigError, match="split"):
        data.samples("valid")
    with pytest.raises(ConfigError, match="batch_size"):
        next(data.batches("train", 0))


def test_a_batch_of_criteo_shape_takes_below_50_ms() -> None:
    """Processor time of the best of five, since other work may share the machine."""
    data, numbers = Synthetic(), np.arange(4096)
    data.batch(numbers)
    times = []
    for _ in range(5):
        start = time.thread_time()
        data.batch(numbers)
        times.append(time.thread_time() - start)
    assert min(times) < 0.05
