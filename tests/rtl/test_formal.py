# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The proofs of hw/formal: that they hold, and that they would notice a fault."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from hotline.sources import repository_root

ROOT = repository_root()
RTL = ROOT / "hw" / "rtl"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("formal_run", ROOT / "hw" / "formal" / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


formal = _load()
HAVE_TOOLS = (Path(sys.executable).parent / "yowasp-sby").exists()


def test_every_property_module_is_in_a_proof() -> None:
    modules = {path.stem.removesuffix("_props") for path in formal.FORMAL.glob("*_props.sv")}
    assert modules == {proof.block for proof in formal.PROOFS}


def test_names_are_different() -> None:
    names = [proof.name for proof in formal.PROOFS]
    assert len(set(names)) == len(names)


@dataclass(frozen=True)
class Fault:
    """A change of a source that a proof must notice; `old` occurs once."""

    proof: str
    source: str
    old: str
    new: str


FAULTS = (
    Fault(
        "stream_fifo-Depth3-LutDepth64",
        "common/hotline_stream_fifo.sv",
        "ready_q <= count_d != CountWidth'(Depth);",
        "ready_q <= 1'b1;",
    ),
    Fault(
        "stream_fifo-Depth3-LutDepth1",
        "common/hotline_stream_fifo.sv",
        "ram_holds && (!out_valid_q || out_ready_i);",
        "ram_holds;",
    ),
    Fault(
        "spill_register",
        "common/hotline_spill_register.sv",
        "out_q <= skid_valid_q ? skid_q : in_data_i;",
        "out_q <= in_data_i;",
    ),
    Fault(
        "rr_arbiter-Count3",
        "common/hotline_rr_arbiter.sv",
        "turn_q[i] <= i > 32'(index_o);",
        "turn_q[i] <= i >= 32'(index_o);",
    ),
    Fault(
        "word_packer-Lanes4-InWords3",
        "common/hotline_word_packer.sv",
        "rest_q <= !rest_q && in_last_i && total > TotalWidth'(Lanes);",
        "rest_q <= !rest_q && total > TotalWidth'(Lanes);",
    ),
    Fault(
        "read_engine-Quiet0",
        "common/hotline_read_engine.sv",
        "free_q >= CreditWidth'(burst_beats_q);",
        "free_q != '0;",
    ),
    Fault(
        "read_engine-Quiet1",
        "common/hotline_read_engine.sv",
        "assign split_final = split_left_q <= 32'(longest);",
        "assign split_final = split_left_q < 32'(longest);",
    ),
    Fault(
        "write_engine",
        "common/hotline_write_engine.sv",
        "(beats_d == BeatsWidth'(BurstBeats) || &page_q)",
        "(beats_d == BeatsWidth'(BurstBeats))",
    ),
    Fault(
        "axi_mux-Ahead3",
        "shell/hotline_axi_mux.sv",
        "held_q ? held_record_q : rec_aw_valid_i;",
        "rec_aw_valid_i;",
    ),
    Fault(
        "axi_guard-Outstanding3",
        "shell/hotline_axi_guard.sv",
        "lead_q > 0 || (lead_q == 0 && m_aw_valid_o);",
        "lead_q >= 0;",
    ),
    Fault(
        "csr",
        "shell/generated/hotline_csr.sv",
        "if(axil_n_in_flight < 2'd2) begin",
        "if(axil_n_in_flight < 2'd3) begin",
    ),
)


def test_every_block_has_a_fault() -> None:
    proofs = {proof.name: proof for proof in formal.PROOFS}
    assert {proofs[fault.proof].block for fault in FAULTS} == {p.block for p in formal.PROOFS}
    for fault in FAULTS:
        assert (RTL / fault.source).read_text().count(fault.old) == 1, fault


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_TOOLS, reason="no yowasp-sby here; `make formal` installs it")
@pytest.mark.timeout(1800)
def test_proofs_hold(tmp_path: Path) -> None:
    results = tmp_path / "formal.json"
    assert formal.main(["--json", str(results)]) == 0
    assert results.read_text().count('"passed": true') == 2 * len(formal.PROOFS)


@pytest.mark.slow
@pytest.mark.skipif(not HAVE_TOOLS, reason="no yowasp-sby here; `make formal` installs it")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.proof)
def test_a_fault_is_noticed(fault: Fault) -> None:
    # Not under /tmp: the tool, a WebAssembly program, has one of its own.
    build = ROOT / "build" / "formal-faults" / fault.proof
    build.mkdir(parents=True, exist_ok=True)
    original = RTL / fault.source
    changed = build / original.name
    changed.write_text(original.read_text().replace(fault.old, fault.new))
    proof = next(proof for proof in formal.PROOFS if proof.name == fault.proof)
    proof = replace(proof, depth=14)
    environment = formal.tools(build / "bin")
    outcome = formal.run(proof, "prove", environment, build=build, replaced={original: changed})
    assert not outcome.passed
    # From reset, not only in the step of the induction: it is a fault, not a weak invariant.
    trace = build / proof.name / "prove" / "engine_0" / "trace.vcd"
    assert trace.exists(), outcome.lines
    shutil.rmtree(build)
