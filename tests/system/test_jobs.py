# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""All operations, statuses and shapes of jobs, on every backend, against the oracle."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from hotline import reference
from hotline.codes import Operation, Reason, Status
from hotline.device.base import ENTRY, Device
from hotline.testing import Case, JobGenerator, Scoreboard
from tests.system.conftest import SEED, config_of

U32 = np.uint32
FRAGMENTER, GATHERER = reference.FRAGMENTER, reference.GATHERER


@pytest.fixture
def board(device: Device) -> Iterator[Scoreboard]:
    board = Scoreboard(device, config_of(device))
    yield board
    board.close()


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=U32)


def fragment(rows: np.ndarray, samples: int, each: int = 0, **other: object) -> Case:
    values: dict[str, object] = {"total_rows": 10_000, "cold_base": 1 << 20, "cold_rows_max": 128}
    return Case(
        Operation.FRAGMENT, rows, samples=samples, lookups_per_sample=each, **(values | other)
    )


# ---------------------------------------------------------------------------------------- random


@pytest.mark.parametrize("seed", range(6))
def test_random_jobs_equal_the_oracle(device: Device, seed: int) -> None:
    store = [(300, 64), (37, 192), (64, 256), (5, 4096), (1, 64), (130, 128)][seed]
    shift = [None, 3, None, 1, None, 5][seed]
    generator = JobGenerator(device.capabilities, seed=seed + 1000 * SEED, store=store)
    board = Scoreboard(device, config_of(device), store=store, segment_shift=shift, seed=seed)
    completions = board.check_all([generator.next() for _ in range(60)])
    board.close()
    assert len(completions) == 60


def test_every_status_of_the_contract_occurs_in_random_jobs(device: Device) -> None:
    generator = JobGenerator(device.capabilities, seed=99 + SEED, faults=0.4, lookups=300)
    board = Scoreboard(device, config_of(device))
    operations = [*sorted(set(Operation) - {Operation.CLEAR, Operation.DUMP}) * 20]
    operations += [Operation.FRAGMENT] * 40
    cases = [generator.next(operation) for operation in operations]
    completions = board.check_all(cases)
    seen = {(completion.operation, completion.status) for completion in completions}
    board.close()
    assert (Operation.FRAGMENT, Status.COLD_OVERFLOW) in seen
    for operation in set(Operation) - {Operation.CLEAR, Operation.DUMP}:
        assert (operation, Status.OK) in seen and (operation, Status.BAD_INDEX) in seen


def test_fragmenter_and_gatherer_run_at_the_same_time(device: Device) -> None:
    failures: list[BaseException] = []

    def work(operations: frozenset[Operation], seed: int) -> None:
        try:
            board = Scoreboard(device, config_of(device), seed=seed)
            generator = JobGenerator(
                device.capabilities, seed=seed, operations=sorted(operations), lookups=300
            )
            board.check_all([generator.next() for _ in range(60)])
            board.close()
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(operations, seed))
        for seed, operations in enumerate((FRAGMENTER, GATHERER))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# ----------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("operation", sorted(FRAGMENTER | GATHERER))
def test_empty_job_is_ok(board: Scoreboard, operation: Operation) -> None:
    board.check(Case(Operation.LEARN, ids(1, 2, 3), total_rows=10))
    cases = [Case(operation, total_rows=300, cold_base=1 << 20)]
    if operation is Operation.FRAGMENT:
        cases.append(Case(operation, offsets=ids(0), bags=3, total_rows=9, cold_base=1 << 20))
    if operation is Operation.LOAD:
        cases.append(Case(operation, np.empty(0, dtype=ENTRY), total_rows=9))
    if operation is Operation.SCATTER:
        cases = [Case(operation, total_rows=300, records=np.empty((0, 64), np.uint8))]
    for case in cases:
        completion = board.check(case)
        assert completion.status is Status.OK
        assert completion.lookups == (3 if operation is Operation.DUMP else 0)


@pytest.mark.parametrize("samples", [1, 31, 32, 33, 63, 64, 65, 130])
def test_sample_without_lookups_is_popular(board: Scoreboard, samples: int) -> None:
    completion = board.check(fragment(ids(), samples, 0))
    assert completion.popular == completion.samples == samples
    offsets = np.zeros(2 * samples + 1, dtype=U32)
    assert board.check(fragment(ids(), samples, offsets=offsets, bags=2)).popular == samples


