# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks write: one JSON object per line, which begins with the same fields."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """Outcome of a case.

    Attributes:
        bench, case: names; the module of the benchmark says what the cases are.
        value, unit: what was measured.
        limit: what ``value`` is held to, in the same unit.
        ratio: value / limit.
    """

    bench: str
    case: str
    value: float
    unit: str
    limit: float
    ratio: float


def append_json(path: str | Path | None, result: Result) -> None:
    """Appends a result as one line to a file; ``-``: standard output; None: not."""
    if path is None:
        return
    line = json.dumps(asdict(result)) + "\n"
    if str(path) == "-":
        sys.stdout.write(line)
        sys.stdout.flush()
    else:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line)
