# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Native kernels against plain loops, to the bit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hotline import native
from hotline.codes import (
    COUNTER_HIT,
    COUNTER_INSERT,
    COUNTER_VICTIM,
    Operation,
    Policy,
    Reason,
    Status,
)
from hotline.device.base import ENTRY, Completion
from hotline.errors import ConfigError, HotlineError, IngestError
from hotline.ingest import describe, ingest
from hotline.native.kernels import NativeFragmenter, Workers, move
from hotline.reference import CONSTANTS, MULTIPLIERS, Eal
from hotline.tables import FeatureConfig, Group, TableConfig


def loop(records: list[native.Record]) -> dict[int, np.ndarray]:
    """The plain sum, lookup by lookup."""
    sums: dict[int, np.ndarray] = {}
    for record in records:
        for lookup, index in enumerate(record.indices.tolist()):
            bag = lookup if record.bags is None else record.bags[lookup]
            row = record.gradient[bag]
            if record.weights is not None:
                row = row * record.weights[lookup]
            sums[index] = sums.get(index, np.zeros_like(row)) + row
    return sums


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_coalesce_equals_the_loop_to_the_bit(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    dim = data.draw(st.sampled_from([1, 3, 16, 65]))
    limit = data.draw(st.sampled_from([1, 7, 5000, 2**31, 2**32]))
    records = []
    for _ in range(data.draw(st.integers(1, 3))):
        lookups = data.draw(st.sampled_from([0, 1, 5, 300]))
        wide = limit > 2**31 or data.draw(st.booleans())
        indices = (limit * rng.random(lookups) ** 4).astype(np.int64 if wide else np.int32)
        bags = weights = None
        count = lookups
        if data.draw(st.booleans()):
            count = 20
            bags = np.sort(rng.integers(0, count, lookups))
        gradient = rng.standard_normal((count, dim + 2)).astype(dtype)[:, :dim]  # padded rows
        if data.draw(st.booleans()):
            weights = rng.random(lookups).astype(dtype)
        records.append(native.Record(indices, gradient, bags, weights))
    indices, sums = native.coalesce(records, limit)
    plain = loop(records)
    assert indices.tolist() == sorted(plain)
    assert sums.dtype == dtype
    assert sums.shape == (len(plain), dim)
    for index, row in zip(indices.tolist(), sums, strict=True):
        assert np.array_equal(row, plain[index])


def test_coalesce_is_ordered_where_order_matters() -> None:
    """1e8 + 1 - 1e8 in float32 depends on the order."""
    gradient = np.array([[1e8], [1], [-1e8]], np.float32)
    for order, total in (([0, 1, 2], 0), ([0, 2, 1], 1)):
        _, sums = native.coalesce([native.Record(np.zeros(3, np.int64), gradient[order])], 1)
        assert sums[0, 0] == total


def test_coalesce_refuses_what_is_out_of_range() -> None:
    good = np.ones((3, 2), np.float32)
    index = np.array([0, 1, 2])

    def run(limit: int = 3, **change: Any) -> None:
        native.coalesce([native.Record(**{"indices": index, "gradient": good, **change})], limit)

    run()
    for bad in (
        {"limit": 2},
        {"indices": np.array([0, -1, 2])},
        {"indices": np.array([0, -1, 2], np.int32)},
        {"indices": np.array([0, 1, 2], np.uint64)},
        {"gradient": good[:2]},
        {"gradient": good.astype(np.float16)},
        {"gradient": np.asfortranarray(np.ones((3, 2), np.float32))},
        {"gradient": good[0]},
        {"bags": np.array([0, 3, 1])},
        {"bags": np.array([0, -1, 1])},
        {"bags": np.array([0, 1])},
        {"bags": np.array([0, 1, 2], np.int32)},
        {"weights": np.ones(3)},
        {"weights": np.ones(2, np.float32)},
    ):
        with pytest.raises(ConfigError):
            run(**bad)
    with pytest.raises(ConfigError):
        native.coalesce([], 1)
    with pytest.raises(ConfigError, match="gradient 1"):
        native.coalesce(
            [native.Record(index, good), native.Record(index, np.ones((3, 3), np.float32))], 3
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sgd_update(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((100, 5)).astype(dtype)
    indices = rng.permutation(100)[:40]
    gradients = rng.standard_normal((40, 5)).astype(dtype)
    expected = weights.copy()
    rows = torch.from_numpy(weights[indices])
    expected[indices] = rows.add_(torch.from_numpy(gradients), alpha=-0.1).numpy()
    before = weights.copy()
    for bad in ([100], [-1]):
        with pytest.raises(ConfigError, match="index"):
            native.sgd_update(weights, np.append(indices[:-1], bad), gradients, 0.1)
    assert np.array_equal(weights, before)
    native.sgd_update(weights, indices, gradients, 0.1)
    assert np.array_equal(weights, expected)
    native.sgd_update(weights, indices[:0], gradients[:0], 0.1)
    for args in (
        (weights.astype(np.float16), indices, gradients),
        (weights, indices, gradients.astype(np.float16)),
        (weights, indices.astype(np.int32), gradients),
        (weights, indices, gradients[:-1]),
        (weights[:, ::-1], indices, gradients),
    ):
        with pytest.raises(ConfigError):
            native.sgd_update(*args, 0.1)


def test_a_missing_or_broken_library_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    path = tmp_path / "_native.so"
    monkeypatch.setattr(native, "library_path", lambda: path)
    with pytest.raises(HotlineError, match="pip install -e"):
        native.library.__wrapped__()
    path.write_bytes(b"not a library")
    with pytest.raises(HotlineError, match="cannot load"):
        native.library.__wrapped__()


def test_codes_of_the_kernels_are_the_hosts() -> None:
    text = (Path(native.__file__).parent / "kernels.cpp").read_text()
    (statuses,) = re.findall(r"enum Status : int32_t \{ kFailed = -1, (.*?) \}", text)
    (reasons,) = re.findall(r"enum Reason : int32_t \{ (.*?) \}", text)
    for listed, codes in ((statuses, Status), (reasons, Reason)):
        for name, value in re.findall(r"k(\w+) = (\d+)", listed):
            member = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
            assert codes[member] == int(value)  # type: ignore[index]
    assert f"kHit = {COUNTER_HIT}, kInsert = {COUNTER_INSERT}, kVictim = {COUNTER_VICTIM}" in text
    for name, values in (("kMultiplier", MULTIPLIERS), ("kConstant", CONSTANTS)):
        (listed,) = re.findall(rf"{name}\[4\] = \{{(.*?)\}}", text)
        assert tuple(int(value, 16) for value in listed.split(", ")) == tuple(values)


@pytest.mark.parametrize("ways", [1, 2, 8, 16])
def test_ways_of_the_native_eal(ways: int) -> None:
    """Vector code for 16 ways, portable code for the others: both equal the oracle."""
    rng = np.random.default_rng(ways)
    ours, oracle = NativeFragmenter(8, ways, 64), Eal(8, ways)
    for number in range(20):
        ids = rng.zipf(1.3, 300).astype(np.uint64) % 400
        policy = list(Policy)[number % 2]
        rows = ids.astype(np.uint32)
        assert ours.learn(rows, 400, 5, policy) == oracle.learn(rows, 400, 5, policy)
        gone = rng.choice(400, 10, replace=False).astype(np.uint32)
        assert ours.evict(gone, 400, 5) == oracle.evict(gone, 400, 5)
    entries = np.zeros(8 * ways, dtype=ENTRY)
    done, expected = oracle.dump(5)
    assert ours.dump(entries, 5) == done
    np.testing.assert_array_equal(entries[: done.lookups], expected)


def _outputs(lookups: int, samples: int) -> dict[str, np.ndarray]:
    sizes = (lookups, samples, samples, samples // 32 + 1, lookups)
    names = ("indices", "popular", "nonpopular", "bitmap", "cold_rows")
    return {name: np.zeros(n, np.uint32) for name, n in zip(names, sizes, strict=True)}


def _same_outputs(done: Completion, one: dict[str, Any], other: dict[str, Any]) -> None:
    counts = {
        "indices": done.lookups,
        "popular": done.popular,
        "nonpopular": done.samples - done.popular,
        "bitmap": done.samples // 32,
        "cold_rows": done.cold_rows,
    }
    for name, count in counts.items():
        np.testing.assert_array_equal(one[name][:count], other[name][:count])


def _feature_ids(kind: str, features: Any, rows: dict[str, int], samples: int, rng: Any) -> Any:
    """Input of a mini-batch: a matrix, arrays of any integer type and stride, or jagged."""
    if kind == "matrix":
        columns = [rng.integers(rows[f.table], size=samples) for f in features]
        dtype = [np.int32, np.int64, np.uint32][samples % 3]
        return np.stack(columns, axis=1).astype(dtype)
    given: dict[str, Any] = {}
    for number, feature in enumerate(features):
        dtype = [np.int32, np.int64, np.uint32, np.uint64][number % 4]
        if kind == "jagged":
            lengths = rng.integers(4, size=samples)
            ids = rng.integers(rows[feature.table], size=lengths.sum()).astype(dtype)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            given[feature.name] = (ids, lengths if number % 2 else offsets)
        else:
            ids = rng.integers(rows[feature.table], size=(samples, feature.lookups)).astype(dtype)
            given[feature.name] = np.repeat(ids, 2, axis=1)[:, ::2] if number % 3 else ids
    return given


@pytest.mark.parametrize("kind", ["matrix", "arrays", "wide", "jagged"])
@pytest.mark.parametrize("ways", [4, 16])
@pytest.mark.parametrize(
    ("seed", "samples", "threads"),
    [(0, 1, 1), (1, 63, 2), (2, 64, 1), (3, 65, 3), (4, 200, 1), (5, 9001, 3), (6, 0, 2)],
)
def test_fragment_of_features_equals_ingest_and_fragment(
    kind: str, ways: int, seed: int, samples: int, threads: int
) -> None:
    """Pinned and other tables, overflow, ids out of their tables; ``wide``: too many columns."""
    rng = np.random.default_rng(seed)
    tables = tuple(TableConfig(f"t{n}", int(rng.integers(3, 400)), 4) for n in range(9))
    lookups = {"matrix": (1, 2), "arrays": (1, 4), "wide": (9, 12), "jagged": (1, 2)}[kind]
    features = tuple(
        FeatureConfig(
            f"f{n}",
            f"t{rng.integers(9)}",
            None if kind == "jagged" else int(rng.integers(*lookups)),
        )
        for n in range(12)
    )
    group = Group(tables, features, pin_bytes=1000)
    rows = {table.name: table.rows for table in tables}
    given = _feature_ids(kind, features, rows, samples, rng)
    fragmenter = NativeFragmenter(8, ways, 2048, threads)
    learnt = rng.integers(group.total_rows, size=300).astype(np.uint32)
    fragmenter.learn(learnt, group.total_rows, group.pinned_rows)
    batch = ingest(group, given, samples=samples)
    described = describe(group, given, samples)
    size = {"lookups": described.lookups, "samples": samples}
    sample = {"lookups_per_sample": batch.lookups_per_sample or 0, "offsets": batch.offsets}
    sample["bags"] = 0 if batch.offsets is None else len(features)
    offsets = None if batch.offsets is None else np.zeros_like(batch.offsets)
    for limit in (2048, 40):
        shape = {
            "total_rows": group.total_rows,
            "pinned_rows": group.pinned_rows,
            "cold_base": 10_000,
            "cold_rows_max": limit,
            "lookups_max": 1000,
        }
        expected, found = (_outputs(batch.ids.size, samples) for _ in range(2))
        done = fragmenter.fragment(batch.ids, samples=samples, **shape, **expected, **sample)
        for ids in (np.zeros_like(batch.ids), None):
            again = fragmenter.fragment_features(
                described.table, ids=ids, offsets=offsets, **size, **shape, **found
            )
            assert again == done
            _same_outputs(done, found, expected)
            if ids is not None:
                np.testing.assert_array_equal(ids, batch.ids)
            if offsets is not None:
                np.testing.assert_array_equal(offsets, batch.offsets)
        assert limit == 2048 or samples < 63 or done.status is Status.COLD_OVERFLOW
    for wrong in (rows[features[7].table], -1, -(1 << 63)) if samples else ():
        if kind == "matrix":
            spoilt = given.astype(np.int64)
            spoilt[samples // 2, 7] = wrong
        else:
            spoilt = dict(given)
            ids = np.array(given["f7"][0] if kind == "jagged" else given["f7"], dtype=np.int64)
            if not ids.size:
                continue
            ids.reshape(-1)[ids.size // 2] = wrong
            spoilt["f7"] = (ids, given["f7"][1]) if kind == "jagged" else ids
        described = describe(group, spoilt, samples)
        refused = fragmenter.fragment_features(
            described.table, offsets=offsets, **size, **shape, **found
        )
        assert refused is None
        with pytest.raises(IngestError, match="f7"):
            ingest(group, spoilt, samples=samples)


def test_threads_change_no_bit() -> None:
    """Large jobs that several threads share; a job that ends early among them; then a child."""
    rng = np.random.default_rng(3)
    samples, width, total = 5000, 26, 300_000
    ids = (rng.zipf(1.1, samples * width).astype(np.uint64) % total).astype(np.uint32)
    results = []
    store = rng.integers(256, size=(total, 128)).astype(np.uint8)
    for threads in (1, 2, 5):
        fragmenter = NativeFragmenter(256, 16, 40_000, threads)
        fragmenter.learn(ids[: ids.size // 2], total, 100)
        for limit, spoilt in ((40_000, None), (3_000, None), (40_000, 99_000), (40_000, 17)):
            lookups = ids.copy()
            if spoilt is not None:
                lookups[spoilt] = total
            out = _outputs(ids.size, samples)
            done = fragmenter.fragment(
                lookups,
                samples=samples,
                total_rows=total,
                pinned_rows=100,
                cold_base=5000,
                cold_rows_max=limit,
                lookups_max=width,
                lookups_per_sample=width,
                **out,
            )
            results.append((threads, done, out))
        rows = out["cold_rows"]
        records = np.zeros((rows.size, 128), np.uint8)
        done = move(Operation.GATHER, rows, records, store, total, workers=Workers(threads))
        assert done.lookups == rows.size
        np.testing.assert_array_equal(records, store[rows])
    for number, (_, done, out) in enumerate(results):
        _, expected, first = results[number % 4]
        assert done == expected
        _same_outputs(done, out, first)
    with pytest.raises(ConfigError, match="threads=0"):
        NativeFragmenter(8, 16, 16, 0)


def test_portable_code_equals_vector_code() -> None:
    """The whole comparison of this file again where AVX2 is switched off."""
    if platform.machine() != "x86_64" or os.environ.get("HOTLINE_PORTABLE"):
        pytest.skip("this is the portable code")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    chosen = "ways_of or (features and 16)"
    done = subprocess.run(
        [*command, "-k", chosen],
        env={**os.environ, "HOTLINE_PORTABLE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:]
