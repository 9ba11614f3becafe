# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The training pipeline: mini-batches prepared ahead, handed out as micro-batches.

    for batch in Pipeline(model, data):
        optimizer.zero_grad()
        for part in batch:           # popular samples first, then the others
            loss = loss_sum(model(part.dense, part.features), part.labels) / part.normaliser
            loss.backward()
        batch.step()                 # the embedding rows
        optimizer.step()             # the dense layers

Stages of a mini-batch and who does them:

    ingest (host) -> FRAGMENT (fragmenter) -> GATHER (gatherer) -> copy (copy stream)
                  -> popular, non-popular, step (GPU) -> SCATTER (gatherer)

While mini-batch i trains, i+1 ... i+lookahead are in the stages before. The result does not depend
on ``lookahead``: see ``hotline.train.working`` for who owns which row.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from hotline.errors import ConfigError, HotlineError
from hotline.frequency import RowCounter
from hotline.tables import Group, RowBatch
from hotline.train.coalesce import coalesce
from hotline.train.embedding import (
    HotlineEmbedding,
    PlainEmbedding,
    check_weights,
    raw_features,
    row_batch,
)
from hotline.train.encode import Bags, Features, to_device
from hotline.train.fragmenting import FragmentBuffers, Fragmented, FragmentTask
from hotline.train.residents import Resident
from hotline.train.working import HotSetChange

_LOG = logging.getLogger(__name__)

SCHEDULES = ("split", "merged")
"""``split``: popular samples first, then the others; ``merged``: one part, original order."""


@dataclass(frozen=True, eq=False)
class MiniBatch:
    """A mini-batch as tensors, for users who bring row ids; ``hotline.data.Batch`` works as well.

    Attributes:
        rows: row ids.
        dense: [samples, width] or None.
        labels: [samples, ...] or None.
        weights: [lookups] factor of each lookup, sample-major, or None.
    """

    rows: RowBatch
    dense: Tensor | None = None
    labels: Tensor | None = None
    weights: Tensor | None = None


def mini_batch(group: Group, batch: Any) -> MiniBatch:
    """Turns a ``hotline.data.Batch`` (``features``, ``dense``, ``labels``) into a ``MiniBatch``."""
    if isinstance(batch, MiniBatch):
        return batch
    if isinstance(batch, RowBatch):
        return MiniBatch(batch)
    if isinstance(batch, Mapping):
        return MiniBatch(row_batch(group, batch))
    dense, labels = (
        None if value is None else torch.as_tensor(value)
        for value in (getattr(batch, "dense", None), getattr(batch, "labels", None))
    )
    weights = getattr(batch, "weights", None)
    return MiniBatch(row_batch(group, batch.features), dense, labels, weights)


@dataclass(frozen=True)
class BatchStats:
    """What is known of a mini-batch when it is handed out.

    Attributes:
        samples: samples, and ``popular`` ones among them.
        pinned_lookups, eal_lookups, cold_lookups: lookups by where the row is.
        cold_rows: distinct cold rows.
        fragment_jobs: FRAGMENT jobs; 0: encoded on the host.
        fragment_cycles: their cycles.
    """

    samples: int
    popular: int
    pinned_lookups: int = 0
    eal_lookups: int = 0
    cold_lookups: int = 0
    cold_rows: int = 0
    fragment_jobs: int = 0
    fragment_cycles: int = 0


@dataclass(frozen=True, eq=False)
class Part:
    """A micro-batch.

    Attributes:
        name: ``popular``, ``non-popular`` or ``merged``.
        samples: [n] int64 numbers of its samples in the mini-batch, on the model's device.
        features: for the embedding module.
        dense, labels: rows of the mini-batch's, on the model's device.
        normaliser: samples of the whole mini-batch: divide the *sum* of the losses by it.
        weight: share of the mini-batch's samples: multiply the *mean* of the losses by it.
    """

    name: str
    samples: Tensor
    features: Features
    dense: Tensor | None
    labels: Tensor | None
    normaliser: int
    weight: float

    def __len__(self) -> int:
        return self.features.samples


