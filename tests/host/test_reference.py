# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The oracle against independent statements of the contract (docs/architecture.md)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotline.arguments import POINTERS, Arguments
from hotline.codes import Operation, Policy, Reason, Status
from hotline.config import kernel_config
from hotline.device.base import ENTRY
from hotline.errors import ConfigError
from hotline.reference import (
    FRAGMENTER,
    GATHERER,
    Eal,
    FragmentOutput,
    check_config,
    fragment,
    gather,
    permute,
    scatter,
    unpermute,
)

U32 = st.integers(0, 2**32 - 1)
TINY = kernel_config("tiny")


def rows_of(rng: np.random.Generator, count: int, total: int) -> np.ndarray:
    """Skewed row ids, as lookups have them."""
    return (total * rng.random(count) ** 3).astype(np.uint32)


# ------------------------------------------------------------------------------------ permutation


def permute_naive(value: int) -> int:
    """The documented text, one id at a time."""
    left, right = value >> 16, value & 0xFFFF
    for m, c in ((0x9E37, 0x79B9), (0x85EB, 0xCA6B), (0xC2B3, 0xAE35), (0x27D5, 0x165F)):
        left, right = right, left ^ (((((right ^ c) * m) & 0xFFFFFFFF) >> 8) & 0xFFFF)
    return left << 16 | right


@given(st.lists(U32, max_size=50))
def test_permutation_is_the_documented_one_and_its_inverse_inverts(values: list[int]) -> None:
    permuted = permute(values)
    assert permuted.dtype == np.uint32
    assert permuted.tolist() == [permute_naive(value) for value in values]
    assert unpermute(permuted).tolist() == values
    assert permute(unpermute(values)).tolist() == values


def test_permutation_has_no_collision_on_a_million_ids_of_each_kind() -> None:
    rng = np.random.default_rng(1)
    sequential = np.arange(1 << 20, dtype=np.uint32)
    for ids in (
        sequential,
        sequential * np.uint32(4096),
        np.uint32(2**32 - 1) - sequential,
        rng.choice(2**32, 1 << 20, replace=False).astype(np.uint32),
    ):
        assert len(np.unique(permute(ids))) == len(np.unique(ids)) == len(ids)


def evenness(ids: np.ndarray, bins: int) -> float:
    """Normal score of the chi-square of the ids' low bits over ``bins`` (Wilson and Hilferty)."""
    counts = np.bincount(ids & np.uint32(bins - 1), minlength=bins)
    expected = len(ids) / bins
    freedom = bins - 1
    chi = float(((counts - expected) ** 2 / expected).sum())
    variance = 2 / (9 * freedom)
    return float(((chi / freedom) ** (1 / 3) - (1 - variance)) / variance**0.5)


@pytest.mark.parametrize("bins", [2, 4, 16, 32, 1024, 2048, 32_768])
def test_sequential_and_strided_ids_spread_evenly(bins: int) -> None:
    """Banks and sets: like random ids (5 sigma, a few hundred cases each), whatever the stride."""
    checked = 0
    for count in (bins * 16, bins * 64):
        for base in (0, 1, 12_345, 10_131_227, 2**24, 2**31 - 5):
            for power in range(23):
                for stride in {1 << power, (1 << power) + 1, 3 << power}:
                    if base + count * stride >= 2**32:
                        continue
                    ids = (base + np.arange(count, dtype=np.uint64) * stride).astype(np.uint32)
                    assert evenness(permute(ids), bins) < 5, (count, base, stride)
                    checked += 1
    assert checked > 300


def test_evenness_notices_a_bad_permutation() -> None:
    strided = np.arange(16_384, dtype=np.uint32) * np.uint32(64)
    assert evenness(strided, 1024) > 100
    assert evenness(strided * np.uint32(0x9E3779B1), 1024) > 100


# -------------------------------------------------------------------------------------------- EAL


