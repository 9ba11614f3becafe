# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Ingest: categorical ids, feature by feature, become the row ids that the kernels read.

One native pass over the mini-batch checks each id against its own table, adds the table's base and
writes it sample-major. NumPy arrays, torch CPU tensors and KeyedJaggedTensors of int32 or int64 are
read where they are; torch itself is never imported here.

    batch = ingest(group, {"user": ids, "history": Jagged(values, lengths=lengths)})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline import native
from hotline.errors import DataError, DeviceBufferError, IngestError
from hotline.tables import FeatureConfig, Group, RowBatch

U32 = npt.NDArray[np.uint32]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Jagged:
    """Ids of a feature whose samples have different numbers of lookups.

    Exactly one of ``lengths`` and ``offsets`` is given.

    Attributes:
        values: [lookups] integer ids, sample after sample.
        lengths: [samples] number of lookups of each sample.
        offsets: [samples + 1] first 0, last ``lookups``, never decreasing.
    """

    values: Any
    lengths: Any = None
    offsets: Any = None


def ingest(
    group: Group,
    features: Any,
    *,
    samples: int | None = None,
    out_ids: U32 | None = None,
    out_offsets: U32 | None = None,
) -> RowBatch:
    """Converts a mini-batch.

    Args:
        group: tables and features.
        features: a mapping from feature name to ids, or an object like torchrec's
            KeyedJaggedTensor (``keys()``, ``values()``, ``lengths()``), or, if every feature has
            one lookup, an array [samples, features] in the group's order. Ids of a feature are an
            array [samples] or [samples, lookups], a ``Jagged``, or a tuple (values, lengths or
            offsets), which are told apart by ``samples``. Features of other groups may be there
            and are ignored.
        samples: number of samples; needed only if no input tells it.
        out_ids: where the row ids go (a buffer of a device); default: a new array.
        out_offsets: where the offsets go, if the group is jagged.

    Returns:
        The batch: ``offsets`` iff a feature of the group has no fixed number of lookups.

    Raises:
        IngestError: an id is outside its table, or a length or offset is out of contract; names
            feature, sample and value. The output arrays are then undefined.
        DataError: a feature is missing, is not of integers, or has another number of samples.
        DeviceBufferError: an output array is too small or of a wrong dtype.
    """
    described = describe(group, features, samples)
    table, samples = described.table, described.samples
    per_sample, bags = group.lookups_per_sample, len(group.features)
    ids = _output("out_ids", out_ids, described.lookups)
    jagged = per_sample is None
    offsets = _output("out_offsets", out_offsets, samples * bags + 1) if jagged else None
    written, error = native.ingest(table, samples, ids, offsets)
    if written < 0:
        raise _error(group, table, error)
    return RowBatch(
        ids=ids,
        samples=samples,
        bags=bags,
        lookups_per_sample=per_sample,
        offsets=offsets,
        pinned_lookups=described.pinned_lookups,
    )


@dataclass(frozen=True)
class Described:
    """The input of a mini-batch as the native kernels read it.

    Attributes:
        table: [features] of ``native.FEATURE``: addresses and strides.
        samples: number of samples.
        lookups, pinned_lookups: in all, and of pinned tables.
        keep: the arrays that the table points to.
    """

    table: Array
    samples: int
    lookups: int
    pinned_lookups: int
    keep: tuple[Array, ...]


def describe(group: Group, features: Any, samples: int | None = None) -> Described:
    """Checks the shapes of a mini-batch, not its ids; arguments and errors as of ``ingest``."""
    if not group.features:
        raise DataError("the group has no features")
    table = np.zeros(len(group.features), dtype=native.FEATURE)
    rows, bases = {known.name: known.rows for known in group.tables}, group.bases
    table["rows"] = [rows[feature.table] for feature in group.features]
    table["base"] = [bases[feature.table] for feature in group.features]
    keep: list[Array] = []
    if hasattr(features, "ndim"):
        samples = _describe_matrix(table, group, features, samples, keep)
        lookups = np.full(len(table), samples, dtype=np.int64)
    else:
        given = _by_name(group, features)
        samples = _samples(group, given, samples)
        lookups = np.array(
            [
                _describe(entry, feature, given[feature.name], samples, keep)
                for entry, feature in zip(table, group.features, strict=True)
            ],
            dtype=np.int64,
        )
    total = int(lookups.sum())
    if total > np.iinfo(np.uint32).max:
        raise DataError(f"{total} lookups in one mini-batch; make it smaller")
    # A table is pinned as a whole.
    pinned = int(lookups[table["base"] < group.pinned_rows].sum())
    return Described(table, samples, total, pinned, tuple(keep))


