# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the tests of training share: random groups and batches, a plain oracle, a nasty device."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotline.device.base import Completion, Device, Dump, Fragment, Gather, Handle, Job, Load
from hotline.device.reference import ReferenceDevice
from hotline.reference import GATHERER
from hotline.tables import FeatureConfig, Group, RowBatch, TableConfig
from hotline.train import HotlineEmbedding, MiniBatch, Pipeline
from hotline.train.store import table_weights

DTYPES = {torch.float32: np.float32, torch.float64: np.float64}


# ---------------------------------------------------------------------------------------- device
class LateHandle(Handle):
    """A job that runs only when somebody asks often enough, or waits."""

    def __init__(self, device: LateDevice, job: Job, polls: int) -> None:
        self.device, self.job, self.polls = device, job, polls
        self.inner: Handle | None = None
        self.taken = 0

    def done(self) -> bool:
        self.polls -= 1
        if self.polls < 0:
            self.device.run_until(self)
        return self.inner is not None

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Completion:
        self.device.run_until(self)
        assert self.inner is not None
        self.taken += 1
        assert self.taken == 1, "a completion was taken twice"
        return self.inner.wait(timeout, check=check)

    def abort(self) -> None:
        raise AssertionError("nothing aborts in these tests")


class LateDevice(Device):
    """The reference with the worst timing that the protocol allows.

    Jobs of a kernel run in order, but as late as possible, so that buffers that are used again too
    early give wrong results; a GATHER behind an unfinished SCATTER may read before its writes, and
    does; outputs hold garbage until the job is done. Freed buffers hold garbage, too.
    """

    def __init__(self, config: Any = "tiny", *, seed: int = 0, **limits: int) -> None:
        self.inner = ReferenceDevice(config)
        self.capabilities = dataclasses.replace(self.inner.capabilities, **limits)
        self.rng = np.random.default_rng(seed)
        self.queues: dict[bool, deque[LateHandle]] = {False: deque(), True: deque()}
        self.counts: dict[str, int] = {}
        self.allocated = 0

    def allocate(self, shape: Any, dtype: Any) -> Any:
        self.allocated += 1
        return self.inner.allocate(shape, dtype)

    def free(self, array: Any) -> None:
        self.allocated -= 1
        for queue in self.queues.values():
            for handle in queue:
                assert not any(
                    isinstance(a, np.ndarray) and np.shares_memory(a, array)
                    for a in vars(handle.job).values()
                ), "a buffer was freed while a job uses it"
        array.view(np.uint8)[...] = 0xA5
        self.inner.free(array)

    def submit(self, job: Job) -> Handle:
        name = type(job).__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        ids = getattr(job, "ids", None)
        if ids is not None:
            assert len(ids) <= self.capabilities.job_lookups_max
        if isinstance(job, Fragment):
            assert job.samples <= self.capabilities.job_samples_max
        queue = self.queues[job.operation in GATHERER]
        while len(queue) >= 2:
            self.run_until(queue[0])
        handle = LateHandle(self, job, int(self.rng.choice([0, 1, 4, 1000])))
        if isinstance(job, Gather) and queue and self.rng.random() < 0.5:
            handle.inner = self.inner.submit(job)  # reads before the SCATTER ahead has written
            records = job.records.copy()
            self._poison(job)
            handle.result = records  # type: ignore[attr-defined]
        else:
            self._poison(job)
        queue.append(handle)
        return handle

    @staticmethod
    def _poison(job: Job) -> None:
        if isinstance(job, Gather):
            job.records[...] = 0x5A
        elif isinstance(job, Fragment):
            for array in (job.indices, job.popular, job.nonpopular, job.bitmap, job.cold_rows):
                array[...] = 0x5A5A5A5A
        elif isinstance(job, (Dump, Load)):
            target = job.entries if isinstance(job, Dump) else job.rejected
            target.view(np.uint8)[...] = 0x5A

    def run_until(self, handle: LateHandle) -> None:
        for queue in self.queues.values():
            if handle not in queue:
                continue
            while True:
                first = queue.popleft()
                if first.inner is None:
                    first.inner = self.inner.submit(first.job)
                elif hasattr(first, "result"):
                    assert isinstance(first.job, Gather)
                    first.job.records[...] = first.result
                if first is handle:
                    return

    @property
    def epoch(self) -> int:
        return self.inner.epoch

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        self.inner.close()


