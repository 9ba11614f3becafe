# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a Criteo-like DLRM on the CPU: ours beside plain torch and TorchRec.

13 dense columns, 26 tables of at most a million rows (5.6 million in all, 356 MB: more than any
cache), dim 16, bottom 512-256-64-16, top 512-256-1, mini-batches of 2,048 samples, all different,
Zipf 1.1, SGD, float32. All variants start from the same weights, have the same dense layers, see
the same mini-batches, and take turns by blocks of steps; the losses are compared.

- ``plain``: 26 ``nn.EmbeddingBag(sparse=True)`` with ``torch.optim.SGD``;
- ``torchrec-fused``: TorchRec's ``FusedEmbeddingBagCollection`` (FBGEMM), where it is installed;
- ``torchrec-plain``: its ``EmbeddingBagCollection``, whose gradients are dense; it has no ratio;
- ``merged``, ``split``: ours on the ``cpu`` device. On a CPU there is no link whose latency could
  be hidden, so ``merged`` is what a CPU user runs, and ``split`` shows what the division costs.

Cases are ``train/<threads>/<variant>``; ``value`` is samples/s by the median step. ``ratio`` is to
``torchrec-fused``, without it to ``plain``. ``train/<config>/cycles``, on request, is the number of
cycles that both kernels take for a mini-batch in the simulator, which says nothing of samples/s.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotline.bench.host import Quiet
from hotline.bench.output import Result, append_json
from hotline.config import KernelConfig, kernel_config
from hotline.data.synthetic import Synthetic
from hotline.device.cpu import CpuDevice
from hotline.errors import CompareError, ConfigError
from hotline.ingest import ingest
from hotline.models.dlrm import DLRM
from hotline.tables import Group
from hotline.train.embedding import HotlineEmbedding
from hotline.train.pipeline import Batch, MiniBatch, Pipeline
from hotline.train.store import table_weights

ZIPF = 1.1
DIM = 16
ROWS_MAX = 1_000_000
BATCH = 2048
BATCHES = 200
BLOCK = 10
"""Steps of a variant before it is the turn of the next."""
LR = 0.1
PIN_BYTES = 16_384 * DIM * 4
LOSS_TOLERANCE = 1e-3
"""Of a loss near 0.6: sums in another order, over 200 steps."""
OURS = ("merged", "split")
CPU = KernelConfig("bench", 512, 32_768, 16, 32, 65_536, 16_384, 4, 16, 256, 256, 300_000)
"""What the cpu device stands for: an EAL of 524,288 rows."""


@dataclass(frozen=True)
class TrainResult(Result):
    """See the module.

    Attributes:
        minimum_ms, median_ms, maximum_ms: time of a step.
        loss_difference: greatest difference of a loss from that of ``plain``.
        extra: shares of the lookups; ``ms_<stage>``: median time of a stage.
        quiet: share of the blocks that began while nothing else was runnable.
    """

    minimum_ms: float = 0.0
    median_ms: float = 0.0
    maximum_ms: float = 0.0
    loss_difference: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)
    quiet: float = 1.0


class Runner:
    """A variant: ``step`` trains on the next mini-batch and returns its loss."""

    def step(self) -> Tensor:
        """One optimizer step."""
        raise NotImplementedError

    def extra(self) -> dict[str, float]:
        """What else is known."""
        return {}

    def close(self) -> None:
        """Frees memory that is not Python's."""


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, labels)


