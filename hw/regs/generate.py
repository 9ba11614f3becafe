# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Generates everything that follows from the register source ``hw/regs/hotline.rdl``.

    python hw/regs/generate.py            # writes the files
    python hw/regs/generate.py --check    # exits 1 if a file that is checked in differs

The register block, the C header and the Markdown page come from PeakRDL; ``registers.py`` comes
from the small exporter below, which walks the same elaborated tree.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, RegfileNode, RegNode

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path("hw/regs/hotline.rdl")
COMMAND = "python hw/regs/generate.py"
MARK = f"Generated from {SOURCE} by `{COMMAND}`; do not edit."
LICENCE = ("Copyright Hotline contributors.", "SPDX-License-Identifier: Apache-2.0")

ARGUMENTS_START = 0x010
ARGUMENTS_END = 0x0A0
TOOL_TIMEOUT_S = 120


# ------------------------------------------------------------------------------------ registers.py


def _hex(value: int, digits: int = 1) -> str:
    """Returns ``value`` as the formatter wants it: a small x and large digits."""
    return f"0x{value:0{digits}X}"


def _text(node: AddrmapNode | RegfileNode | RegNode | FieldNode) -> str:
    """Returns the node's name and description on one line."""
    desc = " ".join(str(node.get_property("desc") or "").split())
    if isinstance(node, FieldNode):
        return desc
    return f"{node.get_property('name')}: {desc}" if desc else str(node.get_property("name"))


def _docstring(text: str, indent: str = "") -> str:
    """Returns ``text`` as a docstring, broken at 100 columns."""
    lines: list[str] = []
    line = f'{indent}"""'
    for word in text.split():
        if len(line) + len(word) + 4 > 100:
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    return "\n".join([*lines, line.rstrip() + '"""'])


def _fields(registers: Iterator[RegNode] | list[RegNode], base: int) -> Iterator[str]:
    """Yields the source of one ``Field`` per value, in ascending order.

    The value of a register with a single field has the register's name; two registers ``X_LO`` and
    ``X_HI`` are one value ``x`` of 64 bits.
    """
    for register in registers:
        name = register.inst_name.lower()
        offset = register.absolute_address - base
        fields = list(register.fields())
        for field in fields:
            shift, bits = field.low, field.width
            if len(fields) > 1:
                label = field.inst_name
            elif name.endswith("_lo"):
                label, bits = name.removesuffix("_lo"), 64
            elif name.endswith("_hi"):
                continue
            else:
                label = name
            yield f'Field("{label}", {_hex(offset, 3)}, {shift}, {bits}),'


def _registers_py(top: AddrmapNode) -> str:
    """Returns the source of ``host/hotline/registers.py``."""
    out = [
        *(f"# {line}" for line in LICENCE),
        f"# {MARK}",
        '"""Offsets and fields of the registers, and the layout of the completion record.',
        "",
        "``<REGISTER>`` is the byte offset of a register; ``<REGISTER>_<FIELD>_MASK`` and",
        "``_SHIFT`` place a field in it. Registers in a block have the block's name in front.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final, NamedTuple",
        "",
        "",
        "class Field(NamedTuple):",
        '    """One value in a block of registers (or in the completion record in memory).',
        "",
        "    Attributes:",
        "        name: name in lower case.",
        "        offset: bytes from the block's start to the (first) 32-bit word that holds it.",
        "        shift: lowest bit in that word.",
        "        bits: width; a value of 64 bits takes two words, the low half first.",
        '    """',
        "",
        "    name: str",
        "    offset: int",
        "    shift: int",
        "    bits: int",
        "",
        "    @property",
        "    def word(self) -> int:",
        '        """Number of its (first) 32-bit word in the block."""',
        "        return self.offset // 4",
        "",
        "    @property",
        "    def mask(self) -> int:",
        '        """Its bits, in place."""',
        "        return ((1 << self.bits) - 1) << self.shift",
        "",
        "",
        f"MAP_BYTES: Final = {_hex(top.size)}",
        '"""Size of the map."""',
    ]

    def register(node: RegNode, prefix: str) -> None:
        name = prefix + node.inst_name
        out.extend([f"{name}: Final = {_hex(node.absolute_address, 3)}", _docstring(_text(node))])
        fields = list(node.fields())
        if len(fields) == 1 and fields[0].width == 32:
            return
        for field in fields:
            label = f"{name}_{field.inst_name.upper()}"
            mask = ((1 << field.width) - 1) << field.low
            out.extend(
                [
                    f"{label}_MASK: Final = {_hex(mask)}",
                    _docstring(_text(field)),
                    f"{label}_SHIFT: Final = {field.low}",
                ]
            )

    def table(name: str, doc: str, lines: Iterator[str]) -> None:
        out.extend(["", f"{name}: Final[tuple[Field, ...]] = ("])
        out.extend(f"    {line}" for line in lines)
        out.extend([")", _docstring(doc)])

    arguments: list[RegNode] = []
    for child in top.children():
        if isinstance(child, RegNode):
            register(child, "")
            if ARGUMENTS_START <= child.absolute_address < ARGUMENTS_END:
                arguments.append(child)
        elif isinstance(child, RegfileNode):
            out.extend(
                [
                    "",
                    f"{child.inst_name}: Final = {_hex(child.absolute_address, 3)}",
                    _docstring(_text(child)),
                    f"{child.inst_name}_BYTES: Final = {_hex(child.size)}",
                ]
            )
            for node in child.registers():
                register(node, f"{child.inst_name}_")
    table(
        "ARGUMENTS",
        "Arguments of a job; offsets from the start of the map.",
        _fields(arguments, 0),
    )
    for child in top.children():
        if isinstance(child, RegfileNode):
            table(
                f"{child.inst_name}_FIELDS",
                f"Values of {child.inst_name}; offsets from its start.",
                _fields(list(child.registers()), child.absolute_address),
            )
    return "\n".join(out) + "\n"


