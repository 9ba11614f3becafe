# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: results on stdout, everything else on stderr."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hotline.metrics.reporting import plain_json

out = Console(highlight=False)
"""Results: tables, or JSON and nothing else."""
err = Console(stderr=True, highlight=False)
"""Progress, remarks and errors."""

_debug = bool(os.environ.get("HOTLINE_DEBUG"))


def debugging() -> bool:
    """Whether errors show their traceback."""
    return _debug


def _set_debug(value: bool) -> bool:
    global _debug
    _debug = _debug or value
    return value


DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error (also with HOTLINE_DEBUG=1).",
        callback=_set_debug,
        show_default=False,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print JSON on stdout and nothing else.", show_default=False),
]


def help_text(function: Callable[..., object]) -> str:
    """The docstring as help: one line a paragraph, so that the terminal's width breaks it.

    Indented lines stay as they are.
    """
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(
        part if part.startswith(" ") else " ".join(part.split("\n")) for part in paragraphs
    )


def print_json(value: Any) -> None:
    """Writes one JSON document to stdout, without colours or line wrapping."""
    typer.echo(json.dumps(plain_json(value), indent=2, allow_nan=False))


def table(*columns: str, title: str | None = None, numbers: tuple[str, ...] = ()) -> Table:
    """An empty table; the columns in ``numbers`` are set flush right."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return made


def remark(text: str) -> None:
    """Says something that is no error."""
    err.print(f"[yellow]note:[/] {escape(text)}", soft_wrap=True)


def escape(text: str) -> str:
    """Text as it is, even where it looks like rich's markup."""
    from rich.markup import escape as rich_escape

    return rich_escape(text)