@pytest.mark.parametrize("samples", [1, 2, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129])
def test_sizes_near_beats_and_words(board: Scoreboard, samples: int) -> None:
    board.check(Case(Operation.LEARN, np.arange(0, 40, 2, dtype=U32), total_rows=10_000))
    rows = (np.arange(samples * 3) % 41).astype(U32)
    completion = board.check(fragment(rows, samples, 3))
    assert 0 <= completion.popular <= samples


def test_all_hot_and_none_hot(board: Scoreboard) -> None:
    rows = np.arange(96, dtype=U32)
    none = board.check(fragment(rows, 32, 3))
    assert (none.popular, none.cold_rows) == (0, 96)
    pinned = board.check(fragment(rows, 32, 3, pinned_rows=96))
    assert (pinned.popular, pinned.pinned_lookups) == (32, 96)
    board.check(Case(Operation.LEARN, rows[:48], total_rows=10_000))
    some = board.check(fragment(rows, 32, 3))
    assert some.popular == 16 and some.eal_lookups == 48


def test_longest_sample(board: Scoreboard) -> None:
    most = min(board.config.lookups_max, 2000)
    rows = (np.arange(most) % 100).astype(U32)
    assert board.check(fragment(rows, 1, most)).status is Status.OK
    offsets = ids(0, 0, most, most)
    assert board.check(fragment(rows, 3, offsets=offsets, bags=1)).status is Status.OK


def test_no_pinned_rows_and_only_pinned_rows(board: Scoreboard) -> None:
    rows = np.arange(64, dtype=U32)
    for pinned in (0, 1, 63, 64):
        completion = board.check(fragment(rows, 16, 4, total_rows=64, pinned_rows=pinned))
        assert completion.pinned_lookups == pinned


def test_largest_row_space(board: Scoreboard) -> None:
    rows = ids(0, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 3)
    total = reference.TOTAL_ROWS_MAX
    board.check(Case(Operation.LEARN, rows[::2], total_rows=total))
    completion = board.check(fragment(rows, 5, 1, total_rows=total))
    assert (completion.status, completion.popular) == (Status.OK, 3)


# ------------------------------------------------------------------------------------------- EAL


def test_load_of_a_dump_restores_the_eal(board: Scoreboard) -> None:
    rng = np.random.default_rng(5)
    learned = rng.integers(600, size=900).astype(U32)
    board.check(Case(Operation.LEARN, learned, total_rows=600))
    _, before = board.eal.dump()
    board.check(Case(Operation.CLEAR))
    completion = board.check(Case(Operation.LOAD, before, total_rows=600))
    assert completion.cold_rows == 0
    _, after = board.eal.dump()
    assert np.array_equal(before, after)
    board.check(Case(Operation.DUMP))


def test_load_returns_what_found_no_way(board: Scoreboard) -> None:
    sets, ways = board.config.eal_sets, board.config.eal_ways
    # More rows of one set than it has ways.
    permuted = (np.arange(ways + 5, dtype=np.uint64) * sets + 3).astype(U32)
    rows = reference.unpermute(permuted)
    total = reference.TOTAL_ROWS_MAX
    completion = board.check(Case(Operation.LOAD, rows, total_rows=total))
    assert completion.cold_rows == 5
    entries = np.zeros(len(rows), dtype=ENTRY)
    entries["row"], entries["slot_counter"] = rows[::-1], U32(3 << 30)
    board.check(Case(Operation.CLEAR))
    completion = board.check(Case(Operation.LOAD, entries, total_rows=total))
    assert completion.cold_rows == 5
    board.check(Case(Operation.DUMP))


def test_evict_and_learn_again(board: Scoreboard) -> None:
    rows = np.arange(100, dtype=U32)
    board.check(Case(Operation.LEARN, rows, total_rows=100, pinned_rows=10))
    completion = board.check(
        Case(Operation.EVICT, rows[::3].copy(), total_rows=100, pinned_rows=10)
    )
    assert completion.pinned_lookups == 4
    board.check(Case(Operation.DUMP, pinned_rows=10))
    board.check(Case(Operation.LEARN, np.tile(rows, 3), total_rows=100, pinned_rows=10))
    board.check(Case(Operation.DUMP, pinned_rows=10))


def test_repeated_row_in_a_beat_is_learned_in_order(board: Scoreboard) -> None:
    for repeats in (2, 3, 16, 17):
        board.check(Case(Operation.LEARN, np.repeat(ids(5, 6, 7), repeats), total_rows=10))
        board.check(Case(Operation.DUMP))


