# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Ingest against a plain loop, and every fault of ids, lengths and offsets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hotline.errors import DataError, DeviceBufferError, IngestError
from hotline.ingest import Jagged, ingest
from hotline.tables import FeatureConfig, Group, TableConfig

TABLES = (
    TableConfig("large", 1_000_000, 4),
    TableConfig("small", 10, 4),
    TableConfig("middle", 500, 4),
)
BASES = {"small": 0, "middle": 10, "large": 510}  # small ones first
ROWS = {table.name: table.rows for table in TABLES}


def group(*features: tuple[str, int | None], pin_bytes: int = 160) -> Group:
    """Features 0, 1, ... on (table, lookups)."""
    return Group(
        TABLES,
        tuple(
            FeatureConfig(f"f{i}", table, lookups) for i, (table, lookups) in enumerate(features)
        ),
        pin_bytes,
    )


def expected(samples: list[list[tuple[str, list[int]]]]) -> tuple[list[int], list[int]]:
    """Row ids and offsets of samples given as lists of (table, ids) in order of the features."""
    ids, offsets = [], [0]
    for sample in samples:
        for table, values in sample:
            ids += [BASES[table] + value for value in values]
            offsets.append(len(ids))
    return ids, offsets


class Keyed:
    """What ingest uses of torchrec's KeyedJaggedTensor."""

    def __init__(self, names: list[str], values: Any, lengths: Any) -> None:
        self._names, self._values, self._lengths = names, values, lengths

    def keys(self) -> list[str]:
        return self._names

    def values(self) -> Any:
        return self._values

    def lengths(self) -> Any:
        return self._lengths


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_equals_a_plain_loop(data: st.DataObject) -> None:
    """Fixed, jagged and mixed groups, all input forms and dtypes, any stride."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    layout = data.draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(ROWS)), st.sampled_from([None, 0, 1, 2, 5])),
            min_size=1,
            max_size=5,
        )
    )
    samples = data.draw(st.sampled_from([0, 1, 2, 63, 64, 65, 200]))
    features: dict[str, Any] = {}
    lists = []
    keyed_values, keyed_lengths = [], []
    for i, (table, lookups) in enumerate(layout):
        dtype = data.draw(
            st.sampled_from([np.int32, np.int64, np.uint32, np.uint64, np.int16, ">i4", np.uint8])
        )
        top = min(ROWS[table], 2 ** (8 * np.dtype(dtype).itemsize - 1))
        lengths = rng.integers(0, 4, samples) if lookups is None else np.full(samples, lookups)
        values = rng.integers(0, top, int(lengths.sum())).astype(dtype)
        cuts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        lists.append([(table, values[a:b].tolist()) for a, b in pairwise(cuts)])
        keyed_values.append(values.astype(np.int64))
        keyed_lengths.append(lengths)
        if lookups is not None and data.draw(st.booleans()):
            array = values.reshape(samples, lookups)
            match data.draw(st.sampled_from(["plain", "fortran", "step", "reversed", "vector"])):
                case "fortran":
                    array = np.asfortranarray(array)
                case "step":
                    array = np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::2, ::3]
                case "reversed":
                    array = array[::-1, ::-1].copy()[::-1, ::-1]
                case "vector" if lookups == 1:
                    array = array[:, 0]
            features[f"f{i}"] = array
        else:
            spread = np.repeat(values, 2)[::2]
            edge_dtype = data.draw(st.sampled_from([np.int32, np.int64, np.uint32]))
            edges = data.draw(st.sampled_from(["lengths", "offsets", "tuple"]))
            if edges == "tuple":
                second = data.draw(st.sampled_from([lengths, cuts]))
                features[f"f{i}"] = (spread, second.astype(edge_dtype))
            else:
                source = lengths if edges == "lengths" else cuts
                features[f"f{i}"] = Jagged(spread, **{edges: source.astype(edge_dtype)})
    ids, offsets = expected([list(sample) for sample in zip(*lists, strict=True)])
    small = sum(len(v) for feature in lists for table, v in feature if table == "small")

    made = group(*layout)
    order = rng.permutation(len(layout))
    keyed = Keyed(
        [f"f{i}" for i in order],
        torch.from_numpy(np.concatenate([keyed_values[i] for i in order])),
        torch.from_numpy(np.concatenate([keyed_lengths[i] for i in order])),
    )
    for given_features in (features, keyed):
        batch = ingest(made, given_features, samples=samples)
        assert batch.ids.dtype == np.uint32
        assert batch.ids.tolist() == ids
        assert (batch.samples, batch.bags) == (samples, len(layout))
        assert batch.pinned_lookups == small == int((batch.ids < made.pinned_rows).sum())
        if made.lookups_per_sample is None:
            assert batch.lookups_per_sample is None
            assert batch.offsets is not None
            assert batch.offsets.dtype == np.uint32
            assert batch.offsets.tolist() == offsets
        else:
            assert batch.offsets is None
            assert batch.lookups_per_sample == made.lookups_per_sample


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("sample", [0, 63, 64, 199])
@pytest.mark.parametrize("jagged", [False, True])
def test_ids_are_checked_against_their_own_table(dtype: Any, sample: int, jagged: bool) -> None:
    """500 of table `middle` would be a right row id of the group, but of the next table."""
    lookups = None if jagged else 2
    made = group(("large", 1), ("middle", lookups), ("small", 1))
    values = np.full((200, 2), 499, dtype=dtype)
    good = {"f0": np.arange(200), "f2": np.full(200, 9)}
    lengths = np.full(200, 2)

    def run(array: np.ndarray) -> Any:
        value = Jagged(array.reshape(-1), lengths=lengths) if jagged else array
        return ingest(made, {**good, "f1": value})

    assert run(values).ids.reshape(200, 4)[:, 1:].tolist() == [[509, 509, 9]] * 200
    info = np.iinfo(dtype)
    for bad in {500, 501, 2**31 - 1, int(info.max), int(info.min)} - {0}:
        values[sample, 1] = bad
        values[199] = bad  # the first one is reported
        with pytest.raises(IngestError, match=r"feature 'f1'.*'middle' of 500 rows") as caught:
            run(values)
        assert (caught.value.feature, caught.value.value) == ("f1", bad)
        assert caught.value.sample == sample
        assert str(bad) in str(caught.value)


def test_the_first_error_in_sample_order_is_reported() -> None:
    made = group(("small", 1), ("small", 1))
    first, second = np.zeros(300, np.int64), np.zeros(300, np.int64)
    first[131], second[130] = 10, -1
    with pytest.raises(IngestError) as caught:
        ingest(made, {"f0": first, "f1": second})
    place = (caught.value.feature, caught.value.sample, caught.value.value)
    assert place == ("f1", 130, -1)


@pytest.mark.parametrize(
    ("values", "edges", "sample", "value", "words"),
    [
        (3, {"offsets": [0, 1, 2]}, 1, 2, "not all 3 values"),
        (3, {"offsets": [0, 1, 4]}, 1, 4, "beyond the 3 values"),
        (3, {"offsets": [0, 4, 3]}, 0, 4, "beyond the 3 values"),
        (3, {"offsets": [1, 2, 3]}, 0, 1, "first offset"),
        (3, {"offsets": [-1, 2, 3]}, 0, -1, "first offset"),
        (3, {"offsets": [0, 2, 1]}, 1, 1, "below the offset before"),
        (3, {"offsets": [0, -2, 3]}, 0, -2, "negative"),
        (3, {"offsets": [0, -(2**63), 3]}, 0, -(2**63), "negative"),
        (3, {"offsets": [0, 2**63 - 1, 3]}, 0, 2**63 - 1, "beyond"),
        (3, {"lengths": [1, 1]}, 1, 1, "not all 3 values"),
        (3, {"lengths": [1, 3]}, 1, 3, "beyond the 3 values"),
        (3, {"lengths": [4, -1]}, 0, 4, "beyond the 3 values"),
        (3, {"lengths": [-1, 4]}, 0, -1, "negative"),
        (3, {"lengths": [1, 2**63 - 1]}, 1, 2**63 - 1, "beyond"),
        (0, {"lengths": [0, 1]}, 1, 1, "beyond the 0 values"),
    ],
)
def test_lengths_and_offsets_out_of_contract(
    values: int, edges: dict[str, list[int]], sample: int, value: int, words: str
) -> None:
    made = group(("middle", 1), ("middle", None))
    jagged = Jagged(
        np.arange(values), **{name: np.array(edge, np.int64) for name, edge in edges.items()}
    )
    with pytest.raises(IngestError, match=words) as caught:
        ingest(made, {"f0": [1, 2], "f1": jagged})
    place = (caught.value.feature, caught.value.sample, caught.value.value)
    assert place == ("f1", sample, value)


def test_values_without_samples_are_refused() -> None:
    made = group(("middle", None))
    assert ingest(made, {"f0": Jagged([], offsets=[0])}).offsets.tolist() == [0]  # type: ignore[union-attr]
    with pytest.raises(IngestError, match="not all 2 values"):
        ingest(made, {"f0": Jagged([1, 2], offsets=[0])})
    with pytest.raises(IngestError, match="not all 2 values"):
        ingest(made, {"f0": Jagged([1, 2], lengths=[])})


def test_a_fixed_feature_given_as_jagged_keeps_its_number_of_lookups() -> None:
    made = group(("middle", 2))
    assert ingest(made, {"f0": Jagged([1, 2, 3, 4], lengths=[2, 2])}).ids.tolist() == [
        11,
        12,
        13,
        14,
    ]
    with pytest.raises(IngestError, match="has 1 lookups") as caught:
        ingest(made, {"f0": Jagged([1, 2, 3], lengths=[2, 1])})
    assert (caught.value.sample, caught.value.value) == (1, 1)


@pytest.mark.parametrize(
    ("lengths", "values", "feature", "sample"),
    [
        ([1, 1, 1, -1], 2, "f1", 1),
        ([1, 1, 1, 1], 3, "f1", 1),
        ([1, 1, 1, 1], 5, "f1", 1),
        ([9, 1, 1, 1], 4, "f0", 0),
    ],
)
def test_faults_of_keyed_jagged_tensors(
    lengths: list[int], values: int, feature: str, sample: int
) -> None:
    made = group(("middle", None), ("middle", None))
    keyed = Keyed(["f0", "f1"], torch.arange(values), torch.tensor(lengths))
    with pytest.raises(IngestError) as caught:
        ingest(made, keyed)
    assert (caught.value.feature, caught.value.sample) == (feature, sample)
    with pytest.raises(DataError, match="cannot be split"):
        ingest(made, Keyed(["f0", "f1"], torch.arange(3), torch.tensor([1, 1, 1])))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"f0": [1, 2]}, "'f1' is missing"),
        ({"f0": [1, 2], "f1": [1, 2, 3]}, "'f1'.*3 samples.*'f0'.*2"),
        ({"f0": [1, 2], "f1": [[1, 2], [3, 4]]}, "2 lookups.*says 1"),
        ({"f0": [1, 2], "f1": [1.0, 2.0]}, "'f1'.*float64"),
        ({"f0": [1, 2], "f1": np.array([True, False])}, "'f1'.*bool"),
        ({"f0": [1, 2], "f1": ["a", "b"]}, "'f1'.*<U1"),
        ({"f0": [1, 2], "f1": 3}, "scalar"),
        ({"f0": [1, 2], "f1": np.zeros((2, 1, 1), int)}, "'f1'"),
        ({"f0": [1, 2], "f1": ([1, 2], [1])}, "1 lengths or offsets"),
        ({"f0": [1, 2], "f1": ([1, 2], [1, 1], [0])}, "tuple"),
        ({"f0": [1, 2], "f1": Jagged([1, 2])}, "either lengths or offsets"),
        ({"f0": [1, 2], "f1": Jagged([1, 2], [1, 1], [0, 1, 2])}, "either lengths or offsets"),
        ({"f0": [1, 2], "f1": Jagged([1, 2], offsets=[])}, "at least one entry"),
        ({"f0": ([1], [1]), "f1": ([1], [1])}, "give `samples`"),
        (7, "int: give a mapping"),
    ],
)
def test_malformed_inputs(features: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        ingest(group(("middle", 1), ("large", 1)), features)


def test_output_arrays() -> None:
    made = group(("middle", None), ("small", 1))
    features = {"f0": Jagged([5, 6, 7], lengths=[1, 2]), "f1": np.array([8, 9], np.int32)}
    ids, offsets = np.full(8, 77, np.uint32), np.full(6, 77, np.uint32)
    batch = ingest(made, features, out_ids=ids, out_offsets=offsets)
    assert np.shares_memory(batch.ids, ids)
    assert ids.tolist() == [15, 8, 16, 17, 9, 77, 77, 77]
    assert offsets.tolist() == [0, 1, 2, 4, 5, 77]
    read_only = np.zeros(8, np.uint32)
    read_only.flags.writeable = False
    for bad in (ids[:4], ids.astype(np.int32), np.zeros(16, np.uint32)[::2], read_only):
        with pytest.raises(DeviceBufferError, match="out_ids"):
            ingest(made, features, out_ids=bad)
    with pytest.raises(DeviceBufferError, match="out_offsets"):
        ingest(made, features, out_offsets=offsets[:4])


def test_jagged_lookups_of_data_sets_and_jagged_tensors_are_taken() -> None:
    class JaggedTensor:  # what ingest uses of torchrec's
        def values(self) -> torch.Tensor:
            return torch.tensor([4, 5, 6])

        def lengths(self) -> torch.Tensor:
            return torch.tensor([2, 0, 1])

    made = group(("middle", None), ("small", None))
    lookups = Jagged(np.array([1, 2]), np.array([0, 1, 1]))
    batch = ingest(made, {"f0": JaggedTensor(), "f1": lookups})
    assert batch.samples == 3
    assert batch.ids.tolist() == [14, 15, 1, 16, 2]
    assert batch.offsets is not None
    assert batch.offsets.tolist() == [0, 2, 2, 2, 3, 4, 5]


def test_torch_tensors_are_read_in_place_and_scalars_are_taken() -> None:
    made = group(("middle", 1), ("large", 2))
    wide = torch.arange(12).reshape(3, 4)
    batch = ingest(
        made, {"f0": wide[:, 0].to(torch.int32), "f1": wide[:, 1:3]}, samples=np.int64(3)
    )
    assert batch.ids.reshape(3, 3).tolist() == [[10, 511, 512], [14, 515, 516], [18, 519, 520]]
    scalars = [np.int64(1), np.int32(2), 3]
    assert ingest(group(("middle", 1)), {"f0": scalars}).ids.tolist() == [11, 12, 13]
    unaligned = np.frombuffer(b"\x00" + np.array([1, 2], np.int64).tobytes(), np.uint8)[1:].view(
        "<i8"
    )
    assert not unaligned.flags.aligned
    assert ingest(group(("middle", 1)), {"f0": unaligned}).ids.tolist() == [11, 12]


def test_features_of_one_table_share_its_rows_and_row_ids_reach_the_top() -> None:
    tables = (TableConfig("a", 2**31, 1), TableConfig("b", 2**31 - 2, 1))
    made = Group(
        tables, (FeatureConfig("x", "a"), FeatureConfig("y", "b"), FeatureConfig("z", "a"))
    )
    batch = ingest(made, {"x": [2**31 - 1], "y": [2**31 - 3], "z": [0]})
    assert batch.ids.tolist() == [2**32 - 3, 2**31 - 3, 2**31 - 2]
    with pytest.raises(IngestError):
        ingest(made, {"x": [2**31], "y": [0], "z": [0]})
    whole = Group((TableConfig("a", 2**32 - 2, 1),), (FeatureConfig("x", "a"),))
    for dtype in (np.uint32, np.int64, np.uint64):
        top = np.array([2**31, 2**32 - 3], dtype=dtype)
        assert ingest(whole, {"x": top}).ids.tolist() == top.tolist()
        jagged = Jagged(top, lengths=[1, 1])
        assert ingest(whole, {"x": jagged}).ids.tolist() == top.tolist()
        with pytest.raises(IngestError) as caught:
            ingest(whole, {"x": top + dtype(1)})
        assert (caught.value.sample, caught.value.value) == (1, 2**32 - 2)


def test_one_array_for_all_features() -> None:
    made = group(("middle", 1), ("small", 1), ("large", 1))
    ids = np.array([[5, 1, 7], [499, 9, 999_999]])
    expected = ingest(made, {f"f{n}": ids[:, n] for n in range(3)})
    for array in (ids, ids.astype(np.int32), np.asfortranarray(ids), torch.from_numpy(ids)):
        batch = ingest(made, array)
        np.testing.assert_array_equal(batch.ids, expected.ids)
        assert batch.samples == 2 and batch.pinned_lookups == expected.pinned_lookups
    with pytest.raises(IngestError) as caught:
        ingest(made, ids + np.array([[0, 0, 0], [0, 1, 0]]))
    assert (caught.value.feature, caught.value.sample, caught.value.value) == ("f1", 1, 10)
    with pytest.raises(DataError, match=r"\[samples, 3\]"):
        ingest(made, ids[:, :2])
    with pytest.raises(DataError, match="samples"):
        ingest(made, ids, samples=3)
    with pytest.raises(DataError, match="mapping"):
        ingest(group(("middle", 2), ("small", 1)), ids)
