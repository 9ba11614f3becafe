# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The pipeline's interface: parts, statistics, refusals, clipping, errors of the device."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from hotline.codes import Operation, Reason, Status
from hotline.device.base import Completion, Fragment, Gather, Handle, Job, Learn, Scatter
from hotline.device.reference import ReferenceHandle
from hotline.errors import AxiError, ConfigError, DataError, DeviceDead, DeviceTimeout
from hotline.reference import GATHERER
from hotline.tables import FeatureConfig, Group, RowBatch, TableConfig
from hotline.train import HotlineEmbedding, MiniBatch, Pipeline, clip_gradients
from tests.host.training import (
    LateDevice,
    LateHandle,
    Model,
    assert_equal_models,
    loss_sum,
    random_batches,
    rows_of_share,
    train_oracle,
    train_pipeline,
)

GROUP = Group(
    (TableConfig("a", 120, 4), TableConfig("b", 30, 4), TableConfig("c", 2, 4)),
    (FeatureConfig("f", "a", 2), FeatureConfig("g", "b"), FeatureConfig("h", "c")),
    pin_bytes=64,
)


@pytest.fixture
def device() -> Iterator[LateDevice]:
    with LateDevice("tiny") as opened:
        yield opened


@pytest.fixture
def embedding(device: LateDevice) -> Iterator[HotlineEmbedding]:
    with HotlineEmbedding(GROUP, device, dtype=torch.float64) as opened:
        yield opened


def test_parts_are_the_micro_batches(embedding: HotlineEmbedding) -> None:
    rng = np.random.default_rng(0)
    embedding.working.load(rows_of_share(GROUP, rng, 0.7))
    batches = random_batches(GROUP, rng, (40, 40, 3))
    hot = set(embedding.working.hot.rows.tolist()) | {0, 1}
    for batch, given in zip(Pipeline(embedding, batches), batches, strict=True):
        ids = given.rows.ids.reshape(-1, 4)
        popular = np.array([all(int(i) in hot for i in sample) for sample in ids])
        parts = {part.name: part for part in batch}
        assert list(parts) == [
            name
            for name, some in (("popular", popular.any()), ("non-popular", (~popular).any()))
            if some
        ]
        assert sum(part.weight for part in parts.values()) == pytest.approx(1)
        for name, part in parts.items():
            expected = np.flatnonzero(popular == (name == "popular"))
            np.testing.assert_array_equal(part.samples, expected)
            assert given.dense is not None and given.labels is not None
            torch.testing.assert_close(part.dense, given.dense[expected])
            torch.testing.assert_close(part.labels, given.labels[expected])
            assert part.normaliser == len(ids) and len(part) == len(expected)
            if name == "popular":
                assert int(part.features.indices.max()) < embedding.working.hot_rows
        lookups = [int(i) for i in ids.ravel()]
        stats = batch.stats
        assert stats.samples == len(ids) and stats.popular == popular.sum()
        assert stats.pinned_lookups == sum(i < 2 for i in lookups)
        assert stats.eal_lookups == sum(i in hot and i >= 2 for i in lookups)
        assert stats.cold_lookups == sum(i not in hot for i in lookups)
        assert stats.cold_rows == len({i for i in lookups if i not in hot})
        assert stats.fragment_jobs == 1
        batch.step()
        assert batch.resident.spans["gather"][1] >= batch.resident.spans["gather"][0] > 0


class StuckHandle(LateHandle):
    """A gather that nobody may wait for yet."""

    def done(self) -> bool:
        return False

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        if self.device.stuck:  # type: ignore[attr-defined]
            raise TimeoutError("the gatherer was waited for")
        return super().wait(timeout, check=check)


class StuckDevice(LateDevice):
    """Its gathers do not finish while ``stuck``."""

    stuck = True

    def submit(self, job: Job) -> Handle:
        handle = super().submit(job)
        if isinstance(job, Gather):
            handle.__class__ = StuckHandle
        return handle


def test_the_popular_part_does_not_wait_for_the_gatherer() -> None:
    rng = np.random.default_rng(1)
    with (
        StuckDevice("tiny") as device,
        HotlineEmbedding(GROUP, device, dtype=torch.float64) as embedding,
    ):
        device.stuck = False
        embedding.working.load(rows_of_share(GROUP, rng, 0.7))
        device.stuck = True
        for batch in Pipeline(embedding, random_batches(GROUP, rng, (40, 40))):
            parts = iter(batch)
            part = next(parts)
            assert part.name == "popular"
            embedding(part.features).sum().backward()
            with pytest.raises(TimeoutError, match="waited for"):
                next(parts)
            device.stuck = False
            batch.step()
            device.stuck = batch.number == 0


