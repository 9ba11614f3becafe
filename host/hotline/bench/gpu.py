# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Training on one CUDA GPU whose memory does not hold all rows: ours beside what one would use.

A Criteo-like DLRM (``hotline.bench.train``) with all rows in the host's memory and a budget of
rows on the GPU. All variants have the same weights at the start, dense layers, float32, SGD,
mini-batches (in page-locked memory) and order, and reach the same losses; only ``fae`` reorders the
samples, so its losses are its own. They run one after the other, since together they would share
the GPU's memory; time is taken for blocks of ten steps, so that what a variant prepares ahead may
overlap.

- ``hybrid``: embedding bags on the CPU (FBGEMM where it is installed, else torch), pooled vectors
  and their gradients over the link;
- ``uva``: FBGEMM on the GPU reads and updates rows in mapped host memory; no rows on the GPU;
- ``uvm``: FBGEMM's managed cache (LRU) with as many rows as the budget, prefetched a mini-batch
  ahead on a stream of its own;
- ``gpu``: FBGEMM with all rows on the GPU, if they fit; the headline leaves it out;
- ``fae``: the most frequent rows on the GPU; mini-batches of popular samples train on them alone,
  all others on the CPU, with copies between (arXiv 2103.00686, one round over the data);
- ``ours``: pipeline ``split``, gathering by the ``cpu`` device;
- ``ours-zero-copy``: FRAGMENT by the same code; the GPU gathers and writes the cold rows in mapped
  host memory itself.

Cases are ``gpu/<zipf>/<hot rows>/<variant>``; ``value`` is samples/s by the median block. ``limit``
is the best variant that is not ours and does not hold all rows on the GPU. ``extra`` has the bytes
over the link in a step, reckoned from what the variant asks for (rows, ids, vectors, each way), and
the peak of the GPU's memory. With the device ``cpu`` it runs everything that has a CPU path, to see
that it works; such times mean nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hotline.bench.output import Result, append_json
from hotline.bench.train import (
    BLOCK,
    CPU,
    DIM,
    LOSS_TOLERANCE,
    LR,
    HotlineRunner,
    Runner,
    Setting,
    settle,
)
from hotline.codes import Status
from hotline.errors import CompareError, ConfigError
from hotline.frequency import RowCounter
from hotline.native.kernels import NativeFragmenter
from hotline.train.store import table_weights

ZIPFS = (1.05, 1.2)
HOT_ROWS = (1 << 16, 1 << 18, 1 << 20)
BATCHES = 200
WAYS = 16
HOLDS_ALL = ("gpu",)
OWN = ("ours", "ours-zero-copy")
OWN_ORDER = ("fae",)
"""Variants that train on other mini-batches than the rest."""


@dataclass(frozen=True)
class GpuResult(Result):
    """See the module.

    Attributes:
        minimum_ms, median_ms, maximum_ms: time of a step, by blocks.
        loss_difference: greatest difference of a loss from that of the first variant.
        device: the GPU's name.
        extra: ``link_bytes``, ``peak_bytes``, and what the variant tells.
    """

    minimum_ms: float = 0.0
    median_ms: float = 0.0
    maximum_ms: float = 0.0
    loss_difference: float = 0.0
    device: str = ""
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a case runs: the GPU, the traffic, the budget."""

    setting: Setting
    device: torch.device
    hot_rows: int
    dim: int

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Table and rows of each feature, in order."""
        rows = {table.name: table.rows for table in self.setting.group.tables}
        return [(feature.table, rows[feature.table]) for feature in self.setting.group.features]

    @property
    def bases(self) -> Tensor:
        """[features] first row id of each feature's table."""
        group = self.setting.group
        return torch.tensor([group.bases[feature.table] for feature in group.features])

    def weights(self, table: str) -> Tensor:
        """Initial weights of a table, [rows, dim]."""
        tables = {known.name: known for known in self.setting.group.tables}
        return torch.from_numpy(table_weights(0, tables[table]))

    def all_weights(self) -> Tensor:
        """Those of all tables by row id, [rows, dim]."""
        return torch.cat([self.weights(table.name) for table in self.setting.group.order])

    def frequent(self, count: int) -> npt.NDArray[np.uint32]:
        """The most frequent row ids of the mini-batches."""
        counter = RowCounter(self.setting.group)
        for ids in self.setting.ids:
            counter.add(ids.numpy())
        return counter.top(count).rows


