# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of the RTL: would the tests notice if a line were wrong?

    make mutate COUNT=300                     # goes on where it was stopped
    python -m sim.mutate --module splitter    # only mutants of these modules
    python -m sim.mutate --list               # what would be changed

A *mutant* is one small change of a source: a condition negated, an operand dropped, an operator or
a constant exchanged, an assignment left out. A sample of them, spread over all modules, goes into
one copy of the sources, each behind ``hotline_mutant_pkg::Selected``, which the plusarg
``+mutant=<number>`` sets; so everything is compiled once. Each mutant is run against

1. ``soak`` and ``wide``: short rounds of `sim.soak` on a 64-bit and a 512-bit device, forked,
2. ``system``: the system tests, in a forked process,
3. ``bench``: the cocotb benches of its module,

until one notices. A mutant that no test notices is a *survivor*: it needs a test, or, if it cannot
be noticed, a line with the reason in ``sim/mutants.equivalent``. The run fails if less than 95 % of
the others are killed, or if a reason fits no survivor of a complete run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hotline.device import simbuild
from sim import soak

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "mutate"
EQUIVALENT = ROOT / "sim" / "mutants.equivalent"
KILLED_LEAST = 95.0
"""Least share of killed mutants, equivalent ones left out, in percent."""
CONFIGS = {"soak": "tiny", "wide": "wide"}
SOAK_ROUNDS = range(12)
SOAK_SECONDS, SYSTEM_SECONDS, BENCH_SECONDS = 60, 400, 600

_PACKAGE = """
package hotline_mutant_pkg;
  function automatic int unsigned selected();
    int unsigned number;
    if ($value$plusargs("mutant=%d", number) == 0) number = 0;
    return number;
  endfunction
  int unsigned Selected = selected();
endpackage
"""

