# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""How good the learned hot set is, against an exact count of the same lookups.

Every way of choosing the rows sees the same mini-batches and is judged on later ones:

- ``srrip``, ``frequency``: LEARN with that policy (docs/architecture.md, section 4);
- ``load``: the exact most frequent rows, LOADed from the host: some find their set full;
- ``exact``: the same rows with a slot for each, the limit of all others.

Cases are ``<traffic>/<entries>/<way>``. ``value`` is the share of popular samples, ``limit`` that
of ``exact``; ``lookups`` and ``lookups_limit`` are the same for the lookups that are not pinned.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hotline.bench.output import Result, append_json
from hotline.bench.traffic import DIM, by_frequency
from hotline.codes import Policy
from hotline.data.synthetic import Synthetic
from hotline.device.base import ENTRY
from hotline.errors import ConfigError, DataError
from hotline.ingest import ingest
from hotline.native.kernels import NativeFragmenter

U32 = npt.NDArray[np.uint32]

WAYS = 16
BATCH = 4096
CRITEO_FEATURES = 26
EXPONENTS = (1.05, 1.2)
ENTRIES = (32_768, 131_072, 524_288)
METHODS = ("srrip", "frequency", "load", "exact")


@dataclass(frozen=True)
class Lookups:
    """Samples as row ids.

    Attributes:
        name: of the traffic.
        learn, judge: [samples, features] uint32 row ids to learn from, and later ones.
        pinned_rows, total_rows: of the row space.
        entries: sizes of the EAL that make sense for it.
    """

    name: str
    learn: U32
    judge: U32
    pinned_rows: int
    total_rows: int
    entries: tuple[int, ...]

    @cached_property
    def ranking(self) -> U32:
        """The rows of ``learn`` that are not pinned, most frequent first."""
        return by_frequency(self.learn.reshape(-1), self.pinned_rows)


@dataclass(frozen=True)
class HotsetResult(Result):
    """See the module; ``learned``: lookups learned from."""

    lookups: float
    lookups_limit: float
    learned: int


def synthetic(exponent: float, batches: int, seed: int) -> Lookups:
    """Criteo-shaped traffic: ``batches`` mini-batches to learn from, 32 to judge by."""
    data = Synthetic(exponents=exponent, seed=seed)
    group = data.group(DIM)

    def rows(first: int, count: int) -> U32:
        parts = [
            ingest(group, data.ids(np.arange(n * BATCH, (n + 1) * BATCH))).ids
            for n in range(first, first + count)
        ]
        return np.concatenate(parts).reshape(-1, len(group.features))

    return Lookups(
        f"zipf{exponent:g}",
        rows(0, batches),
        rows(batches, 32),
        group.pinned_rows,
        group.total_rows,
        ENTRIES,
    )


