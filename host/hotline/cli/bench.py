# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``hotline bench``: measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotline.cli.console import DebugOption, help_text, remark
from hotline.errors import ConfigError

bench = typer.Typer(no_args_is_help=True, help="Measure, in figures that others can repeat.")

JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Append one JSON object per case to this file; - is stdout.",
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of the traffic.")]


def rtl(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CASE]...",
            help="Names or patterns, such as fragment/zynq/criteo or '*/kv260/*'; none: all cases.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Jobs back to back; quote no figure from less than 16.")
    ] = 16,
    stall: Annotated[
        float,
        typer.Option(
            min=0, max=0.95, help="Chance that a channel of the memory stalls, for every cycle."
        ),
    ] = 0.0,
    verify: Annotated[
        bool, typer.Option(help="Compare a job of every case with the NumPy oracle.")
    ] = True,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Measure the RTL in cycles, as a share of what its bus allows.

    The kernels run in Verilator on a memory with latencies of 100 cycles. The ratio is the sum of
    the jobs' limits (words to read or to write, whichever are more, over the words of the bus)
    over the cycles that they took together. Cycles are exact: the same in every run, on every
    machine. Each configuration is compiled on its first use, which takes minutes.

    Examples:

      hotline bench rtl                              everything
      hotline bench rtl 'fragment/*' --json out.jsonl
      hotline bench rtl fragment/demo/criteo --jobs 2
    """
    from hotline.bench.rtl import run
    from hotline.device.sim import MemoryModel

    _check_writable("--json", json)
    run(
        cases or None,
        json,
        jobs=jobs,
        memory=MemoryModel(stall_probability=stall, seed=seed),
        verify=verify,
        seed=seed,
    )
    if json is not None and str(json) != "-":
        remark(f"appended to {json}")


def _check_writable(option: str, path: Path | None) -> None:
    """Refuses a file that cannot be written, before anything is measured."""
    if path is None or str(path) == "-":
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{option} {path}: cannot be written ({reason})") from error


def hotset(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CSV]...",
            help="Further traffic: one sample a line, encoded ids; with a header the columns C..., "
            "else the last 26.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table in Markdown to this file.")
    ] = None,
    batches: Annotated[
        int, typer.Option(min=1, help="Mini-batches of 4,096 samples to learn from.")
    ] = 256,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Compare learned hot sets with an exact count of the same lookups.

    Both policies of LEARN, and a LOAD of the exact most frequent rows, are judged on later samples:
    the share of popular samples and of lookups, as a ratio to what the exact rows would catch if
    each had a slot. Counts are exact: the same in every run.

    Examples:

      hotline bench hotset
      hotline bench hotset criteo_encoded.csv --json out.jsonl
    """
    from hotline.bench.hotset import run

    _check_writable("--json", json)
    _check_writable("--markdown", markdown)
    run(files or (), json, batches=batches, seed=seed, markdown=markdown)


def host(
    traffic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ZIPF]...",
            help="Ranges of Zipf exponents: 1.05-1.2 and 0.7-0.9; none: both.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = None,
    variants: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these variants.", show_default=False),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Mini-batches per variant.")] = 25,
    rows_max: Annotated[
        int | None,
        typer.Option(min=1, help="Cap on the rows of a table, where 3 GB of memory are too much."),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Longest wait for a quiet machine, in seconds.")
    ] = 1.0,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Time the fragmentation job on the host, beside what one would use without Hotline.

    Mini-batches of 4,096 samples with 26 raw ids over the Criteo Kaggle tables: our native code,
    NumPy, torch, a plain C++ loop, and numba and FBGEMM where they are installed (pip install numba
    fbgemm-gpu-cpu). All are checked to be right, run on one thread and take turns. Also LEARN, and
    GATHER and SCATTER of random rows against a bare loop.

    Examples:

      hotline bench host
      hotline bench host 1.05-1.2 --variants hotline-cpu,cpp-bitmap --json out.jsonl
      hotline bench host --rows-max 20000 --repetitions 3      a quick try
    """
    from hotline.bench.host import ZIPF, run

    _check_writable("--json", json)
    run(
        traffic or tuple(ZIPF),
        json,
        variants=variants.split(",") if variants else None,
        repetitions=repetitions,
        rows_max=rows_max,
        wait_s=wait,
        seed=seed,
    )


def train(
    json: JsonOption = None,
    variants: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these variants.", show_default=False),
    ] = None,
    threads: Annotated[
        str, typer.Option(metavar="N,...", help="Numbers of threads, a run for each.")
    ] = "1,2",
    batches: Annotated[int, typer.Option(min=1, help="Mini-batches, all different.")] = 200,
    rows_max: Annotated[int, typer.Option(min=1, help="Cap on the rows of a table.")] = 1_000_000,
    sim: Annotated[
        str | None,
        typer.Option(
            metavar="CONFIG",
            help="Also count the cycles of a step in the simulated hardware.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Longest wait for a quiet machine, in seconds.")
    ] = 1.0,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Time training on the CPU, beside plain torch and TorchRec.

    A Criteo-like DLRM with 356 MB of tables. All variants start from the same weights, see the
    same mini-batches, take turns, and must reach the same losses: plain (nn.EmbeddingBag),
    torchrec-fused and torchrec-plain (where TorchRec is installed: pip install torchrec
    fbgemm-gpu-cpu), merged and split (ours on the cpu device).

    Examples:

      hotline bench train
      hotline bench train --threads 1 --variants plain,merged --batches 40 --rows-max 100000
    """
    from hotline.bench.train import run

    _check_writable("--json", json)
    try:
        numbers = [int(number) for number in threads.split(",")]
    except ValueError:
        raise ConfigError(f"--threads {threads!r}: give numbers such as 1,2") from None
    run(
        json,
        threads=numbers,
        variants=variants.split(",") if variants else None,
        batches=batches,
        rows_max=rows_max,
        sim=sim,
        wait_s=wait,
        seed=seed,
    )


