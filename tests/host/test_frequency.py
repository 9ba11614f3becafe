# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Exact counts of lookups per row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotline.errors import ConfigError, DataError, IngestError
from hotline.frequency import RowCounter
from hotline.tables import FeatureConfig, Group, TableConfig


def make_group(rows: int = 1000, pinned: int = 10) -> Group:
    tables = (TableConfig("small", pinned, 4), TableConfig("large", rows - pinned, 4))
    features = (FeatureConfig("a", "small"), FeatureConfig("b", "large"))
    return Group(tables, features, pin_bytes=pinned * 16)


def expected(ids: np.ndarray, group: Group, count: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(ids, minlength=group.total_rows)
    counts[: group.pinned_rows] = 0
    order = np.lexsort((np.arange(len(counts)), -counts))[:count]
    order = order[counts[order] > 0]
    return order, counts[order]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 1.5, 6.0]), st.integers(0, 1200))
def test_equals_bincount(seed: int, skew: float, count: int) -> None:
    """At every border of the byte: frequent rows have thousands of lookups, rare ones none."""
    draw = np.random.default_rng(seed)
    group = make_group()
    counter = RowCounter(group)
    parts = [
        (group.total_rows * draw.random(draw.integers(0, 9000)) ** skew).astype(np.uint32)
        for _ in range(3)
    ]
    for part in parts:
        counter.add_rows(part)
    ids = np.concatenate(parts)
    rows, counts = expected(ids, group, count)
    top = counter.top(count)
    np.testing.assert_array_equal(top.rows, rows)
    np.testing.assert_array_equal(top.counts, counts)
    every = np.arange(group.total_rows)
    whole = np.bincount(ids, minlength=group.total_rows)
    whole[: group.pinned_rows] = 0
    np.testing.assert_array_equal(counter.counts(every), whole)
    assert counter.lookups == ids.size


@pytest.mark.parametrize("number", [255, 256, 257, 511, 512, 70_000])
def test_counts_beyond_a_byte(number: int) -> None:
    counter = RowCounter(make_group())
    counter.add_rows(np.full(number, 500, np.uint32))
    counter.add_rows(np.array([499, 501, 501], np.uint32))
    assert counter.counts(np.array([499, 500, 501, 502])).tolist() == [1, number, 2, 0]
    assert counter.top(2).rows.tolist() == [500, 501]
    assert counter.top(10).rows.tolist() == [500, 501, 499]


def test_takes_raw_ids() -> None:
    group = make_group()
    counter = RowCounter(group)
    counter.add({"a": np.array([1, 2, 3]), "b": np.array([7, 7, 8])})
    base = group.bases["large"]
    assert counter.top(5).rows.tolist() == [base + 7, base + 8]
    assert counter.lookups == 6
    with pytest.raises(IngestError, match="'b', sample 1"):
        counter.add({"a": np.array([1, 2]), "b": np.array([0, 5000])})


def test_refuses() -> None:
    counter = RowCounter(make_group())
    with pytest.raises(DataError, match="1000 is not below 1000"):
        counter.add_rows(np.array([500, 1000], np.uint32))
    assert counter.counts(np.array([500])).tolist() == [0]
    with pytest.raises(ConfigError, match="at least 0"):
        counter.top(-1)
    assert counter.top(0).rows.size == 0


def test_nothing_to_count() -> None:
    counter = RowCounter(make_group())
    assert counter.top(3).rows.size == 0
    counter.add_rows(np.zeros(0, np.uint32))
    assert counter.top(3).rows.size == 0