def test_epoch_counts_changes_of_the_eal(board: Scoreboard) -> None:
    device = board.device
    assert device.epoch == 0
    for number, case in enumerate(
        (
            Case(Operation.CLEAR),
            Case(Operation.LEARN, ids(1), total_rows=2),
            Case(Operation.LOAD, ids(1), total_rows=2),
            Case(Operation.EVICT, ids(1), total_rows=2),
            Case(Operation.LEARN, ids(2), total_rows=2),  # BAD_INDEX ran, too
        ),
        1,
    ):
        assert board.check(case).epoch == device.epoch == number
    for case in (
        fragment(ids(1), 1, 1),
        Case(Operation.DUMP),
        Case(Operation.LEARN, ids(1), total_rows=0),  # BAD_CONFIG did not run
    ):
        board.check(case)
        assert device.epoch == 5


# ------------------------------------------------------------------------------- out of contract


@pytest.mark.parametrize("bad", ["rows", "rows+1", "2**31", "2**32-1"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_row_id_out_of_bounds(board: Scoreboard, bad: str, place: str) -> None:
    rows = 300
    value = int(eval(bad, {"rows": rows}))
    where = {"first": 0, "middle": 77, "last": 149}[place]
    good = (np.arange(150) * 7 % rows).astype(U32)
    good[10] = rows - 1  # the last row is fine
    spoiled = good.copy()
    spoiled[where] = value
    records = np.random.default_rng(1).integers(256, size=(150, 64), dtype=np.uint8)
    for case in (
        Case(Operation.LEARN, spoiled, total_rows=rows, pinned_rows=20),
        Case(Operation.LOAD, spoiled, total_rows=rows),
        Case(Operation.EVICT, spoiled, total_rows=rows),
        fragment(spoiled, 50, 3, total_rows=rows, pinned_rows=200),
        Case(Operation.GATHER, spoiled, total_rows=rows),
        Case(Operation.SCATTER, spoiled, total_rows=rows, records=records),
    ):
        completion = board.check(case)
        assert (completion.status, completion.reason) == (Status.BAD_INDEX, Reason.ROW_ID)
        assert (completion.error_lookup, completion.error_value) == (where, value)
    board.check(Case(Operation.DUMP))
    assert board.check(Case(Operation.GATHER, good, total_rows=rows)).status is Status.OK


@pytest.mark.parametrize(
    ("offsets", "entry"),
    [
        ((1, 2, 4, 6), 0),
        ((0, 3, 2, 6), 2),
        ((0, 2, 7, 6), 2),
        ((0, 2, 4, 5), 3),
        ((0, 2, 4, 7), 3),
        ((0, 2**32 - 1, 4, 6), 1),
        ((2**31, 2, 4, 6), 0),
    ],
)
def test_offsets_out_of_contract(board: Scoreboard, offsets: tuple[int, ...], entry: int) -> None:
    rows = np.arange(6, dtype=U32)
    completion = board.check(fragment(rows, 3, offsets=ids(*offsets), bags=1))
    assert (completion.status, completion.reason) == (Status.BAD_INDEX, Reason.OFFSET)
    assert completion.error_lookup == entry
    assert board.check(fragment(rows, 3, offsets=ids(0, 2, 4, 6), bags=1)).status is Status.OK


def test_zero_samples_with_a_wrong_offset(board: Scoreboard) -> None:
    completion = board.check(fragment(ids(), 0, offsets=ids(3), bags=1))
    assert (completion.status, completion.error_value) == (Status.BAD_INDEX, 3)
    completion = board.check(fragment(ids(1, 2), 0, offsets=ids(0), bags=1))
    assert completion.status is Status.BAD_INDEX


def test_sample_too_long(board: Scoreboard) -> None:
    most = board.config.lookups_max
    rows = np.zeros(most + 3, dtype=U32)
    completion = board.check(fragment(rows, 2, offsets=ids(0, 2, most + 3), bags=1))
    assert completion.reason is Reason.SAMPLE_TOO_LONG
    assert (completion.error_sample, completion.error_value) == (1, most + 1)


def test_first_error_in_order_of_events_is_reported(board: Scoreboard) -> None:
    rows = np.arange(12, dtype=U32)
    rows[9] = 10_000  # in sample 3, after the bad offset of sample 2
    completion = board.check(fragment(rows, 4, offsets=ids(0, 3, 6, 5, 12), bags=1))
    assert (completion.reason, completion.error_sample) == (Reason.OFFSET, 2)
    rows[1] = 10_000  # before it
    completion = board.check(fragment(rows, 4, offsets=ids(0, 3, 6, 5, 12), bags=1))
    assert (completion.reason, completion.error_sample) == (Reason.ROW_ID, 0)


def test_cold_overflow_then_going_on_gives_every_sample_once(board: Scoreboard) -> None:
    rng = np.random.default_rng(3)
    board.check(Case(Operation.LEARN, np.arange(50, dtype=U32), total_rows=10_000))
    rows = rng.integers(700, size=200 * 4).astype(U32)
    first, parts = 0, 0
    while first < 200:
        case = fragment(rows[4 * first :].copy(), 200 - first, 4, cold_rows_max=31)
        completion = board.check(case)
        assert completion.samples > 0
        first += completion.samples
        parts += 1
    assert first == 200 and parts > 3


def test_cold_overflow_at_the_first_sample(board: Scoreboard) -> None:
    completion = board.check(fragment(np.arange(40, dtype=U32), 10, 4, cold_rows_max=3))
    assert completion.status is Status.COLD_OVERFLOW
    assert (completion.samples, completion.lookups, completion.cold_rows) == (0, 0, 0)


def test_cold_rows_exactly_fill_the_tracker(board: Scoreboard) -> None:
    depth = min(board.config.cold_rows_max, 4096)
    rows = np.arange(depth, dtype=U32)
    full = board.check(fragment(rows, depth, 1, cold_rows_max=depth))
    assert (full.status, full.cold_rows) == (Status.OK, depth)
    over = board.check(fragment(np.append(rows, U32(depth)), depth + 1, 1, cold_rows_max=depth))
    assert (over.status, over.samples) == (Status.COLD_OVERFLOW, depth)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"samples": 3}, Reason.LOOKUPS),
        ({"lookups_per_sample": 2}, Reason.LOOKUPS),
        ({"total_rows": 0}, Reason.ROWS),
        ({"total_rows": 2**32 - 1}, Reason.ROWS),
        ({"pinned_rows": 10_001}, Reason.ROWS),
        ({"cold_rows_max": 0}, Reason.COLD_RANGE),
        ({"cold_rows_max": -1}, Reason.COLD_RANGE),
        ({"cold_base": 0}, Reason.COLD_RANGE),
        ({"cold_base": 2**31 - 128}, Reason.COLD_RANGE),
        ({"cold_base": 2**31 - 129}, Reason.NONE),
    ],
)
def test_arguments_out_of_range(board: Scoreboard, change: dict[str, int], reason: Reason) -> None:
    values = {"samples": 4, "lookups_per_sample": 1, "total_rows": 10_000}
    values |= {"cold_base": 1 << 20, "cold_rows_max": 128} | change
    if values["cold_rows_max"] < 0:
        values["cold_rows_max"] = board.config.cold_rows_max + 1
    completion = board.check(Case(Operation.FRAGMENT, np.arange(4, dtype=U32), **values))
    assert completion.reason is reason
    expected = Status.OK if reason is Reason.NONE else Status.BAD_CONFIG
    assert completion.status is expected