# ------------------------------------------------------------------------------------- the files


def _peakrdl(*arguments: str) -> None:
    """Runs PeakRDL in the repository root, so that paths in its outputs are the same everywhere."""
    command = [sys.executable, "-m", "peakrdl", *arguments]
    run = subprocess.run(
        command, cwd=ROOT, timeout=TOOL_TIMEOUT_S, check=False, capture_output=True, text=True
    )
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")


def _commented(text: str, start: str, end: str = "") -> str:
    """Puts licence and mark in front of ``text`` and strips blanks at line ends."""
    head = [f"{start} {line}{end}" for line in (*LICENCE, MARK)]
    return "\n".join([*head, *(line.rstrip() for line in text.splitlines())]) + "\n"


def generate() -> dict[Path, str]:
    """Returns the text of every generated file, by its path in the repository."""
    compiler = RDLCompiler()
    compiler.compile_file(str(ROOT / SOURCE))
    top = compiler.elaborate().top
    files = {Path("host/hotline/registers.py"): _registers_py(top)}
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        _peakrdl(
            "regblock", str(SOURCE), "-o", str(out), "--cpuif", "axi4-lite-flat",
            "--default-reset", "rst_n", "--addr-width", "12", "--type-style", "hier",
        )  # fmt: skip
        header = out / "hotline_registers.h"
        _peakrdl(
            "c-header", str(SOURCE), "-o", str(header), "--type-style", "hier", "--std", "gnu99"
        )
        page = out / "register_map.md"
        _peakrdl("markdown", str(SOURCE), "-o", str(page))
        for module in ("hotline_csr_pkg.sv", "hotline_csr.sv"):
            text = (out / module).read_text(encoding="utf-8")
            files[Path("hw/rtl/shell/generated") / module] = _commented(text, "//")
        text = header.read_text(encoding="utf-8")
        files[Path("hw/regs/generated") / header.name] = _commented(text, "//")
        text = page.read_text(encoding="utf-8")
        files[Path("docs") / page.name] = _commented(text, "<!--", " -->")
    return files


def main() -> int:
    """Writes the files, or with ``--check`` compares them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit 1 if a file is out of date"
    )
    check = parser.parse_args().check
    stale = 0
    for path, text in generate().items():
        target = ROOT / path
        if not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
            continue
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if old != text:
            stale += 1
            print(f"{path} is out of date; run `{COMMAND}`")
            diff = difflib.unified_diff(
                old.splitlines(), text.splitlines(), "checked in", "generated", lineterm="", n=1
            )
            print("\n".join(list(diff)[:20]))
    if check and not stale:
        print("the generated register files are up to date")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