class _Bags(nn.Module):
    """26 tables in torch; takes raw ids [n, features]."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.features, self.dim = len(group.features), DIM
        tables = {table.name: table for table in group.tables}
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(
                torch.from_numpy(table_weights(0, tables[feature.table])),
                freeze=False,
                mode="sum",
                sparse=True,
            )
            for feature in group.features
        )

    def forward(self, ids: Tensor) -> Tensor:
        columns = ids.t().contiguous()
        offsets = torch.arange(len(ids))
        bags = [bag(columns[n], offsets) for n, bag in enumerate(self.tables)]
        return torch.stack(bags, dim=1)


class _TorchRec(nn.Module):
    """TorchRec's tables; takes raw ids [n, features]."""

    def __init__(self, group: Group, fused: bool) -> None:
        super().__init__()
        import torchrec
        from torchrec.modules.fused_embedding_modules import (
            FusedEmbeddingBagCollection,
        )

        self.features, self.dim = len(group.features), DIM
        rows = {table.name: table.rows for table in group.tables}
        self.keys = [feature.name for feature in group.features]
        configs = [
            torchrec.EmbeddingBagConfig(
                name=feature.table,
                embedding_dim=DIM,
                num_embeddings=rows[feature.table],
                feature_names=[feature.name],
            )
            for feature in group.features
        ]
        self.keyed = torchrec.KeyedJaggedTensor
        if fused:
            self.tables = FusedEmbeddingBagCollection(
                tables=configs,
                optimizer_type=torch.optim.SGD,
                optimizer_kwargs={"lr": LR},
                device=torch.device("cpu"),
            )
        else:
            self.tables = torchrec.EmbeddingBagCollection(tables=configs)
        tables = {table.name: table for table in group.tables}
        state = self.tables.state_dict()
        with torch.no_grad():
            for name, weight in state.items():
                table = name.split(".")[-2]
                weight.copy_(torch.from_numpy(table_weights(0, tables[table])))

    def forward(self, ids: Tensor) -> Tensor:
        keyed = self.keyed.from_lengths_sync(
            keys=self.keys,
            values=ids.t().reshape(-1),
            lengths=torch.ones(ids.numel(), dtype=torch.int32),
        )
        pooled: Tensor = self.tables(keyed).values()
        return pooled.view(len(ids), self.features, DIM)


@dataclass(frozen=True)
class Setting:
    """What all variants share."""

    data: Synthetic
    group: Group
    dense: list[Tensor]  # [BATCH, 13]
    ids: list[Tensor]  # [BATCH, 26] raw ids
    labels: list[Tensor]  # [BATCH]

    def model(self, embedding: nn.Module) -> DLRM:
        """The model around an embedding module."""
        return DLRM(embedding, self.data.dense_width)


def settle(
    rows_max: int | None,
    batches: int,
    seed: int,
    *,
    zipf: float = ZIPF,
    dim: int = DIM,
    pin_bytes: int = PIN_BYTES,
) -> Setting:
    """Makes the mini-batches."""
    data = Synthetic(exponents=zipf, rows_max=rows_max, seed=seed)
    group = data.group(dim, pin_bytes)
    draw = torch.Generator().manual_seed(seed)
    ids = [
        torch.from_numpy(data.ids(np.arange(n * BATCH, (n + 1) * BATCH))) for n in range(batches)
    ]
    dense = [torch.randn(BATCH, data.dense_width, generator=draw) for _ in range(batches)]
    labels = [(torch.rand(BATCH, generator=draw) < 0.25).float() for _ in range(batches)]
    return Setting(data, group, dense, ids, labels)


class TorchRunner(Runner):
    """A model whose parameters torch's optimizer steps; ``fused`` tables step themselves."""

    def __init__(self, setting: Setting, embedding: nn.Module, fused: bool) -> None:
        self.setting, self.number = setting, 0
        self.model = setting.model(embedding)
        parameters = self.model.dense_parameters() if fused else self.model.parameters()
        self.optimizer = torch.optim.SGD(parameters, lr=LR)

    def step(self) -> Tensor:
        """One optimizer step."""
        number = self.number
        self.number += 1
        self.optimizer.zero_grad()
        logits = self.model(self.setting.dense[number], self.setting.ids[number])
        loss = _loss(logits, self.setting.labels[number])
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()


