# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The trainer and the DLRM: equal runs by every schedule, records, refusals."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from hotline.data.synthetic import Synthetic
from hotline.errors import ConfigError
from hotline.metrics.reporting import STAGES, RunRecord, compare
from hotline.models import DLRM
from hotline.tables import FeatureConfig, Group, TableConfig
from hotline.train import PlainEmbedding
from hotline.train.trainer import Progress, Trainer, TrainerConfig
from tests.host.training import LateDevice

DATA = Synthetic(
    rows=(300, 20, 2, 120), dense_width=3, train_samples=500, test_samples=300, signal=3.0, seed=1
)
CONFIG = TrainerConfig(
    batch_size=64, epochs=2, dim=8, bottom=(16,), top=(16,), lr=0.2, pin_bytes=1000, learn_steps=3
)


def run(config: TrainerConfig, data: Synthetic = DATA) -> tuple[RunRecord, Trainer]:
    if config.schedule == "plain":
        with Trainer(config, data) as trainer:
            return trainer.fit(), trainer
    with LateDevice("tiny") as device, Trainer(config, data, device) as trainer:
        return trainer.fit(), trainer


@pytest.fixture(scope="module")
def plain() -> Iterator[RunRecord]:
    yield run(dataclasses.replace(CONFIG, schedule="plain"))[0]


@pytest.mark.parametrize("lookahead", [0, 2])
def test_split_equals_plain(plain: RunRecord, lookahead: int) -> None:
    record, _ = run(dataclasses.replace(CONFIG, lookahead=lookahead))
    comparison = compare(record, plain)
    assert comparison.max_loss_difference < 1e-5
    assert comparison.auc_difference is not None and comparison.auc_difference < 1e-4
    comparison.check()


def test_merged_equals_plain_to_the_bit(plain: RunRecord) -> None:
    record, _ = run(dataclasses.replace(CONFIG, schedule="merged"))
    assert [step.loss for step in record.steps] == [step.loss for step in plain.steps]
    assert record.auc == plain.auc


def test_double_precision() -> None:
    config = dataclasses.replace(CONFIG, double=True, cold_rows=30)
    record, _ = run(config)
    reference, _ = run(dataclasses.replace(config, schedule="plain"))
    assert compare(record, reference).max_loss_difference < 1e-12


def test_adagrad() -> None:
    config = dataclasses.replace(CONFIG, double=True, optimizer="adagrad", lr=0.05)
    record, _ = run(config)
    reference, _ = run(dataclasses.replace(config, schedule="plain"))
    assert compare(record, reference).max_loss_difference < 1e-9


def test_it_learns(plain: RunRecord) -> None:
    losses = [step.loss for step in plain.steps]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert plain.auc is not None and plain.auc > 0.6


def test_records_of_a_run() -> None:
    seen: list[Progress] = []
    with (
        LateDevice("tiny") as device,
        Trainer(CONFIG, DATA, device, callbacks=(seen.append,)) as trainer,
    ):
        assert trainer.total_steps == 16
        record = trainer.fit()
    assert [step.step for step in record.steps] == list(range(16))
    assert [step.samples for step in record.steps] == [*[64] * 7, 52] * 2
    assert all(step.lookups == 4 * step.samples for step in record.steps)
    assert [step.learning for step in record.steps] == [True] * 3 + [False] * 13
    assert [p.phase for p in seen] == ["learning"] * 3 + ["acceleration"] * 13
    assert [p.record for p in seen] == record.steps and {p.total for p in seen} == {16}
    for progress in seen:
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            torch.from_numpy(progress.logits), torch.from_numpy(progress.labels)
        )
        assert float(losses) == pytest.approx(progress.record.loss, abs=1e-6)
    assert len(trainer.changes) == 1 and trainer.changes[0].added > 0
    assert 0 < record.popular_share < 1
    assert record.steps[2].eal_lookups == 0 < record.steps[3].eal_lookups
    stages = Counter(span.stage for span in record.spans)
    assert set(stages) == set(STAGES)
    for stage in ("fragment", "gather", "update", "scatter"):
        assert stages[stage] == 16, "one of each stage a mini-batch"
    assert all(0 <= span.start <= span.end <= record.seconds for span in record.spans)
    for step in range(16):
        spans = {span.stage: span for span in record.spans if span.step == step}
        assert spans["gather"].end <= spans["non-popular"].start
        assert spans["non-popular"].end <= spans["update"].start
        assert spans["scatter"].start >= spans["update"].start