@dataclass(eq=False)
class _Staged:
    """A mini-batch on its way."""

    number: int
    batch: MiniBatch
    bags: Bags
    task: FragmentTask | None = None
    buffers: FragmentBuffers | None = None
    result: Fragmented | None = None
    resident: Resident | None = None
    generation: int = -1


class Batch:
    """A mini-batch in training; iterate over its parts, then call ``step`` (or ``skip``)."""

    def __init__(self, pipeline: Pipeline, staged: _Staged) -> None:
        assert staged.result is not None and staged.resident is not None
        self._pipeline, self._staged = pipeline, staged
        self._embedding = pipeline.embedding
        result = staged.result
        self.number = staged.number
        self.stats = BatchStats(
            staged.batch.rows.samples,
            int(result.popular.sum()),
            result.pinned,
            result.eal,
            result.cold,
            len(result.cold_rows),
            result.parts,
            result.cycles,
        )
        self.spans: dict[str, tuple[float, float]] = {"fragment": result.span}
        self._gradient: tuple[Tensor, Tensor] | None = None
        self._over = False

    @property
    def samples(self) -> int:
        """Samples of the mini-batch."""
        return self.stats.samples

    @property
    def resident(self) -> Resident:
        """The mini-batch's cold rows; holds times and cycles of its gather and scatter."""
        assert self._staged.resident is not None
        return self._staged.resident

    def __iter__(self) -> Iterator[Part]:
        popular = self._staged.result.popular if self._staged.result else np.zeros(0, np.bool_)
        if self._pipeline.schedule == "merged":
            parts = [("merged", np.arange(self.samples))]
        else:
            parts = [
                ("popular", np.flatnonzero(popular)),
                ("non-popular", np.flatnonzero(~popular)),
            ]
        working = self._embedding.working
        for name, samples in parts:
            if not len(samples):
                continue
            if self._over:
                raise ConfigError("step() or skip() ended this mini-batch; take the next one")
            if name != "popular":
                working.acquire(self.resident)
            start = time.perf_counter()
            yield self._part(name, samples)
            self.spans[name] = (start, time.perf_counter())
            self._pipeline.pump()

    def _part(self, name: str, samples: npt.NDArray[np.int64]) -> Part:
        staged, device = self._staged, self._embedding.working.torch_device
        result = staged.result
        assert result is not None
        encoded, batch = result.indices.view(np.int32), staged.batch
        if len(samples) == self.samples:
            bags, weights = staged.bags, batch.weights
            dense, labels = batch.dense, batch.labels
        else:
            bags, lookups = staged.bags.select(samples)
            encoded = encoded[lookups]
            chosen = torch.from_numpy(samples)
            dense, labels = (
                None if value is None else value.index_select(0, chosen.to(value.device))
                for value in (batch.dense, batch.labels)
            )
            weights = batch.weights
            if weights is not None:
                weights = weights.index_select(0, torch.from_numpy(lookups).to(weights.device))
        features = Features(
            to_device(encoded, device),
            bags,
            _move(weights, device),
            ticket=self._embedding.working.ticket,
        )
        return Part(
            name,
            to_device(samples, device),
            features,
            _move(dense, device),
            _move(labels, device),
            self.samples,
            len(samples) / self.samples,
        )

    def gradient(self) -> tuple[Tensor, Tensor]:
        """(places [n], summed gradients [n, dim]) of the rows read so far, each row once.

        The gradients may be changed in place before ``step`` (clipping, unscaling).
        """
        if self._gradient is None or self._embedding.recorded:
            records = list(self._embedding.recorded)
            self._embedding.recorded.clear()
            working = self._embedding.working
            places, gradient = coalesce(records, self._embedding.dim, working.dtype)
            if self._gradient is not None and self._gradient[0].numel():
                old_places, old = self._gradient
                both, inverse = torch.unique(torch.cat((old_places, places)), return_inverse=True)
                total = torch.zeros(both.numel(), old.shape[1], dtype=old.dtype, device=old.device)
                places, gradient = both, total.index_add_(0, inverse, torch.cat((old, gradient)))
            self._gradient = (places.to(working.torch_device), gradient.to(working.torch_device))
        return self._gradient

    def scale_gradient(self, factor: float | Tensor) -> None:
        """Multiplies the summed gradients, for loss scaling and clipping."""
        self.gradient()[1].mul_(factor)

    def gradient_norm(self) -> Tensor:
        """2-norm of the summed gradients of all rows."""
        norm: Tensor = torch.linalg.vector_norm(self.gradient()[1])
        return norm

    def step(self, lr: float | None = None) -> None:
        """Updates every row of the mini-batch once; ends it."""
        self._check_open()
        start = time.perf_counter()
        places, gradient = self.gradient()
        working = self._embedding.working
        working.acquire(self.resident)
        working.update(places, gradient, self._embedding.lr if lr is None else lr)
        self._end(updated=True)
        self.spans["update"] = (start, time.perf_counter())

    def skip(self) -> None:
        """Ends the mini-batch without an update: no weight and no state changes."""
        self._check_open()
        self._embedding.working.acquire(self.resident)
        self._end(updated=False)

    def _abandon(self) -> None:
        """As ``skip``, when nothing will train after it: even if its gather failed."""
        self._embedding.working.give_up(self.resident)
        self._end(updated=False)

    def _check_open(self) -> None:
        if self._over:
            raise ConfigError("this mini-batch is over; step() or skip() ends it once")

    def _end(self, *, updated: bool) -> None:
        self._over = True
        self._gradient = None
        self._embedding.recorded.clear()
        working = self._embedding.working
        working.end()
        working.retire(self.resident, updated=updated)
        self._pipeline.pump()