class HotlineRunner(Runner):
    """A pipeline on the cpu device, its hot set the exactly most frequent rows."""

    def __init__(
        self,
        setting: Setting,
        schedule: str,
        threads: int,
        *,
        config: KernelConfig = CPU,
        torch_device: torch.device | str = "cpu",
    ) -> None:
        self.device = CpuDevice(config, threads=threads)
        self.embedding = HotlineEmbedding(
            setting.group, self.device, lr=LR, torch_device=torch_device
        )
        model = setting.model(self.embedding).to(torch_device)
        self.model = model
        self.optimizer = torch.optim.SGD(model.dense_parameters(), lr=LR)
        pipeline = Pipeline(model, self._batches(setting), schedule=schedule)
        pipeline.profile(self._batches(setting), exact=True)
        self.source: Generator[Batch, None, None] = (batch for batch in pipeline)
        self.spans: dict[str, list[float]] = {}
        self.samples = self.popular = self.cold_rows = self.steps = 0

    @staticmethod
    def _batches(setting: Setting) -> Iterator[MiniBatch]:
        for dense, ids, labels in zip(setting.dense, setting.ids, setting.labels, strict=True):
            yield MiniBatch(ingest(setting.group, ids), dense, labels)

    def step(self) -> Tensor:
        """One optimizer step, the preparation of a later mini-batch included."""
        batch = next(self.source)
        self.optimizer.zero_grad()
        losses = []
        for part in batch:
            logits = self.model(part.dense, part.features)
            assert part.labels is not None
            loss = F.binary_cross_entropy_with_logits(logits, part.labels, reduction="sum")
            loss = loss.div(part.normaliser)
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        batch.step()
        self.optimizer.step()
        for stage, (begin, end) in batch.spans.items():
            self.spans.setdefault(stage, []).append(end - begin)
        self.steps += 1
        self.samples += batch.stats.samples
        self.popular += batch.stats.popular
        self.cold_rows += batch.stats.cold_rows
        return torch.stack(losses).sum()

    def extra(self) -> dict[str, float]:
        """Shares, and median times of the stages."""
        times = {
            f"ms_{stage}": round(statistics.median(seconds) * 1e3, 3)
            for stage, seconds in self.spans.items()
        }
        return {
            "popular": round(self.popular / max(self.samples, 1), 4),
            "cold_rows_a_step": round(self.cold_rows / max(self.steps, 1), 1),
            **times,
        }

    def close(self) -> None:
        """Ends the pipeline and closes the device."""
        self.source.close()
        self.embedding.close()
        self.device.close()


def _torchrec(fused: bool) -> Callable[[Setting, int], Runner]:
    return lambda setting, _: TorchRunner(setting, _TorchRec(setting.group, fused), fused)


VARIANTS: dict[str, Callable[[Setting, int], Runner]] = {
    "plain": lambda setting, _: TorchRunner(setting, _Bags(setting.group), False),
    "torchrec-fused": _torchrec(True),
    "torchrec-plain": _torchrec(False),
    "merged": lambda setting, threads: HotlineRunner(setting, "merged", threads),
    "split": lambda setting, threads: HotlineRunner(setting, "split", threads),
}
DEFAULT = ("plain", "torchrec-fused", "merged", "split")
"""``torchrec-plain`` takes as long as all others together."""


def run(
    json_path: str | Path | None = None,
    *,
    threads: Sequence[int] = (1, 2),
    variants: Sequence[str] | None = None,
    batches: int = BATCHES,
    rows_max: int = ROWS_MAX,
    sim: str | None = None,
    wait_s: float = 1.0,
    seed: int = 0,
    table: bool = True,
) -> list[TrainResult]:
    """Runs the benchmark.

    Args:
        json_path: file for one JSON object per case; ``-`` is standard output.
        threads: numbers of threads, one run of all variants for each.
        variants: which ones; None: those of ``DEFAULT``.
        batches: mini-batches, each trained on once.
        rows_max: cap on the rows of a table.
        sim: configuration whose cycles are counted too.
        wait_s: longest wait for a quiet machine before each block.
        seed: of the traffic.
        table: print a table to stderr.

    Raises:
        ConfigError: there is no such variant.
        CompareError: a variant's losses are not those of ``plain``.
    """
    for name in variants or ():
        if name not in VARIANTS:
            raise ConfigError(f"no variant {name!r}; there are {', '.join(VARIANTS)}")
    if batches < 1 or any(number < 1 for number in threads):
        raise ConfigError("batches and threads are at least 1")
    setting = settle(rows_max, batches, seed)
    absent: dict[str, str] = {}
    results: list[TrainResult] = []
    before = torch.get_num_threads()
    try:
        for number in threads:
            torch.set_num_threads(number)
            results += _compare(setting, number, variants or DEFAULT, wait_s, absent)
    finally:
        torch.set_num_threads(before)
    if sim is not None:
        results.append(_cycles(sim, seed))
    for result in results:
        append_json(json_path, result)
    if table:
        _print(results, absent)
    return results


def _make(
    name: str, setting: Setting, threads: int, made: dict[str, Runner], absent: dict[str, str]
) -> None:
    try:
        made[name] = VARIANTS[name](setting, threads)
    except ImportError as error:
        absent[name] = str(error)