# ------------------------------------------------------------------------------------------ data
def random_group(
    rng: np.random.Generator, *, jagged: bool | None = None, mean: bool = True
) -> Group:
    """A few tables, some of one row, some shared by several features."""
    dim = int(rng.choice([1, 3, 8, 16]))
    sizes = rng.choice([1, 2, 5, 40, 200, 600], size=rng.integers(1, 5))
    tables = tuple(TableConfig(f"t{n}", int(rows), dim) for n, rows in enumerate(sizes))
    jagged = bool(rng.random() < 0.5) if jagged is None else jagged
    features = []
    for n in range(rng.integers(1, 6)):
        lookups: int | None = int(rng.choice([1, 1, 2, 4]))
        if jagged and (n == 0 or rng.random() < 0.5):
            lookups = None
        pooling = "mean" if mean and rng.random() < 0.3 else "sum"
        features.append(FeatureConfig(f"f{n}", str(rng.choice(tables).name), lookups, pooling))
    pin = int(rng.choice([0, 4 * dim * 5, 4 * dim * 40]))
    return Group(tables, tuple(features), pin_bytes=pin)


def random_rows(
    group: Group, rng: np.random.Generator, samples: int, *, skew: float = 3.0
) -> RowBatch:
    """Row ids of a mini-batch, drawn per bag; small ids of each table are the popular ones."""
    rows = {table.name: table.rows for table in group.tables}
    ids: list[np.ndarray[Any, Any]] = []
    offsets = [0]
    for _ in range(samples):
        for feature in group.features:
            count = int(rng.integers(0, 5)) if feature.lookups is None else feature.lookups
            local = (rng.random(count) ** skew * rows[feature.table]).astype(np.int64)
            ids.append(group.bases[feature.table] + local)
            offsets.append(offsets[-1] + count)
    flat = np.concatenate(ids).astype(np.uint32) if ids else np.zeros(0, np.uint32)
    fixed = group.lookups_per_sample
    return RowBatch(
        flat,
        samples,
        len(group.features),
        fixed,
        None if fixed is not None else np.array(offsets, dtype=np.uint32),
    )


def random_batches(
    group: Group,
    rng: np.random.Generator,
    sizes: Sequence[int],
    *,
    weighted: bool = False,
    skew: float = 3.0,
    dtype: torch.dtype = torch.float64,
) -> list[MiniBatch]:
    """Mini-batches with dense input [n, 3] and labels."""
    batches = []
    for samples in sizes:
        rows = random_rows(group, rng, samples, skew=skew)
        weights = torch.from_numpy(rng.normal(size=len(rows.ids))).to(dtype) if weighted else None
        batches.append(
            MiniBatch(
                rows,
                torch.from_numpy(rng.normal(size=(samples, 3))).to(dtype),
                torch.from_numpy(rng.integers(0, 2, size=samples)).to(dtype),
                weights,
            )
        )
    return batches


