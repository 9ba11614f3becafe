# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``hotline data``: fetches a data set and shows how skewed it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotline.cli.console import DebugOption, JsonOption, err, out, print_json, remark, table
from hotline.cli.options import (
    DATA_HELP,
    DimOption,
    PinRowsOption,
    SkipBadRowsOption,
    open_dataset,
    pin_bytes_of,
)


def data(
    source: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)] = "ml-100k",
    dim: DimOption = 16,
    pin_rows: PinRowsOption = 16,
    skip_bad_rows: SkipBadRowsOption = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the popularity curve into this file.")
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Fetch a data set, check it, and show how popular its rows are.

    The popular share is the share of samples all of whose lookups are hot: those can be trained on
    at once, without waiting for a row from CPU memory. The table shows it for hot sets that hold
    the most frequent rows; the EAL learns such a set while it runs.

    The files lie in ~/.cache/hotline afterwards, or in HOTLINE_CACHE.
    """
    from hotline.data.statistics import popularity

    with err.status(f"reading {source}"):
        dataset = open_dataset(source, skip_bad_rows=skip_bad_rows)
        group = dataset.group(dim, pin_bytes_of(pin_rows, dim))
        found = popularity(group, dataset.batches("train", 8192))
    powers = [1 << n for n in range(6, 32) if 1 << n < len(found.counts)]
    sizes = [*powers[-8:], len(found.counts)]
    samples, lookups = found.popular_share(sizes), found.lookup_share(sizes)
    if plot is not None:
        from hotline.plots import plot_popularity

        plot_popularity(plot, found, name=dataset.name)
        remark(f"drew {plot}")
    if json:
        print_json(
            {
                "name": dataset.name,
                "train_samples": dataset.samples("train"),
                "test_samples": dataset.samples("test"),
                "dense_width": dataset.dense_width,
                "total_rows": group.total_rows,
                "pinned_rows": group.pinned_rows,
                "lookups_per_sample": found.lookups / found.samples,
                "tables": {table.name: table.rows for table in group.order},
                "hot_rows": [
                    {"rows": size, "lookup_share": float(hot), "popular_share": float(share)}
                    for size, hot, share in zip(sizes, lookups, samples, strict=True)
                ],
            }
        )
        return
    out.print(
        f"[bold]{dataset.name}[/]: {dataset.samples('train'):,} training and "
        f"{dataset.samples('test'):,} test samples, {dataset.dense_width} dense features, "
        f"{found.lookups / found.samples:.1f} lookups a sample, {group.total_rows:,} rows, "
        f"of which {group.pinned_rows:,} are pinned (tables of at most {pin_rows} rows)."
    )
    tables = table("table", "rows", "", numbers=("rows",))
    for one in group.order:
        tables.add_row(one.name, f"{one.rows:,}", "pinned" if one.rows <= pin_rows else "")
    out.print(tables)
    numbers = ("hot rows", "of all", "lookups hot", "samples popular")
    shares = table(*numbers, numbers=numbers)
    for size, hot, share in zip(sizes, lookups, samples, strict=True):
        part = size / (group.total_rows - group.pinned_rows)
        shares.add_row(f"{size:,}", f"{part:.0%}", f"{hot:.1%}", f"{share:.1%}")
    out.print(shares)
    out.print("Hot rows: the most frequent ones beyond the pinned, counted on the training part.")
