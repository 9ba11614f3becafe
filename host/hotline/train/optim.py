# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Row-local optimizers: new (weight, state) = f(old, coalesced gradient, step number, lr).

An optimizer sees only the rows that occur in a mini-batch, each once. What would touch all rows at
every step (momentum, weight decay, dense Adam) is refused, since most rows are not on the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from hotline.errors import ConfigError
from hotline.native import sgd_update


@runtime_checkable
class RowOptimizer(Protocol):
    """What the working set asks of an optimizer."""

    @property
    def state(self) -> tuple[tuple[str, float], ...]:
        """Name and initial value of each per-element state; they lie in the rows' records."""

    def update(
        self, weights: Tensor, state: dict[str, Tensor], gradient: Tensor, step: int, lr: float
    ) -> None:
        """Updates distinct rows in place.

        Args:
            weights: [rows, dim].
            state: by name, [rows, dim] each.
            gradient: [rows, dim], summed over all occurrences of each row.
            step: number of this step, from 1.
            lr: learning rate.
        """


@dataclass(frozen=True)
class SGD:
    """Plain stochastic gradient descent, equal to ``torch.optim.SGD``."""

    @property
    def state(self) -> tuple[tuple[str, float], ...]:
        """No state."""
        return ()

    def update(
        self, weights: Tensor, state: dict[str, Tensor], gradient: Tensor, step: int, lr: float
    ) -> None:
        """``w -= lr * g``."""
        weights.add_(gradient, alpha=-lr)

    def update_places(self, weights: Tensor, places: Tensor, gradient: Tensor, lr: float) -> bool:
        """``update`` of rows ``places`` of a table, without copies of them; the same to the bit.

        Returns:
            whether it was done: only for tables on the CPU.
        """
        if not (weights.is_cpu and weights.is_contiguous() and gradient.is_contiguous()):
            return False
        if weights.dtype not in (torch.float32, torch.float64):
            return False
        sgd_update(weights.numpy(), places.numpy(), gradient.numpy(), lr)
        return True


@dataclass(frozen=True)
class Adagrad:
    """Adagrad, equal to ``torch.optim.Adagrad`` with sparse gradients.

    Attributes:
        eps: added to the root.
        lr_decay: the rate at step n is ``lr / (1 + (n - 1) * lr_decay)``.
        initial_accumulator_value: start of the sum of squares.
    """

    eps: float = 1e-10
    lr_decay: float = 0.0
    initial_accumulator_value: float = 0.0

    @property
    def state(self) -> tuple[tuple[str, float], ...]:
        """The sum of squared gradients."""
        return (("sum", self.initial_accumulator_value),)

    def update(
        self, weights: Tensor, state: dict[str, Tensor], gradient: Tensor, step: int, lr: float
    ) -> None:
        """``s += g * g; w -= lr * g / (sqrt(s) + eps)``."""
        rate = lr / (1 + (step - 1) * self.lr_decay)
        total = state["sum"]
        total.addcmul_(gradient, gradient, value=1.0)
        weights.addcdiv_(gradient, total.sqrt().add_(self.eps), value=-rate)


def row_optimizer(name: str = "sgd", **options: float) -> RowOptimizer:
    """Returns an optimizer by name (``sgd``, ``adagrad``); refuses what is not row-local.

    Raises:
        ConfigError: with the reason.
    """
    for option in ("momentum", "weight_decay"):
        if options.pop(option, 0.0):
            raise ConfigError(
                f"{option} changes every row at every step, also those that the mini-batch does "
                "not read and that are not on the GPU; leave it out, or put the penalty on the "
                "dense layers"
            )
    if name == "sgd":
        if options:
            raise ConfigError(f"sgd has no option {', '.join(options)}")
        return SGD()
    if name == "adagrad":
        try:
            return Adagrad(**options)
        except TypeError as error:
            raise ConfigError(f"adagrad: {error}") from None
    if name in ("adam", "adamw"):
        raise ConfigError(
            f"{name} decays the moments of every row at every step, so it is not row-local; use "
            "sgd or adagrad"
        )
    raise ConfigError(f"no row-local optimizer {name!r}; there are sgd, adagrad")