class NaiveEal:
    """The table of section 4, said again: sets of ways that hold a tag, aged one by one."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets, self.ways = sets, ways
        self.table: list[list[list[int] | None]] = [[None] * ways for _ in range(sets)]

    def find(self, row: int) -> tuple[list[list[int] | None], int, int | None]:
        value = permute_naive(row)
        ways, tag = self.table[value % self.sets], value // self.sets
        found = [w for w, entry in enumerate(ways) if entry is not None and entry[0] == tag]
        assert len(found) <= 1
        return ways, tag, found[0] if found else None

    def learn(self, row: int, policy: Policy) -> str:
        ways, tag, way = self.find(row)
        if policy is Policy.FREQUENCY:
            return self.count(ways, tag, way)
        if way is not None:
            ways[way] = [tag, 0]
            return "hit"
        if None not in ways:
            while all(entry is not None and entry[1] != 3 for entry in ways):
                for entry in ways:
                    assert entry is not None
                    entry[1] += 1
            ways[[entry is not None and entry[1] for entry in ways].index(3)] = None
        ways[ways.index(None)] = [tag, 2]
        return "miss"

    def count(self, ways: list[list[int] | None], tag: int, way: int | None) -> str:
        """LEARN by frequency: the table of section 4, said again."""
        if way is not None:
            ways[way] = [tag, {3: 2, 2: 1, 1: 0, 0: 0}[cast(list[int], ways[way])[1]]]
            return "hit"
        if None in ways:
            ways[ways.index(None)] = [tag, 3]
            return "miss"
        greatest = max(cast(list[int], entry)[1] for entry in ways)
        way = tag % len(ways)
        while cast(list[int], ways[way])[1] != greatest:
            way = (way + 1) % len(ways)
        ways[way] = [tag, 3] if greatest == 3 else [cast(list[int], ways[way])[0], greatest + 1]
        return "miss"

    def load(self, row: int, counter: int) -> str:
        ways, tag, way = self.find(row)
        if way is not None:
            return "present"
        if None not in ways:
            return "rejected"
        ways[ways.index(None)] = [tag, counter]
        return "inserted"

    def evict(self, row: int) -> bool:
        ways, _, way = self.find(row)
        if way is not None:
            ways[way] = None
        return way is not None

    def entries(self, pinned_rows: int) -> list[tuple[int, int]]:
        found = []
        for s, ways in enumerate(self.table):
            for w, entry in enumerate(ways):
                if entry is not None:
                    row = int(unpermute([entry[0] * self.sets + s])[0])
                    found.append((row, (pinned_rows + s * self.ways + w) | entry[1] << 30))
        return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_eal_equals_a_naive_statement(data: st.DataObject) -> None:
    """LEARN, LOAD (both formats) and EVICT in any order: equal counts and equal DUMPs."""
    sets, ways = data.draw(st.sampled_from([(1, 1), (1, 4), (4, 2), (2, 16), (16, 4)]))
    total = data.draw(st.sampled_from([5, 40, 300, 2**32 - 2]))
    pinned_rows = data.draw(st.integers(0, min(total, 20)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    eal, naive = Eal(sets, ways), NaiveEal(sets, ways)
    for epoch in range(1, data.draw(st.integers(1, 5)) + 1):
        ids = rows_of(rng, data.draw(st.integers(0, 200)), total)
        looked_up = [int(row) for row in ids if row >= pinned_rows]
        match data.draw(st.sampled_from(["learn", "entries", "plain", "evict"])):
            case "learn":
                policy = data.draw(st.sampled_from(Policy))
                completion = eal.learn(ids, total, pinned_rows, policy)
                verdicts = [naive.learn(row, policy) for row in looked_up]
                hits, misses, rejected = verdicts.count("hit"), verdicts.count("miss"), 0
            case "evict":
                completion = eal.evict(ids, total, pinned_rows)
                evicted = [naive.evict(row) for row in looked_up]
                hits, misses, rejected = sum(evicted), len(evicted) - sum(evicted), 0
            case kind:
                source = ids
                counters = np.full(len(ids), 2, dtype=np.uint32)
                if kind == "entries":
                    counters = rng.integers(0, 4, len(ids)).astype(np.uint32)
                    source = np.zeros(len(ids), dtype=ENTRY)
                    source["row"], source["slot_counter"] = ids, 12_345 | counters << 30
                completion, returned = eal.load(source, total, pinned_rows)
                verdicts = [
                    "pinned" if row < pinned_rows else naive.load(int(row), int(counter))
                    for row, counter in zip(ids, counters, strict=True)
                ]
                back = [i for i, verdict in enumerate(verdicts) if verdict == "rejected"]
                assert returned.dtype == source.dtype
                assert returned.tolist() == source[back].tolist()
                hits, rejected = verdicts.count("present"), len(back)
                misses = verdicts.count("inserted") + rejected
        assert completion.status == Status.OK
        assert (completion.epoch, completion.lookups) == (epoch, len(ids))
        assert completion.pinned_lookups == len(ids) - len(looked_up)
        assert (completion.eal_lookups, completion.cold_lookups) == (hits, misses)
        assert completion.cold_rows == rejected
        dumped, entries = eal.dump(pinned_rows)
        assert (dumped.lookups, dumped.epoch) == (len(entries), epoch)
        assert entries.tolist() == naive.entries(pinned_rows)
    assert eal.tag_of([7]).tolist() == [permute_naive(7) // sets]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 5))
def test_clear_and_load_of_a_dump_restore_the_eal(seed: int, pinned_rows: int) -> None:
    rng = np.random.default_rng(seed)
    eal = Eal(8, 4)
    eal.learn(rows_of(rng, 300, 200), 200, pinned_rows)
    eal.evict(rows_of(rng, 10, 200), 200, pinned_rows)  # holes in the sets
    rows, counters = list(eal.rows), [c for r, c in zip(eal.rows, eal.counters, strict=True) if r]
    _, entries = eal.dump(pinned_rows)
    eal.clear()
    assert eal.dump(pinned_rows)[1].size == 0
    completion, rejected = eal.load(entries, 200, pinned_rows)
    assert rejected.size == 0
    assert completion.cold_lookups == len(entries)
    # Way order within a set is kept, though holes close: the same rows, and the same counters.
    assert [row for row in eal.rows if row is not None] == [row for row in rows if row is not None]
    assert [c for r, c in zip(eal.rows, eal.counters, strict=True) if r] == counters


def test_a_dump_without_holes_is_restored_slot_by_slot() -> None:
    eal = Eal(8, 4)
    eal.learn(rows_of(np.random.default_rng(0), 500, 400), 400, 3)
    _, entries = eal.dump(3)
    assert len(set((entries["slot_counter"] >> 30).tolist())) > 1
    other = Eal(8, 4)
    other.load(entries, 400, 3)
    assert other.dump(3)[1].tolist() == entries.tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_evict_and_load_of_the_differences_change_one_hot_set_into_another(seed: int) -> None:
    """Rows in both keep their slots."""
    rng = np.random.default_rng(seed)
    old, new = Eal(8, 4), Eal(8, 4)
    old.learn(rows_of(rng, 200, 150), 150)
    new.learn(rows_of(rng, 200, 150), 150)
    wanted, present = set(new.where), set(old.where)
    kept = {row: old.where[row] for row in wanted & present}
    old.evict(sorted(present - wanted), 150)
    completion, rejected = old.load(sorted(wanted - present), 150)
    assert rejected.size == 0
    assert completion.cold_lookups == len(wanted - present)
    assert set(old.where) == wanted
    assert kept.items() <= old.where.items()


@pytest.mark.parametrize("total", [100, 2**31, 2**32 - 2])
@pytest.mark.parametrize("past", [-1, 0, 1, None])
@pytest.mark.parametrize("operation", ["learn", "load", "entries", "evict"])
def test_bounds_are_exact(operation: str, total: int, past: int | None) -> None:
    """rows - 1 is right; rows, rows + 1 and 2**32 - 1 are not; what lies before has effect."""
    value = 2**32 - 1 if past is None else total + past
    ids = np.array([1, 2, value, 3], dtype=np.uint32)
    eal = Eal(16, 4)
    if operation == "entries":
        source = np.zeros(4, dtype=ENTRY)
        source["row"] = ids
        completion, _ = eal.load(source, total)
    elif operation == "load":
        completion, _ = eal.load(ids, total)
    else:
        completion = getattr(eal, operation)(ids, total)
    assert completion.epoch == 1
    if past == -1:
        assert (completion.status, completion.lookups) == (Status.OK, 4)
        return
    assert (completion.status, completion.reason) == (Status.BAD_INDEX, Reason.ROW_ID)
    assert completion.lookups == completion.cold_lookups == 2
    assert (completion.error_sample, completion.error_lookup) == (0, 2)
    assert completion.error_value == value
    if operation != "evict":
        assert sorted(eal.where) == [1, 2]


# --------------------------------------------------------------------------------------- FRAGMENT


def decode(output: FragmentOutput, eal: Eal, pinned_rows: int, cold_base: int) -> list[int | None]:
    """Row ids of encoded indices."""
    rows: list[int | None] = []
    for index in output.indices.tolist():
        if index < pinned_rows:
            rows.append(index)
        elif index < cold_base:
            rows.append(eal.rows[index - pinned_rows])
        else:
            rows.append(int(output.cold_rows[index - cold_base]))
    return rows


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_fragment_keeps_its_invariants(data: st.DataObject) -> None:
    """Indices decode to the ids, popular iff all hot, and parts after COLD_OVERFLOW cover all."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    total = data.draw(st.sampled_from([30, 200, 2000]))
    pinned_rows = data.draw(st.sampled_from([0, 1, 20]))
    bags = data.draw(st.sampled_from([0, 1, 3]))
    samples = data.draw(st.integers(0, 70))
    if bags:
        lengths = rng.integers(0, 4, samples * bags)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        edges = offsets[::bags]
        per_sample = 0
    else:
        per_sample = data.draw(st.integers(0, 6))
        edges = np.arange(samples + 1) * per_sample
    ids = rows_of(rng, int(edges[-1]), total)
    eal = Eal(4, 4)
    eal.learn(rows_of(rng, 100, total), total, pinned_rows)
    epoch, before = eal.epoch, (list(eal.rows), list(eal.counters))
    cold_base = pinned_rows + 16 + data.draw(st.integers(0, 10))
    cold_rows_max = data.draw(st.sampled_from([12, 13, 40, 1000]))

    hot = set(eal.where) | set(range(pinned_rows))
    start = 0
    verdicts: list[bool] = []
    while True:
        first, left = int(edges[start]), samples - start
        output = fragment(
            eal,
            ids[first:],
            samples=left,
            total_rows=total,
            pinned_rows=pinned_rows,
            cold_base=cold_base,
            cold_rows_max=cold_rows_max,
            lookups_max=64,
            lookups_per_sample=per_sample,
            offsets=offsets[start * bags :] - first if bags else None,
            bags=bags,
        )
        done = output.completion
        assert done.status in (Status.OK, Status.COLD_OVERFLOW)
        end = start + done.samples
        part = ids[first : int(edges[end])].tolist()
        assert done.lookups == len(part)
        assert decode(output, eal, pinned_rows, cold_base) == part
        cold = [row for row in part if row not in hot]
        assert output.cold_rows.tolist() == list(dict.fromkeys(cold))
        assert done.cold_rows == len(output.cold_rows) <= cold_rows_max
        assert done.cold_lookups == len(cold)
        assert done.pinned_lookups == sum(row < pinned_rows for row in part)
        assert done.pinned_lookups + done.eal_lookups + done.cold_lookups == done.lookups
        expected = [
            all(row in hot for row in ids[edges[s] : edges[s + 1]].tolist())
            for s in range(start, end)
        ]
        bits = np.unpackbits(output.bitmap.view(np.uint8), bitorder="little").astype(bool).tolist()
        assert len(output.bitmap) == -(-done.samples // 32)
        assert bits[: done.samples] == expected
        assert not any(bits[done.samples :])
        assert output.popular.tolist() == [s for s, popular in enumerate(expected) if popular]
        assert output.nonpopular.tolist() == [
            s for s, popular in enumerate(expected) if not popular
        ]
        assert done.popular == len(output.popular)
        assert (done.epoch, done.error_lookup, done.error_value) == (epoch, 0, 0)
        verdicts += expected
        if done.status is Status.OK:
            assert end == samples
            break
        following = dict.fromkeys(ids[: int(edges[end + 1])].tolist()[first:])
        assert len([row for row in following if row not in hot]) > cold_rows_max
        assert done.samples > 0  # a sample has at most 12 lookups here
        start = end
    assert len(verdicts) == samples
    assert (eal.epoch, eal.rows, eal.counters) == (epoch, *before)


JOB = {
    "total_rows": 100,
    "pinned_rows": 10,
    "cold_base": 80,
    "cold_rows_max": 8,
    "lookups_max": 4,
}


def test_a_sample_that_alone_exceeds_the_tracker_makes_no_progress() -> None:
    output = fragment(Eal(4, 4), range(20, 30), samples=1, lookups_per_sample=10, **JOB)
    completion = output.completion
    assert completion.status is Status.COLD_OVERFLOW
    assert (completion.samples, completion.lookups, completion.cold_rows) == (0, 0, 0)
    exact = fragment(Eal(4, 4), range(20, 28), samples=1, lookups_per_sample=8, **JOB)
    assert (exact.completion.status, exact.completion.cold_rows) == (Status.OK, 8)


@pytest.mark.parametrize(
    ("offsets", "ids", "reason", "sample", "lookup", "value"),
    [
        ([0, 1, 2, 3, 4], 5, Reason.OFFSET, 1, 4, 4),  # ends before the lookups do
        ([0, 1, 2, 3, 6], 5, Reason.OFFSET, 1, 4, 6),  # ... and after
        ([1, 1, 2, 3, 5], 5, Reason.OFFSET, 0, 0, 1),  # does not start at 0
        ([0, 2, 1, 3, 5], 5, Reason.OFFSET, 0, 2, 1),  # decreases within a sample
        ([0, 1, 2, 1, 5], 5, Reason.OFFSET, 1, 3, 1),  # ... over samples
        ([0, 6, 2, 3, 5], 5, Reason.OFFSET, 0, 1, 6),  # above the lookups, in the middle
        ([0, 2**32 - 1, 2, 3, 5], 5, Reason.OFFSET, 0, 1, 2**32 - 1),
        ([0, 3, 5, 5, 5], 5, Reason.SAMPLE_TOO_LONG, 0, 0, 5),
        ([0, 1, 1, 3, 6], 6, Reason.SAMPLE_TOO_LONG, 1, 1, 5),
    ],
)
def test_offsets_out_of_contract(
    offsets: list[int], ids: int, reason: Reason, sample: int, lookup: int, value: int
) -> None:
    output = fragment(Eal(4, 4), [20] * ids, samples=2, offsets=offsets, bags=2, **JOB)
    completion = output.completion
    assert (completion.status, completion.reason) == (Status.BAD_INDEX, reason)
    place = (completion.error_sample, completion.error_lookup, completion.error_value)
    assert place == (sample, lookup, value)
    assert completion.samples == completion.lookups == completion.popular == 0
    assert output.indices.size == output.popular.size == output.cold_rows.size == 0


@pytest.mark.parametrize(("first", "ids", "bad"), [(0, 0, False), (0, 1, True), (1, 1, True)])
def test_jagged_without_samples_still_checks_entry_zero(first: int, ids: int, bad: bool) -> None:
    job = fragment(Eal(4, 4), [20] * ids, samples=0, offsets=[first], bags=3, **JOB)
    completion = job.completion
    assert (completion.status is Status.BAD_INDEX) == bad
    if bad:
        place = (completion.error_sample, completion.error_lookup, completion.error_value)
        assert (completion.reason, *place) == (Reason.OFFSET, 0, 0, first)


@pytest.mark.parametrize("total", [100, 2**31, 2**32 - 2])
def test_fragment_bounds_are_exact(total: int) -> None:
    job = {**JOB, "total_rows": total, "samples": 2, "lookups_per_sample": 2}
    assert fragment(Eal(4, 4), [1, 2, 3, total - 1], **job).completion.status is Status.OK
    for value in (total, total + 1, 2**32 - 1):
        completion = fragment(Eal(4, 4), [1, 2, 3, value], **job).completion
        assert (completion.status, completion.reason) == (Status.BAD_INDEX, Reason.ROW_ID)
        assert (completion.error_sample, completion.error_lookup) == (1, 3)
        assert completion.error_value == value


def test_the_first_event_in_the_documented_order_ends_the_job() -> None:
    def events(ids: list[int], offsets: list[int], **change: int) -> tuple[Status, Reason, int]:
        job = {**JOB, **change}
        done = fragment(
            Eal(4, 4), ids, samples=len(offsets) - 1, offsets=offsets, bags=1, **job
        ).completion
        return done.status, done.reason, done.error_lookup

    # Sample 0's bad row precedes sample 1's bad offset, and follows its own offset and length.
    assert events([100, 20], [0, 1, 1]) == (Status.BAD_INDEX, Reason.ROW_ID, 0)
    assert events([100, 20], [0, 3, 2]) == (Status.BAD_INDEX, Reason.OFFSET, 1)
    assert events([100] * 5, [0, 5]) == (Status.BAD_INDEX, Reason.SAMPLE_TOO_LONG, 0)
    # Overflow in sample 1 precedes sample 2's events, and within it the earlier lookup decides.
    room = {"cold_rows_max": 1}
    overflow = (Status.COLD_OVERFLOW, Reason.NONE, 0)
    assert events([20, 21, 100], [0, 1, 2, 3], **room) == overflow
    assert events([20, 21, 100], [0, 1, 3], **room) == overflow
    assert events([20, 100, 21], [0, 1, 3], **room) == (Status.BAD_INDEX, Reason.ROW_ID, 1)
    assert events([20, 21, 100], [0, 1, 2, 2], **room) == overflow  # entry 3 is never looked at
    assert events([20, 21, 100], [0, 1, 4, 3], **room) == (Status.BAD_INDEX, Reason.OFFSET, 2)


# --------------------------------------------------------------------------------------- gatherer


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 2, 5]), st.integers(0, 40))
def test_gather_and_scatter_equal_numpy(seed: int, segments: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 16 * segments - 3
    flat = rng.integers(0, 256, (rows, 64)).astype(np.uint8)
    store = tuple(flat[16 * s : 16 * s + 16].copy() for s in range(segments))
    ids = rng.integers(0, rows, count).astype(np.uint32)
    completion, records = gather(ids, store if segments > 1 else store[0], rows, 4)
    assert (completion.status, completion.lookups) == (Status.OK, count)
    assert np.array_equal(records, flat[ids])
    new = rng.integers(0, 256, (count, 64)).astype(np.uint8)
    assert scatter(ids, new, store, rows, 4).lookups == count
    for row, record in zip(ids, new, strict=True):
        flat[row] = record  # the last of duplicates wins
    assert np.array_equal(np.concatenate(store), flat)


def test_gather_and_scatter_bounds() -> None:
    store = np.arange(10 * 64, dtype=np.int64).astype(np.uint8).reshape(10, 64)
    for value in (9, 10, 11, 2**31, 2**32 - 1):
        ids = np.array([3, value, 4], dtype=np.uint32)
        completion, records = gather(ids, store, 10)
        target = np.zeros_like(store)
        scattered = scatter(ids, store[:3], target, 10)
        if value == 9:
            assert (completion.lookups, len(records), scattered.lookups) == (3, 3, 3)
            continue
        for done in (completion, scattered):
            assert (done.status, done.reason) == (Status.BAD_INDEX, Reason.ROW_ID)
            assert (done.error_lookup, done.error_value) == (1, value)
        assert (completion.lookups, len(records), scattered.lookups) == (0, 0, 1)
        assert np.array_equal(target[3], store[0])
        assert not target[4].any()


# ------------------------------------------------------------------------------------- BAD_CONFIG

POINTER = 0x1_0000_0040
GOOD = {
    Operation.FRAGMENT: Arguments(
        operation=3,
        lookups=12,
        samples=4,
        lookups_per_sample=3,
        total_rows=1000,
        pinned_rows=5,
        cold_base=261,
        cold_rows_max=128,
        **dict.fromkeys(POINTERS, POINTER),
    ),
    Operation.GATHER: Arguments(
        operation=8,
        lookups=12,
        total_rows=1000,
        record_bytes=128,
        segments=4,
        segment_shift=8,
        **dict.fromkeys(POINTERS, POINTER),
    ),
}
for _operation in (
    Operation.CLEAR,
    Operation.LEARN,
    Operation.DUMP,
    Operation.LOAD,
    Operation.EVICT,
):
    GOOD[_operation] = replace(GOOD[Operation.FRAGMENT], operation=int(_operation))
GOOD[Operation.SCATTER] = replace(GOOD[Operation.GATHER], operation=9)
F, G, L, D = Operation.FRAGMENT, Operation.GATHER, Operation.LEARN, Operation.DUMP

BROKEN = [  # in the documented order of checks
    (F, {"operation": 0}, Reason.OPERATION),
    (F, {"operation": 7}, Reason.OPERATION),
    (F, {"operation": 256 + 3}, Reason.OPERATION),
    (F, {"record": 0}, Reason.RECORD_POINTER),
    (F, {"record": 32}, Reason.RECORD_POINTER),
    (F, {"ids": 0}, Reason.POINTER),
    (F, {"bitmap": POINTER + 4}, Reason.POINTER),
    (F, {"lookups": 13}, Reason.LOOKUPS),
    (F, {"lookups": 2**28 + 1, "bags": 1}, Reason.LOOKUPS),
    (L, {"lookups": 2**28 + 1}, Reason.LOOKUPS),
    (G, {"lookups": 2**28 + 1}, Reason.LOOKUPS),
    (F, {"samples": 0x8000_0004, "lookups_per_sample": 2, "lookups": 8}, Reason.LOOKUPS),
    (F, {"samples": 2**28 + 1, "lookups": 0, "lookups_per_sample": 0}, Reason.SAMPLES),
    (F, {"bags": 0x10000}, Reason.BAGS),
    (F, {"bags": 0xFFFF, "samples": 0x10001}, Reason.BAGS),
    (F, {"bags": 0xFFFF, "samples": 2**28}, Reason.BAGS),
    (F, {"lookups": 65, "samples": 1, "lookups_per_sample": 65}, Reason.LOOKUPS_PER_SAMPLE),
    (F, {"lookups": 0, "samples": 0, "lookups_per_sample": 65}, Reason.LOOKUPS_PER_SAMPLE),
    (F, {"total_rows": 0}, Reason.ROWS),
    (F, {"total_rows": 2**32 - 1}, Reason.ROWS),
    (F, {"pinned_rows": 1001}, Reason.ROWS),
    (L, {"pinned_rows": 1001}, Reason.ROWS),
    (G, {"total_rows": 0}, Reason.ROWS),
    (D, {"pinned_rows": 2**30 - 255}, Reason.ROWS),
    (F, {"cold_rows_max": 0}, Reason.COLD_RANGE),
    (F, {"cold_rows_max": 129}, Reason.COLD_RANGE),
    (F, {"cold_base": 260}, Reason.COLD_RANGE),
    (F, {"cold_base": 2**31 - 128}, Reason.COLD_RANGE),
    (F, {"cold_base": 2**32 - 1}, Reason.COLD_RANGE),
    (G, {"record_bytes": 0}, Reason.RECORD_BYTES),
    (G, {"record_bytes": 96}, Reason.RECORD_BYTES),
    (G, {"record_bytes": 4160}, Reason.RECORD_BYTES),
    (G, {"segments": 0}, Reason.SEGMENTS),
    (G, {"segments": 65}, Reason.SEGMENTS),
    (G, {"segments": 3}, Reason.SEGMENTS),
    (G, {"segments": 1, "segment_shift": 32}, Reason.SEGMENTS),
    (G, {"segment_shift": 7}, Reason.SEGMENTS),
]


@pytest.mark.parametrize("operation", list(GOOD))
def test_good_arguments_pass(operation: Operation) -> None:
    assert check_config(GOOD[operation], TINY) is Reason.NONE
    own, other = (FRAGMENTER, GATHERER) if operation in FRAGMENTER else (GATHERER, FRAGMENTER)
    assert check_config(GOOD[operation], TINY, own) is Reason.NONE
    assert check_config(GOOD[operation], TINY, other) is Reason.OPERATION


@pytest.mark.parametrize(("operation", "change", "reason"), BROKEN)
def test_each_rule_of_bad_config(
    operation: Operation, change: dict[str, int], reason: Reason
) -> None:
    assert check_config(replace(GOOD[operation], **change), TINY) is reason
    assert check_config({**GOOD[operation].__dict__, **change}, TINY) is reason


def test_the_first_broken_rule_is_reported() -> None:
    """Any two broken rules of one operation, on arguments that do not interact."""
    sizes = {"bags", "samples", "lookups", "lookups_per_sample"}  # decide pointers in use, too
    pairs = 0
    for operation in (F, G):
        rules = [(change, reason) for kind, change, reason in BROKEN if kind is operation]
        for first, (change, reason) in enumerate(rules):
            for later, other in rules[first + 1 :]:
                interact = change.keys() & later.keys() or (
                    (sizes | POINTERS) & change.keys() and sizes & later.keys()
                )
                if not interact and other != reason:
                    both = replace(GOOD[operation], **change, **later)
                    assert check_config(both, TINY) is reason, (change, later)
                    pairs += 1
    assert pairs > 100
    many = 2**28 + 1
    for change, reason in [
        ({"lookups": many, "samples": many, "bags": 0x10000}, Reason.LOOKUPS),
        ({"samples": many, "bags": 0x10000}, Reason.SAMPLES),
        ({"samples": many, "lookups": many * 65, "lookups_per_sample": 65}, Reason.LOOKUPS),
        ({"samples": many, "lookups": 0, "lookups_per_sample": 65}, Reason.LOOKUPS),
        (
            {"samples": 2, "lookups": 130, "lookups_per_sample": 65, "total_rows": 0},
            Reason.LOOKUPS_PER_SAMPLE,
        ),
    ]:
        change = {name: value & 0xFFFF_FFFF for name, value in change.items()}
        assert check_config(replace(GOOD[F], **change), TINY) is reason, change


def test_edges_of_the_ranges_are_inside() -> None:
    for operation, change in [
        (F, {"lookups": 2**28, "samples": 2**28, "lookups_per_sample": 1}),
        (F, {"lookups": 2**28, "bags": 0xFFFF, "lookups_per_sample": 999}),
        (F, {"lookups": 64, "samples": 1, "lookups_per_sample": 64}),
        (F, {"bags": 0xFFFF, "samples": 0x10000}),
        (F, {"total_rows": 2**32 - 2, "pinned_rows": 5}),
        (F, {"total_rows": 5, "pinned_rows": 5}),
        (F, {"cold_base": 2**31 - 129}),
        (F, {"cold_rows_max": 1}),
        (G, {"segments": 1, "segment_shift": 0}),
        (G, {"segments": 64, "segment_shift": 31}),
        (G, {"record_bytes": 64}),
        (G, {"record_bytes": 4096}),
        (G, {"pinned_rows": 2000}),  # the gatherer has no pinned rows
        (D, {"pinned_rows": 2**30 - 256, "total_rows": 0}),
        (Operation.CLEAR, {"total_rows": 0, "lookups": 2**32 - 1}),
    ]:
        assert check_config(replace(GOOD[operation], **change), TINY) is Reason.NONE, change


@pytest.mark.parametrize("operation", list(GOOD))
def test_only_pointers_in_use_are_checked(operation: Operation) -> None:
    used = {
        Operation.CLEAR: set(),
        Operation.LEARN: {"ids"},
        Operation.EVICT: {"ids"},
        Operation.DUMP: {"indices"},
        Operation.LOAD: {"ids", "indices"},
        Operation.FRAGMENT: {"ids", "indices", "popular", "nonpopular", "bitmap", "cold"},
        Operation.GATHER: {"ids", "records", "store"},
        Operation.SCATTER: {"ids", "records", "store"},
    }[operation]
    for name in POINTERS - {"record"}:
        expected = Reason.POINTER if name in used else Reason.NONE
        for value in (0, POINTER + 32):
            assert check_config(replace(GOOD[operation], **{name: value}), TINY) is expected
    empty = replace(GOOD[operation], lookups=0, samples=0, **dict.fromkeys(POINTERS, 0))
    empty = replace(empty, record=POINTER)
    expected = Reason.POINTER if operation is D else Reason.NONE
    assert check_config(empty, TINY) is expected
    if operation is F:
        assert check_config(replace(empty, bags=1), TINY) is Reason.POINTER  # entry 0 is read
        assert check_config(replace(empty, bags=1, offsets=POINTER), TINY) is Reason.NONE


def test_arguments_take_numpy_integers_and_refuse_what_does_not_fit() -> None:
    arguments = Arguments(lookups=np.int32(5), ids=np.uint64(2**40 + 64))  # type: ignore[arg-type]
    assert type(arguments.lookups) is int
    words = arguments.registers()
    assert (words["IDS_LO"], words["IDS_HI"], words["LOOKUPS"]) == (64, 256, 5)
    assert all(0 <= word < 2**32 for word in words.values())
    for bad in ({"lookups": -1}, {"lookups": 2**32}, {"ids": 2**64}, {"tag": 1.5}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            Arguments(**bad)  # type: ignore[arg-type]


def test_the_oracle_needs_no_torch() -> None:
    code = (
        "import sys, hotline, hotline.reference, hotline.device, hotline.device.reference;"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