class Dense:
    """The layers around the embedding vectors, with their optimizer; vectors are a leaf."""

    def __init__(self, place: Place) -> None:
        self.place = place
        shape = nn.Identity()
        shape.features, shape.dim = len(place.rows), place.dim  # type: ignore[assignment]
        self.model = place.setting.model(shape).to(place.device)
        self.optimizer = torch.optim.SGD(self.model.dense_parameters(), lr=LR)

    def train(
        self, vectors: Tensor, dense: Tensor, labels: Tensor, *, step: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Forward and backward; returns the loss and the gradient of ``vectors`` [n, f, dim]."""
        device = self.place.device
        dense, labels = (t.to(device, non_blocking=True) for t in (dense, labels))
        leaf = vectors.detach().requires_grad_()
        self.optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(self.model(dense, leaf), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        if step:
            self.optimizer.step()
        assert leaf.grad is not None
        return loss.detach(), leaf.grad


def _fbgemm(
    place: Place, location: str, device: torch.device, **options: Any
) -> tuple[Any, Callable[[Tensor], tuple[Tensor, Tensor]]]:
    """FBGEMM's tables at a location, and what makes its indices and offsets of raw ids."""
    import fbgemm_gpu  # noqa: F401
    from fbgemm_gpu.split_embedding_configs import (
        EmbOptimType,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
        EmbeddingLocation,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    on_gpu = device.type == "cuda"
    # Without a GPU every location is the host's memory.
    where = EmbeddingLocation[location] if on_gpu else EmbeddingLocation.HOST
    compute = ComputeDevice.CUDA if on_gpu else ComputeDevice.CPU
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, place.dim, where, compute) for _, rows in place.rows],
        optimizer=EmbOptimType.EXACT_SGD,
        learning_rate=LR,
        stochastic_rounding=False,
        device=device if on_gpu else torch.device("cpu"),
        **(options if on_gpu else {}),
    )
    for weight, (table, _) in zip(tables.split_embedding_weights(), place.rows, strict=True):
        weight.copy_(place.weights(table))

    def inputs(ids: Tensor) -> tuple[Tensor, Tensor]:
        ids = ids.to(device, non_blocking=True)
        offsets = torch.arange(ids.numel() + 1, device=device)
        return ids.t().reshape(-1), offsets

    return tables, inputs


class FbgemmRunner(Runner):
    """FBGEMM's tables wherever they are, the dense layers on the GPU."""

    def __init__(
        self,
        place: Place,
        location: str,
        *,
        on_cpu: bool = False,
        prefetch: bool = False,
        link_rows: int = 0,
        **options: Any,
    ) -> None:
        self.place, self.dense = place, Dense(place)
        self.device = torch.device("cpu") if on_cpu else place.device
        self.tables, self.inputs = _fbgemm(place, location, self.device, **options)
        self.stream: Any = None
        if prefetch and self.device.type == "cuda":
            self.stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        self.location, self.number = location, 0
        self.staged: tuple[Tensor, Tensor] | None = None

    def _inputs(self, number: int) -> tuple[Tensor, Tensor]:
        """Of a mini-batch; where rows are prefetched, asks for them as well."""
        if self.stream is None:
            return self.inputs(self.place.setting.ids[number])
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self.stream):
            made = self.inputs(self.place.setting.ids[number])
            self.tables.prefetch(*made, forward_stream=current)
        return made

    def step(self) -> Tensor:
        """One optimizer step; the tables update themselves in their backward."""
        setting, number = self.place.setting, self.number
        self.number += 1
        made = self._inputs(number) if self.staged is None else self.staged
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
        vectors = self.tables(*made)
        self.staged = None
        if self.stream is not None and self.number < len(setting.ids):
            self.staged = self._inputs(self.number)
        moved = vectors.to(self.place.device, non_blocking=True)
        shape = (len(setting.ids[number]), len(self.place.rows), self.place.dim)
        loss, gradient = self.dense.train(
            moved.view(shape), setting.dense[number], setting.labels[number]
        )
        vectors.backward(gradient.view(moved.shape).to(vectors.device))
        return loss

    def extra(self) -> dict[str, float]:
        """Bytes over the link in a step."""
        lookups = self.place.setting.ids[0].numel()
        row = 4 * self.place.dim
        if self.device.type == "cpu":  # vectors one way, gradients the other
            return {"link_bytes": 2.0 * lookups * row}
        ids = 8.0 * lookups
        if self.location == "MANAGED":  # each lookup reads; each distinct row is read and written
            distinct = statistics.mean(
                len(torch.unique(ids + self.place.bases)) for ids in self.place.setting.ids[:8]
            )
            return {"link_bytes": ids + row * (lookups + 2 * distinct)}
        if self.location == "MANAGED_CACHING":
            stats = self.tables.get_uvm_cache_stats()
            misses = float(stats[4]) / max(self.number, 1)  # unique misses
            return {"link_bytes": ids + 2 * row * misses, "cache_misses": misses}
        return {"link_bytes": ids}


