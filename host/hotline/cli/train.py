# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""``hotline train``: a DLRM through an accelerator, next to plain training if asked."""

from __future__ import annotations

import enum
import itertools
import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.logging import RichHandler

from hotline.cli.console import (
    DebugOption,
    JsonOption,
    err,
    escape,
    out,
    print_json,
    remark,
    table,
)
from hotline.cli.options import (
    DATA_HELP,
    DimOption,
    PinRowsOption,
    SkipBadRowsOption,
    open_dataset,
    pin_bytes_of,
)
from hotline.errors import ConfigError
from hotline.metrics.reporting import RunRecord, compare, metrics, save_run, write_json

if TYPE_CHECKING:
    from hotline.data.batch import Dataset
    from hotline.device.base import Device
    from hotline.train.trainer import TrainerConfig

_COUNTED_SAMPLES = 100_000
"""Samples from which the popularity curve is drawn; more would change nothing that one sees."""
_LEARN_SHARE = 0.05
"""Share of an epoch that the learning phase takes, unless told otherwise."""


class Schedule(str, enum.Enum):
    """How a mini-batch is trained."""

    SPLIT = "split"
    MERGED = "merged"


class Optimizer(str, enum.Enum):
    """Optimizers of rows and dense layers."""

    SGD = "sgd"
    ADAGRAD = "adagrad"


class Compare(str, enum.Enum):
    """What to run next to it."""

    NONE = "none"
    PLAIN = "plain"


_RUN, _MODEL, _REPORT = "What runs", "Model and training", "Output"


