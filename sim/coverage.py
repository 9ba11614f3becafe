# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Line and toggle coverage of the RTL by the benches and the simulated device, merged.

    make coverage                              # runs the tests, several times slower than usual
    python -m sim.coverage --report            # the report again from the data of the last run

The report (``build/coverage/report/index.html`` and ``summary.txt``) has a table by file and each
source with its counts. Instances and parameters are merged: a point counts as covered if any test
of any configuration covers it.

- A *line* is covered if every block and branch on it was executed.
- A *toggle* is one direction of one bit of a signal.

``sim/coverage.waivers`` says why the remaining holes are there; a hole without a reason, and a
reason without a hole, fail the run, and so does too low a share. What random traffic may or may not
reach is marked there (``toggle?``). Generated code is counted apart.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RTL = ROOT / "hw" / "rtl"
BUILD = ROOT / "build" / "coverage"
WAIVERS = ROOT / "sim" / "coverage.waivers"
TESTS = (
    "tests/rtl",
    "tests/system/test_jobs.py",
    "tests/system/test_sim.py",
    "tests/system/test_soak.py",
)
LINES_LEAST, TOGGLES_LEAST = 98.0, 95.0
"""Least shares, in percent, of covered lines and toggles of code that is not generated."""

_FIELD = re.compile("\x01([a-zA-Z]+)\x02([^\x01]*)")


@dataclass
class FileCoverage:
    """Counts of one source.

    Attributes:
        lines: line -> least count of the blocks and branches on it.
        toggles: (line, signal with index, edge) -> count.
    """

    lines: dict[int, int] = field(default_factory=dict)
    toggles: dict[tuple[int, str, str], int] = field(default_factory=dict)


def points(path: Path) -> Iterator[tuple[dict[str, str], int]]:
    """Points of a file that Verilator wrote: fields and count."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("C '"):
                text, count = line[3:].rsplit("' ", 1)
                yield dict(_FIELD.findall(text)), int(count)


def _span(text: str) -> Iterable[int]:
    """Lines of ``12-14,17``."""
    for part in text.split(","):
        if part:
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)


class Coverage:
    """Merged counts of all sources below ``hw/rtl``, by their path relative to it."""

    def __init__(self) -> None:
        # (file, line, column, comment) -> lines, count
        self._blocks: dict[tuple[str, int, str, str], tuple[str, int]] = {}
        self._toggles: dict[tuple[str, int, str, str], int] = defaultdict(int)

    def add(self, path: Path) -> None:
        """Adds the counts of a data file."""
        for point, count in points(path):
            name = point.get("f", "")
            place = name.rfind("hw/rtl/")
            if place < 0:
                continue
            file, line = name[place + len("hw/rtl/") :], int(point["l"])
            if point["t"] == "toggle":
                signal, _, edge = point["o"].rpartition(":")
                self._toggles[file, line, signal, edge] += count
            else:
                key = (file, line, point["n"], point["o"])
                lines, before = self._blocks.get(key, ("", 0))
                self._blocks[key] = (point.get("S") or lines or str(line), before + count)

    def files(self) -> dict[str, FileCoverage]:
        """By file."""
        found: dict[str, FileCoverage] = defaultdict(FileCoverage)
        for (file, _, _, _), (lines, count) in self._blocks.items():
            counts = found[file].lines
            for number in _span(lines):
                counts[number] = min(counts.get(number, count), count)
        for (file, line, signal, edge), count in self._toggles.items():
            found[file].toggles[line, signal, edge] = count
        return dict(sorted(found.items()))


# ----------------------------------------------------------------------------------------- waivers


@dataclass
class Waiver:
    """A reason for holes.

    Attributes:
        kind: ``line`` or ``toggle``.
        file: regular expression for the whole name of the file, without its folder.
        pattern: of a line: searched in its text; of a toggle: the whole ``signal[index]``.
        reason: why.
        chance: random traffic may reach the place: the hole need not be there.
        used: holes that it explains.
    """

    kind: str
    file: re.Pattern[str]
    pattern: re.Pattern[str]
    reason: str
    chance: bool = False
    used: int = 0


def read_waivers(path: Path) -> list[Waiver]:
    """Reads ``kind | file | pattern | reason`` lines; kind ``toggle?`` where it is left to chance.

    Raises:
        ValueError: a line has another form.
    """
    waivers = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        parts = [part.strip() for part in text.split(" | ")]
        if len(parts) != 4 or parts[0] not in ("line", "toggle", "toggle?") or not all(parts):
            raise ValueError(
                f"{path}:{number}: is not 'line|toggle|toggle? | file | pattern | reason'"
            )
        kind, file, pattern, reason = parts
        chance = kind.endswith("?")
        kind = kind.removesuffix("?")
        waivers.append(Waiver(kind, re.compile(file), re.compile(pattern), reason, chance))
    return waivers


def explain(waivers: Sequence[Waiver], kind: str, file: str, subject: str) -> str | None:
    """The first waiver's reason for a hole; counts its use."""
    name = Path(file).name
    for waiver in waivers:
        match = waiver.pattern.search if kind == "line" else waiver.pattern.fullmatch
        if waiver.kind == kind and waiver.file.fullmatch(name) and match(subject):
            waiver.used += 1
            return waiver.reason
    return None