BENCHES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("hotline_(ram|rr_arb|spill|stream).*", ("test_small_blocks.py",)),
    ("hotline_word_packer", ("test_word_packer.py",)),
    ("hotline_read_engine", ("test_read_engine.py",)),
    ("hotline_write_engine", ("test_write_engine.py",)),
    ("hotline_feistel", ("test_feistel.py", "test_eal.py::test_eal")),
    ("hotline_eal.*", ("test_eal.py::test_eal",)),
    ("hotline_cold_tracker", ("test_cold_tracker.py",)),
    ("hotline_(splitter|sample_lengths)", ("test_splitter.py",)),
    ("hotline_job_check", ("test_job_check.py",)),
    ("hotline_axi_guard", ("test_axi_guard.py",)),
    ("hotline_(gatherer|row_.*)", ("test_gatherer.py",)),
    ("hotline_(fragment.*|assembler|bounds_check|cold_picker|job_closer)", ("test_fragmenter.py",)),
    ("hotline_(shell|job_control|record_writer|axi_mux|stats)", ("test_shell.py",)),
    (".*_kernel", ("test_top.py",)),
)
"""Benches of the modules whose names match, the fastest first; the first line that matches counts.
"""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        key: stable name: a hash of file, kind, texts and how often they occurred before.
        file: path below ``hw/rtl``.
        line: line of the change.
        kind: what was done.
        start, end: offsets in bytes.
        before, after: text.
    """

    key: str
    file: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key} {self.file}:{self.line}: {self.kind}: {self.before} => {self.after}"


# --------------------------------------------------------------------------------------- finding

_SWAPS = {
    "LogicalAndExpression": "||",
    "LogicalOrExpression": "&&",
    "EqualityExpression": "!=",
    "InequalityExpression": "==",
    "LessThanExpression": "<=",
    "LessThanEqualExpression": "<",
    "GreaterThanExpression": ">=",
    "GreaterThanEqualExpression": ">",
    "AddExpression": "-",
    "SubtractExpression": "+",
    "BinaryAndExpression": "|",
    "BinaryOrExpression": "&",
    "BinaryXorExpression": "|",
}
_DROPS = {
    "LogicalAndExpression",
    "LogicalOrExpression",
    "BinaryAndExpression",
    "BinaryOrExpression",
}
_CONSTANTS = {"1'b0": "1'b1", "1'b1": "1'b0", "'0": "'1", "'1": "'0"}
# What is elaborated or only checks: no place for a choice at run time.
_SKIPPED = {
    "SimpleRangeSelect",
    "AscendingRangeSelect",
    "DescendingRangeSelect",
    "FunctionDeclaration",
    "TaskDeclaration",
    "ConcurrentAssertionMember",
    "ImmediateAssertionMember",
    "ImmediateAssertStatement",
    "AssertPropertyStatement",
    "ParameterDeclarationStatement",
    "ParameterValueAssignment",
    "DataDeclaration",
    "EventControlWithExpression",
    "ElabSystemTask",
}
_RUNTIME = {"AlwaysFFBlock", "AlwaysCombBlock", "ContinuousAssign", "NamedPortConnection"}


class _Finder:
    """Walks a source's syntax tree."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.found: list[Mutant] = []
        self._seen: dict[str, int] = defaultdict(int)

    def _slice(self, node: Any) -> tuple[int, int, str]:
        span = node.sourceRange
        start, end = span.start.offset, span.end.offset
        return start, end, self.text[start:end]

    def _add(self, node: Any, kind: str, after: str) -> None:
        start, end, before = self._slice(node)
        before = " ".join(re.sub("//.*", "", before).split())
        after = " ".join(re.sub("//.*", "", after).split())
        base = "|".join((self.file, kind, before, after))
        self._seen[base] += 1
        key = hashlib.sha256(f"{base}|{self._seen[base]}".encode()).hexdigest()[:8]
        line = self.text.count("\n", 0, start) + 1
        self.found.append(Mutant(key, self.file, line, kind, start, end, before, after))

    @staticmethod
    def _dynamic(text: str) -> bool:
        """Whether a text names a signal: constants begin with an upper-case letter."""
        text = re.sub(r"\$\w+|'[bdhoBDHO][0-9a-fA-F_xz]+|\w+::", " ", text)
        return re.search(r"\b[a-z]\w*", text) is not None

    def walk(self, node: Any, runtime: bool, nested: bool, assigned: bool) -> None:
        """Collects the mutants below a node.

        Args:
            node: of the syntax tree; tokens have no children.
            runtime: below an always block, an assignment or a port connection.
            nested: below a condition, so that the assignment has a default.
            assigned: on the right side of an assignment.
        """
        kind = str(node.kind).rpartition(".")[2]
        if kind in _SKIPPED:
            return
        if kind in _RUNTIME:
            runtime = True
            nested = kind == "AlwaysFFBlock"
        if runtime and kind in _SWAPS:
            left, right = self._slice(node.left)[2], self._slice(node.right)[2]
            if self._dynamic(left) or self._dynamic(right):
                self._add(node, "operator", f"{left} {_SWAPS[kind]} {right}")
                if kind in _DROPS:
                    self._add(node, "operand", left)
                    self._add(node, "operand", right)
        if runtime and kind in ("ConditionalStatement", "ConditionalExpression"):
            predicate = node.predicate
            text = self._slice(predicate)[2]
            if "rst_ni" not in text and "&&&" not in text and self._dynamic(text):
                self._add(predicate, "negate", f"!({text})")
            nested = True
        if runtime and assigned and kind in ("IntegerVectorExpression", "UnbasedUnsizedLiteral"
                                             "Expression"):  # fmt: skip
            text = self._slice(node)[2]
            if text in _CONSTANTS:
                self._add(node, "constant", _CONSTANTS[text])
        if runtime and kind == "ExpressionStatement":
            inner = str(node.expr.kind)
            if nested and inner.endswith("AssignmentExpression"):
                self._add(node, "omit", ";")
        self._children(node, kind, runtime, nested, assigned)

    def _children(self, node: Any, kind: str, runtime: bool, nested: bool, assigned: bool) -> None:
        if kind.endswith("AssignmentExpression"):
            self.walk(node.left, runtime, nested, False)
            self.walk(node.right, runtime, nested, True)
            return
        only = {
            "ForLoopStatement": "statement",
            "CastExpression": "right",
            "MultipleConcatenationExpression": "concatenation",
            "StandardCaseItem": "clause",
            "IfGenerate": None,
            "LoopGenerate": "block",
        }
        if kind == "IfGenerate":
            for name in ("block", "elseClause"):
                if getattr(node, name) is not None:
                    self.walk(getattr(node, name), runtime, nested, assigned)
            return
        if kind == "InvocationExpression" and self._slice(node)[2].startswith("$"):
            return
        attribute = only.get(kind)
        if attribute is not None:
            self.walk(getattr(node, attribute), runtime, nested, assigned)
            return
        if kind in ("StandardCaseItem", "DefaultCaseItem"):
            nested = True
        for child in node:
            if child is not None and "TokenKind" not in str(child.kind):
                self.walk(child, runtime, nested, assigned)