def test_profiling_and_the_limit_of_steps() -> None:
    config = dataclasses.replace(CONFIG, learn_steps=0, profile_batches=2, steps=10)
    record, trainer = run(config)
    assert len(record.steps) == 10 == trainer.total_steps
    assert record.steps[0].eal_lookups > 0 and trainer.changes[0].added > 0
    reference, _ = run(dataclasses.replace(config, schedule="plain"))
    assert compare(record, reference).max_loss_difference < 1e-5


def test_no_auc_where_there_is_none() -> None:
    data = Synthetic(rows=(9,), train_samples=16, test_samples=0)
    config = dataclasses.replace(CONFIG, schedule="plain", epochs=1)
    assert run(config, data)[0].auc is None
    with Trainer(dataclasses.replace(config, evaluate=False), DATA) as trainer:
        assert trainer.fit().auc is None
        labels, logits = trainer.predict()
        assert labels.shape == logits.shape == (300,)
        assert trainer.model.training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "fast"}, "there are split, merged, plain"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"epochs": 0}, "epochs=0"),
    ],
)
def test_configurations_that_cannot_be(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(CONFIG, **change)  # type: ignore[arg-type]


def test_trainers_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="needs a device"):
        Trainer(CONFIG, DATA)
    plain = dataclasses.replace(CONFIG, schedule="plain")
    with pytest.raises(ConfigError, match="not row-local"):
        Trainer(dataclasses.replace(plain, optimizer="adam"), DATA)
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            dataclasses.replace(CONFIG, torch_device="cuda")


# ------------------------------------------------------------------------------------------ DLRM
GROUP = Group(
    (TableConfig("a", 9, 4), TableConfig("b", 5, 4)),
    (FeatureConfig("f", "a"), FeatureConfig("g", "b")),
)


def test_dlrm_is_bottom_interaction_top() -> None:
    state = torch.random.get_rng_state()
    model = DLRM(PlainEmbedding(GROUP), 3, bottom=(7,), top=(6, 5), seed=3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [tuple(p.shape) for p in model.dense_parameters() if p.dim() == 2] == [
        (7, 3), (4, 7), (6, 7), (5, 6), (1, 5),
    ]  # fmt: skip
    ids = {"f": np.array([0, 8]), "g": np.array([4, 2])}
    dense = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    out = model(dense, ids)
    x = model.bottom(dense)
    a, b = model.embedding(ids).unbind(1)
    pairs = torch.stack([(a * x).sum(1), (b * x).sum(1), (b * a).sum(1)], dim=1)
    torch.testing.assert_close(out, model.top(torch.cat((x, pairs), 1))[:, 0])
    same = DLRM(PlainEmbedding(GROUP), 3, bottom=(7,), top=(6, 5), seed=3)
    assert torch.equal(same(dense, ids), out)
    other = DLRM(PlainEmbedding(GROUP), 3, bottom=(7,), top=(6, 5), seed=4)
    assert not torch.equal(other(dense, ids), out)


def test_dlrm_without_dense_input_and_refusals() -> None:
    model = DLRM(PlainEmbedding(GROUP), 0, bottom=(), top=())
    assert model(None, {"f": np.array([1]), "g": np.array([2])}).shape == (1,)
    with pytest.raises(ConfigError, match=r"\[n, 3\], not \[1, 2\]"):
        DLRM(PlainEmbedding(GROUP), 3)(torch.zeros(1, 2), {"f": np.array([1]), "g": np.array([2])})
    with pytest.raises(ConfigError, match="features"):
        DLRM(torch.nn.Linear(1, 1), 3)
    with pytest.raises(ConfigError, match="dense_width=-1"):
        DLRM(PlainEmbedding(GROUP), -1)
