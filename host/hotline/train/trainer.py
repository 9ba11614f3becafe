# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The trainer: a DLRM on a data set, by one of three schedules, with records of every step.

``plain`` is the comparison: ordinary ``nn.EmbeddingBag`` tables and ``torch.optim``, from the same
seed on the same mini-batches through the same loop.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from hotline.data import Batch as DataBatch
from hotline.data import Dataset
from hotline.device.base import Device
from hotline.errors import ConfigError
from hotline.metrics.reporting import RunRecord, Span, StepRecord
from hotline.models.dlrm import DLRM
from hotline.tables import PIN_THRESHOLD_BYTES
from hotline.train.embedding import HotlineEmbedding, PlainEmbedding
from hotline.train.optim import row_optimizer
from hotline.train.pipeline import Batch, Part, Pipeline, plain_part
from hotline.train.residents import Resident, State
from hotline.train.working import HotSetChange

TRAIN_SCHEDULES = ("split", "merged", "plain")
"""Schedules of the trainer."""


@dataclass(frozen=True)
class TrainerConfig:
    """What is trained, and how.

    Attributes:
        schedule: ``split``, ``merged`` or ``plain``.
        batch_size: samples of a mini-batch.
        epochs: passes over the training part.
        steps: most optimizer steps; None: no limit.
        dim: elements of a row.
        bottom, top: hidden layers of the MLPs.
        lr: learning rate of the dense layers and of the rows.
        optimizer: of the rows, and of the dense layers under the same name: ``sgd``, ``adagrad``.
        learn_steps: mini-batches of the learning phase; they train, too.
        profile_batches: mini-batches to choose the hot set from before the training begins.
        profile_exact: they are counted exactly on the host; else LEARNed by the device.
        lookahead: mini-batches prepared while one trains.
        cold_rows: rows of a cold tail; None: what the device's tracker holds.
        pin_bytes: tables up to this size are always hot.
        seed: of weights and of the order of samples.
        torch_device: ``cpu``, ``cuda`` ...
        double: float64 instead of float32.
        evaluate: whether the AUC on the test part is measured at the end.
    """

    schedule: str = "split"
    batch_size: int = 1024
    epochs: int = 1
    steps: int | None = None
    dim: int = 16
    bottom: tuple[int, ...] = (64, 32)
    top: tuple[int, ...] = (64, 32)
    lr: float = 0.05
    optimizer: str = "sgd"
    learn_steps: int = 0
    profile_batches: int = 0
    profile_exact: bool = False
    lookahead: int = 1
    cold_rows: int | None = None
    pin_bytes: int = PIN_THRESHOLD_BYTES
    seed: int = 0
    torch_device: str = "cpu"
    double: bool = False
    evaluate: bool = True

    def __post_init__(self) -> None:
        if self.schedule not in TRAIN_SCHEDULES:
            raise ConfigError(
                f"no schedule {self.schedule!r}; there are {', '.join(TRAIN_SCHEDULES)}"
            )
        for name in ("batch_size", "epochs", "dim"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        if self.torch_device.startswith("cuda") and not torch.cuda.is_available():
            raise ConfigError("torch_device='cuda': torch sees no CUDA device; use 'cpu'")

    @property
    def dtype(self) -> torch.dtype:
        """Element type of all weights."""
        return torch.float64 if self.double else torch.float32


@dataclass(frozen=True)
class Progress:
    """What callbacks get after every step.

    Attributes:
        phase: ``learning``, ``acceleration`` or ``plain``.
        record: the step.
        total: steps that there will be, as far as known.
        labels, logits: [samples] of the mini-batch, popular samples first; the logits are those of
            the forward pass, before the step.
    """

    phase: str
    record: StepRecord
    total: int
    labels: npt.NDArray[Any]
    logits: npt.NDArray[Any]


Callback = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class _Share:
    """What a micro-batch leaves behind: its share of the mean loss, labels, logits."""

    loss: Tensor
    labels: Tensor
    logits: Tensor


class Trainer:
    """Trains one model.

    Args:
        config: what and how.
        data: the data set.
        device: an open device; None only for ``schedule="plain"``.
        callbacks: called after every step, with a delay of one step.

    Attributes:
        model: the DLRM.
        changes: changes of the hot set.
    """

    def __init__(
        self,
        config: TrainerConfig,
        data: Dataset,
        device: Device | None = None,
        callbacks: tuple[Callback, ...] = (),
    ) -> None:
        self.config, self.data, self.callbacks = config, data, callbacks
        self.group = data.group(config.dim, config.pin_bytes)
        self.changes: list[HotSetChange] = []
        embedding: HotlineEmbedding | PlainEmbedding
        if config.schedule == "plain":
            embedding = PlainEmbedding(
                self.group, dtype=config.dtype, seed=config.seed, torch_device=config.torch_device
            )
            self._name = "torch"
        else:
            if device is None:
                raise ConfigError(f"schedule={config.schedule!r} needs a device (hotline.open)")
            embedding = HotlineEmbedding(
                self.group,
                device,
                optimizer=row_optimizer(config.optimizer),
                lr=config.lr,
                dtype=config.dtype,
                seed=config.seed,
                lookahead=config.lookahead,
                cold_rows=config.cold_rows,
                torch_device=config.torch_device,
            )
            self._name = f"{device.capabilities.backend} {device.capabilities.config}"
        self.embedding = embedding
        self.model = DLRM(
            embedding,
            data.dense_width,
            bottom=config.bottom,
            top=config.top,
            seed=config.seed,
            dtype=config.dtype,
        ).to(config.torch_device)
        parameters = list(self.model.parameters())
        if config.optimizer == "sgd":
            self.optimizer: torch.optim.Optimizer = torch.optim.SGD(parameters, lr=config.lr)
        elif config.optimizer == "adagrad":
            self.optimizer = torch.optim.Adagrad(parameters, lr=config.lr)
        else:
            row_optimizer(config.optimizer)  # says what there is
            raise ConfigError(f"the dense layers have no optimizer {config.optimizer!r}")
        self._pending: deque[tuple[list[_Share], StepRecord, str]] = deque()
        self._writing: list[tuple[int, Resident]] = []

    @property
    def total_steps(self) -> int:
        """Optimizer steps of ``fit``."""
        per_epoch = -(-self.data.samples("train") // self.config.batch_size)
        total = per_epoch * self.config.epochs
        return total if self.config.steps is None else min(total, self.config.steps)

    def batches(self) -> Iterator[DataBatch]:
        """The mini-batches of ``fit``, in order."""
        config = self.config
        every = (
            batch
            for epoch in range(config.epochs)
            for batch in self.data.batches(
                "train", config.batch_size, seed=config.seed, epoch=epoch
            )
        )
        return itertools.islice(every, config.steps)

    def fit(self) -> RunRecord:
        """Trains and, if asked, evaluates."""
        config = self.config
        run = RunRecord("plain" if config.schedule == "plain" else "hotline", self._name)
        self.model.train()
        if isinstance(self.embedding, HotlineEmbedding):
            self._fit_pipeline(run, self.embedding)
        else:
            begin = time.perf_counter()
            for number, batch in enumerate(self.batches()):
                part = plain_part(self.embedding, batch)
                self.optimizer.zero_grad()
                shares = [self._backward(part)]
                self.optimizer.step()
                self._record(run, shares, StepRecord(number, 0.0, batch.samples), "plain")
            self._flush_records(run)
            run.seconds = time.perf_counter() - begin
        if config.evaluate:
            run.auc = self.evaluate()
        return run

    def _fit_pipeline(self, run: RunRecord, embedding: HotlineEmbedding) -> None:
        config = self.config
        begin = time.perf_counter()
        pipeline = Pipeline(
            self.model, self.batches(), schedule=config.schedule, learn=config.learn_steps
        )
        self.changes = pipeline.changes
        if config.profile_batches:
            first = self.data.batches("train", config.batch_size, seed=config.seed, epoch=0)
            pipeline.profile(
                itertools.islice(first, config.profile_batches), exact=config.profile_exact
            )
        for batch in pipeline:
            phase = pipeline.phase
            self.optimizer.zero_grad()
            shares = [self._backward(part) for part in batch]
            batch.step()
            self.optimizer.step()
            stats = batch.stats
            record = StepRecord(
                batch.number,
                0.0,
                stats.samples,
                stats.popular,
                stats.pinned_lookups,
                stats.eal_lookups,
                stats.cold_lookups,
                stats.cold_rows,
                stats.fragment_cycles,
                batch.resident.cycles.get("gather", 0),
                phase == "learning",
            )
            self._record(run, shares, record, phase)
            self._spans(run, batch, begin)
        self._flush_records(run)
        self._written(run, begin)
        run.seconds = time.perf_counter() - begin

    def _backward(self, part: Part) -> _Share:
        """Adds a micro-batch's share to the gradients."""
        if part.labels is None:
            raise ConfigError("the data set gives no labels")
        logits = self.model(part.dense, part.features)
        loss = F.binary_cross_entropy_with_logits(
            logits, part.labels.to(logits.dtype), reduction="sum"
        ).div(part.normaliser)
        loss.backward()  # type: ignore[no-untyped-call]
        return _Share(loss.detach(), part.labels, logits.detach())

    def _record(self, run: RunRecord, shares: list[_Share], record: StepRecord, phase: str) -> None:
        """Notes a step; its loss is read one step later, so that a GPU is not waited for."""
        self._pending.append((shares, record, phase))
        if len(self._pending) > 1:
            self._note(run, *self._pending.popleft())

    def _flush_records(self, run: RunRecord) -> None:
        while self._pending:
            self._note(run, *self._pending.popleft())

    def _note(self, run: RunRecord, shares: list[_Share], record: StepRecord, phase: str) -> None:
        record = replace(record, loss=sum(float(share.loss) for share in shares))
        run.steps.append(record)
        if not self.callbacks:
            return
        labels, logits = (
            torch.cat([getattr(share, name) for share in shares]).cpu().numpy()
            for name in ("labels", "logits")
        )
        progress = Progress(phase, record, self.total_steps, labels, logits)
        for callback in self.callbacks:
            callback(progress)

    def _spans(self, run: RunRecord, batch: Batch, begin: float) -> None:
        spans = {**batch.spans}
        if "gather" in batch.resident.spans:
            spans["gather"] = batch.resident.spans["gather"]
        if "merged" in spans:  # one part: it waits for the cold rows, as the non-popular one
            spans["non-popular"] = spans.pop("merged")
        for stage, (start, end) in spans.items():
            run.spans.append(Span(batch.number, stage, start - begin, end - begin))
        self._writing.append((batch.number, batch.resident))
        self._written(run, begin)

    def _written(self, run: RunRecord, begin: float) -> None:
        """Notes the write-backs that are done."""
        left = []
        for number, resident in self._writing:
            if resident.state is not State.DONE:
                left.append((number, resident))
            elif "scatter" in resident.spans:
                start, end = resident.spans["scatter"]
                run.spans.append(Span(number, "scatter", start - begin, end - begin))
        self._writing = left

    @torch.no_grad()
    def predict(self, split: str = "test") -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(labels [n], logits [n]) of a part of the data set; the hot set does not change."""
        self.model.eval()
        labels, logits = [], []
        device = torch.device(self.config.torch_device)
        for batch in self.data.batches(split, self.config.batch_size):
            dense = torch.as_tensor(batch.dense).to(device)
            logits.append(self.model(dense, batch.features).cpu().numpy())
            labels.append(batch.labels)
        self.model.train()
        return np.concatenate(labels), np.concatenate(logits)

    def evaluate(self, split: str = "test") -> float | None:
        """Area under the ROC curve; None where only one class occurs."""
        from sklearn.metrics import roc_auc_score

        if not self.data.samples(split):
            return None
        labels, logits = self.predict(split)
        if len(np.unique(labels)) < 2:
            return None
        return float(roc_auc_score(labels, logits))

    def close(self) -> None:
        """Frees the memory of the device; the device itself stays open."""
        if isinstance(self.embedding, HotlineEmbedding):
            self.embedding.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