def _describe_matrix(
    table: Array, group: Group, features: Any, samples: int | None, keep: list[Array]
) -> int:
    """Fills the descriptions from one array [samples, features]; returns its samples.

    In a tenth of the time of 26 arrays.
    """
    matrix = _array("features", features)
    count = len(table)
    if matrix.ndim != 2 or matrix.shape[1] != count or group.lookups_per_sample != count:
        raise DataError(
            f"features: an array is [samples, {count}], one id for each feature in the group's "
            f"order, not {list(matrix.shape)}; give a mapping where features have other numbers "
            "of lookups"
        )
    if samples not in (None, len(matrix)):
        raise DataError(f"features: has {len(matrix)} samples, `samples` says {samples}")
    step = matrix.strides[1]
    address = native.pointer(matrix) + step * np.arange(count, dtype=np.int64)
    table["values"] = address.astype(np.uint64)
    table["sample_stride"], table["lookup_stride"] = matrix.strides[0], step
    table["lookups"] = table["required"] = 1
    table["kind"] = native.KINDS[matrix.dtype]
    keep.append(matrix)
    return len(matrix)


def _by_name(group: Group, features: Any) -> dict[str, Any]:
    """The input of each feature of the group."""
    if not isinstance(features, Mapping):
        if not all(hasattr(features, name) for name in ("keys", "values", "lengths")):
            raise DataError(
                f"{type(features).__name__}: give a mapping from feature name to ids, or a "
                "KeyedJaggedTensor"
            )
        features = _from_keyed(features)
    for feature in group.features:
        if feature.name not in features:
            raise DataError(
                f"feature {feature.name!r} is missing; there are {', '.join(map(str, features))}"
            )
    return {feature.name: _as_jagged(features[feature.name]) for feature in group.features}


def _as_jagged(value: Any) -> Any:
    """Takes whatever has values and lengths (torchrec's JaggedTensor)."""
    if isinstance(value, Jagged) or not hasattr(value, "values") or hasattr(value, "detach"):
        return value
    for name in ("lengths", "offsets"):
        edges = getattr(value, name, None)
        edges = edges() if callable(edges) else edges
        if edges is not None:
            values = value.values() if callable(value.values) else value.values
            return Jagged(values, **{name: edges})
    return value


def _from_keyed(keyed: Any) -> dict[str, Jagged]:
    """Splits a KeyedJaggedTensor: values and lengths lie feature after feature."""
    names = list(keyed.keys())
    values, lengths = _vector("values", keyed.values()), _vector("lengths", keyed.lengths())
    if not names or lengths.size % len(names):
        raise DataError(f"{lengths.size} lengths cannot be split over the features {names}")
    samples = lengths.size // len(names)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    bad = np.flatnonzero(lengths < 0)
    if not bad.size and ends[-1] != values.size:
        # The first entry that goes beyond the values, or the last one if values are left over.
        bad = np.flatnonzero(ends[1:] > values.size)
        bad = bad if bad.size else np.array([lengths.size - 1])
    if bad.size and samples:
        number, sample = divmod(int(bad[0]), samples)
        raise IngestError(
            f"feature {names[number]!r}, sample {sample}: length {lengths[bad[0]]} does not fit; "
            f"the lengths sum to {ends[-1]}, there are {values.size} values",
            feature=names[number],
            sample=sample,
            value=int(lengths[bad[0]]),
        )
    return {
        name: Jagged(
            values[ends[f * samples] : ends[(f + 1) * samples]],
            lengths=lengths[f * samples : (f + 1) * samples],
        )
        for f, name in enumerate(names)
    }


def _array(name: str, value: Any) -> Array:
    """An integer array, without a copy where the kernel can read it as it is."""
    if hasattr(value, "detach"):  # a torch tensor
        if value.device.type != "cpu":
            raise DataError(f"{name}: is on {value.device}; ingest takes tensors on the CPU")
        value = value.detach().numpy()
    array = np.asarray(value)
    if array.size == 0 and array.dtype == np.float64 and not hasattr(value, "dtype"):
        array = array.astype(np.int64)  # NumPy makes floats of an empty list
    if array.dtype.kind not in "iu":
        raise DataError(f"{name}: ids, lengths and offsets are integers, not {array.dtype}")
    if array.dtype not in native.KINDS:  # 8 and 16 bits, other byte orders
        wide = np.int64 if array.dtype.kind == "i" else np.uint64
        array = array.astype(wide)
    if not array.flags.aligned:
        array = array.copy()
    return array


def _vector(name: str, value: Any) -> Array:
    array = _array(name, value)
    if array.ndim != 1:
        raise DataError(f"{name}: must be a vector, not {array.shape}")
    return array


