# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Verilog-2001 of our modules, for Icarus, which simulates four states.

Icarus does not take our SystemVerilog (enumerations with casts, structures of ports, unpacked
structures of the register file). Yosys turns a module with its parameters into one flat Verilog
module: every register still starts unknown, and a condition that is unknown makes unknown whatever
it chooses, where an ``if`` would take the other branch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TIMEOUT_S = 600

_PROGRAM = """
import sys
import pyosys.libyosys as ys
design = ys.Design()
for command in sys.argv[1:]:
    ys.run_pass(command, design)
"""


def plain_verilog(
    toplevel: str,
    sources: Sequence[Path],
    parameters: Mapping[str, int | str],
    target: Path,
) -> None:
    """Writes ``toplevel`` as one Verilog module.

    Args:
        toplevel: its name, kept.
        sources: SystemVerilog files in order.
        parameters: of the module.
        target: file to write.

    Raises:
        RuntimeError: Yosys failed; the message is the end of its output.
    """
    # Integers have 31 bits here.
    sized = {name: f"32'd{value}" for name, value in parameters.items()}
    options = " ".join(f"-G {name}={value}" for name, value in sized.items())
    files = " ".join(str(path) for path in sources)
    commands = (
        f"read_slang --top {toplevel} -D SYNTHESIS {options} {files}",
        f"hierarchy -check -top {toplevel}",
        "proc",
        # Cells that are no Verilog operators.
        "bwmuxmap",
        "bmuxmap",
        "demuxmap",
        "opt_clean",
        f"write_verilog -noattr {target}",
    )
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *commands],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"Yosys on {toplevel}: {(done.stdout + done.stderr)[-600:]}")
    # Benches ask the module for its parameters.
    declared = "".join(f"  parameter {name} = {value};\n" for name, value in parameters.items())
    text = target.read_text()
    head = text.index(";", text.index(f"module {toplevel}(")) + 1
    target.write_text(f"{text[:head]}\n{declared}{text[head:]}")
