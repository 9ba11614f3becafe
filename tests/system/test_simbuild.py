# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""How the simulated device is built, cached and found, and what is said where it cannot be."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotline import sources
from hotline.config import kernel_config
from hotline.device import simbuild
from hotline.device.simbuild import BuildOptions
from hotline.errors import BuildError

TINY = kernel_config("tiny")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the RTL in a checkout of its own, with an empty cache."""
    root = tmp_path / "checkout"
    shutil.copytree(sources.repository_root() / "hw" / "rtl", root / "hw" / "rtl")
    monkeypatch.setenv("HOTLINE_ROOT", str(root))
    monkeypatch.delenv("HOTLINE_CACHE", raising=False)
    return root


def key(config: Any = TINY, options: BuildOptions | None = None) -> str:
    root = sources.repository_root()
    return simbuild._key(config, options or BuildOptions(), simbuild._Tools.find(), root)


def test_key_covers_what_goes_in(checkout: Path) -> None:
    before, identity = key(), simbuild.build_id()
    assert key() == before
    assert key(options=BuildOptions(check=True)) != before
    assert key(options=BuildOptions(waves="vcd")) != before
    assert key(replace(TINY, eal_sets=32)) != before
    assert key(replace(TINY, name="other")) == before
    source = checkout / "hw" / "rtl" / "hotline_pkg.sv"
    source.write_text(source.read_text() + "\n")
    assert key() != before
    assert simbuild.build_id() != identity


def test_library_is_built_once(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def into(self: Any, path: Path) -> None:
        built.append(path)
        time.sleep(0.3)
        path.write_bytes(b"")

    monkeypatch.setattr(simbuild._Build, "into", into)
    found: list[simbuild.Library] = []

    def work() -> None:
        found.append(simbuild.build(TINY))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(built) == 1 and len(found) == 4
    assert len({library.path for library in found}) == 1
    assert found[0].path.is_relative_to(checkout / "build" / "sim")
    assert found[0].build_id == simbuild.build_id()


def test_cache_can_be_elsewhere(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTLINE_CACHE", str(tmp_path / "elsewhere"))
    assert simbuild.cache_folder() == tmp_path / "elsewhere" / "sim"


def test_source_that_does_not_compile_is_named(checkout: Path) -> None:
    source = checkout / "hw" / "rtl" / "hotline_pkg.sv"
    source.write_text(source.read_text().replace("endpackage", "oops\nendpackage"))
    with pytest.raises(BuildError, match=r"Verilator.*failed[\s\S]*hotline_pkg.sv"):
        simbuild.build(TINY)
    assert not list((checkout / "build" / "sim").glob("*.so"))
    assert not [path for path in (checkout / "build" / "sim").iterdir() if path.is_dir()]


def test_missing_source_and_list(checkout: Path) -> None:
    (checkout / "hw" / "rtl" / "hotline_pkg.sv").unlink()
    with pytest.raises(BuildError, match=r"hotline_pkg\.sv"):
        simbuild.build(TINY)
    with pytest.raises(BuildError, match=r"nothing\.f"):
        sources.read_file_list("nothing")


def test_root_that_is_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLINE_ROOT", str(tmp_path))
    with pytest.raises(BuildError, match="HOTLINE_ROOT"):
        simbuild.build(TINY)


def test_package_without_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTLINE_ROOT", raising=False)
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "hotline" / "sources.py"))
    with pytest.raises(BuildError, match=r"pip install -e|HOTLINE_ROOT"):
        sources.repository_root()


@pytest.mark.parametrize("tool", ["g++", "perl"])
def test_missing_tool_is_named(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in {"g++", "perl"} - {tool}:
        (tmp_path / other).symlink_to(str(shutil.which(other)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=re_escape(tool)):
        simbuild.build(TINY)


def re_escape(tool: str) -> str:
    return tool.replace("+", r"\+") + " on PATH"


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"hotline-rec\[sim\]"):
        simbuild.build(TINY)


def test_fst_without_its_headers(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simbuild, "has_fst", lambda: False)
    with pytest.raises(BuildError, match="lz4"):
        simbuild.build(TINY, BuildOptions(waves="fst"))


def test_left_over_folder_of_a_killed_build_goes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = simbuild.cache_folder()
    stale = folder / f"tiny-{key()}-left"
    stale.mkdir(parents=True)
    monkeypatch.setattr(simbuild._Build, "_verilate", lambda self, kernel, work: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        simbuild.build(TINY)
    assert not stale.exists()