def _move(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    if tensor is None or tensor.device == device:
        return tensor
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def clip_gradients(batch: Batch | None, parameters: Iterable[Tensor], max_norm: float) -> Tensor:
    """Clips dense and embedding gradients by their common 2-norm; returns the norm before.

    Args:
        batch: the mini-batch, before its ``step``.
        parameters: dense parameters with gradients.
        max_norm: the limit.
    """
    dense = [p.grad for p in parameters if p.grad is not None]
    norms = [torch.linalg.vector_norm(g) for g in dense]
    if batch is not None:
        norms.append(batch.gradient_norm())
    total: Tensor = torch.linalg.vector_norm(
        torch.stack([norm.to(norms[0].dtype) for norm in norms])
    )
    factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for gradient in dense:
        gradient.mul_(factor)
    if batch is not None:
        batch.scale_gradient(factor)
    return total


def check_schedule(model: nn.Module, schedule: str) -> None:
    """Refuses modules that make a split mini-batch differ from a whole one.

    Raises:
        ConfigError: names the module with batch statistics.
    """
    if schedule not in SCHEDULES:
        raise ConfigError(f"no schedule {schedule!r}; there are {', '.join(SCHEDULES)}")
    if schedule != "split":
        return
    for name, module in model.named_modules():
        if isinstance(module, _NormBase) and (module.training or not module.track_running_stats):
            raise ConfigError(
                f"module {name or type(module).__name__!r} ({type(module).__name__}) computes "
                "statistics over the samples it sees; with schedule='split' these are those of a "
                "micro-batch. Use schedule='merged', or LayerNorm"
            )
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.training and module.p > 0:
            warnings.warn(
                f"module {name!r} is a dropout: with schedule='split' it draws other numbers than "
                "on the whole mini-batch, so the run differs from a plain one (not in expectation)",
                stacklevel=3,
            )


def find_embedding(model: nn.Module) -> HotlineEmbedding:
    """The one ``HotlineEmbedding`` of a model."""
    found = [module for module in model.modules() if isinstance(module, HotlineEmbedding)]
    if len(found) != 1:
        raise ConfigError(f"a pipeline drives one HotlineEmbedding, the model has {len(found)}")
    return found[0]


class Pipeline:
    """Prepares mini-batches ahead and hands them out in order.

    Args:
        model: the model, or its ``HotlineEmbedding`` alone.
        data: yields ``hotline.data.Batch``, ``MiniBatch`` or ``RowBatch`` objects.
        schedule: ``split`` or ``merged``.
        learn: mini-batches of the learning phase: the device learns from them while they train with
            the hot set that is there; then the learned one is installed.

    Attributes:
        changes: changes of the hot set that the pipeline made.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Iterable[Any],
        *,
        schedule: str = "split",
        learn: int = 0,
    ) -> None:
        self.model, self.data, self.schedule = model, data, schedule
        self.embedding = find_embedding(model)
        self.learn = learn
        self.changes: list[HotSetChange] = []
        self._queue: deque[_Staged] = deque()
        self._free: list[FragmentBuffers] = []
        self._source: Iterator[Any] | None = None
        self._count = 0
        self._learned = 0
        self._exhausted = False
        check_schedule(model, schedule)

    @property
    def phase(self) -> str:
        """``learning`` or ``acceleration``."""
        return "learning" if self.learn > 0 else "acceleration"

    def profile(self, batches: Iterable[Any], *, exact: bool = False) -> HotSetChange:
        """Chooses the hot set from mini-batches without training, then installs it.

        Args:
            batches: mini-batches, as for training.
            exact: count every row on the host (``hotline.frequency``) and LOAD the most frequent
                ones, instead of LEARN. Better, and needs a byte for each row while it runs.
        """
        working = self.embedding.working
        if exact:
            counter = RowCounter(self.embedding.group)
            for batch in batches:
                counter.add_rows(mini_batch(self.embedding.group, batch).rows.ids)
            # Twice what fits: where the sets of the first are full, others take the room elsewhere.
            working.directory.fill(counter.top(2 * working.directory.capacity).rows)
        else:
            for batch in batches:
                working.directory.learn(mini_batch(self.embedding.group, batch).rows.ids)
        change = working.install()
        self.changes.append(change)
        return change

    def __iter__(self) -> Iterator[Batch]:
        if self._source is not None:
            raise ConfigError("the pipeline is being iterated already")
        check_schedule(self.model, self.schedule)
        working = self.embedding.working
        self._source = iter(self.data)
        current: Batch | None = None
        try:
            while True:
                self._fill()
                if not self._queue:
                    if self._learned and self._install():
                        continue
                    break
                staged = self._queue[0]
                self._advance(staged, block=True)
                if not self._admit(staged):
                    raise AssertionError("the oldest mini-batch finds no tail")
                self._queue.popleft()
                self.embedding.recorded.clear()
                working.begin()
                current = Batch(self, staged)
                self.pump()
                yield current
                if not current._over:
                    current.skip()
                current = None
        except Exception:
            try:
                self._close(current)
            except HotlineError as error:  # the first error is the one to tell
                _LOG.error("rows could not be written back: %s", error)
            raise
        finally:
            self._close(current)

    def _install(self) -> bool:
        """Ends the learning phase; returns whether there is more to train."""
        self._learned, self.learn = 0, 0
        self.changes.append(self.embedding.working.install())
        return not self._exhausted

    def _close(self, current: Batch | None) -> None:
        """Brings everything back to the store, also when the loop is left early."""
        if self._source is None:
            return
        working = self.embedding.working
        try:
            if current is not None and not current._over:
                current._abandon()
            working.end()
            for staged in self._queue:
                if staged.task is not None:
                    staged.task.cancel()
                self._release(staged)
            working.flush()
        finally:
            self._queue.clear()
            for buffers in self._free:
                buffers.free()
            self._free.clear()
            self._source = None
            self._exhausted = False

    def _fill(self) -> None:
        """Takes mini-batches from the source and starts their FRAGMENT jobs."""
        working = self.embedding.working
        # One more than tails with look-ahead: its FRAGMENT runs while the gatherer serves others.
        depth = working.lookahead + 2 if working.lookahead else 1
        while len(self._queue) < depth and not self._exhausted:
            if self.learn > 0 and self._learned >= self.learn:
                return  # the barrier: what follows is fragmented with the learned hot set
            assert self._source is not None
            try:
                raw = next(self._source)
            except StopIteration:
                self._exhausted = True
                return
            batch = mini_batch(self.embedding.group, raw)
            check_weights(self.embedding.group, batch.weights, len(batch.rows.ids))
            staged = _Staged(self._count, batch, Bags.of(self.embedding.group, batch.rows))
            self._count += 1
            self._queue.append(staged)
            if self.learn > 0:
                working.directory.learn(batch.rows.ids)
                self._learned += 1
            self._start(staged)
        self.pump()

    def _start(self, staged: _Staged) -> None:
        working = self.embedding.working
        if staged.task is not None:
            staged.task.cancel()
        if staged.buffers is None:
            staged.buffers = (
                self._free.pop() if self._free else FragmentBuffers(working.accelerator.device)
            )
        staged.generation = working.generation
        staged.result = staged.resident = None
        ahead = 0
        for other in self._queue:
            if other is staged:
                break
            ahead += other.resident is None or other.generation != staged.generation
        tail = working.next_tail(ahead)
        staged.task = FragmentTask(
            working.accelerator,
            staged.buffers,
            staged.batch.rows,
            staged.bags,
            working.hot,
            working.epoch,
            self.embedding.group.total_rows,
            tail.base,
            working.cold_rows,
            on_host=self.learn > 0,
        )
        staged.task.start()

    def _release(self, staged: _Staged) -> None:
        if staged.buffers is not None:
            self._free.append(staged.buffers)
            staged.buffers = None

    def _advance(self, staged: _Staged, *, block: bool) -> bool:
        """Moves a mini-batch's FRAGMENT on; returns whether it is fragmented."""
        working = self.embedding.working
        if staged.generation != working.generation:
            self._start(staged)  # the hot set changed: fragment again
        if staged.result is None:
            assert staged.task is not None
            if not staged.task.advance(block=block):
                return False
            staged.result, staged.task = staged.task.result, None
            self._release(staged)
        return True

    def _admit(self, staged: _Staged) -> bool:
        """Gives a fragmented mini-batch its tail, where it has none yet."""
        if staged.resident is not None:
            return True
        working, result = self.embedding.working, staged.result
        assert result is not None
        if not working.can_admit():
            return False
        resident = working.admit(result.cold_rows)
        count = len(result.cold_rows)
        if count and (result.cold_base != resident.tail.base or count > working.cold_rows):
            cold = result.indices >= result.cold_base
            ranks = result.indices[cold] - np.uint32(result.cold_base)
            result.indices[cold] = resident.places[ranks]
            result.cold_base = -1
        staged.resident = resident
        return True

    def pump(self) -> None:
        """Moves everything on that can move without waiting: FRAGMENT, GATHER, SCATTER."""
        working = self.embedding.working
        working.pump()
        ready = True  # admissions keep the order of the mini-batches
        for staged in self._queue:
            ready = self._advance(staged, block=False) and ready and self._admit(staged)


def plain_part(embedding: PlainEmbedding, batch: Any) -> Part:
    """A mini-batch for a model with plain tables: one part, original order, row ids."""
    whole = mini_batch(embedding.group, batch)
    samples = whole.rows.samples
    device = embedding.torch_device
    return Part(
        "merged",
        torch.arange(samples, device=device),
        raw_features(embedding.group, whole.rows, device, whole.weights),
        _move(whole.dense, device),
        _move(whole.labels, device),
        samples,
        1.0,
    )