def _samples(group: Group, given: dict[str, Any], samples: int | None) -> int:
    """The number of samples that all inputs agree on."""
    if samples is not None and samples < 0:
        raise DataError(f"samples={samples} is negative")
    source = "samples"
    for feature in group.features:
        value, name = given[feature.name], f"feature {feature.name!r}"
        if isinstance(value, tuple):
            continue  # told apart by the number of samples, later
        if isinstance(value, Jagged):
            if (value.lengths is None) == (value.offsets is None):
                raise DataError(f"{name}: give either lengths or offsets")
            edges = value.lengths if value.offsets is None else value.offsets
            own = _vector(name, edges).size - (value.offsets is not None)
            if own < 0:
                raise DataError(f"{name}: offsets have at least one entry, 0")
        else:
            own = len(_sized(name, value))
        if samples is None:
            samples, source = own, name
        elif own != samples:
            raise DataError(f"{name}: has {own} samples, {source} has {samples}")
    if samples is None:
        raise DataError(
            "every feature is a tuple; give `samples`, or Jagged(...) instead of tuples"
        )
    return samples


def _sized(name: str, value: Any) -> Any:
    if not hasattr(value, "__len__") or np.ndim(value) == 0:
        raise DataError(f"{name}: ids are an array [samples] or [samples, lookups], not a scalar")
    return value


def _describe(
    entry: Any, feature: FeatureConfig, value: Any, samples: int, keep: list[Array]
) -> int:
    """Fills the kernel's description of one feature; returns its lookups."""
    name = f"feature {feature.name!r}"
    entry["required"] = -1 if feature.lookups is None else feature.lookups
    if isinstance(value, tuple):
        value = _tuple(name, value, samples)
    if isinstance(value, Jagged):
        values = _vector(name, value.values)
        is_offsets = value.offsets is not None
        edges = _vector(name, value.offsets if is_offsets else value.lengths)
        entry["lookups"], entry["count"] = -1, values.size
        entry["lookup_stride"] = values.strides[0]
        entry["edges"], entry["edge_stride"] = native.pointer(edges), edges.strides[0]
        entry["edge_kind"] = native.KINDS[edges.dtype]
        entry["edges_are_offsets"] = is_offsets
        keep.append(edges)
        lookups = values.size
    else:
        values = _array(name, value)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2:
            raise DataError(f"{name}: ids are [samples] or [samples, lookups], not {values.shape}")
        if feature.lookups is not None and values.shape[1] != feature.lookups:
            raise DataError(
                f"{name}: has {values.shape[1]} lookups a sample, its configuration says "
                f"{feature.lookups}"
            )
        entry["lookups"] = values.shape[1]
        entry["sample_stride"], entry["lookup_stride"] = values.strides
        lookups = values.size
    entry["values"], entry["kind"] = native.pointer(values), native.KINDS[values.dtype]
    keep.append(values)
    return int(lookups)


def _tuple(name: str, value: tuple[Any, ...], samples: int) -> Jagged:
    if len(value) != 2:
        raise DataError(f"{name}: a tuple is (values, lengths) or (values, offsets)")
    values, edges = value[0], _vector(name, value[1])
    if edges.size == samples:
        return Jagged(values, lengths=edges)
    if edges.size == samples + 1:
        return Jagged(values, offsets=edges)
    raise DataError(
        f"{name}: {edges.size} lengths or offsets for {samples} samples; there must be {samples} "
        f"lengths or {samples + 1} offsets"
    )


def _output(name: str, array: U32 | None, size: int) -> U32:
    if array is None:
        return np.empty(size, dtype=np.uint32)
    if array.dtype != np.uint32 or array.ndim != 1 or not array.flags.c_contiguous:
        raise DeviceBufferError(f"{name}: must be a contiguous vector of uint32")
    if array.size < size or not array.flags.writeable:
        raise DeviceBufferError(f"{name}: has {array.size} writable elements, needs {size}")
    return array[:size]


def _error(group: Group, table: Array, error: Any) -> IngestError:
    """Puts the kernel's error in words."""
    number, sample, value = int(error["feature"]), int(error["sample"]), int(error["value"])
    feature, entry = group.features[number], table[number]
    code = int(error["code"])
    if value < 0 and entry["kind" if code == 1 else "edge_kind"] == native.KINDS[np.dtype("u8")]:
        value += 1 << 64
    edge = "offset" if entry["edges_are_offsets"] else "length"
    what = {
        1: f"id {value} is outside table {feature.table!r} of {entry['rows']} rows",
        2: f"the first offset is {value}, must be 0",
        3: f"{edge} {value} is negative or below the offset before",
        4: f"{edge} {value} goes beyond the {entry['count']} values",
        5: f"{edge} {value} is the last, but not all {entry['count']} values belong to a sample",
        6: f"has {value} lookups, the feature's configuration says {feature.lookups}",
    }[code]
    return IngestError(
        f"feature {feature.name!r}, sample {sample}: {what}",
        feature=feature.name,
        sample=sample,
        value=value,
    )
