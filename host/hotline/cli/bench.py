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


def rtl(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CASE]...",
            help="Names or patterns, such as fragment/zynq/criteo or '*/kv260/*'; none: all cases.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Append one JSON object per case to this file; - is stdout.",
        ),
    ] = None,
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
    seed: Annotated[int, typer.Option(min=0, help="Of the traffic.")] = 0,
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

    to_stdout = json is not None and str(json) == "-"
    if json is not None and not to_stdout:
        try:
            json.parent.mkdir(parents=True, exist_ok=True)
            json.open("a").close()
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(f"--json {json}: cannot be written ({reason})") from error
    run(
        cases or None,
        json,
        jobs=jobs,
        memory=MemoryModel(stall_probability=stall, seed=seed),
        verify=verify,
        seed=seed,
    )
    if json is not None and not to_stdout:
        remark(f"appended to {json}")


bench.command("rtl", help=help_text(rtl))(rtl)