def find(file: str, text: str) -> list[Mutant]:
    """All mutants of a source; ``file`` is its path below ``hw/rtl``."""
    from pyslang.syntax import SyntaxTree

    finder = _Finder(file, text)
    finder.walk(SyntaxTree.fromText(text).root, False, False, False)
    return finder.found


def find_all(root: Path) -> list[Mutant]:
    """Mutants of all sources but packages, Verilog tops and generated code."""
    found = []
    for path in simbuild.rtl_sources(root):
        file = path.relative_to(root / "hw" / "rtl").as_posix()
        if path.suffix == ".sv" and not path.stem.endswith("_pkg") and "generated" not in file:
            found += find(file, path.read_text(encoding="utf-8"))
    return found


def sample(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A random part: of every module at least five or all, of large ones more."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    draw = random.Random(seed)
    chosen: list[Mutant] = []
    for group in by_file.values():
        wanted = max(5, round(count * len(group) / len(mutants)))
        chosen += draw.sample(group, min(wanted, len(group)))
    return sorted(chosen, key=lambda mutant: (mutant.file, mutant.start, mutant.key))


# ---------------------------------------------------------------------------------- instrumentation


def instrument(text: str, mutants: Sequence[tuple[int, Mutant]]) -> str:
    """A source in which each mutant is chosen by its number."""

    def render(first: int, last: int, inside: list[tuple[int, Mutant]]) -> str:
        """Text from ``first`` to ``last``, whose mutants are given, outermost first."""
        parts, place = [], first
        while inside:
            start, end = inside[0][1].start, inside[0][1].end
            here = [m for m in inside if (m[1].start, m[1].end) == (start, end)]
            below = [m for m in inside if m not in here and m[1].start < end]
            inside = [m for m in inside if m[1].start >= end]
            parts.append(text[place:start])
            body = render(start, end, below)
            for number, mutant in here:
                chosen = f"hotline_mutant_pkg::Selected == 32'd{number}"
                if mutant.kind == "omit":
                    body = f"begin if (!({chosen})) {body} end"
                else:
                    body = f"(({chosen}) ? ({mutant.after}) : ({body}))"
            parts.append(body)
            place = end
        parts.append(text[place:last])
        return "".join(parts)

    ordered = sorted(mutants, key=lambda m: (m[1].start, -m[1].end))
    return render(0, len(text), ordered)


def build_tree(mutants: Sequence[Mutant], tree: Path) -> None:
    """Writes the instrumented copy of ``hw``."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "hw", tree / "hw")
    numbered: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
    for number, mutant in enumerate(mutants, 1):
        numbered[mutant.file].append((number, mutant))
    for file, group in numbered.items():
        path = tree / "hw" / "rtl" / file
        path.write_text(instrument(path.read_text(encoding="utf-8"), group), encoding="utf-8")
    package = tree / "hw" / "rtl" / "hotline_pkg.sv"
    package.write_text(_PACKAGE + package.read_text(encoding="utf-8"), encoding="utf-8")


# -------------------------------------------------------------------------------------------- tests


def _forked(work: Callable[[], bool], seconds: float, log: Path) -> str:
    """Runs in a forked process: ``survived`` if it returns True, else ``killed``; ``timeout``."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            with log.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = 0 if work() else 1
        except BaseException as error:
            print(repr(error)[:2000], flush=True)
        finally:
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _soak(config: str) -> bool:
    for number in SOAK_ROUNDS if config == "tiny" else SOAK_ROUNDS[:6]:
        soak.Round(soak.configuration(config), 0, number, check=True, short=True).run()
    return True


def _system() -> bool:
    import pytest

    chosen = "not waves and not zynq and not kv260 and not alveo and not reference and not cpu"
    if os.environ.get("HOTLINE_MUTATE_TESTS"):
        chosen = f"({chosen}) and ({os.environ['HOTLINE_MUTATE_TESTS']})"
    tests = [f"{ROOT}/tests/system/test_{name}.py" for name in ("sim", "jobs")]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    return pytest.main([*options, "-k", chosen, "--rootdir", str(ROOT), *tests]) == 0


def _bench(mutant: Mutant) -> str:
    """The cocotb benches of its module, in processes of their own."""
    stem = Path(mutant.file).stem
    names = next((names for pattern, names in BENCHES if re.fullmatch(pattern, stem)), ())
    for name in names:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
        ]
        command += [f"tests/rtl/{name}"]
        with (BUILD / "bench.log").open("w") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )
            try:
                if process.wait(BENCH_SECONDS):
                    return "killed"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return "timeout"
    return "survived"


