# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The tools that judge the tests: coverage with its reasons, mutants and their instrumentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sim import coverage, mutate

SOURCE = """
module blink #(parameter int unsigned Width = 4) (
  input logic clk_i, input logic rst_ni, input logic en_i, output logic [Width-1:0] count_o
);
  if (Width < 1) begin : gen_bad
    $fatal(1, "no");
  end
  logic [Width-1:0] next;
  assign next = en_i && count_o != '1 ? count_o + 1'b1 : count_o;  // a comment
  always_ff @(posedge clk_i) begin
    if (!rst_ni) count_o <= '0;
    else if (en_i || Width == 1) count_o <= next;
  end
  a_true : assert property (@(posedge clk_i) en_i || !en_i);
endmodule
"""


def test_mutants_are_where_signals_are_used_and_nowhere_else() -> None:
    found = mutate.find("blink.sv", SOURCE)
    texts = {(m.kind, m.before, m.after) for m in found}
    assert ("operator", "en_i && count_o != '1", "en_i || count_o != '1") in texts
    assert ("operand", "en_i && count_o != '1", "en_i") in texts
    assert ("operator", "count_o + 1'b1", "count_o - 1'b1") in texts
    assert ("omit", "count_o <= next;", ";") in texts
    assert ("negate", "en_i || Width == 1", "!(en_i || Width == 1)") in texts
    changed = [m for m in found if m.line in (5, 6, 14) or "rst_ni" in m.before]
    assert not changed, "parameters, reset and assertions are no place for mutants"
    assert not any(m.before == "Width == 1" for m in found)
    assert len({m.key for m in found}) == len(found)


def test_instrumented_source_is_legal_and_keeps_the_original() -> None:
    from pyslang.syntax import SyntaxTree

    found = mutate.find("blink.sv", SOURCE)
    text = mutate.instrument(SOURCE, list(enumerate(found, 1)))
    tree = SyntaxTree.fromText(text)
    assert not [d for d in tree.diagnostics if d.isError()]
    for number in range(1, len(found) + 1):
        assert re.search(rf"Selected == 32'd{number}\b", text)
    # Without the choices it is the source again.
    single = mutate.instrument(SOURCE, [(7, next(m for m in found if m.kind == "negate"))])
    choice = re.compile(r"\(\(hotline_mutant_pkg::Selected == 32'd7\) \? \((.*?)\) : \((.*?)\)\)")
    assert choice.search(single)
    restored = choice.sub(lambda match: match.group(2), single)
    assert restored.split() == SOURCE.split()


def test_sample_has_something_of_every_module() -> None:
    every = mutate.find_all(mutate.ROOT)
    chosen = mutate.sample(every, 200, seed=3)
    assert {m.file for m in chosen} == {m.file for m in every}
    assert chosen == mutate.sample(every, 200, seed=3) != mutate.sample(every, 200, seed=4)
    assert 200 <= len(chosen) < 300
    for module in {Path(m.file).stem for m in every}:
        assert any(re.fullmatch(pattern, module) for pattern, _ in mutate.BENCHES), module


def test_summary_of_mutants() -> None:
    first, second, third = mutate.find("blink.sv", SOURCE)[:3]
    outcomes = [
        mutate.Outcome(first, "killed", "soak", 1.0),
        mutate.Outcome(second, "survived", "", 1.0),
        mutate.Outcome(third, "timeout", "soak", 1.0),
    ]
    summary = mutate.summarise(outcomes, {"01234567": "never"})
    assert summary.percent == pytest.approx(200 / 3)
    assert summary.survivors == [second] and summary.unused == ["01234567"]
    summary = mutate.summarise(outcomes, {second.key: "cannot be seen"})
    assert summary.percent == 100 and not summary.survivors and not summary.unused


def _point(file: str, line: int, kind: str, comment: str, count: int, lines: str = "") -> str:
    fields = {"f": f"/any/hw/rtl/{file}", "l": line, "n": 1, "t": kind, "o": comment, "S": lines}
    text = "".join(f"\x01{key}\x02{value}" for key, value in fields.items() if value != "")
    return f"C '{text}' {count}\n"


def test_coverage_merges_and_wants_reasons(tmp_path: Path) -> None:
    file = "common/hotline_rr_arbiter.sv"
    number = next(
        number
        for number, text in enumerate((coverage.RTL / file).read_text().splitlines(), 1)
        if "turn_q <= '1" in text
    )
    for name, counts in (("a", (0, 1, 0)), ("b", (0, 0, 3))):
        (tmp_path / f"{name}.dat").write_text(
            "# SystemC::Coverage-3\n"
            + _point(file, number, "line", "block", counts[0], f"{number}-{number + 1}")
            + _point(file, number + 1, "branch", "else", counts[1], str(number + 1))
            + _point(file, 20, "toggle", "turn_q[0]:0->1", counts[1])
            + _point(file, 20, "toggle", "turn_q[0]:1->0", counts[2])
            + _point(file, 20, "toggle", "turn_q[1]:1->0", 0)
        )
    merged = coverage.Coverage()
    for path in tmp_path.glob("*.dat"):
        merged.add(path)
    files = merged.files()
    assert files[file].lines == {number: 0, number + 1: 0}
    report = coverage.make_report(files, [], tmp_path)
    assert (report.total.toggles_hit, report.total.toggles) == (2, 3)
    assert len(report.total.holes) == 3
    assert any("below" in problem for problem in report.problems)
    assert "turn_q" in (tmp_path / "common-hotline_rr_arbiter.sv.html").read_text()

    text = tmp_path / "waivers"
    text.write_text(
        "line | .* | turn_q <= '1 | a reason\n"
        "toggle | hotline_rr.*  | turn_q.1. | another  # comment\n"
        "toggle | hotline_none | x | of nothing\n"
    )
    report = coverage.make_report(files, coverage.read_waivers(text), None)
    assert len(report.total.holes) == 1 and report.total.waived == 2
    assert any("waiver without a hole: toggle | hotline_none" in p for p in report.problems)
    text.write_text("line | .* | x\n")
    with pytest.raises(ValueError, match="waivers:1"):
        coverage.read_waivers(text)


def test_reasons_that_are_checked_in_can_be_read() -> None:
    coverage.read_waivers(coverage.WAIVERS)
    mutate.read_equivalent(mutate.EQUIVALENT)