class TorchHybridRunner(Runner):
    """``hybrid`` where FBGEMM is not installed: sparse gradients of torch on the CPU."""

    def __init__(self, place: Place) -> None:
        self.place, self.dense, self.number = place, Dense(place), 0
        self.weights = place.all_weights()
        self.bases = place.bases

    def step(self) -> Tensor:
        """One optimizer step."""
        setting, number = self.place.setting, self.number
        self.number += 1
        return _on_cpu(
            self.dense, self.weights, self.bases,
            setting.ids[number], setting.dense[number], setting.labels[number],
        )  # fmt: skip

    def extra(self) -> dict[str, float]:
        """Bytes over the link in a step."""
        return {"link_bytes": 8.0 * self.place.setting.ids[0].numel() * self.place.dim}


def _on_cpu(
    dense: Dense, weights: Tensor, bases: Tensor, ids: Tensor, columns: Tensor, labels: Tensor
) -> Tensor:
    """A step whose rows are read and updated on the CPU."""
    rows = (ids + bases).view(-1)
    vectors = weights.index_select(0, rows).view(*ids.shape, weights.shape[1])
    loss, gradient = dense.train(vectors.to(dense.place.device), columns, labels)
    flat = gradient.to("cpu").view(-1, weights.shape[1])
    weights.index_add_(0, rows, flat, alpha=-LR)
    return loss


class FaeRunner(Runner):
    """FAE: mini-batches of popular samples on the GPU, the others on the CPU."""

    def __init__(self, place: Place) -> None:
        self.place, self.dense = place, Dense(place)
        self.weights, self.bases = place.all_weights(), place.bases
        setting, size = place.setting, len(place.setting.ids[0])
        frequent = torch.from_numpy(place.frequent(place.hot_rows).astype(np.int64))
        slot = torch.full((len(self.weights),), -1, dtype=torch.int64)
        slot[frequent] = torch.arange(len(frequent))
        self.frequent = frequent
        ids = torch.cat(setting.ids)
        slots = slot[ids + self.bases]
        popular = (slots >= 0).all(dim=1)
        dense, labels = torch.cat(setting.dense), torch.cat(setting.labels)
        self.work: list[tuple[bool, Tensor, Tensor, Tensor]] = []
        for hot in (False, True):
            chosen = torch.nonzero(popular == hot).view(-1)
            values = slots if hot else ids
            for part in torch.split(chosen, size):
                self.work.append((hot, values[part], dense[part], labels[part]))
        self.hot_samples = int(popular.sum())
        if place.device.type == "cuda":
            self.work = [
                (hot, a.pin_memory(), b.pin_memory(), c.pin_memory()) for hot, a, b, c in self.work
            ]
        self.hot = torch.zeros(len(frequent), place.dim, device=place.device)
        self.number, self.on_gpu = 0, False
        self.steps_of_its_own = len(self.work)

    def step(self) -> Tensor:
        """The next mini-batch; a copy of the hot rows where the place changes."""
        hot, ids, columns, labels = self.work[self.number]
        self.number += 1
        if hot and not self.on_gpu:
            self.hot.copy_(self.weights.index_select(0, self.frequent))
        self.on_gpu = hot
        if not hot:
            return _on_cpu(self.dense, self.weights, self.bases, ids, columns, labels)
        slots = ids.to(self.place.device, non_blocking=True).view(-1)
        vectors = self.hot.index_select(0, slots).view(*ids.shape, self.place.dim)
        loss, gradient = self.dense.train(vectors, columns, labels)
        self.hot.index_add_(0, slots, gradient.view(-1, self.place.dim), alpha=-LR)
        if self.number >= len(self.work):
            self.weights.index_copy_(0, self.frequent, self.hot.to("cpu"))
        return loss

    def extra(self) -> dict[str, float]:
        """Share of popular samples; bytes over the link in a step, on average."""
        samples = sum(len(labels) for _, _, _, labels in self.work)
        lookups = self.place.setting.ids[0].numel()
        popular = self.hot_samples / samples
        hot = 8.0 * lookups + 8.0 * self.hot.numel() / len(self.work)
        cold = 8.0 * lookups * self.place.dim
        return {"popular": round(popular, 4), "link_bytes": popular * hot + (1 - popular) * cold}