def _compare(
    setting: Setting, threads: int, variants: Sequence[str], wait_s: float, absent: dict[str, str]
) -> list[TrainResult]:
    """All variants with so many threads."""
    runners: dict[str, Runner] = {}
    losses: dict[str, list[Tensor]] = {}
    seconds: dict[str, list[float]] = {}
    quiet = Quiet(wait_s)
    try:
        for name in variants:
            _make(name, setting, threads, runners, absent)
        steps = len(setting.ids)
        for first in range(0, steps, BLOCK):
            for name, runner in runners.items():
                quiet.wait()
                for _ in range(min(BLOCK, steps - first)):
                    begin = time.perf_counter()
                    loss = runner.step()
                    seconds.setdefault(name, []).append(time.perf_counter() - begin)
                    losses.setdefault(name, []).append(loss)
        extras = {name: runner.extra() for name, runner in runners.items()}
    finally:
        for runner in runners.values():
            runner.close()
    found = {name: torch.stack(values) for name, values in losses.items()}
    first_name = next(iter(found))
    differences = {
        name: float((values - found.get("plain", found[first_name])).abs().max())
        for name, values in found.items()
    }
    for name, difference in differences.items():
        if not difference <= LOSS_TOLERANCE:
            raise CompareError(
                f"{name}: a loss differs from that of plain torch by {difference:.2g}; "
                f"at most {LOSS_TOLERANCE:g} is the order of sums"
            )
    # The first block warms up.
    timed = {name: values[BLOCK:] or values for name, values in seconds.items()}
    rates = {name: BATCH / statistics.median(values) for name, values in timed.items()}
    limit = rates.get("torchrec-fused", rates.get("plain"))
    return [
        TrainResult(
            bench="train",
            case=f"train/{threads}/{name}",
            value=round(rate, 1),
            unit="samples/s",
            limit=round(rate if limit is None or name == "torchrec-plain" else limit, 1),
            ratio=round(1.0 if limit is None or name == "torchrec-plain" else rate / limit, 4),
            minimum_ms=round(min(timed[name]) * 1e3, 3),
            median_ms=round(statistics.median(timed[name]) * 1e3, 3),
            maximum_ms=round(max(timed[name]) * 1e3, 3),
            loss_difference=differences[name],
            extra=extras[name],
            quiet=quiet.share,
        )
        for name, rate in rates.items()
    ]


def _cycles(config: str, seed: int) -> TrainResult:
    """Cycles of both kernels for a mini-batch, in the simulator."""
    from hotline.device.sim import SimDevice
    from hotline.train.trainer import Trainer, TrainerConfig

    steps = 8
    settings = TrainerConfig(
        schedule="split", batch_size=BATCH, steps=steps, dim=DIM, profile_batches=steps,
        profile_exact=True, pin_bytes=PIN_BYTES, evaluate=False, seed=seed,
    )  # fmt: skip
    data = Synthetic(exponents=ZIPF, rows_max=20_000, seed=seed)
    with (
        SimDevice(kernel_config(config)) as device,
        Trainer(settings, data, device) as trainer,
    ):
        record = trainer.fit()
    fragment = statistics.mean(step.fragment_cycles for step in record.steps)
    gather = statistics.mean(step.gather_cycles for step in record.steps)
    return TrainResult(
        bench="train",
        case=f"train/{config}/cycles",
        value=round(fragment + gather, 1),
        unit="cycles/step",
        limit=round(fragment + gather, 1),
        ratio=1.0,
        extra={"fragment_cycles": round(fragment, 1), "gather_cycles": round(gather, 1)},
    )


def _print(results: Sequence[TrainResult], absent: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Training on the CPU, Criteo-like, mini-batches of {BATCH}", box=None)
    table.add_column("case", no_wrap=True)
    for title in ("value", "unit", "ratio", "min ms", "median", "max", "loss +-"):
        table.add_column(title, justify="right", no_wrap=True)
    for r in results:
        times = (f"{r.minimum_ms:.1f}", f"{r.median_ms:.1f}", f"{r.maximum_ms:.1f}")
        ratio = "" if r.limit == r.value else f"{r.ratio:.3f}"
        table.add_row(r.case, f"{r.value:,.0f}", r.unit, ratio, *times, f"{r.loss_difference:.1e}")
    console = Console(stderr=True)
    console.print(table)
    for r in results:
        shown = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in r.extra.items())
        if shown:
            console.print(f"{r.case}: {shown}", highlight=False)
    for name, reason in absent.items():
        console.print(f"absent: {name} ({reason})", highlight=False)
    least = min((r.quiet for r in results), default=1.0)
    if least < 0.9:
        console.print(
            f"The machine was not quiet: only {least:.0%} of the blocks began with nothing else to "
            "run. Ratios hold roughly, times do not.",
            highlight=False,
        )
