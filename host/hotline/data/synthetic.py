# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""A made-up data set of any size: the shape and the skew of click logs, and a signal to learn.

Every sample is a function of (seed, sample number) alone: nothing is stored, batches of any size
and in any order hold the same samples, and no table as long as the data or the rows is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hotline.data.batch import SPLITS, Batch, Lookups
from hotline.errors import ConfigError
from hotline.ingest import Jagged
from hotline.tables import PIN_THRESHOLD_BYTES, FeatureConfig, Group, TableConfig

# fmt: off
CRITEO_KAGGLE = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)
"""Rows of the 26 tables of the Criteo Kaggle data."""
MLPERF_LOOKUPS = (
    3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1,
)
"""Lookups of the 26 features in MLPerf's multi-hot version of the Criteo data; 214 in all."""
# fmt: on

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = 4
# Streams of random numbers; each (seed, stream, column) has its own.
_IDS, _EMPTY, _DENSE, _LABEL, _PLACE, _LATENT, _WEIGHT, _SHUFFLE = range(8)


def _mix(value: U64) -> U64:
    """A bijection on 64 bits that looks random (the finaliser of SplitMix64); in place."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


def _keys(seed: int, stream: int, columns: int) -> U64:
    """Starting points of the columns of a stream, [columns]."""
    start = _mix(np.array([seed & 0xFFFF_FFFF_FFFF_FFFF], dtype=np.uint64) + _GOLDEN)
    start = _mix(start + np.array([stream + 1], dtype=np.uint64) * _GOLDEN)
    return _mix(start + np.arange(1, columns + 1, dtype=np.uint64) * _GOLDEN)


def _uniform(keys: U64, counters: npt.NDArray[Any]) -> F64:
    """Random numbers in [0, 1) by key and counter, shapes broadcast."""
    bits = _mix((counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN + keys)
    bits >>= np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def zipf_ranks(
    uniform: F64, rows: npt.ArrayLike, exponents: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Bounded Zipf by the inverse distribution function; shapes broadcast.

    Rank k (from 0) of n has the mass of x ** -exponent between k + 1 and k + 2, divided by that
    between 1 and n + 1.
    """
    n, a = np.asarray(rows, dtype=np.float64), np.asarray(exponents, dtype=np.float64)
    # With a = 1 the inverse is an exponential; next to 1 it is the same to 7 digits.
    power = np.where(np.abs(a - 1.0) < 1e-7, 1e-7, 1.0 - a)
    log = np.log1p(uniform * np.expm1(power * np.log(n + 1.0)))
    log /= power
    ranks = np.exp(log, out=log).astype(np.int64)
    ranks -= 1
    return np.asarray(np.minimum(ranks, n.astype(np.int64) - 1), dtype=np.int64)