def train(
    data: Annotated[
        str, typer.Option(metavar="DATA", help=DATA_HELP, rich_help_panel=_RUN)
    ] = "ml-100k",
    device: Annotated[
        str,
        typer.Option(
            metavar="BACKEND",
            help="What executes the kernels: sim is the RTL itself in Verilator, reference is "
            "NumPy. See `hotline devices`.",
            rich_help_panel=_RUN,
        ),
    ] = "sim",
    config: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Hardware configuration; sets the rows that the EAL holds. See `hotline devices`.",
            rich_help_panel=_RUN,
        ),
    ] = "demo",
    schedule: Annotated[
        Schedule,
        typer.Option(
            help="split: popular samples first, the others when their rows have come. "
            "merged: wait for the rows, one pass in original order (for models with batch "
            "statistics).",
            rich_help_panel=_RUN,
        ),
    ] = Schedule.SPLIT,
    compare_with: Annotated[
        Compare,
        typer.Option(
            "--compare",
            help="plain: also train ordinary torch embedding bags on the same mini-batches, and "
            "fail (exit code 1) unless the losses agree to 1e-5 at every step and the AUC to 1e-3.",
            rich_help_panel=_RUN,
        ),
    ] = Compare.NONE,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the data.", rich_help_panel=_MODEL)
    ] = 1,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many steps.", rich_help_panel=_MODEL),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Samples of a mini-batch.", rich_help_panel=_MODEL)
    ] = 512,
    dim: DimOption = 16,
    bottom: Annotated[
        str,
        typer.Option(
            metavar="WIDTHS",
            help="Hidden layers of the MLP before the interaction, such as 64,32.",
            rich_help_panel=_MODEL,
        ),
    ] = "32",
    top: Annotated[
        str,
        typer.Option(
            metavar="WIDTHS",
            help="Hidden layers of the MLP behind the interaction; none: one linear layer.",
            rich_help_panel=_MODEL,
        ),
    ] = "none",
    lr: Annotated[
        float,
        typer.Option(
            min=0,
            help="Learning rate. High ones amplify rounding: with --compare the runs then part.",
            rich_help_panel=_MODEL,
        ),
    ] = 0.1,
    optimizer: Annotated[
        Optimizer,
        typer.Option(help="Of the rows and of the dense layers.", rich_help_panel=_MODEL),
    ] = Optimizer.SGD,
    double: Annotated[
        bool,
        typer.Option("--double", help="float64 instead of float32.", rich_help_panel=_MODEL),
    ] = False,
    learn: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Mini-batches of the learning phase, in which the EAL finds out which rows are "
            "popular. They train as well.  [default: 5 % of an epoch]",
            rich_help_panel=_RUN,
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="MINI-BATCHES",
            help="Count every row of so many mini-batches first, and make the most frequent ones "
            "popular, instead of learning.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    lookahead: Annotated[
        int,
        typer.Option(
            min=0,
            help="Mini-batches that are prepared while one trains. Never changes the result.",
            rich_help_panel=_RUN,
        ),
    ] = 1,
    pin_rows: PinRowsOption = 16,
    torch_device: Annotated[
        str,
        typer.Option(
            metavar="DEVICE", help="Where the model trains: cpu or cuda.", rich_help_panel=_MODEL
        ),
    ] = "cpu",
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            help="Threads of torch on the CPU; small models gain nothing from more than one.",
            rich_help_panel=_MODEL,
        ),
    ] = 1,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Of weights and order; same seed, same result.", rich_help_panel=_MODEL
        ),
    ] = 0,
    skip_bad_rows: SkipBadRowsOption = False,
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write metrics.json, the records of the runs, and the plots popularity.png, "
            "loss.png and timeline.png here.",
            rich_help_panel=_REPORT,
        ),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train a small DLRM through an accelerator, and show what the accelerator did.

    Every mini-batch is fragmented into popular samples, all of whose rows are hot, and the others.
    The popular ones train at once; meanwhile the cold rows of the others are gathered from CPU
    memory. One optimizer step follows, so the result equals plain training: --compare plain shows
    it step by step.

    Examples:

      hotline train --compare plain --out build/demo    the demo: real data, simulated RTL
      hotline train --device reference                  without the simulator
      hotline train --data synthetic --config zynq      larger tables, made-up data
    """
    import torch

    from hotline.train.trainer import TrainerConfig

    _log_to_stderr()
    torch.set_num_threads(threads)
    dataset = open_dataset(data, skip_bad_rows=skip_bad_rows, seed=seed)
    epoch_steps = -(-dataset.samples("train") // batch_size)
    total = min(epoch_steps * epochs, steps or epoch_steps * epochs)
    if learn and count:
        raise ConfigError("--learn and --count are two ways to choose what is popular; give one")
    learn_steps = max(1, round(min(epoch_steps, total) * _LEARN_SHARE)) if learn is None else learn
    if count:
        learn_steps = 0
    settings = TrainerConfig(
        schedule=schedule.value,
        batch_size=batch_size,
        epochs=epochs,
        steps=steps,
        dim=dim,
        bottom=_widths("--bottom", bottom),
        top=_widths("--top", top),
        lr=lr,
        optimizer=optimizer.value,
        learn_steps=learn_steps,
        profile_batches=count or 0,
        profile_exact=count is not None,
        lookahead=lookahead,
        pin_bytes=pin_bytes_of(pin_rows, dim),
        seed=seed,
        torch_device=torch_device,
        double=double,
    )
    if out_folder is not None:
        _make(out_folder)
    run, device_made = _run_on_device(settings, dataset, device, config)
    plain = _run_plain(settings, dataset) if compare_with is Compare.PLAIN else None
    found = metrics(run, plain, data=data, config=config, **_as_settings(settings))
    found["device"] = device_made["backend"]
    if out_folder is not None:
        with err.status("drawing"):
            written = _write(out_folder, settings, dataset, run, plain, found, device_made)
        remark(f"wrote {', '.join(written)} in {out_folder}")
    if json:
        print_json(found)
    else:
        _summary(run, plain, found)
    if plain is not None:
        # Adaptive optimizers amplify rounding: only what follows from equal states is compared.
        compared = None if optimizer is Optimizer.SGD else 2
        compare(run, plain).check(steps=compared)


# ------------------------------------------------------------------------------------- the runs


def _run_on_device(
    settings: TrainerConfig, dataset: Dataset, backend: str, config: str
) -> tuple[RunRecord, dict[str, Any]]:
    """Trains through a device; returns the run and what is to be known of the device."""
    import hotline
    from hotline.cli.progress import TrainingProgress
    from hotline.train.trainer import Trainer

    with hotline.open(backend, config) as device:
        capabilities = device.capabilities
        made = {"backend": capabilities.backend, "eal_entries": capabilities.eal_entries}
        _introduce(settings, dataset, device)
        progress = TrainingProgress(capabilities.backend, err, _steps(settings, dataset))
        with progress, Trainer(settings, dataset, device, callbacks=(progress,)) as trainer:
            run = trainer.fit()
        return run, made


def _run_plain(settings: TrainerConfig, dataset: Dataset) -> RunRecord:
    from dataclasses import replace

    from hotline.cli.progress import TrainingProgress
    from hotline.train.trainer import Trainer

    plain = replace(settings, schedule="plain")
    progress = TrainingProgress("plain", err, _steps(settings, dataset))
    with progress, Trainer(plain, dataset, callbacks=(progress,)) as trainer:
        return trainer.fit()


def _steps(settings: TrainerConfig, dataset: Dataset) -> int:
    steps = settings.epochs * -(-dataset.samples("train") // settings.batch_size)
    return steps if settings.steps is None else min(steps, settings.steps)


def _chosen(settings: TrainerConfig) -> str:
    """How the hot set is found."""
    if settings.profile_exact:
        return f"filled with the most frequent rows of {settings.profile_batches} mini-batches"
    return f"learned in {settings.learn_steps} steps"


def _introduce(settings: TrainerConfig, dataset: Dataset, device: Device) -> None:
    """Says what is about to happen."""
    group = dataset.group(settings.dim, settings.pin_bytes)
    capabilities = device.capabilities
    err.print(
        f"[bold]{escape(dataset.name)}[/]: {dataset.samples('train'):,} samples, "
        f"{group.total_rows:,} rows ({group.pinned_rows:,} pinned); "
        f"[bold]{capabilities.backend} {capabilities.config}[/]: EAL of "
        f"{capabilities.eal_entries:,} rows, {_chosen(settings)}",
        soft_wrap=True,
    )
    if group.total_rows - group.pinned_rows <= capabilities.eal_entries:
        remark("the EAL holds every row that is not pinned, so all samples become popular")


# ------------------------------------------------------------------------------------- reports


def _write(
    folder: Path,
    settings: TrainerConfig,
    dataset: Dataset,
    run: RunRecord,
    plain: RunRecord | None,
    found: dict[str, Any],
    device: dict[str, Any],
) -> list[str]:
    """Writes files and plots; returns their names."""
    from hotline.data.statistics import popularity
    from hotline.plots import plot_loss, plot_popularity, plot_timeline

    write_json(folder / "metrics.json", found)
    save_run(folder / f"{run.name}.json", run)
    written = ["metrics.json", f"{run.name}.json"]
    if plain is not None:
        save_run(folder / f"{plain.name}.json", plain)
        written.append(f"{plain.name}.json")
    group = dataset.group(settings.dim, settings.pin_bytes)
    batches = dataset.batches("train", settings.batch_size, seed=settings.seed)
    some = itertools.islice(batches, -(-_COUNTED_SAMPLES // settings.batch_size))
    accelerated = bool(run.accelerated)
    plot_popularity(
        folder / "popularity.png",
        popularity(group, some),
        eal_entries=device["eal_entries"],
        measured_share=run.popular_share if accelerated else None,
        name=dataset.name,
    )
    plot_loss(folder / "loss.png", run, plain)
    plot_timeline(folder / "timeline.png", run.spans, device=run.device)
    return [*written, "popularity.png", "loss.png", "timeline.png"]


def _summary(run: RunRecord, plain: RunRecord | None, found: dict[str, Any]) -> None:
    """Prints the figures for the reader."""
    numbers = (run.device, *(("plain",) if plain else ()))
    shown = table("", *numbers, numbers=numbers)

    def row(name: str, value: str, other: str = "") -> None:
        shown.add_row(name, value, *([other] if plain else []))

    def both(name: str, form: str, *values: float | None) -> None:
        texts = ["-" if value is None else format(value, form) for value in values]
        row(name, *texts[: 1 + (plain is not None)])

    both("steps", ",d", len(run.steps), len(plain.steps) if plain else None)
    both("loss, last 20 steps", ".4f", _last(run), _last(plain) if plain else None)
    both("test AUC", ".4f", run.auc, plain.auc if plain else None)
    if plain is not None:
        row("largest loss difference", f"{found['max_abs_loss_difference']:.1e}")
    both("training time, s", ".1f", run.seconds, plain.seconds if plain else None)
    shown.add_section()
    lookups = max(sum(found[f"{kind}_lookups"] for kind in ("pinned", "eal", "cold")), 1)
    row("popular samples", f"{found['popular_share']:.1%}")
    row("lookups pinned", f"{found['pinned_lookups'] / lookups:.1%}")
    row("lookups hot in the EAL", f"{found['eal_lookups'] / lookups:.1%}")
    row("lookups cold", f"{found['cold_lookups'] / lookups:.1%}")
    row("cold rows gathered, a step", f"{found['cold_rows'] / max(len(run.accelerated), 1):,.0f}")
    if found["lookups_per_cycle"] is not None:
        row("lookups per cycle", f"{found['lookups_per_cycle']:.2f}")
        row("cycles, fragmenter", f"{found['fragment_cycles']:,}")
        row("cycles, gathers", f"{found['gather_cycles']:,}")
    out.print(shown)
    if found["lookups_per_cycle"] is not None:
        out.print("Times include simulating the hardware; cycles are those of the hardware.")


def _last(run: RunRecord, count: int = 20) -> float | None:
    losses = [step.loss for step in run.steps[-count:]]
    return sum(losses) / len(losses) if losses else None


def _as_settings(settings: TrainerConfig) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(settings)


def _widths(option: str, text: str) -> tuple[int, ...]:
    """Reads widths such as ``64,32``; ``none`` is an empty list."""
    if text.strip().lower() in ("", "none"):
        return ()
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError:
        widths = (0,)
    if min(widths) < 1:
        raise ConfigError(f"{option} {text!r}: give widths such as 64,32, or none")
    return widths


def _make(folder: Path) -> None:
    """Makes the output folder before anything is trained."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"--out {folder}: cannot be made or written ({reason})") from error


def _log_to_stderr() -> None:
    logging.captureWarnings(True)
    # Of torch's own Adagrad on the sparse gradients of the plain tables; nothing to act on.
    warnings.filterwarnings("ignore", message="Sparse invariant checks")
    handler = RichHandler(console=err, show_time=False, show_path=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
