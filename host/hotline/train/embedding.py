# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding modules: Hotline's, over a working set, and the plain one to compare with.

Both take ``Features`` of a pipeline, a ``RowBatch``, or ids by feature, and give pooled vectors
[samples, features, dim]; a model does not see which one it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hotline.codes import Operation, Status
from hotline.device.base import Device
from hotline.errors import ConfigError, DataError
from hotline.native.kernels import move
from hotline.tables import Group, RowBatch
from hotline.train.coalesce import LookupGradient, coalesce
from hotline.train.encode import Bags, Features, to_device
from hotline.train.optim import RowOptimizer
from hotline.train.staging import numpy_dtype
from hotline.train.store import table_weights
from hotline.train.working import WorkingSet

NATIVE_THREADS = 3
"""Threads of torch up to which one thread of ours reads rows faster (measured: 0.29 against 1.15 ms
for 53,248 rows of 64 bytes on one)."""

Input = Features | RowBatch | Mapping[str, Any]
"""What an embedding module takes; a mapping holds ids by feature, as ``hotline.ingest`` reads."""


def row_batch(group: Group, features: Mapping[str, Any]) -> RowBatch:
    """Turns ids by feature into row ids; see ``hotline.ingest``."""
    from hotline.ingest import ingest

    return ingest(group, features)


def raw_features(
    group: Group,
    features: RowBatch | Mapping[str, Any],
    device: torch.device,
    weights: Tensor | None = None,
) -> Features:
    """Features on row ids, for the path without a pipeline.

    Args:
        group: the tables.
        features: row ids, or ids by feature.
        device: where the model is.
        weights: [lookups] factor of each lookup, sample-major, or None.
    """
    rows = features if isinstance(features, RowBatch) else row_batch(group, features)
    check_weights(group, weights, len(rows.ids))
    bags = Bags.of(group, rows)
    return Features(
        to_device(rows.ids.astype(np.int64), device),
        bags,
        None if weights is None else weights.to(device),
        raw=True,
    )


def check_weights(group: Group, weights: Tensor | None, lookups: int) -> None:
    """Refuses weights that no bag operation takes."""
    if weights is None:
        return
    means = [feature.name for feature in group.features if feature.pooling == "mean"]
    if means:
        raise ConfigError(
            f"weights of lookups need pooling 'sum', as in torch; feature {means[0]!r} has 'mean'"
        )
    if weights.shape != (lookups,):
        raise ConfigError(f"weights must be [{lookups}], one per lookup, not {[*weights.shape]}")