# ---------------------------------------------------------------------------------------- oracle
class OracleEmbedding(nn.Module):
    """A table each, one ``F.embedding_bag`` a feature: written without any of Hotline's code."""

    def __init__(self, group: Group, seed: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.group = group
        self.features, self.dim = len(group.features), group.dim
        self.tables = nn.ParameterDict(
            {
                table.name: nn.Parameter(
                    torch.from_numpy(table_weights(seed, table, DTYPES[dtype]))
                )
                for table in group.tables
            }
        )

    def forward(self, batch: MiniBatch) -> Tensor:
        rows, bags = batch.rows, len(self.group.features)
        if rows.offsets is not None:
            offsets = rows.offsets.astype(np.int64)
        else:
            lengths = [feature.lookups for feature in self.group.features]
            offsets = np.concatenate(([0], np.cumsum(np.tile(lengths, rows.samples)))).astype(int)
        outputs = []
        for n, feature in enumerate(self.group.features):
            bag_ids = [
                np.arange(offsets[s * bags + n], offsets[s * bags + n + 1])
                for s in range(rows.samples)
            ]
            lookups = np.concatenate(bag_ids) if bag_ids else np.zeros(0, int)
            local = rows.ids[lookups].astype(np.int64) - self.group.bases[feature.table]
            starts = np.concatenate(([0], np.cumsum([len(b) for b in bag_ids])))
            outputs.append(
                F.embedding_bag(
                    torch.from_numpy(local),
                    self.tables[feature.table],
                    torch.from_numpy(starts.astype(np.int64)),
                    mode=feature.pooling,
                    include_last_offset=True,
                    per_sample_weights=None if batch.weights is None else batch.weights[lookups],
                )
            )
        return torch.stack(outputs, dim=1)

    def table_weights(self, name: str) -> Tensor:
        return self.tables[name].detach()


class Model(nn.Module):
    """A small nonlinear model, so that every gradient depends on every weight of its sample."""

    def __init__(self, embedding: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.embedding = embedding
        generator = torch.Generator().manual_seed(1)
        width = embedding.features * embedding.dim + 3  # type: ignore[operator]
        self.hidden = nn.Parameter(
            torch.randn(width, 4, generator=generator, dtype=torch.float64).to(dtype) * 0.5
        )
        self.out = nn.Parameter(torch.ones(4, dtype=dtype))

    def dense_parameters(self) -> list[nn.Parameter]:
        return [self.hidden, self.out]

    def forward(self, dense: Tensor, features: Any) -> Tensor:
        vectors = self.embedding(features).flatten(1)
        return torch.tanh(torch.cat((dense, vectors), dim=1) @ self.hidden) @ self.out


def loss_sum(logits: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")


def train_oracle(
    group: Group,
    batches: Iterable[MiniBatch],
    *,
    lr: float,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    skip: frozenset[int] = frozenset(),
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
) -> tuple[Model, list[float]]:
    """The plain loop."""
    model = Model(OracleEmbedding(group, seed, dtype), dtype)
    steps = optimizer(model.parameters(), lr=lr)
    losses = []
    for number, batch in enumerate(batches):
        steps.zero_grad()
        assert batch.labels is not None
        if batch.rows.samples == 0:
            losses.append(0.0)
            continue
        loss = loss_sum(model(batch.dense, batch), batch.labels) / batch.rows.samples
        loss.backward()
        losses.append(float(loss))
        if number not in skip:
            steps.step()
    return model, losses


def train_pipeline(
    embedding: HotlineEmbedding,
    batches: Iterable[MiniBatch],
    *,
    lr: float,
    schedule: str,
    dtype: torch.dtype = torch.float64,
    skip: frozenset[int] = frozenset(),
    learn: int = 0,
    model: Model | None = None,
    between: Callable[[int], None] | None = None,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
) -> tuple[Model, list[float]]:
    """The pipelined loop; ``between`` is called after every step."""
    model = model or Model(embedding, dtype)
    steps = optimizer(model.dense_parameters(), lr=lr)
    losses = []
    for batch in Pipeline(model, batches, schedule=schedule, learn=learn):
        steps.zero_grad()
        total = 0.0
        for part in batch:
            assert part.dense is not None and part.labels is not None and len(part)
            loss = loss_sum(model(part.dense, part.features), part.labels) / part.normaliser
            loss.backward()
            total += float(loss)
        losses.append(total)
        if batch.number in skip:
            batch.skip()
        else:
            batch.step(lr)
            if batch.samples:
                steps.step()
        if between is not None:
            between(batch.number)
    return model, losses


def assert_equal_models(
    hotline: Model, oracle: Model, group: Group, tolerance: float, *, relative: float = 0.0
) -> None:
    """All rows of all tables, wherever they are, and the dense layers."""
    pairs = [
        (hotline.embedding.table_weights(t.name), oracle.embedding.table_weights(t.name))
        for t in group.tables
    ]
    pairs += list(zip(hotline.dense_parameters(), oracle.dense_parameters(), strict=True))
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=relative)


def entries_of(embedding: HotlineEmbedding) -> bytes:
    """The directory's entries."""
    entries = embedding.working.directory.dump()
    assert entries is not None
    return bytes(entries.tobytes())


def rows_of_share(group: Group, rng: np.random.Generator, share: float) -> np.ndarray[Any, Any]:
    """A random share of the rows that are not pinned."""
    rows = np.arange(group.pinned_rows, group.total_rows)
    return rng.permutation(rows)[: round(share * len(rows))].astype(np.uint32)