@dataclass
class Outcome:
    """What became of a mutant: ``killed``, ``timeout`` or ``survived``, by which test."""

    mutant: Mutant
    result: str
    by: str
    seconds: float


@dataclass
class Run:
    """A run of mutants with a state file, one outcome per line.

    Attributes:
        mutants: the sample, in the order of their numbers.
        tree: folder of the instrumented sources.
        state: file of the outcomes.
        tiers: tests to run.
    """

    mutants: list[Mutant]
    tree: Path
    state: Path
    tiers: tuple[str, ...] = ("soak", "wide", "system", "bench")
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    passed: dict[str, set[str]] = field(default_factory=dict)
    """Tests that a survivor of an earlier run has behind it."""

    def prepare(self) -> None:
        """Builds everything and checks that the tests pass without a mutant."""
        build_tree(self.mutants, self.tree)
        os.environ["HOTLINE_ROOT"] = str(self.tree)
        os.environ["HOTLINE_BENCH_BUILD"] = str(BUILD / "cocotb")
        os.environ["HOTLINE_BENCH_ARGS"] = "-Wno-fatal -Wno-lint -Wno-style -CFLAGS -O0"
        os.environ["HOTLINE_SEED"] = "0"
        os.environ["COCOTB_MAX_FAILURES"] = "1"
        check = simbuild.BuildOptions(check=True)
        configs = {CONFIGS.get(tier, "tiny") for tier in self.tiers}
        libraries = {name: simbuild.build(soak.configuration(name), check) for name in configs}
        # The forked processes do not look for them again.
        simbuild.build = lambda config, options=None: libraries[config.name]
        self._select(0)
        for tier in self.tiers:
            if tier != "bench" and self._run_tier(tier, self.mutants[0]) != "survived":
                raise SystemExit(f"{tier} fails without a mutant: {BUILD / tier}.log")

    @staticmethod
    def _select(number: int) -> None:
        os.environ["HOTLINE_PLUSARGS"] = f"+mutant={number}"

    def resume(self) -> None:
        """Reads the outcomes of a run that was stopped."""
        if not self.state.is_file():
            return
        known = {mutant.key: mutant for mutant in self.mutants}
        for line in self.state.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            key = entry["key"]
            if key not in known:
                continue
            if entry["result"] == "survived":
                self.passed.setdefault(key, set()).update(entry["tiers"])
                if not set(self.tiers) <= self.passed[key]:
                    continue
            self.outcomes[key] = Outcome(known[key], entry["result"], entry["by"], entry["seconds"])

    def run(self, until: float, modules: re.Pattern[str]) -> None:
        """Runs what has no outcome yet, until a time of ``time.monotonic``."""
        for number, mutant in enumerate(self.mutants, 1):
            if time.monotonic() > until:
                return
            if mutant.key not in self.outcomes and modules.search(Path(mutant.file).stem):
                outcome = self._try(number, mutant)
                self.outcomes[mutant.key] = outcome
                entry = asdict(mutant) | {
                    "result": outcome.result,
                    "by": outcome.by,
                    "seconds": round(outcome.seconds, 2),
                    "tiers": [
                        tier
                        for tier in self.tiers
                        if tier != "system" or not os.environ.get("HOTLINE_MUTATE_TESTS")
                    ],
                }
                with self.state.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                print(
                    f"{number}/{len(self.mutants)} {outcome.result} by {outcome.by or 'nothing'} "
                    f"in {outcome.seconds:.1f} s: {mutant}",
                    file=sys.stderr,
                    flush=True,
                )

    @staticmethod
    def _run_tier(tier: str, mutant: Mutant) -> str:
        log = BUILD / f"{tier}.log"
        if tier in CONFIGS:
            return _forked(lambda: _soak(CONFIGS[tier]), SOAK_SECONDS, log)
        if tier == "system":
            return _forked(_system, SYSTEM_SECONDS, log)
        return _bench(mutant)

    def _try(self, number: int, mutant: Mutant) -> Outcome:
        self._select(number)
        began = time.monotonic()
        for tier in self.tiers:
            if tier in self.passed.get(mutant.key, ()):
                continue
            result = self._run_tier(tier, mutant)
            if result != "survived":
                return Outcome(mutant, result, tier, time.monotonic() - began)
        return Outcome(mutant, "survived", "", time.monotonic() - began)


# ------------------------------------------------------------------------------------------- report


