# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The command ``hotline``. Exit codes: 0, 1 for an error that the message explains, 2 for usage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hotline import __version__
from hotline.cli.bench import bench
from hotline.cli.console import DebugOption, debugging, err, escape, help_text
from hotline.cli.data import data
from hotline.cli.doctor import devices, doctor
from hotline.cli.train import train
from hotline.errors import HotlineError

app = typer.Typer(
    name="hotline",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"hotline {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: DebugOption = False,
) -> None:
    """Train recommenders whose embedding tables do not fit the GPU.

    An accelerator splits every mini-batch into samples that touch only popular rows, which can be
    trained on at once, and the others, whose rows it gathers from CPU memory in the meantime.
    The result equals plain mini-batch training.

    Start here:

      hotline doctor                    what is installed, what is missing
      hotline data ml-100k              fetch real data, see its skew
      hotline train --out build/demo    train through the simulated RTL
    """


app.callback(help=help_text(_root))(_root)
for command in (train, data, devices, doctor):
    app.command(help=help_text(command))(command)
app.add_typer(bench, name="bench")


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits.

    Args:
        arguments: without the program's name; None: ``sys.argv``.
    """
    try:
        typer.main.get_command(app).main(args=arguments, prog_name="hotline")
    except HotlineError as error:
        if debugging():
            raise
        err.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(1)
