# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The README's Python example runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {"__name__": "readme"})
    popular, samples = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert 0 < popular < samples == 64


def test_example_of_the_cpu_device_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (README.parent / "docs" / "cpu.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, "docs/cpu.md", "exec"), {"__name__": "docs"})
    assert "Status.OK" in capsys.readouterr().out
