# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the checkout and reads the RTL's file lists (``hw/rtl/*.f``)."""

from __future__ import annotations

import os
from pathlib import Path

from hotline.errors import BuildError

_MARK = Path("hw") / "rtl" / "kernels.f"


def repository_root() -> Path:
    """Returns the checkout that holds the RTL: ``HOTLINE_ROOT``, or where this package lies.

    Raises:
        BuildError: there is none; the message says what to set.
    """
    named = os.environ.get("HOTLINE_ROOT")
    if named:
        root = Path(named).expanduser().resolve()
        if not (root / _MARK).is_file():
            raise BuildError(f"HOTLINE_ROOT={named} holds no {_MARK}; set it to a Hotline checkout")
        return root
    for root in Path(__file__).resolve().parents:
        if (root / _MARK).is_file():
            return root
    raise BuildError(
        f"the RTL sources ({_MARK}) are not next to the package in {Path(__file__).parent}; "
        "install from a checkout (pip install -e .) or set HOTLINE_ROOT to one"
    )


def read_file_list(name: str, root: Path | None = None) -> list[Path]:
    """Returns the sources of ``hw/rtl/<name>.f`` in order, nested lists (``-f other.f``) included.

    Args:
        name: name of the list, without ``.f``.
        root: the checkout; None: ``repository_root()``.

    Raises:
        BuildError: the list is missing.
    """
    rtl = (root or repository_root()) / "hw" / "rtl"
    path = rtl / f"{name}.f"
    if not path.is_file():
        raise BuildError(f"there is no file list {path}")
    sources: list[Path] = []
    for raw in path.read_text(encoding="utf-8").splitlines():
        line = raw.split("//")[0].strip()
        if line.startswith("-f "):
            found = read_file_list(line[3:].strip().removesuffix(".f"), root)
        else:
            found = [rtl / line] if line else []
        sources += [source for source in found if source not in sources]
    return sources