class OursRunner(HotlineRunner):
    """The pipeline, its hot set the most frequent rows of the budget."""

    def __init__(self, place: Place) -> None:
        config = replace(CPU, eal_sets=max(1, place.hot_rows // WAYS), eal_ways=WAYS)
        super().__init__(place.setting, "split", 1, config=config, torch_device=place.device)
        self.place = place

    def extra(self) -> dict[str, float]:
        """Also the bytes over the link in a step: indices, and cold rows both ways."""
        told = super().extra()
        lookups = self.place.setting.ids[0].numel()
        told["link_bytes"] = 4.0 * lookups + 8.0 * self.place.dim * told["cold_rows_a_step"]
        return told


class ZeroCopyRunner(Runner):
    """FRAGMENT on the CPU a mini-batch ahead; the GPU itself reaches for the cold rows."""

    COLD_ROWS = 1 << 16

    def __init__(self, place: Place) -> None:
        self.place, self.dense, self.number = place, Dense(place), 0
        group, device = place.setting.group, place.device
        self.entries = max(WAYS, place.hot_rows)
        self.fragmenter = NativeFragmenter(self.entries // WAYS, WAYS, self.COLD_ROWS)
        wanted = place.frequent(2 * self.entries)
        self.fragmenter.load(wanted, group.total_rows, 0, np.empty_like(wanted))
        self.store = self._mapped(place.all_weights())
        self.working = torch.zeros(self.entries + self.COLD_ROWS, place.dim, device=device)
        from hotline.device.base import ENTRY

        entries = np.zeros(self.entries, ENTRY)
        count = self.fragmenter.dump(entries, 0).lookups
        slots = torch.from_numpy((entries["slot_counter"][:count] & 0x3FFF_FFFF).astype(np.int64))
        rows = torch.from_numpy(entries["row"][:count].astype(np.int64))
        self.working[slots.to(device)] = self.store.index_select(0, rows.to(device))
        self.cold_rows = 0
        self.staged = self._fragment(0)

    def _mapped(self, weights: Tensor) -> Tensor:
        """The weights in host memory that the GPU reaches at the same address."""
        if self.place.device.type != "cuda":
            return weights
        import fbgemm_gpu  # noqa: F401

        like = torch.empty(0, device=self.place.device)
        mapped: Tensor = torch.ops.fbgemm.new_host_mapped_tensor(like, list(weights.shape))
        mapped.copy_(weights)
        return mapped

    def _fragment(self, number: int) -> tuple[Tensor, Tensor]:
        """Encoded indices [n, features] and cold row ids of a mini-batch, on the device."""
        from hotline.ingest import ingest

        setting = self.place.setting
        batch = ingest(setting.group, setting.ids[number])
        samples, lookups = batch.samples, len(batch.ids)
        indices, cold_rows = np.zeros(lookups, np.uint32), np.zeros(lookups, np.uint32)
        done = self.fragmenter.fragment(
            ids=batch.ids,
            samples=samples,
            total_rows=setting.group.total_rows,
            pinned_rows=0,
            cold_base=self.entries,
            cold_rows_max=self.COLD_ROWS,
            lookups_per_sample=lookups // samples,
            lookups_max=lookups // samples,
            indices=indices,
            popular=np.zeros(samples, np.uint32),
            nonpopular=np.zeros(samples, np.uint32),
            bitmap=np.zeros(-(-samples // 32), np.uint32),
            cold_rows=cold_rows,
        )
        if done.status is not Status.OK:
            raise CompareError(f"ours-zero-copy: FRAGMENT ended with {done}")
        self.cold_rows += done.cold_rows
        encoded = torch.from_numpy(indices.astype(np.int64)).view(samples, -1)
        cold = torch.from_numpy(cold_rows[: done.cold_rows].astype(np.int64))
        if self.place.device.type == "cuda":
            encoded, cold = encoded.pin_memory(), cold.pin_memory()
        device = self.place.device
        return encoded.to(device, non_blocking=True), cold.to(device, non_blocking=True)

    def step(self) -> Tensor:
        """One optimizer step."""
        setting, number = self.place.setting, self.number
        self.number += 1
        indices, cold = self.staged
        tail = self.working.narrow(0, self.entries, len(cold))
        torch.index_select(self.store, 0, cold, out=tail)
        flat = indices.view(-1)
        vectors = self.working.index_select(0, flat).view(*indices.shape, self.place.dim)
        loss, gradient = self.dense.train(vectors, setting.dense[number], setting.labels[number])
        if self.number < len(setting.ids):
            self.staged = self._fragment(self.number)  # while the GPU works
        self.working.index_add_(0, flat, gradient.view(-1, self.place.dim), alpha=-LR)
        self.store.index_copy_(0, cold, tail)
        return loss

    def extra(self) -> dict[str, float]:
        """Bytes over the link in a step."""
        cold = self.cold_rows / max(self.number, 1)
        lookups = self.place.setting.ids[0].numel()
        return {
            "cold_rows_a_step": round(cold, 1),
            "link_bytes": 8.0 * (lookups + cold) + 8.0 * self.place.dim * cold,
        }


def _hybrid(place: Place) -> Runner:
    try:
        return FbgemmRunner(place, "HOST", on_cpu=True)
    except ImportError:
        return TorchHybridRunner(place)


def _uvm(place: Place) -> Runner:
    total = sum(rows for _, rows in place.rows)
    return FbgemmRunner(
        place, "MANAGED_CACHING", prefetch=True, prefetch_pipeline=True,
        cache_load_factor=min(1.0, place.hot_rows / total), gather_uvm_cache_stats=True,
    )  # fmt: skip


VARIANTS: dict[str, Callable[[Place], Runner]] = {
    "hybrid": _hybrid,
    "uva": lambda place: FbgemmRunner(place, "MANAGED", uvm_host_mapped=True),
    "uvm": _uvm,
    "gpu": lambda place: FbgemmRunner(place, "DEVICE"),
    "fae": FaeRunner,
    "ours": OursRunner,
    "ours-zero-copy": ZeroCopyRunner,
}


def run(
    json_path: str | Path | None = None,
    *,
    device: str = "cuda",
    zipfs: Sequence[float] = ZIPFS,
    hot_rows: Sequence[int] = HOT_ROWS,
    variants: Sequence[str] | None = None,
    batches: int = BATCHES,
    rows_max: int | None = None,
    dim: int = DIM,
    seed: int = 0,
    table: bool = True,
) -> list[GpuResult]:
    """Runs the benchmark.

    Args:
        json_path: a file that gets one JSON object per case, appended; ``-``: standard output.
        device: a CUDA device, or ``cpu`` to try the script.
        zipfs: exponents of the traffic.
        hot_rows: budgets in rows, powers of two.
        variants: which, names of ``VARIANTS``; None: all that can run.
        batches: mini-batches, each trained on once.
        rows_max: cap on the rows of a table; None: the Kaggle tables (33.8 million rows).
        dim: elements of a row.
        seed: of the traffic.
        table: print a table to stderr.

    Raises:
        ConfigError: there is no such GPU, variant or budget.
        CompareError: a variant's losses are not those of the first one.
    """
    place = torch.device(device)
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "this benchmark needs a CUDA GPU and a torch built for it; there is none here. "
            "`--device cpu` tries the script without one (its times mean nothing), "
            "`hotline bench train` is the benchmark for a CPU"
        )
    for name in variants or ():
        if name not in VARIANTS:
            raise ConfigError(f"no variant {name!r}; there are {', '.join(VARIANTS)}")
    for budget in hot_rows:
        if budget < WAYS or budget & (budget - 1):
            raise ConfigError(f"a budget of {budget} rows: give a power of two from {WAYS} on")
    if batches < 1:
        raise ConfigError(f"batches={batches}: at least 1")
    results: list[GpuResult] = []
    absent: dict[str, str] = {}
    for zipf in zipfs:
        setting = settle(rows_max, batches, seed, zipf=zipf, dim=dim, pin_bytes=0)
        if place.type == "cuda":
            setting = replace(
                setting,
                dense=[t.pin_memory() for t in setting.dense],
                ids=[t.pin_memory() for t in setting.ids],
                labels=[t.pin_memory() for t in setting.labels],
            )
        for budget in hot_rows:
            case = Place(setting, place, budget, dim)
            found = _compare(case, f"gpu/{zipf:g}/{budget}", variants or tuple(VARIANTS), absent)
            for result in found:
                append_json(json_path, result)
            results += found
    if table:
        _print(results, absent)
    return results


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _compare(
    place: Place, case: str, variants: Sequence[str], absent: dict[str, str]
) -> list[GpuResult]:
    """All variants at one budget, one after the other: together they would share the memory."""
    device = place.device
    name_of_device = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    seconds: dict[str, list[float]] = {}
    losses: dict[str, Tensor] = {}
    extras: dict[str, dict[str, float]] = {}
    for name in variants:
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        try:
            runner = VARIANTS[name](place)
        except ImportError as error:
            absent[name] = str(error)
            continue
        except torch.OutOfMemoryError as error:
            absent[f"{case}/{name}"] = str(error).splitlines()[0]
            continue
        steps = getattr(runner, "steps_of_its_own", len(place.setting.ids))
        try:
            found: list[Tensor] = []
            for first in range(0, steps, BLOCK):
                count = min(BLOCK, steps - first)
                begin = time.perf_counter()
                found += [runner.step() for _ in range(count)]
                _synchronize(device)
                seconds.setdefault(name, []).append((time.perf_counter() - begin) / count)
            losses[name] = torch.stack(found).cpu()
            extras[name] = runner.extra()
            if device.type == "cuda":
                extras[name]["peak_bytes"] = float(torch.cuda.max_memory_allocated(device))
        finally:
            runner.close()
            del runner
    differences = {}
    compared = [name for name in losses if name not in OWN_ORDER]
    for name in losses:
        difference = 0.0
        if name in compared:
            difference = float((losses[name] - losses[compared[0]]).abs().max())
            if not difference <= LOSS_TOLERANCE:
                raise CompareError(
                    f"{case}/{name}: a loss differs from that of {compared[0]} by "
                    f"{difference:.2g}; at most {LOSS_TOLERANCE:g} is the order of sums"
                )
        differences[name] = difference
    timed = {name: values[1:] or values for name, values in seconds.items()}
    size = len(place.setting.ids[0])
    # FAE's mini-batches are of two kinds, so that only the mean says something.
    typical = {
        name: statistics.mean(values) if name in OWN_ORDER else statistics.median(values)
        for name, values in timed.items()
    }
    rates = {name: size / value for name, value in typical.items()}
    others = [rate for name, rate in rates.items() if name not in (*OWN, *HOLDS_ALL)]
    return [
        GpuResult(
            bench="gpu",
            case=f"{case}/{name}",
            value=round(rate, 1),
            unit="samples/s",
            limit=round(max(others, default=rate), 1),
            ratio=round(rate / max(others, default=rate), 4),
            minimum_ms=round(min(timed[name]) * 1e3, 3),
            median_ms=round(statistics.median(timed[name]) * 1e3, 3),
            maximum_ms=round(max(timed[name]) * 1e3, 3),
            loss_difference=differences[name],
            device=name_of_device,
            extra=extras[name],
        )
        for name, rate in rates.items()
    ]


def _print(results: Sequence[GpuResult], absent: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Training with a budget of rows on the GPU", box=None)
    table.add_column("case", no_wrap=True)
    for title in ("samples/s", "ratio", "median ms", "link MB", "peak MB", "loss +-"):
        table.add_column(title, justify="right", no_wrap=True)
    for r in results:
        peak = r.extra.get("peak_bytes")
        table.add_row(
            r.case, f"{r.value:,.0f}", f"{r.ratio:.3f}", f"{r.median_ms:.2f}",
            f"{r.extra.get('link_bytes', 0) / 1e6:.2f}",
            "" if peak is None else f"{peak / 1e6:,.0f}", f"{r.loss_difference:.1e}",
        )  # fmt: skip
    console = Console(stderr=True)
    console.print(table)
    for name, reason in absent.items():
        console.print(f"absent: {name} ({reason})", highlight=False)
    if any(r.device == "cpu" for r in results):
        console.print("This ran on a CPU: it shows that the script works, nothing of its speed.")
