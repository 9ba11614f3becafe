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