def read_equivalent(path: Path) -> dict[str, str]:
    """Reads ``key | place and change | reason`` lines; returns reasons by the mutant's key.

    Raises:
        ValueError: a line has another form.
    """
    reasons = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) < 3 or not re.fullmatch("[0-9a-f]{8}", parts[0]) or not all(parts):
            raise ValueError(f"{path}:{number}: is not 'key | place and change | reason'")
        reasons[parts[0]] = parts[-1]
    return reasons


@dataclass
class Summary:
    """Counts by module; survivors without a reason; reasons that fit none."""

    modules: dict[str, dict[str, int]]
    total: dict[str, int]
    survivors: list[Mutant]
    unused: list[str]

    @property
    def percent(self) -> float:
        """Killed or timed out, of those that are not equivalent."""
        killed = self.total["killed"] + self.total["timeout"]
        every = killed + self.total["survived"]
        return 100.0 * killed / every if every else 100.0

    def lines(self) -> Iterator[str]:
        """The table and the survivors."""
        names = ("killed", "timeout", "survived", "equivalent")
        yield f"{'module':36}" + "".join(f"{name:>12}" for name in names)
        for module, counts in [*sorted(self.modules.items()), ("all", self.total)]:
            yield f"{module:36}" + "".join(f"{counts[name]:12}" for name in names)
        yield f"{self.percent:.1f} % of those that are not equivalent were noticed"
        yield from (f"survivor: {mutant}" for mutant in self.survivors)
        yield from (f"a reason without a survivor: {text}" for text in self.unused)


def summarise(outcomes: Sequence[Outcome], reasons: dict[str, str]) -> Summary:
    """Holds the outcomes to the reasons."""
    empty = dict.fromkeys(("killed", "timeout", "survived", "equivalent"), 0)
    modules: dict[str, dict[str, int]] = {}
    total, survivors, used = dict(empty), [], set()
    for outcome in outcomes:
        mutant, result = outcome.mutant, outcome.result
        if result == "survived" and mutant.key in reasons:
            used.add(mutant.key)
            result = "equivalent"
        elif result == "survived":
            survivors.append(mutant)
        modules.setdefault(Path(mutant.file).stem, dict(empty))[result] += 1
        total[result] += 1
    return Summary(modules, total, survivors, sorted(set(reasons) - used))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m sim.mutate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--count", type=int, default=300, help="mutants in the sample, about")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--module", default="", help="only modules whose name has this pattern")
    parser.add_argument("--tiers", default="soak,wide,system,bench", help="tests to run")
    parser.add_argument("--tests", default="", help="only system tests of this -k expression")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--list", action="store_true", help="list the sample and end")
    parser.add_argument("--report", action="store_true", help="of the outcomes that are there")
    parser.add_argument("--fresh", action="store_true", help="forget the outcomes that are there")
    parser.add_argument("--json", action="store_true", help="the counts on standard output")
    options = parser.parse_args(arguments)

    # The sample does not depend on --module: numbers, and so the build, stay the same.
    mutants = sample(find_all(ROOT), options.count, options.seed)
    if options.list:
        for mutant in mutants:
            if re.search(options.module, Path(mutant.file).stem):
                print(mutant)
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    state = BUILD / f"outcomes-{options.count}-{options.seed}.jsonl"
    if options.fresh:
        state.unlink(missing_ok=True)
    os.environ["HOTLINE_MUTATE_TESTS"] = options.tests
    run = Run(mutants, BUILD / "tree", state, tuple(options.tiers.split(",")))
    run.resume()
    if not options.report:
        run.prepare()
        run.run(time.monotonic() + 60 * options.minutes, re.compile(options.module))
    # Whoever has not met all tests yet counts as a survivor.
    known = {mutant.key: mutant for mutant in mutants}
    open_ones = [
        Outcome(known[key], "survived", "", 0.0)
        for key in sorted(set(run.passed) - set(run.outcomes))
    ]
    outcomes = [*run.outcomes.values(), *open_ones]
    summary = summarise(outcomes, read_equivalent(EQUIVALENT))
    complete = len(outcomes) == len(mutants)
    if options.json:
        counts = summary.total | {"percent": round(summary.percent, 2), "of": len(mutants)}
        print(json.dumps(counts | {"survivors": [str(m) for m in summary.survivors]}))
    else:
        print("\n".join(summary.lines()))
    return 1 if summary.percent < KILLED_LEAST or (complete and summary.unused) else 0


if __name__ == "__main__":
    raise SystemExit(main())