class Scatter:
    """Seeded bijections of 0 ... n-1, one per column, without tables.

    A Feistel network on pairs (left < a, right < b) with a * b just above n permutes a * b numbers;
    walking on from a number outside until one inside comes restricts it to n.

    Args:
        sizes: [columns] n of each column, 1 ... 2**32.
        keys: [columns] one key for each column.
    """

    def __init__(self, sizes: Sequence[int], keys: U64) -> None:
        self._n = np.array(sizes, dtype=np.uint64)
        self._a = np.ceil(np.sqrt(self._n.astype(np.float64))).astype(np.uint64)
        self._b = (self._n + self._a - np.uint64(1)) // self._a
        rounds = np.arange(1, _ROUNDS + 1, dtype=np.uint64)[:, None]
        self._keys = _mix(keys[None, :] + rounds * _GOLDEN)

    def __call__(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Maps values [..., columns], each below its column's n."""
        out = self._permute(values, self._a, self._b, self._keys)
        flat = out.reshape(-1)
        outside = np.flatnonzero((out >= self._n).reshape(-1))
        while outside.size:
            column = outside % len(self._n)
            flat[outside] = self._permute(
                flat[outside], self._a[column], self._b[column], self._keys[:, column]
            )
            outside = outside[flat[outside] >= self._n[column]]
        return out.astype(np.int64)

    @staticmethod
    def _permute(values: npt.NDArray[Any], a: U64, b: U64, keys: U64) -> U64:
        # Division in float64 is exact enough: values < 2**33, and quotients are at least 1 / b
        # away from an integer that they are not.
        left = (values / b.astype(np.float64)).astype(np.uint64)
        right = values.astype(np.uint64) - left * b
        for number in range(_ROUNDS):
            if number % 2:
                left, right, a, b = right, left, b, a
            # left := (left + F(right)) mod a; the minimum subtracts a where the sum reaches it.
            left += Scatter._round(right, keys[number], a)
            np.minimum(left, left - a, out=left)
            if number % 2:
                left, right, a, b = right, left, b, a
        left *= b
        left += right
        return left

    @staticmethod
    def _round(half: U64, key: U64, bound: U64) -> U64:
        """A number below ``bound`` (at most 2**17) that depends on half and key."""
        product = half ^ key
        product *= np.uint64(0xD6E8FEB86659FD93)
        product ^= product >> np.uint64(32)
        product *= np.uint64(0xD6E8FEB86659FD93)
        product >>= np.uint64(32)
        product *= bound
        product >>= np.uint64(32)
        return product


class Synthetic:
    """Click data by formula; implements ``Dataset``.

    Features C1, C2, ... have a table each. A lookup draws a rank by a bounded Zipf law; the rank's
    row is somewhere in the table, by a seeded bijection. Each row has a hidden weight; a sample's
    label is drawn with the probability that the means of its bags' weights and its dense columns
    give, so that a model that learns the rows predicts better than chance.

    Args:
        rows: rows of each table.
        exponents: Zipf exponent, one or one per feature; 0 is uniform.
        lookups: lookups of a bag, one number or one per feature.
        empty_share: share of bags that are empty; above 0 all features are jagged.
        rows_max: cap on the rows of each table, to make a smaller set of the same kind.
        dense_width: dense columns, standard normal.
        train_samples, test_samples: sizes of the parts.
        click_rate: share of positive labels, near the Criteo Kaggle data's by default.
        signal: about the standard deviation of the logits; 0 makes labels pure noise.
        seed: another seed, another data set.
    """

    name = "synthetic"

    def __init__(
        self,
        rows: Sequence[int] = CRITEO_KAGGLE,
        *,
        exponents: float | Sequence[float] = 1.1,
        lookups: int | Sequence[int] = 1,
        empty_share: float = 0.0,
        rows_max: int | None = None,
        dense_width: int = 13,
        train_samples: int = 1 << 20,
        test_samples: int = 1 << 16,
        click_rate: float = 0.256,
        signal: float = 1.5,
        seed: int = 0,
    ) -> None:
        count = len(rows)
        cap = max(rows, default=0) if rows_max is None else rows_max
        self.rows = tuple(min(int(n), cap) for n in rows)
        self.exponents = self._each("exponents", exponents, count)
        self.lookups = tuple(int(n) for n in self._each("lookups", lookups, count))
        if not count or min(self.rows) < 1 or min(self.lookups) < 0 or min(self.exponents) < 0:
            raise ConfigError("rows are at least 1, lookups and exponents at least 0")
        if not 0 <= empty_share < 1 or min(train_samples, test_samples, dense_width) < 0:
            raise ConfigError(
                f"empty_share={empty_share}, train_samples={train_samples}, test_samples="
                f"{test_samples}, dense_width={dense_width} is out of range"
            )
        if not 0 < click_rate < 1:
            raise ConfigError(f"click_rate={click_rate} is not between 0 and 1")
        self.empty_share, self.signal, self.seed = empty_share, signal, seed
        self.click_rate = click_rate
        self._sizes = {"train": train_samples, "test": test_samples}
        self._dense_width = dense_width

        # One column for each lookup of a sample; `feature` is the feature of a column.
        self._feature = np.repeat(np.arange(count), self.lookups)
        columns = len(self._feature)
        self._column_rows = np.array(self.rows)[self._feature]
        self._column_exponents = np.array(self.exponents)[self._feature]
        self._edges = np.concatenate([[0], np.cumsum(self.lookups)])
        self._id_keys = _keys(seed, _IDS, columns)
        self._empty_keys = _keys(seed, _EMPTY, count)
        self._dense_keys = _keys(seed, _DENSE, 2 * dense_width)
        self._latent_keys = _keys(seed, _LATENT, count)[self._feature]
        self._scatter = Scatter(
            self._column_rows.tolist(), _keys(seed, _PLACE, count)[self._feature]
        )
        weights = 2 * _uniform(_keys(seed, _WEIGHT, dense_width), np.zeros(1)) - 1
        parts = count + dense_width
        self._dense_weights = weights * np.sqrt(3.0 / parts)
        self._bag_weight = np.sqrt(1.0 / parts)

    @staticmethod
    def _each(name: str, value: Any, count: int) -> tuple[float, ...]:
        values = (value,) * count if np.ndim(value) == 0 else tuple(value)
        if len(values) != count:
            raise ConfigError(f"{name}: {len(values)} values for {count} tables")
        return values

    @property
    def dense_width(self) -> int:
        """Columns of ``Batch.dense``."""
        return self._dense_width

    def samples(self, split: str) -> int:
        """Samples of ``train`` or ``test``."""
        if split not in self._sizes:
            raise ConfigError(f"no split {split!r}; there are {', '.join(SPLITS)}")
        return self._sizes[split]

    def group(self, dim: int, pin_bytes: int = PIN_THRESHOLD_BYTES) -> Group:
        """Tables and features C1, C2, ... with ``dim`` elements a row."""
        names = [f"C{i + 1}" for i in range(len(self.rows))]
        jagged = self.empty_share > 0
        return Group(
            tuple(TableConfig(name, n, dim) for name, n in zip(names, self.rows, strict=True)),
            tuple(
                FeatureConfig(name, name, lookups=None if jagged else n)
                for name, n in zip(names, self.lookups, strict=True)
            ),
            pin_bytes,
        )

    def batches(
        self, split: str, batch_size: int, *, seed: int = 0, epoch: int = 0
    ) -> Iterator[Batch]:
        """Yields the mini-batches of one pass; ``train`` is shuffled by (seed, epoch)."""
        total = self.samples(split)
        if batch_size < 1:
            raise ConfigError(f"batch_size={batch_size} is not positive")
        key = _mix(_keys(seed, _SHUFFLE, 1) + np.uint64(epoch & 0xFFFF_FFFF) * _GOLDEN)
        shuffle = Scatter([max(total, 1)], key)
        for first in range(0, total, batch_size):
            numbers = np.arange(first, min(first + batch_size, total))
            if split == "train":
                numbers = shuffle(numbers[:, None])[:, 0]
            else:
                numbers = numbers + self._sizes["train"]
            yield self.batch(numbers)

    def batch(self, numbers: npt.ArrayLike) -> Batch:
        """The samples of these numbers [samples]: train from 0, test from ``train_samples``."""
        number = np.asarray(numbers, dtype=np.int64)
        ids = self.ids(number)
        full = self._full(number)
        dense = self.dense(number)
        chance = 1.0 / (1.0 + np.exp(-(self._signals(ids, full, dense) + self._bias)))
        draws = _uniform(_keys(self.seed, _LABEL, 1), number)
        features: dict[str, Lookups] = {}
        for f, (first, last) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True)):
            bag = ids[:, first:last]
            if self.empty_share > 0:
                lengths = np.where(full[:, f], last - first, 0).astype(np.int64)
                features[f"C{f + 1}"] = Jagged(bag[full[:, f]].reshape(-1), lengths)
            else:
                features[f"C{f + 1}"] = bag
        return Batch(
            dense=dense.astype(np.float32),
            features=features,
            labels=(draws < chance).astype(np.float32),
        )

    def ids(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Ids of all lookups, [samples, lookups of a sample], feature after feature."""
        uniform = _uniform(self._id_keys, numbers[:, None])
        return self._scatter(zipf_ranks(uniform, self._column_rows, self._column_exponents))

    def most_probable(self, count: int) -> list[npt.NDArray[np.int64]]:
        """The ``count`` ids of highest probability over all features, by feature.

        What a perfect profile of the lookups finds. Ids of a feature come most probable first;
        about ``count`` in all, because ids of equal probability are not split.
        """
        first = self._edges[:-1][np.array(self.lookups) > 0]
        features = [int(self._feature[column]) for column in first]
        masses = []
        for feature in features:
            edges = np.arange(1, self.rows[feature] + 2, dtype=np.float64)
            power = 1.0 - self.exponents[feature]
            sums = np.log(edges) if abs(power) < 1e-7 else edges**power
            masses.append(np.diff(sums) / (sums[-1] - sums[0]))
        every = np.concatenate(masses)
        count = min(count, every.size)
        least = np.partition(every, every.size - count)[every.size - count] if count else np.inf
        found: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)] * len(self.rows)
        chosen = [int((mass >= least).sum()) for mass in masses]
        ranks = np.zeros((max(chosen, default=0), len(self._column_rows)), np.int64)
        for column, number in zip(first, chosen, strict=True):
            ranks[:number, column] = np.arange(number)
        ids = self._scatter(ranks)
        for column, feature, number in zip(first, features, chosen, strict=True):
            found[feature] = ids[:number, column]
        return found

    def dense(self, numbers: npt.NDArray[np.int64]) -> F64:
        """Dense columns, [samples, dense_width], standard normal (Box and Muller)."""
        uniform = _uniform(self._dense_keys, numbers[:, None])
        radius, angle = uniform[:, : self._dense_width], uniform[:, self._dense_width :]
        return np.asarray(np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle))

    def logits(self, numbers: npt.ArrayLike) -> F64:
        """The true logits that the labels are drawn from, [samples]."""
        number = np.asarray(numbers, dtype=np.int64)
        raw = self._signals(self.ids(number), self._full(number), self.dense(number))
        return np.asarray(raw + self._bias)

    def _full(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which bags are not empty, [samples, features]."""
        if self.empty_share == 0:
            return np.ones((len(numbers), len(self.rows)), dtype=bool)
        return _uniform(self._empty_keys, numbers[:, None]) >= self.empty_share

    @cached_property
    def _bias(self) -> float:
        """Logit that gives the click rate: the popular rows' weights do not average to 0."""
        probe = np.arange(4096)
        raw = self._signals(self.ids(probe), self._full(probe), self.dense(probe))
        low, high = -50.0, 50.0
        for _ in range(60):
            middle = (low + high) / 2
            above = float(np.mean(1 / (1 + np.exp(-(raw + middle))))) > self.click_rate
            low, high = (low, middle) if above else (middle, high)
        return low

    def _signals(self, ids: npt.NDArray[np.int64], full: npt.NDArray[np.bool_], dense: F64) -> F64:
        """Bags' mean hidden weights (uniform, of unit variance) and dense columns, added up."""
        lookups = np.array(self.lookups)
        latent = (2 * _uniform(self._latent_keys, ids) - 1) * np.sqrt(3.0)
        # Scaled by the root of the bag's size, so that every bag has the same variance.
        latent *= self._bag_weight / np.sqrt(lookups[self._feature])
        latent *= full[:, self._feature]
        total = latent.sum(axis=1) + dense @ self._dense_weights
        return np.asarray(self.signal * total, dtype=np.float64)
