# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks write: one JSON object per line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any


def append_json(path: str | Path | None, result: Any) -> None:
    """Appends a result (a dataclass) as one line to a file; ``-``: standard output; None: not."""
    if path is None:
        return
    line = json.dumps(asdict(result)) + "\n"
    if str(path) == "-":
        sys.stdout.write(line)
        sys.stdout.flush()
    else:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line)