class _Bags(torch.autograd.Function):
    """Sums of bags over a table that is no parameter; the gradient goes to ``sink``."""

    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        weights: Tensor | None,
        table: Tensor,
        indices: Tensor,
        features: Features,
        sink: list[LookupGradient],
        rows: Tensor | None,
        module: HotlineEmbedding,
    ) -> Tensor:
        """``indices`` read ``table``; ``rows`` (None: ``indices``) name the gradients."""
        ctx.weights, ctx.indices, ctx.features = weights, indices, features
        ctx.table = table if ctx.needs_input_grad[1] else None
        ctx.sink, ctx.rows, ctx.module = sink, rows, module
        return _sum_bags(table, indices, features, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Records the gradient of every lookup."""
        weights = ctx.weights
        features: Features = ctx.features
        ctx.module._check_current(features)
        bags = features.lookup_bags()
        gradient = gradient.reshape(-1, gradient.shape[-1]).contiguous()
        rows = ctx.indices if ctx.rows is None else ctx.rows
        ctx.sink.append(LookupGradient(rows, bags, gradient, weights))
        to_weights = None
        if ctx.needs_input_grad[1]:
            each = gradient if bags is None else gradient.index_select(0, bags)
            to_weights = (each * ctx.table.index_select(0, ctx.indices.long())).sum(-1)
        return None, to_weights, None, None, None, None, None, None


def _rows(table: Tensor, indices: Tensor) -> Tensor:
    """Rows of a table, [lookups, dim].

    On the CPU by GATHER's loop, which asks for rows ahead of time: on one thread it takes a quarter
    of the time of ``F.embedding``, which wins again from about four threads on.
    """
    native = indices.is_cpu and indices.dtype == torch.int32 and table.is_contiguous()
    native = native and table.dtype in (torch.float32, torch.float64)
    if not native or torch.get_num_threads() > NATIVE_THREADS or torch.compiler.is_compiling():
        return F.embedding(indices, table)
    out = torch.empty(len(indices), table.shape[1], dtype=table.dtype)
    done = move(
        Operation.GATHER,
        indices.contiguous().numpy().view(np.uint32),
        out.numpy().view(np.uint8),
        table.numpy().view(np.uint8),
        len(table),
    )
    return out if done.status is Status.OK else F.embedding(indices, table)  # which says what


def _sum_bags(table: Tensor, indices: Tensor, features: Features, weights: Tensor | None) -> Tensor:
    """Sum of each bag, [samples, bags, dim]."""
    bags = features.bags
    shape = (bags.samples, bags.bags, table.shape[1])
    if not indices.numel():
        return table.new_zeros(shape)
    if bags.uniform and weights is None:
        return _rows(table, indices).view(shape)
    return F.embedding_bag(
        indices,
        table,
        features.offsets,
        mode="sum",
        per_sample_weights=None if weights is None else weights.to(table.dtype),
        include_last_offset=True,
    ).view(shape)


class _Pooling(nn.Module):
    """Divides the sums of ``mean`` features by the number of lookups."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self._mean = np.array([feature.pooling == "mean" for feature in group.features])

    def forward(self, sums: Tensor, bags: Bags) -> Tensor:
        """``sums`` [samples, bags, dim]; an empty bag stays 0."""
        if not self._mean.any():
            return sums
        lengths = np.maximum(bags.lengths.reshape(bags.samples, bags.bags), 1)
        divisor = np.where(self._mean, lengths, 1)[:, :, None]
        return sums / to_device(divisor, sums.device).to(sums.dtype)


class HotlineEmbedding(nn.Module):
    """Embedding bags of a group over hot rows, cold tails and a cold store.

    Its weights are no parameters: ``backward`` records gradients, and the step of a pipeline's
    batch (or ``step`` here, for features without a pipeline) sums them by row and updates.

    Args:
        group: tables and features.
        device: an open device (``hotline.open``); one group per device.
        optimizer: row-local optimizer, default ``SGD``.
        lr: learning rate of the rows; ``step`` may override it.
        dtype, seed, lookahead, cold_rows, torch_device, segment_rows, fallback: see
            ``WorkingSet``.
    """

    def __init__(
        self,
        group: Group,
        device: Device,
        *,
        optimizer: RowOptimizer | None = None,
        lr: float = 0.01,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        lookahead: int = 1,
        cold_rows: int | None = None,
        torch_device: torch.device | str = "cpu",
        segment_rows: int | None = None,
        fallback: bool = True,
    ) -> None:
        super().__init__()
        self.group, self.lr = group, lr
        self.working = WorkingSet(
            group,
            device,
            optimizer=optimizer,
            dtype=dtype,
            seed=seed,
            lookahead=lookahead,
            cold_rows=cold_rows,
            torch_device=torch_device,
            segment_rows=segment_rows,
            fallback=fallback,
        )
        self._pooling = _Pooling(group)
        self._anchor = torch.empty(0, dtype=dtype, device=torch_device, requires_grad=True)
        self.recorded: list[LookupGradient] = []
        """Gradients of encoded lookups since the last step of a pipeline's batch."""
        self._by_row: list[LookupGradient] = []

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self.group.dim

    @property
    def features(self) -> int:
        """Vectors of a sample."""
        return len(self.group.features)

    def forward(self, features: Input, weights: Tensor | None = None) -> Tensor:
        """Pooled vectors [samples, features, dim].

        Args:
            features: what a pipeline's part holds; or a ``RowBatch``, or ids by feature: these are
                read synchronously, and leave no trace in the hot set or in memory.
            weights: [lookups] factor of each lookup; not with a pipeline's features, which bring
                their own.
        """
        working = self.working
        if not isinstance(features, Features):
            features = raw_features(self.group, features, working.torch_device, weights)
        elif weights is not None:
            raise ConfigError("the features of a pipeline bring their weights with them")
        if features.raw:
            distinct, inverse = torch.unique(features.indices, return_inverse=True)
            table = working.read("weights", distinct.cpu().numpy())
            sums = self._lookup(table, inverse, features, self._by_row, features.indices)
        else:
            self._check_current(features)
            sums = self._lookup(working.weights, features.indices, features, self.recorded, None)
        pooled: Tensor = self._pooling(sums, features.bags)
        return pooled

    def _check_current(self, features: Features) -> None:
        if not features.raw and features.ticket != self.working.ticket:
            raise ConfigError(
                "these features belong to a mini-batch that is over; run forward and backward of "
                "every part before the batch's step()"
            )

    def _lookup(
        self,
        table: Tensor,
        indices: Tensor,
        features: Features,
        sink: list[LookupGradient],
        rows: Tensor | None,
    ) -> Tensor:
        out: Tensor = _Bags.apply(  # type: ignore[no-untyped-call]
            self._anchor, features.weights, table, indices, features, sink, rows, self
        )
        return out

    def step(self, lr: float | None = None) -> None:
        """Updates the rows read by ids or ``RowBatch`` since the last step, each row once."""
        records, self._by_row[:] = list(self._by_row), []
        rows, gradient = coalesce(records, self.group.dim, self.working.dtype)
        self.working.update_rows(
            rows.cpu().numpy(), gradient.to(self.working.torch_device), self._rate(lr)
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients recorded outside of a pipeline."""
        super().zero_grad(set_to_none)
        self._by_row.clear()

    def _rate(self, lr: float | None) -> float:
        return self.lr if lr is None else lr

    def get_extra_state(self) -> dict[str, Any]:
        """What ``state_dict`` holds: tables with optimizer state, and the hot set, all by name."""
        working = self.working
        return {
            "steps": working.steps,
            "tables": {
                table.name: {
                    field.name: working.table(table.name, field.name)
                    for field in working.layout.fields
                }
                for table in self.group.tables
            },
            "hot": {
                name: torch.from_numpy(rows) for name, rows in working.hot_rows_by_table().items()
            },
        }

    def set_extra_state(self, state: Any) -> None:
        """Restores what ``get_extra_state`` gave, into a hot set of any size.

        Raises:
            DataError: other tables, shapes or optimizer state.
        """
        working = self.working
        names = {f.name for f in working.layout.fields}
        for table in self.group.tables:
            found = state["tables"].get(table.name)
            if found is None or set(found) != names:
                raise DataError(
                    f"table {table.name!r}: the checkpoint holds "
                    f"{'nothing' if found is None else sorted(found)}, needed: {sorted(names)}"
                )
        working.load_by_table({name: rows.numpy() for name, rows in state["hot"].items()})
        for table in self.group.tables:
            for name, values in state["tables"][table.name].items():
                working.set_table(table.name, values, name)
        working.steps = int(state["steps"])

    def table_weights(self, name: str) -> Tensor:
        """Weights of a table, [rows, dim] on the CPU, each row from where it is at this moment."""
        return self.working.table(name)

    def set_table_weights(self, name: str, weights: Tensor) -> None:
        """Replaces the weights of a table, [rows, dim]; not while a mini-batch is in training."""
        self.working.set_table(name, weights)

    def close(self) -> None:
        """Waits for jobs in flight and frees the memory of the device."""
        self.working.close()

    def __enter__(self) -> HotlineEmbedding:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sum_by_row(weight: Tensor) -> None:
    """Coalesces a sparse gradient on the CPU in order of occurrence."""
    gradient = weight.grad
    if gradient is None or gradient.is_coalesced() or gradient.device.type != "cpu":
        return
    record = LookupGradient(gradient._indices()[0], None, gradient._values(), None)
    rows, values = coalesce([record], weight.shape[1], weight.dtype)
    weight.grad = torch.sparse_coo_tensor(
        rows[None], values, weight.shape, is_coalesced=True, check_invariants=False
    )


class PlainEmbedding(nn.Module):
    """The same tables as ordinary ``nn.EmbeddingBag`` modules, trained by ``torch.optim``.

    It starts from the same weights as a ``HotlineEmbedding`` of the same seed. Sparse gradients are
    summed by row in order of occurrence, as Hotline's are; torch's own order of summation depends
    on an unstable sort, so it differs from machine to machine in the last bits.

    Args:
        group: tables and features.
        dtype: of the weights.
        seed: of the initial weights.
        sparse: gradients are sparse tensors: needed for large tables.
        torch_device: where the tables lie.
    """

    def __init__(
        self,
        group: Group,
        *,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        sparse: bool = True,
        torch_device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        self.group = group
        self.torch_device = torch.device(torch_device)
        self._pooling = _Pooling(group)
        self.tables = nn.ModuleList()
        self._columns: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        for table in group.order:
            weights = torch.from_numpy(table_weights(seed, table, numpy_dtype(dtype)))
            bag = nn.EmbeddingBag.from_pretrained(
                weights.to(self.torch_device),
                freeze=False,
                mode="sum",
                sparse=sparse,
                include_last_offset=True,
            )
            if sparse:
                bag.weight.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    _sum_by_row
                )
            self.tables.append(bag)
            columns = [n for n, f in enumerate(group.features) if f.table == table.name]
            self._columns.append(np.array(columns, dtype=np.int64))

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self.group.dim

    @property
    def features(self) -> int:
        """Vectors of a sample."""
        return len(self.group.features)

    def forward(self, features: Input, weights: Tensor | None = None) -> Tensor:
        """Pooled vectors [samples, features, dim]; see ``HotlineEmbedding``."""
        if not isinstance(features, Features):
            features = raw_features(self.group, features, self.torch_device, weights)
        if not features.raw:
            raise ConfigError("encoded indices are of a working set; plain tables read row ids")
        samples, bags = features.bags.samples, features.bags.bags
        outputs: list[Tensor | None] = [None] * bags
        # Bags of a table, sample-major: as single samples with the table's features as bags.
        for order, (table, columns) in enumerate(zip(self.tables, self._columns, strict=True)):
            if not len(columns):
                continue
            numbers = (np.arange(samples)[:, None] * bags + columns).ravel()
            every = Bags(samples * bags, 1, features.bags.lengths)
            part, lookups = every.select(numbers)
            place = to_device(lookups, self.torch_device)
            base = self.group.bases[self.group.order[order].name]
            assert isinstance(table, nn.EmbeddingBag)
            scale = features.weights
            sums = table(
                features.indices.index_select(0, place) - base,
                to_device(part.offsets, self.torch_device),
                None if scale is None else scale.index_select(0, place).to(table.weight.dtype),
            ).view(samples, len(columns), -1)
            for n, column in enumerate(columns):
                outputs[column] = sums[:, n]
        sums = torch.stack([out for out in outputs if out is not None], dim=1)
        pooled: Tensor = self._pooling(sums, features.bags)
        return pooled

    def table_weights(self, name: str) -> Tensor:
        """Weights of a table, [rows, dim] on the CPU."""
        for table, module in zip(self.group.order, self.tables, strict=True):
            if table.name == name:
                assert isinstance(module, nn.EmbeddingBag)
                weight: Tensor = module.weight.detach().cpu()
                return weight
        raise ConfigError(f"no table {name!r}")
