# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The README's Python example runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def run_example(document: Path) -> None:
    """Runs the only Python example of a document."""
    text = document.read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, str(document), "exec"), {"__name__": "example"})


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_example(README)
    popular, samples = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert 0 < popular < samples == 64


def test_example_of_the_cpu_device_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_example(README.parent / "docs" / "cpu.md")
    assert "Status.OK" in capsys.readouterr().out
