# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``hotline doctor`` and ``hotline devices``."""

from __future__ import annotations

import typer

from hotline.cli.checks import EXTRA, SIM, backends, run_checks
from hotline.cli.console import DebugOption, JsonOption, escape, out, print_json, table


def doctor(json: JsonOption = False, debug: DebugOption = False) -> None:
    """Look at what is installed, and say how to mend what is missing.

    Exit code 0: everything that the package and its simulator need is there (extras may be
    missing). Exit code 1: something is not.
    """
    checks = run_checks()
    needed = [check for check in checks if not check.ok and check.need != EXTRA]
    if json:
        print_json({"ok": not needed, "checks": [check.as_dict() for check in checks]})
        raise typer.Exit(1 if needed else 0)
    shown = table("", "what", "needed for", "found")
    purpose = {SIM: "--device sim", EXTRA: "extras"}
    for check in checks:
        lacking = "[yellow]--[/]" if check.need == EXTRA else "[red]NO[/]"
        mark = "[green]ok[/]" if check.ok else lacking
        shown.add_row(mark, check.name, purpose.get(check.need, "everything"), escape(check.found))
    out.print(shown)
    missing = [check for check in checks if not check.ok]
    if missing:
        out.print("To mend:", style="bold")
        for check in missing:
            optional = " (optional)" if check.need == EXTRA else ""
            out.print(f"  {check.name}{optional}: {escape(check.remedy)}", soft_wrap=True)
    if needed:
        out.print(f"[red]{len(needed)} thing(s) that are needed are missing.[/]")
        raise typer.Exit(1)
    out.print("[green]All that is needed is there.[/] Next: hotline train --help")


def devices(json: JsonOption = False, debug: DebugOption = False) -> None:
    """List the backends, whether they can be opened here, and the named configurations.

    A backend is what executes the kernels' jobs (--device, or hotline.open(NAME) in Python); a
    configuration sets the size of the hardware (--config).
    """
    from hotline.config import CONFIGS

    found = backends(run_checks())
    if json:
        print_json(
            {
                "backends": [
                    {
                        "name": backend.name,
                        "ready": backend.ready,
                        "purpose": backend.purpose,
                        "missing": [check.as_dict() for check in backend.missing],
                    }
                    for backend in found
                ],
                "configurations": {
                    config.name: {
                        "bus_bits": config.bus_bits,
                        "eal_entries": config.eal_entries,
                        "cold_rows_max": config.cold_rows_max,
                        "lookups_max": config.lookups_max,
                        "clock_khz": config.clock_khz,
                    }
                    for config in CONFIGS.values()
                },
            }
        )
        return
    shown = table("backend", "state", "what it is")
    for backend in found:
        names = ", ".join(check.name for check in backend.missing)
        state = "[green]ready[/]" if backend.ready else f"[red]needs {names}[/]"
        shown.add_row(backend.name, state, backend.purpose)
    out.print(shown)
    numbers = ("bus", "hot rows (EAL)", "cold rows of a job", "clock")
    sizes = table("configuration", *numbers, numbers=numbers)
    for config in CONFIGS.values():
        sizes.add_row(
            config.name,
            f"{config.bus_bits} bit",
            f"{config.eal_entries:,}",
            f"{config.cold_rows_max:,}",
            f"{config.clock_khz / 1000:.0f} MHz",
        )
    out.print(sizes)
    if not all(backend.ready for backend in found):
        out.print("`hotline doctor` says how to get what is missing.")