def test_mean_of_the_losses_times_weight_is_the_same(device: LateDevice) -> None:
    rng = np.random.default_rng(2)
    batches = random_batches(GROUP, rng, (24,) * 5)
    oracle, _ = train_oracle(GROUP, batches, lr=0.2)
    with HotlineEmbedding(GROUP, device, dtype=torch.float64) as embedding:
        embedding.working.load(rows_of_share(GROUP, rng, 0.6))
        model = Model(embedding, torch.float64)
        dense = torch.optim.SGD(model.dense_parameters(), lr=0.2)
        for batch in Pipeline(model, batches):
            dense.zero_grad()
            for part in batch:
                loss = loss_sum(model(part.dense, part.features), part.labels) / len(part)
                (loss * part.weight).backward()
            batch.step(0.2)
            dense.step()
        assert_equal_models(model, oracle, GROUP, 1e-12)


def test_clipping_and_loss_scaling_act_on_the_summed_gradient(device: LateDevice) -> None:
    rng = np.random.default_rng(3)
    batches = random_batches(GROUP, rng, (24,) * 6)
    oracle, _ = train_oracle(GROUP, [], lr=0.5)
    steps = torch.optim.SGD(oracle.parameters(), lr=0.5)
    norms = []
    for batch in batches:
        steps.zero_grad()
        (loss_sum(oracle(batch.dense, batch), batch.labels) * 10 / 24).backward()
        norms.append(nn.utils.clip_grad_norm_(oracle.parameters(), 0.7))
        steps.step()
    assert any(norm > 0.7 for norm in norms)
    with HotlineEmbedding(GROUP, device, dtype=torch.float64) as embedding:
        embedding.working.load(rows_of_share(GROUP, rng, 0.6))
        model = Model(embedding, torch.float64)
        dense = torch.optim.SGD(model.dense_parameters(), lr=0.5)
        for batch, norm in zip(Pipeline(model, batches), norms, strict=True):
            dense.zero_grad()
            for part in batch:
                loss = loss_sum(model(part.dense, part.features), part.labels) * 10
                (loss / part.normaliser * 1024).backward()
                batch.gradient()  # may be asked for early; later parts are added
            batch.scale_gradient(1 / 1024)
            for parameter in model.dense_parameters():
                assert parameter.grad is not None
                parameter.grad /= 1024
            torch.testing.assert_close(
                clip_gradients(batch, model.dense_parameters(), 0.7), norm, rtol=1e-9, atol=0
            )
            batch.step(0.5)
            dense.step()
        assert_equal_models(model, oracle, GROUP, 1e-12)


def test_split_refuses_batch_statistics_by_name(embedding: HotlineEmbedding) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model.add_module("tables", embedding)
    with pytest.raises(ConfigError, match=r"'1' \(BatchNorm1d\).*merged"):
        Pipeline(model, [], schedule="split")
    list(Pipeline(model, [], schedule="merged"))
    model.eval()
    pipeline = Pipeline(model, [], schedule="split")  # running statistics are fine
    model.train()
    with pytest.raises(ConfigError, match="BatchNorm1d"):
        iter(pipeline).__next__()
    frozen = nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False), embedding).eval()
    with pytest.raises(ConfigError, match="BatchNorm1d"):
        Pipeline(frozen, [])