def scaling(
    json: JsonOption = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result into this file.")
    ] = None,
    rows_max: Annotated[int, typer.Option(min=1000, help="Cap on the rows.")] = 300_000_000,
    samples_max: Annotated[int, typer.Option(min=16, help="Cap on a mini-batch.")] = 65_536,
    repetitions: Annotated[int, typer.Option(min=1, help="Of each point.")] = 9,
    wait: Annotated[
        float, typer.Option(min=0, help="Longest wait for a quiet machine, in seconds.")
    ] = 1.0,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Time a lookup on the host against mini-batch, number of rows and share of hot lookups.

    FRAGMENT and GATHER of the native code, one thread, one thing varied at a time; at the end it
    says what dominates. Takes half of the free memory for the largest tables.

    Examples:

      hotline bench scaling --png scaling.png
      hotline bench scaling --rows-max 1000000 --repetitions 3      a quick try
    """
    from hotline.bench.scaling import run

    _check_writable("--json", json)
    _check_writable("--png", png)
    run(
        json,
        png=png,
        rows_max=rows_max,
        samples_max=samples_max,
        repetitions=repetitions,
        wait_s=wait,
        seed=seed,
    )


def gpu(
    json: JsonOption = None,
    device: Annotated[
        str, typer.Option(help="A CUDA device; cpu: try the script, its times mean nothing.")
    ] = "cuda",
    variants: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these variants.", show_default=False),
    ] = None,
    zipf: Annotated[str, typer.Option(metavar="S,...", help="Exponents of traffic.")] = "1.05,1.2",
    hot_rows: Annotated[
        str, typer.Option(metavar="N,...", help="Budgets: rows on the GPU, powers of two.")
    ] = "65536,262144,1048576",
    batches: Annotated[int, typer.Option(min=1, help="Mini-batches, all different.")] = 200,
    rows_max: Annotated[
        int | None, typer.Option(min=1, help="Cap on the rows of a table.", show_default=False)
    ] = None,
    dim: Annotated[int, typer.Option(min=4, help="Elements of a row.")] = 16,
    seed: SeedOption = 0,
    debug: DebugOption = False,
) -> None:
    """Time training on one CUDA GPU that has room for some of the rows only.

    A Criteo-like DLRM with all rows in the host's memory: hybrid (rows on the CPU), uva (the GPU
    reads mapped host memory), uvm (FBGEMM's managed cache with prefetch), gpu (all rows on the
    GPU), fae, ours (the cpu device gathers), ours-zero-copy (the GPU gathers). Those that use
    FBGEMM need fbgemm-gpu. The ratio is to the best that is not ours and does not hold all rows on
    the GPU.

    Examples:

      hotline bench gpu --json gpu.jsonl
      hotline bench gpu --variants uvm,ours --hot-rows 262144 --dim 64
      hotline bench gpu --device cpu --rows-max 5000 --batches 20 --hot-rows 1024     a dry run
    """
    from hotline.bench.gpu import run

    _check_writable("--json", json)
    try:
        exponents = [float(text) for text in zipf.split(",")]
        budgets = [int(text) for text in hot_rows.split(",")]
    except ValueError:
        raise ConfigError(
            f"--zipf {zipf} --hot-rows {hot_rows}: give numbers separated by commas"
        ) from None
    run(
        json,
        device=device,
        zipfs=exponents,
        hot_rows=budgets,
        variants=variants.split(",") if variants else None,
        batches=batches,
        rows_max=rows_max,
        dim=dim,
        seed=seed,
    )


def suite(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...",
            help="Of host, train, scaling, rtl; none: all.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the JSON lines and the plot.")] = Path(
        "build/bench"
    ),
    document: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page about it in Markdown to this file."),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Run the benchmarks that fit into ten minutes and write a page about them.

    Each with its usual arguments, one after the other: host, train, scaling, and rtl for zynq.

    Examples:

      hotline bench suite --document benchmarks.md
      hotline bench suite host
    """
    from hotline.bench.suite import run

    if document is not None:
        _check_writable("--document", document)
    run(out, document, parts=parts or None)
    remark(f"wrote {out}" + ("" if document is None else f" and {document}"))


bench.command("gpu", help=help_text(gpu))(gpu)
bench.command("host", help=help_text(host))(host)
bench.command("hotset", help=help_text(hotset))(hotset)
bench.command("rtl", help=help_text(rtl))(rtl)
bench.command("scaling", help=help_text(scaling))(scaling)
bench.command("suite", help=help_text(suite))(suite)
bench.command("train", help=help_text(train))(train)