# ------------------------------------------------------------------------------------------ report


@dataclass
class Row:
    """Line of the table: hits, all, and holes without a reason."""

    lines: int = 0
    lines_hit: int = 0
    toggles: int = 0
    toggles_hit: int = 0
    holes: list[str] = field(default_factory=list)
    waived: int = 0

    def add(self, other: Row) -> None:
        """Sums up."""
        for name in ("lines", "lines_hit", "toggles", "toggles_hit", "waived"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.holes += other.holes

    def percent(self, kind: str) -> float:
        """Share of covered ``lines`` or ``toggles``."""
        every = getattr(self, kind)
        return 100.0 * getattr(self, f"{kind}_hit") / every if every else 100.0


@dataclass
class Report:
    """Rows by file, sums, and what is wrong."""

    rows: dict[str, Row]
    total: Row
    generated: Row
    problems: list[str]

    def text(self) -> str:
        """The table."""
        head = (
            f"{'file':44} {'lines':>12} {'%':>6} {'toggles':>15} {'%':>6} {'reasons':>8} "
            f"{'open':>6}"
        )

        def show(name: str, row: Row) -> str:
            return (
                f"{name:44} {row.lines_hit:>5}/{row.lines:<6} {row.percent('lines'):6.2f} "
                f"{row.toggles_hit:>7}/{row.toggles:<7} {row.percent('toggles'):6.2f} "
                f"{row.waived:8} {len(row.holes):6}"
            )

        body = [show(name, row) for name, row in self.rows.items()]
        ends = [show("all but generated code", self.total), show("generated code", self.generated)]
        return "\n".join([head, *body, "", *ends, ""])


def make_report(
    files: dict[str, FileCoverage], waivers: Sequence[Waiver], folder: Path | None
) -> Report:
    """Holds the counts to the waivers and the limits; writes pages into a folder."""
    rows: dict[str, Row] = {}
    total, generated = Row(), Row()
    for file, counts in files.items():
        source = (RTL / file).read_text(encoding="utf-8").splitlines()
        row = Row(len(counts.lines), 0, len(counts.toggles), 0)
        notes: dict[int, list[str]] = defaultdict(list)
        apart = "generated" in Path(file).parts
        for number, count in counts.lines.items():
            row.lines_hit += count > 0
            if not count and not apart:
                text = source[number - 1].strip()
                reason = explain(waivers, "line", file, text)
                row.waived += reason is not None
                if reason is None:
                    row.holes.append(f"{file}:{number}: line: {text}")
                notes[number].append(f"not executed: {reason or 'NO REASON GIVEN'}")
        for (number, signal, edge), count in counts.toggles.items():
            row.toggles_hit += count > 0
            if not count and not apart:
                reason = explain(waivers, "toggle", file, signal)
                row.waived += reason is not None
                if reason is None:
                    row.holes.append(f"{file}:{number}: toggle: {signal} {edge}")
                notes[number].append(f"{signal} {edge}: {reason or 'NO REASON GIVEN'}")
        rows[file] = row
        (generated if apart else total).add(row)
        if folder is not None:
            _write_page(folder / f"{file.replace('/', '-')}.html", file, source, counts, notes)
    problems = [f"hole without a reason: {hole}" for hole in total.holes]
    problems += [
        f"waiver without a hole: {w.kind} | {w.file.pattern} | {w.pattern.pattern}"
        for w in waivers
        if not w.used and not w.chance
    ]
    for kind, least in (("lines", LINES_LEAST), ("toggles", TOGGLES_LEAST)):
        if total.percent(kind) < least:
            problems.append(f"{total.percent(kind):.2f} % of the {kind} are below {least} %")
    report = Report(rows, total, generated, problems)
    if folder is not None:
        (folder / "summary.txt").write_text(report.text(), encoding="utf-8")
        (folder / "holes.txt").write_text("\n".join(problems) + "\n", encoding="utf-8")
        _write_index(folder / "index.html", report)
    return report


_STYLE = (
    "<style>body{font-family:sans-serif}td,th{padding:1px 8px;text-align:right}"
    "td:first-child,th:first-child{text-align:left}pre{margin:0}.miss{background:#fcc}"
    ".some{background:#fec}.note{color:#a00;font-style:italic}</style>"
)


def _write_index(path: Path, report: Report) -> None:
    cells = []
    for name, row in report.rows.items():
        cells.append(
            f"<tr><td><a href='{name.replace('/', '-')}.html'>{name}</a></td>"
            f"<td>{row.lines_hit}/{row.lines}</td><td>{row.percent('lines'):.2f}</td>"
            f"<td>{row.toggles_hit}/{row.toggles}</td><td>{row.percent('toggles'):.2f}</td>"
            f"<td>{row.waived}</td><td>{len(row.holes)}</td></tr>"
        )
    problems = "".join(f"<li>{html.escape(problem)}</li>" for problem in report.problems[:500])
    path.write_text(
        f"<!doctype html><title>RTL coverage</title>{_STYLE}<h1>RTL coverage</h1>"
        f"<p>Lines {report.total.percent('lines'):.2f} %, toggles "
        f"{report.total.percent('toggles'):.2f} % of what is not generated.</p>"
        "<table><tr><th>file</th><th>lines</th><th>%</th><th>toggles</th><th>%</th>"
        f"<th>holes with a reason</th><th>without</th></tr>{''.join(cells)}</table>"
        f"<h2>Problems: {len(report.problems)}</h2><ul>{problems}</ul>",
        encoding="utf-8",
    )


def _write_page(
    path: Path,
    file: str,
    source: Sequence[str],
    counts: FileCoverage,
    notes: dict[int, list[str]],
) -> None:
    rows = []
    for number, text in enumerate(source, 1):
        count = counts.lines.get(number)
        style = "miss" if count == 0 else "some" if number in notes else ""
        shown = "" if count is None else str(count)
        rows.append(
            f"<pre class='{style}'>{number:5} {shown:>10} {html.escape(text)}</pre>"
            + "".join(
                f"<pre class='note'>{'':17}{html.escape(note)}</pre>" for note in notes[number][:40]
            )
        )
    path.write_text(
        f"<!doctype html><title>{file}</title>{_STYLE}<h1>{file}</h1>"
        f"<p><a href='index.html'>all files</a></p>{''.join(rows)}",
        encoding="utf-8",
    )


# --------------------------------------------------------------------------------------------- run


def collect(tests: Sequence[str], data: Path, jobs: int) -> int:
    """Runs tests so that they leave their counts in a folder; returns pytest's status."""
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", str(jobs)]
    # Other backends of the system tests say nothing about the RTL.
    command += ["-k", "not reference-tiny and not cpu-tiny"]
    command += ["--dist", "loadfile", "-o", "timeout=3600", *tests]
    environment = os.environ | {"HOTLINE_COVERAGE": str(data), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m sim.coverage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--report", action="store_true", help="of the data that are there")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--out", type=Path, default=BUILD)
    parser.add_argument("--json", action="store_true", help="the sums on standard output")
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    options = parser.parse_args(arguments)

    data = options.out / "data"
    failed = 0
    if not options.report:
        failed = collect(options.tests, data, options.jobs)
    coverage = Coverage()
    found = sorted(data.glob("*.dat"))
    if not found:
        print(f"there are no data in {data}; run without --report", file=sys.stderr)
        return 2
    for path in found:
        coverage.add(path)
    folder = options.out / "report"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = make_report(coverage.files(), read_waivers(WAIVERS), folder)
    if options.json:
        sums = {
            kind: [getattr(report.total, f"{kind}_hit"), getattr(report.total, kind)]
            for kind in ("lines", "toggles")
        }
        print(json.dumps(sums | {"problems": len(report.problems), "tests_failed": failed}))
    else:
        print(report.text())
    for problem in report.problems[:20]:
        print(problem, file=sys.stderr)
    if len(report.problems) > 20:
        print(f"... {len(report.problems)} problems: {folder / 'holes.txt'}", file=sys.stderr)
    return 1 if failed or report.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