def test_split_warns_of_dropout(embedding: HotlineEmbedding) -> None:
    model = nn.ModuleDict({"drop": nn.Dropout(0.1), "tables": embedding})
    with pytest.warns(UserWarning, match="'drop' is a dropout"):
        Pipeline(model, [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Pipeline(model, [], schedule="merged")
        Pipeline(nn.ModuleDict({"drop": nn.Dropout(0.0), "tables": embedding}), [])


def test_what_cannot_be_driven_is_refused(embedding: HotlineEmbedding) -> None:
    with pytest.raises(ConfigError, match="'merge'"):
        Pipeline(embedding, [], schedule="merge")
    with pytest.raises(ConfigError, match="the model has 0"):
        Pipeline(nn.Linear(1, 1), [])
    pipeline = Pipeline(embedding, random_batches(GROUP, np.random.default_rng(0), (4, 4)))
    running = iter(pipeline)
    next(running)
    with pytest.raises(ConfigError, match="iterated already"):
        next(iter(pipeline))
    running.close()  # type: ignore[attr-defined]
    assert len(list(pipeline)) == 2
    with LateDevice("tiny") as device, pytest.raises(ConfigError, match="lookahead"):
        HotlineEmbedding(GROUP, device, lookahead=-1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (RowBatch(np.zeros(8, np.uint32), 2, 2, 4), "2 bags, the group has 3"),
        (RowBatch(np.zeros(8, np.uint32), 2, 3, 5), "5 lookups, the features 4"),
        (RowBatch(np.zeros(7, np.uint32), 2, 3, 4), "8 lookups, there are 7"),
        (
            RowBatch(
                np.zeros(8, np.uint32), 2, 3, None, np.array([0, 3, 2, 4, 5, 6, 8], np.uint32)
            ),
            "never decreasing",
        ),
        (
            RowBatch(
                np.zeros(8, np.uint32), 2, 3, None, np.array([0, 1, 2, 4, 5, 6, 7], np.uint32)
            ),
            "7 lookups, there are 8",
        ),
    ],
)
def test_bad_batches_are_refused(embedding: HotlineEmbedding, rows: RowBatch, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(Pipeline(embedding, [rows]))
    with pytest.raises(DataError, match=message):
        embedding(rows)


def test_a_directory_changed_by_others_is_noticed(
    device: LateDevice, embedding: HotlineEmbedding
) -> None:
    """Somebody runs LEARN on the device in mid-run: results of that epoch are not used."""
    rng = np.random.default_rng(5)
    embedding.working.load(rows_of_share(GROUP, rng, 0.5))
    batches = random_batches(GROUP, rng, (20,) * 8)
    ids = device.allocate(64, np.uint32)
    ids[:] = rng.integers(2, 152, size=64)

    def between(number: int) -> None:
        if number == 2:
            device.run(Learn(ids, GROUP.total_rows, GROUP.pinned_rows))
        if number == 5:
            embedding.working.install()

    ours, _ = train_pipeline(embedding, batches, lr=0.3, schedule="split", between=between)
    oracle, _ = train_oracle(GROUP, batches, lr=0.3)
    assert_equal_models(ours, oracle, GROUP, 1e-12)
    device.free(ids)


class Faulty(LateDevice):
    """Fails some jobs of an operation with AXI_ERROR: the jobs numbered so, ``times`` each."""

    def __init__(self, operation: Operation, numbers: set[int], times: int, seed: int) -> None:
        super().__init__("tiny", seed=seed)
        self.operation, self.numbers, self.times, self.seen = operation, numbers, times, 0
        self.failures: dict[bytes, int] = {}

    def submit(self, job: Job) -> Handle:
        if job.operation is self.operation:
            assert isinstance(job, (Fragment, Gather, Scatter))
            self.seen += 1
            key = job.ids.tobytes()  # a repeated job is known by its rows
            if self.seen in self.numbers or 0 < self.failures.get(key, 0) < self.times:
                self.failures[key] = self.failures.get(key, 0) + 1
            if 0 < self.failures.get(key, 0) <= self.times:
                self.failures[key] += 100 if self.failures[key] == self.times else 0
                return ReferenceHandle(
                    Completion(0, Status.AXI_ERROR, job.operation, Reason.READ, error_value=64)
                )
        return super().submit(job)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lookahead", [0, 1, 2])
@pytest.mark.parametrize("operation", [Operation.FRAGMENT, Operation.GATHER, Operation.SCATTER])
def test_a_job_that_fails_once_is_repeated(operation: Operation, lookahead: int, seed: int) -> None:
    rng = np.random.default_rng(6)
    batches = random_batches(GROUP, rng, (20,) * 16)
    with (
        Faulty(operation, {1, 4, 7, 9}, 1, seed) as device,
        HotlineEmbedding(GROUP, device, dtype=torch.float64, lookahead=lookahead) as embedding,
    ):
        ours, _ = train_pipeline(embedding, batches, lr=0.3, schedule="split")
        oracle, _ = train_oracle(GROUP, batches, lr=0.3)
        assert_equal_models(ours, oracle, GROUP, 1e-12)
        assert len(device.failures) >= 3 and device.seen > 9


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("operation", [Operation.FRAGMENT, Operation.GATHER, Operation.SCATTER])
def test_a_job_that_fails_twice_is_told_and_loses_no_update(
    operation: Operation, number: int
) -> None:
    """The typed error arrives, the weights are those of the steps before it, training goes on."""
    rng = np.random.default_rng(6)
    batches = random_batches(GROUP, rng, (20,) * 8)
    with (
        Faulty(operation, {number}, 2, 0) as device,
        HotlineEmbedding(GROUP, device, dtype=torch.float64, lookahead=1) as embedding,
    ):
        model = Model(embedding, torch.float64)
        done: list[int] = []
        with pytest.raises(AxiError, match="0x40"):
            train_pipeline(
                embedding, batches, lr=0.3, schedule="split", model=model, between=done.append
            )
        oracle, _ = train_oracle(GROUP, batches[: len(done)], lr=0.3)
        assert_equal_models(model, oracle, GROUP, 1e-12)
        train_pipeline(embedding, batches[len(done) :], lr=0.3, schedule="split", model=model)
        oracle, _ = train_oracle(GROUP, batches, lr=0.3)
        assert_equal_models(model, oracle, GROUP, 1e-12)


class LateFailure(ReferenceHandle):
    """A job whose failure is seen by whoever waits for it."""

    def done(self) -> bool:
        return False


class LateFaulty(Faulty):
    def submit(self, job: Job) -> Handle:
        handle = super().submit(job)
        if isinstance(handle, ReferenceHandle):
            handle.__class__ = LateFailure
        return handle


@pytest.mark.parametrize("period", [1, 3])
def test_a_repeated_write_back_spares_rows_written_since(period: int) -> None:
    """Late FRAGMENTs, or mini-batches without cold rows, let two write-backs of a row be open."""
    group = Group((TableConfig("t", 64, 2),), (FeatureConfig("f", "t", 2),), pin_bytes=0)
    rng = np.random.default_rng(13)
    batches = []
    for number in range(12 * period):
        ids = np.array([0, 1] if number % period else [10, 11 + number], dtype=np.uint32)
        dense = torch.from_numpy(rng.normal(size=(1, 3)))
        labels = torch.zeros(1, dtype=torch.float64)
        batches.append(MiniBatch(RowBatch(ids, 1, 1, 2), dense, labels))
    oracle, _ = train_oracle(group, batches, lr=0.3)
    for fault, seed in itertools.product((2, 5, 11), range(8)):
        with (
            LateFaulty(Operation.SCATTER, {fault}, 1, seed) as device,
            HotlineEmbedding(group, device, dtype=torch.float64, lookahead=1) as embedding,
        ):
            embedding.working.load(np.array([0, 1]))
            ours, _ = train_pipeline(embedding, batches, lr=0.3, schedule="split")
            assert_equal_models(ours, oracle, group, 1e-12)
            assert device.failures


class DyingHandle(LateHandle):
    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        self.device.die_in(self)  # type: ignore[attr-defined]
        return super().wait(timeout, check=check)


class DyingDevice(LateDevice):
    """The job of that number never ends; from then on everything raises ``DeviceDead``."""

    def __init__(self, number: int, seed: int) -> None:
        super().__init__("tiny", seed=seed)
        self.number, self.jobs, self.dead, self.resets = number, 0, False, 0
        self.last: Handle | None = None

    def submit(self, job: Job) -> Handle:
        self._alive()
        self.jobs += 1
        if any(len(queue) >= 2 and queue[0] is self.last for queue in self.queues.values()):
            self._die()
            raise DeviceTimeout("no place became free in time")
        handle = super().submit(job)
        handle.__class__ = DyingHandle
        if self.jobs == self.number:
            self.last = handle
        return handle

    def die_in(self, handle: LateHandle) -> None:
        self._alive()
        if self._behind_last(handle):
            self._die()
            raise DeviceTimeout("the job did not finish in time")

    def run_until(self, handle: LateHandle) -> None:
        self._alive()
        if not self._behind_last(handle):
            super().run_until(handle)

    def _behind_last(self, handle: LateHandle) -> bool:
        queue = list(self.queues[handle.job.operation in GATHERER])
        return (
            self.last in queue and handle in queue and queue.index(handle) >= queue.index(self.last)  # type: ignore[arg-type]
        )

    def _die(self) -> None:
        self.dead = True
        for queue in self.queues.values():
            for handle in queue:  # whatever they were doing is left half done
                if isinstance(handle.job, Scatter) and handle.inner is None:
                    half = len(handle.job.ids) // 2
                    self.inner.submit(
                        dataclasses.replace(
                            handle.job,
                            ids=handle.job.ids[:half],
                            records=handle.job.records[:half],
                        )
                    )

    def _alive(self) -> None:
        if self.dead:
            raise DeviceDead("the device is dead")

    @property
    def epoch(self) -> int:
        self._alive()
        return super().epoch

    def reset(self) -> None:
        self.resets += 1
        for queue in self.queues.values():
            queue.clear()
        super().reset()


@pytest.mark.parametrize("lookahead", [0, 1, 2])
@pytest.mark.parametrize("number", [1, 4, 5, 7, 9, 10, 13, 14, 17, 20])
def test_the_host_takes_over_from_a_dead_device(number: int, lookahead: int) -> None:
    rng = np.random.default_rng(11)
    batches = random_batches(GROUP, rng, (20,) * 12)
    with (
        DyingDevice(number, lookahead) as device,
        HotlineEmbedding(GROUP, device, dtype=torch.float64, lookahead=lookahead) as embedding,
    ):
        ours, _ = train_pipeline(embedding, batches, lr=0.3, schedule="split", learn=3)
        oracle, _ = train_oracle(GROUP, batches, lr=0.3)
        assert_equal_models(ours, oracle, GROUP, 1e-12)
        assert device.dead and device.resets == 1
        assert isinstance(embedding.working.accelerator.lost, (DeviceTimeout, DeviceDead))
        everything = np.arange(GROUP.pinned_rows, GROUP.total_rows)
        assert len(embedding.working.load(everything)) == len(everything)  # no way for any
        ours, _ = train_pipeline(embedding, batches, lr=0.3, schedule="split", model=ours)
        oracle, _ = train_oracle(GROUP, batches * 2, lr=0.3)
        assert_equal_models(ours, oracle, GROUP, 1e-12)


def test_without_fallback_the_time_out_is_told() -> None:
    rng = np.random.default_rng(12)
    batches = random_batches(GROUP, rng, (20,) * 12)
    with DyingDevice(9, 0) as device:
        embedding = HotlineEmbedding(GROUP, device, dtype=torch.float64, fallback=False)
        with pytest.raises((DeviceTimeout, DeviceDead)):
            train_pipeline(embedding, batches, lr=0.3, schedule="split", learn=3)
        assert device.resets == 0


def test_an_error_in_the_loop_loses_no_update(embedding: HotlineEmbedding) -> None:
    batches = random_batches(GROUP, np.random.default_rng(7), (20,) * 8)
    model = Model(embedding, torch.float64)

    def between(number: int) -> None:
        if number == 3:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train_pipeline(embedding, batches, lr=0.3, schedule="split", model=model, between=between)
    oracle, _ = train_oracle(GROUP, batches[:4], lr=0.3)
    assert_equal_models(model, oracle, GROUP, 1e-12)
    assert not embedding.working.training and not embedding.working.live


@pytest.mark.parametrize("exact", [False, True])
def test_profiling_learns_without_training(
    device: LateDevice, embedding: HotlineEmbedding, exact: bool
) -> None:
    rng = np.random.default_rng(8)
    batches = random_batches(GROUP, rng, (20,) * 8)
    before = embedding.table_weights("a")
    pipeline = Pipeline(embedding, batches)
    change = pipeline.profile(batches[:4], exact=exact)
    assert change.added == change.hot_rows > 0 and change.evicted == change.moved == 0
    assert pipeline.changes == [change] and pipeline.phase == "acceleration"
    assert torch.equal(embedding.table_weights("a"), before)
    seen = {int(i) for batch in batches[:4] for i in batch.rows.ids if i >= GROUP.pinned_rows}
    assert set(embedding.working.hot.rows.tolist()) == seen  # the EAL holds all 150 rows


def test_mini_batch_of_no_samples(embedding: HotlineEmbedding) -> None:
    rng = np.random.default_rng(9)
    batches = random_batches(GROUP, rng, (5, 0, 5))
    for schedule in ("split", "merged"):
        sizes = []
        for batch in Pipeline(embedding, batches, schedule=schedule):
            sizes.append(sum(len(part) for part in batch))
            batch.step()
        assert sizes == [5, 0, 5]


def test_learning_uses_the_hot_set_that_is_there(embedding: HotlineEmbedding) -> None:
    """Learning again in mid-run: the old hot set serves until the new one is installed."""
    rng = np.random.default_rng(10)
    embedding.working.load(rows_of_share(GROUP, rng, 0.5))
    hot = embedding.working.hot.rows.tolist()
    batches = random_batches(GROUP, rng, (20,) * 6)
    popular = []
    for batch in Pipeline(embedding, batches, learn=3):
        popular.append(batch.stats.eal_lookups)
        if batch.number < 3:
            assert embedding.working.hot.rows.tolist() == hot and batch.stats.fragment_jobs == 0
        else:
            assert embedding.working.hot.rows.tolist() != hot and batch.stats.fragment_jobs == 1
    assert all(popular)