# --------------------------------------------------------------------------------------- gatherer


@pytest.mark.parametrize("record_bytes", [64, 128, 192, 448, 1024, 4032, 4096])
@pytest.mark.parametrize("shift", [None, 2])
def test_gather_and_scatter(device: Device, record_bytes: int, shift: int | None) -> None:
    rows = 21
    board = Scoreboard(device, config_of(device), store=(rows, record_bytes), segment_shift=shift)
    rng = np.random.default_rng(record_bytes)
    for count in (1, 2, 21, 60):
        listed = rng.integers(rows, size=count).astype(U32)
        records = rng.integers(256, size=(count, record_bytes), dtype=np.uint8)
        board.check(Case(Operation.GATHER, listed, total_rows=rows))
        board.check(Case(Operation.SCATTER, listed, total_rows=rows, records=records))
        board.check(Case(Operation.GATHER, listed, total_rows=rows))
    board.close()


def test_last_duplicate_of_a_scatter_wins(board: Scoreboard) -> None:
    listed = np.tile(ids(7, 8, 7), 40)
    records = np.random.default_rng(0).integers(256, size=(120, 64), dtype=np.uint8)
    board.check(Case(Operation.SCATTER, listed, total_rows=300, records=records))
    assert np.array_equal(board.store[0][7], records[119])


def test_most_segments(device: Device) -> None:
    board = Scoreboard(device, config_of(device), store=(128, 64), segment_shift=1)
    listed = np.arange(127, -1, -1, dtype=U32)
    assert board.check(Case(Operation.GATHER, listed, total_rows=128)).lookups == 128
    board.close()
