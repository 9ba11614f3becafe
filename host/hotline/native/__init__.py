# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Native kernels of the host (C++17, one shared library ``hotline/_native*.so``), by ctypes.

``pip install`` builds the library; nothing is loaded before its first use. The wrappers check
dtypes and sizes; arrays are passed without a copy and the interpreter's lock is released meanwhile.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hotline.errors import ConfigError, HotlineError

Floats = TypeVar("Floats", npt.NDArray[np.float32], npt.NDArray[np.float64])
Array = npt.NDArray[Any]

KINDS = {
    np.dtype(np.int32): 0,
    np.dtype(np.int64): 1,
    np.dtype(np.uint32): 2,
    np.dtype(np.uint64): 3,
}
"""Element types of ids, lengths and offsets that the ingest kernel reads as they are."""


def library_path() -> Path:
    """Where the library is, or, if it was not built, where it would be."""
    package = Path(__file__).resolve().parents[1]
    paths = [package / f"_native{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    return next((path for path in paths if path.exists()), paths[0])


@functools.cache
def library() -> ctypes.CDLL:
    """Loads the library.

    Raises:
        HotlineError: it was not built, or this machine cannot load it; the message says what to do.
    """
    path = library_path()
    if not path.exists():
        raise HotlineError(
            f"the native library {path.name} is missing from {path.parent}; build it with "
            "`pip install -e .` in the project's root (needs a C++17 compiler)"
        )
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise HotlineError(
            f"cannot load {path}: {error}; build it again with `pip install -e .`"
        ) from error
    pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    u32 = ctypes.c_uint32
    for name, result, arguments in (
        ("hotline_ingest", i64, [pointer, i32, i64, pointer, pointer, pointer, pointer]),
        ("hotline_coalesce_plan", i64, [pointer, i32, i64, pointer, pointer, pointer, pointer]),
        ("hotline_coalesce_sum_f32", None, [pointer, i64, i64, pointer, pointer, pointer]),
        ("hotline_coalesce_sum_f64", None, [pointer, i64, i64, pointer, pointer, pointer]),
        ("hotline_sgd_f32", i64, [pointer, i64, i64, pointer, pointer, i64, ctypes.c_float]),
        ("hotline_sgd_f64", i64, [pointer, i64, i64, pointer, pointer, i64, ctypes.c_double]),
        ("hotline_counter_new", pointer, [u32, u32]),
        ("hotline_counter_free", None, [pointer]),
        ("hotline_counter_add", i32, [pointer, pointer, i64]),
        ("hotline_counter_counts", None, [pointer, pointer, i64, pointer]),
        ("hotline_counter_top", i64, [pointer, i64, pointer, pointer]),
        ("hotline_workers_new", pointer, [i32]),
        ("hotline_workers_free", None, [pointer]),
        ("hotline_fragmenter_new", pointer, [i64, i32, i64]),
        ("hotline_fragmenter_free", None, [pointer]),
        ("hotline_fragmenter_clear", None, [pointer]),
        ("hotline_fragmenter_learn", None, [pointer, pointer, i64, u32, u32, i32, pointer]),
        (
            "hotline_fragmenter_load",
            None,
            [pointer, pointer, i64, u32, u32, i32, pointer, pointer],
        ),
        ("hotline_fragmenter_evict", None, [pointer, pointer, i64, u32, u32, pointer]),
        ("hotline_fragmenter_dump", i64, [pointer, u32, pointer]),
        ("hotline_fragmenter_fragment", None, [pointer, pointer, pointer]),
        (
            "hotline_fragmenter_fragment_features",
            i32,
            [pointer, pointer, i32, pointer, pointer],
        ),
        (
            "hotline_move",
            None,
            [pointer, i64, u32, pointer, i32, i64, pointer, i32, pointer, pointer],
        ),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def pointer(array: Array) -> int:
    """Address of an array's first element."""
    return array.ctypes.data


# ----------------------------------------------------------------------------------------- ingest

FEATURE = np.dtype(
    [
        ("values", np.uint64),
        ("sample_stride", np.int64),
        ("lookup_stride", np.int64),
        ("lookups", np.int64),
        ("count", np.int64),
        ("edges", np.uint64),
        ("edge_stride", np.int64),
        ("required", np.int64),
        ("rows", np.uint64),
        ("base", np.uint32),
        ("kind", np.int32),
        ("edge_kind", np.int32),
        ("edges_are_offsets", np.int32),
    ]
)
"""``HotlineFeature`` of ingest.cpp."""

INGEST_ERROR = np.dtype(
    [("code", np.int32), ("feature", np.int32), ("sample", np.int64), ("value", np.int64)]
)
"""``HotlineIngestError`` of ingest.cpp."""


def ingest(
    features: Array,
    samples: int,
    ids: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.uint32] | None,
) -> tuple[int, Any]:
    """Runs the ingest kernel; ``hotline.ingest`` prepares its arguments.

    Args:
        features: [features] of ``FEATURE``; the arrays that it points to are kept by the caller.
        samples: number of samples.
        ids: out, room for all lookups.
        offsets: out, [samples * features + 1], or None.

    Returns:
        The number of lookups written, or -1, and the error, one ``INGEST_ERROR``.
    """
    error = np.zeros(1, dtype=INGEST_ERROR)
    cursors = np.empty(max(len(features), 1), dtype=np.int64)
    written = library().hotline_ingest(
        pointer(features),
        len(features),
        samples,
        pointer(ids),
        None if offsets is None else pointer(offsets),
        pointer(cursors),
        pointer(error),
    )
    return int(written), error[0]


# --------------------------------------------------------------------------------------- coalesce

_RECORD = np.dtype(
    [
        ("indices", np.uint64),
        ("bags", np.uint64),
        ("gradient", np.uint64),
        ("weights", np.uint64),
        ("lookups", np.int64),
        ("bag_count", np.int64),
        ("row_stride", np.int64),
        ("wide", np.int32),
        ("reserved", np.int32),
    ]
)


@dataclass(frozen=True)
class Record:
    """Gradients of the lookups of one backward pass.

    Attributes:
        indices: [lookups] int64 or int32, where each lookup read; contiguous.
        gradient: [bags, dim] float32 or float64, gradient of each bag's sum; rows contiguous.
        bags: [lookups] int64, bag of each lookup; None: lookup n is bag n.
        weights: [lookups], factor of each lookup, in the gradient's dtype (for mean pooling
            1 / lookups of the bag); None: 1.
    """

    indices: Array
    gradient: Array
    bags: npt.NDArray[np.int64] | None = None
    weights: Array | None = None


def _vector(name: str, array: Array, dtypes: tuple[Any, ...], size: int | None = None) -> None:
    if array.ndim != 1 or array.dtype not in dtypes or not array.flags.c_contiguous:
        names = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise ConfigError(f"{name}: must be a contiguous vector of {names}, not {array.dtype}")
    if size is not None and array.size != size:
        raise ConfigError(f"{name}: has {array.size} elements, must have {size}")


def coalesce(records: Sequence[Record], limit: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Sums gradients by index, each sum in the order of the lookups (records, then lookups).

    Args:
        records: at least one; all with the same dim and dtype.
        limit: indices are below this, at most 2**32.

    Returns:
        Distinct indices [n] int64, ascending, and their summed gradients [n, dim] in the dtype of
        the gradients.

    Raises:
        ConfigError: wrong dtypes or shapes, or an index or a bag out of range.
    """
    if not records or not 0 <= limit <= 1 << 32:
        raise ConfigError(f"coalesce: {len(records)} records, limit={limit} out of range")
    dtype, dim = records[0].gradient.dtype, records[0].gradient.shape[-1]
    if dtype not in (np.float32, np.float64):
        raise ConfigError(f"coalesce: gradients are float32 or float64, not {dtype}")
    table = np.zeros(len(records), dtype=_RECORD)
    for number, record in enumerate(records):
        gradient = record.gradient
        if gradient.ndim != 2 or gradient.dtype != dtype or gradient.shape[1] != dim:
            raise ConfigError(
                f"coalesce: gradient {number} is {gradient.dtype} {gradient.shape}, the first is "
                f"{dtype} [bags, {dim}]"
            )
        row_stride, rest = divmod(gradient.strides[0], dtype.itemsize)
        apart = rest or (dim > 1 and gradient.strides[1] != dtype.itemsize)
        if gradient.size and apart:
            raise ConfigError(f"coalesce: the rows of gradient {number} must be contiguous")
        lookups = record.indices.size
        _vector(f"coalesce: indices {number}", record.indices, (np.int64, np.int32))
        entry = table[number]
        if record.bags is not None:
            _vector(f"coalesce: bags {number}", record.bags, (np.int64,), lookups)
            entry["bags"] = pointer(record.bags)
        if record.weights is not None:
            _vector(f"coalesce: weights {number}", record.weights, (dtype,), lookups)
            entry["weights"] = pointer(record.weights)
        entry["indices"], entry["gradient"] = pointer(record.indices), pointer(gradient)
        entry["lookups"], entry["bag_count"] = lookups, gradient.shape[0]
        entry["row_stride"], entry["wide"] = row_stride, record.indices.dtype == np.int64
    count = int(table["lookups"].sum())
    if count >= 1 << 32:
        raise ConfigError(f"coalesce: {count} lookups; at most 2**32 - 1 at a time")
    lib = library()
    work = np.empty(2 * count, dtype=np.uint64)
    order = np.empty(count, dtype=np.uint32)
    unique = np.empty(count, dtype=np.int64)
    starts = np.empty(count + 1, dtype=np.int64)
    distinct = lib.hotline_coalesce_plan(
        pointer(table),
        len(table),
        limit,
        pointer(work),
        pointer(order),
        pointer(unique),
        pointer(starts),
    )
    if distinct < 0:
        what = "bag" if -1 - distinct >= 1 << 40 else "index"
        lookup = (-1 - distinct) % (1 << 40)
        raise ConfigError(
            f"coalesce: the {what} of lookup {lookup} is out of range (limit={limit})"
        )
    sums = np.empty((distinct, dim), dtype=dtype)
    function = lib.hotline_coalesce_sum_f32 if dtype == np.float32 else lib.hotline_coalesce_sum_f64
    function(pointer(table), distinct, dim, pointer(order), pointer(starts), pointer(sums))
    return unique[:distinct].copy(), sums


def sgd_update(
    weights: Floats, indices: npt.NDArray[np.int64], gradients: Floats, lr: float
) -> None:
    """``weights[indices] -= lr * gradients`` in place, rounded once (a fused multiply-add).

    Args:
        weights: [rows, dim] float32 or float64, contiguous.
        indices: [n] int64, distinct.
        gradients: [n, dim] in the dtype of the weights, contiguous.
        lr: learning rate.

    Raises:
        ConfigError: wrong dtypes or shapes, or an index out of range; then nothing is changed.
    """
    if weights.dtype not in (np.float32, np.float64) or gradients.dtype != weights.dtype:
        raise ConfigError(f"sgd_update: {weights.dtype} weights, {gradients.dtype} gradients")
    _vector("sgd_update: indices", indices, (np.int64,))
    if weights.ndim != 2 or gradients.shape != (indices.size, weights.shape[1]):
        raise ConfigError(f"sgd_update: shapes {weights.shape}, {gradients.shape} do not fit")
    if not weights.flags.c_contiguous or not gradients.flags.c_contiguous:
        raise ConfigError("sgd_update: weights and gradients must be contiguous")
    if not weights.flags.writeable:
        raise ConfigError("sgd_update: weights are read-only")
    lib = library()
    function = lib.hotline_sgd_f32 if weights.dtype == np.float32 else lib.hotline_sgd_f64
    bad = function(
        pointer(weights), *weights.shape, pointer(indices), pointer(gradients), indices.size, lr
    )
    if bad >= 0:
        raise ConfigError(f"sgd_update: index {indices[bad]} at {bad} is not below {len(weights)}")
