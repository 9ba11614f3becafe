# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotline.cli.console import remark
from hotline.data.batch import Dataset
from hotline.errors import ConfigError

DATA_HELP = (
    "ml-100k (MovieLens-100K, fetched once), synthetic (made up, skewed), or a folder with "
    "ml-100k.inter, .item, .user or u.data, u.item, u.user."
)
_TABLES = "Data and tables"
DimOption = Annotated[
    int, typer.Option(min=1, help="Elements of an embedding vector.", rich_help_panel=_TABLES)
]
PinRowsOption = Annotated[
    int,
    typer.Option(
        min=0,
        help="Pin tables of at most this many rows: they are always hot and take no place in the "
        "EAL. (In Python: pin_bytes, by default 1 MiB, which would pin all of MovieLens.)",
        rich_help_panel=_TABLES,
    ),
]
SkipBadRowsOption = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows",
        help="Leave out rows of the data that do not fit the schema, instead of stopping.",
        rich_help_panel=_TABLES,
        show_default=False,
    ),
]


def pin_bytes_of(rows: int, dim: int) -> int:
    """Threshold in bytes that pins tables of at most ``rows`` float32 vectors."""
    return rows * dim * 4


def open_dataset(source: str, *, skip_bad_rows: bool = False, seed: int = 0) -> Dataset:
    """Opens a data set by its name or folder.

    Raises:
        ConfigError: it is none of these.
        DataError: it cannot be fetched or read.
    """
    from hotline.data.movielens import MovieLens

    if source == "synthetic":
        return _synthetic(seed)
    path = None if source == "ml-100k" else Path(source).expanduser()
    if path is not None and not path.exists():
        raise ConfigError(
            f"no data set {source!r}: it is neither ml-100k, synthetic nor a folder that is there"
        )
    dataset = MovieLens.load(path, on_error="skip" if skip_bad_rows else "raise")
    for file, line, what in dataset.issues[:5]:
        remark(f"skipped {file}, line {line}: {what}")
    if len(dataset.issues) > 5:
        remark(f"skipped {len(dataset.issues)} bad rows in all")
    return dataset


def _synthetic(seed: int) -> Dataset:
    """26 tables as skewed as click logs, small enough to be trained on in a minute or two."""
    from hotline.data.synthetic import Synthetic

    return Synthetic(
        rows_max=100_000,
        exponents=1.3,  # a hot set of 16,384 rows can make a third of the samples popular
        train_samples=1 << 16,
        test_samples=1 << 13,
        seed=seed,
    )
