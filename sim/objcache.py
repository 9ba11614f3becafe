# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Compiler wrapper that keeps the objects of Verilator's own sources.

They are the same in every build and take most of its time. Verilator's makefiles call
``$(OBJCACHE) c++ <arguments> -c <source>``; `sim.runner` sets ``OBJCACHE`` to this script unless
``ccache`` is there. Everything that is not one of those sources goes to the compiler as it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def _copy(source: Path, target: Path) -> None:
    """Copies by a rename, so that builds that run side by side see whole files only."""
    part = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, part)
    part.replace(target)


def main(arguments: list[str]) -> int:
    """Runs the compiler, or takes its result from the store.

    Args:
        arguments: folder of the store, then the compiler's command line.

    Returns:
        The exit status.
    """
    store, command = Path(arguments[0]), arguments[1:]
    source = Path(command[-1])
    if "-c" not in command or not source.name.startswith("verilated"):
        return subprocess.run(command, check=False).returncode
    key = hashlib.sha256(repr((command, source.stat().st_mtime_ns)).encode()).hexdigest()[:16]
    # The object is stored last: it says that the dependency file is there too.
    files = [Path(f"{source.stem}.d"), Path(f"{source.stem}.o")]
    kept = [store / f"{key}-{file.name}" for file in files]
    if kept[-1].exists():
        for file, copy in zip(files, kept, strict=True):
            _copy(copy, file)
        return 0
    status = subprocess.run(command, check=False).returncode
    if status == 0 and all(file.exists() for file in files):
        store.mkdir(parents=True, exist_ok=True)
        for file, copy in zip(files, kept, strict=True):
            _copy(file, copy)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