def from_csv(path: Path) -> Lookups:
    """Samples of a file, one a line, ids encoded from 0 for each column.

    With a header the columns whose names start with C are ids; without one the last 26, as in
    encoded Criteo files. The first three quarters are learned from. Nothing is pinned; each column
    is a table.
    """
    try:
        with path.open(newline="") as file:
            lines = list(csv.reader(file))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    head = lines[0] if lines else []
    columns: Sequence[int] = range(max(len(head) - CRITEO_FEATURES, 0), len(head))
    if any(not field.lstrip("-").isdigit() for field in head):
        columns = [n for n, field in enumerate(head) if field.startswith("C")]
        lines = lines[1:]
    if not columns:
        raise DataError(f"{path}: no column's name starts with C, so none is known to hold ids")
    try:
        ids = np.array([[int(line[n]) for n in columns] for line in lines], np.int64)
    except (IndexError, ValueError) as error:
        raise DataError(f"{path}: ids must be integers in every line ({error})") from error
    if len(ids) < 8 or ids.min() < 0:
        raise DataError(f"{path}: at least 8 samples and no negative ids are needed")
    bases = np.concatenate([[0], np.cumsum(ids.max(axis=0) + 1)])
    rows = (ids + bases[:-1]).astype(np.uint32)
    cut = len(rows) * 3 // 4
    distinct = len(np.unique(rows[:cut]))
    entries = tuple(1 << n for n in range(8, 24) if 1 << n <= distinct // 4)
    if not entries:
        raise DataError(f"{path}: {distinct} different rows are too few to choose from")
    return Lookups(path.stem, rows[:cut], rows[cut:], 0, int(bases[-1]), entries[-3:])


def judge(traffic: Lookups, entries: int, method: str) -> tuple[float, float]:
    """Shares of the lookups that are not pinned, and of the samples, that a hot set catches."""
    rows = (traffic.total_rows, traffic.pinned_rows)
    top = traffic.ranking[:entries]
    if method != "exact":
        eal = NativeFragmenter(entries // WAYS, WAYS, 1)
        if method == "load":
            eal.load(top, *rows, np.empty_like(top))
        else:
            eal.learn(traffic.learn.reshape(-1), *rows, Policy(method))
        dumped = np.zeros(entries, ENTRY)
        top = dumped["row"][: eal.dump(dumped, 0).lookups]
    hot = np.zeros(traffic.total_rows, dtype=bool)
    hot[top] = True
    looked = traffic.judge >= traffic.pinned_rows
    caught = hot[traffic.judge] | ~looked
    return float(caught[looked].mean()), float(caught.all(axis=1).mean())


def run(
    csv_files: Sequence[Path] = (),
    json_path: str | Path | None = None,
    *,
    batches: int = 256,
    seed: int = 0,
    markdown: Path | None = None,
    table: bool = True,
) -> list[HotsetResult]:
    """Measures all cases.

    Args:
        csv_files: further traffic, see ``from_csv``.
        json_path: a file that gets one JSON object per case, appended; ``-``: standard output.
        batches: mini-batches of 4,096 samples to learn from.
        seed: of the generator.
        markdown: a file that gets the table.
        table: print it.
    """
    if batches < 1:
        raise ConfigError(f"batches={batches} is not positive")
    sources: Iterator[Lookups] = itertools.chain(
        (synthetic(exponent, batches, seed) for exponent in EXPONENTS), map(from_csv, csv_files)
    )
    results: list[HotsetResult] = []
    for source in sources:
        for entries in source.entries:
            found = {method: judge(source, entries, method) for method in METHODS}
            for method, (lookups, popular) in found.items():
                limit_lookups, limit = found["exact"]
                results.append(
                    HotsetResult(
                        bench="hotset",
                        case=f"{source.name}/{entries}/{method}",
                        value=round(popular, 4),
                        unit="popular samples",
                        limit=round(limit, 4),
                        ratio=round(popular / limit, 4) if limit else 1.0,
                        lookups=round(lookups, 4),
                        lookups_limit=round(limit_lookups, 4),
                        learned=int(source.learn.size),
                    )
                )
                append_json(json_path, results[-1])
    if markdown is not None:
        markdown.write_text(as_markdown(results), encoding="utf-8")
    if table:
        _print(results)
    return results


TITLES = {
    "samples": "popular samples, as a ratio to what exact rows with a slot each catch",
    "lookups": "lookups that are not pinned and are caught, likewise",
}


def _grid(results: Sequence[HotsetResult], kind: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table of ``TITLES``: one row for each traffic and size."""
    rows: dict[str, list[HotsetResult]] = {}
    for result in results:
        rows.setdefault(result.case.rpartition("/")[0], []).append(result)
    grid = []
    for case, found in rows.items():
        name, _, entries = case.rpartition("/")
        *others, exact = found
        if kind == "samples":
            ratios, limit = [r.ratio for r in others], exact.value
        else:
            ratios, limit = [r.lookups / r.lookups_limit for r in others], exact.lookups
        grid.append(
            [name, f"{int(entries):,}", *(f"{ratio:.3f}" for ratio in ratios), f"{limit:.1%}"]
        )
    return ["traffic", "entries", *METHODS], grid


def as_markdown(results: Sequence[HotsetResult]) -> str:
    """Both tables in Markdown."""
    parts = []
    for kind, title in TITLES.items():
        head, grid = _grid(results, kind)
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *grid]
        parts.append(f"{title[0].upper()}{title[1:]}:\n\n")
        parts += ["| " + " | ".join(line) + " |\n" for line in lines]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _print(results: Sequence[HotsetResult]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    for kind, title in TITLES.items():
        head, grid = _grid(results, kind)
        table = Table(title=title[0].upper() + title[1:], box=None)
        for name in head:
            table.add_column(name, justify="left" if name == "traffic" else "right")
        for row in grid:
            table.add_row(*row)
        console.print(table)
