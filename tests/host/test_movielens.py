# Copyright Hotline contributors.
# SPDX-License-Identifier: Apache-2.0
"""MovieLens: fetching, parsing by schema, features, splits; on made-up files in both layouts.

The last test reads the real files; it runs where ``hotline data ml-100k`` has fetched them.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotline.data import Batch, Dataset, Jagged, Lookups, movielens
from hotline.data.movielens import MovieLens
from hotline.data.statistics import popularity, row_ids
from hotline.errors import ConfigError, DataError, FetchError, ParseError

USERS = ["1\t24\tM\ttechnician\t85711", "2\t53\tF\tother\t94043", "7\t23\tM\twriter\tT8H1N"]
ITEMS = [
    "1\tToy Story\t1995\tAnimation Children's Comedy",
    "2\tGoldenEye\t1995\tAction",
    "5\tunkonwn\tunkonwn\tunknown",
    "9\tAn Öld Film\t1922\tDrama Horror",
]
# Out of order in time; two of one second keep the order of the file.
RATINGS = [
    "1\t1\t5\t86400",
    "2\t2\t3\t0",
    "7\t9\t4\t97200",
    "1\t5\t1\t97200",
    "2\t1\t4\t604800",
    "7\t2\t2\t400000",
]


def write(
    folder: Path,
    users: list[str] = USERS,
    items: list[str] = ITEMS,
    ratings: list[str] = RATINGS,
    end: str = "\n",
) -> Path:
    """A folder in the layout of recbole."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, header, rows in (
        ("user", "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token", users),
        (
            "item",
            "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq",
            items,
        ),
        ("inter", "user_id:token\titem_id:token\trating:float\ttimestamp:float", ratings),
    ):
        text = end.join([header, *rows, ""])
        (folder / f"ml-100k.{name}").write_bytes(text.encode())
    return folder


def all_of(data: MovieLens, split: str) -> Batch:
    (batch,) = data.batches(split, 1000)
    return batch


# ------------------------------------------------------------------------------------- features


@pytest.fixture
def small(tmp_path: Path) -> MovieLens:
    return MovieLens.load(write(tmp_path), test_share=1 / 3)


def test_is_a_dataset(small: MovieLens) -> None:
    assert isinstance(small, Dataset)
    assert (small.samples("train"), small.samples("test")) == (4, 2)


def test_test_part_is_the_newest_in_order_of_time(small: MovieLens) -> None:
    test = all_of(small, "test")
    assert test.labels.tolist() == [0.0, 1.0]  # 7 on 2 (rating 2), then 2 on 1 (rating 4)
    assert test.features["user"].tolist() == [2, 1]  # type: ignore[union-attr]
    assert test.features["item"].tolist() == [1, 0]  # type: ignore[union-attr]


def test_features_are_those_of_the_rows(small: MovieLens) -> None:
    test = all_of(small, "test")
    assert test.features["gender"].tolist() == [1, 0]  # type: ignore[union-attr]  # F, M
    assert test.features["age"].tolist() == [0, 2]  # type: ignore[union-attr]  # 23, 24, 53
    assert test.features["occupation"].tolist() == [2, 0]  # type: ignore[union-attr]
    assert test.features["zip"].tolist() == [2, 1]  # type: ignore[union-attr]  # 857, 940, T8H
    assert test.features["year"].tolist() == [2, 2]  # type: ignore[union-attr]  # none, 1922, 1995
    assert test.features["hour"].tolist() == [400000 % 86400 // 3600, 0]  # type: ignore[union-attr]
    # 400000 s is Monday 1970-01-05; 604800 s is a week after Thursday 1970-01-01.
    assert test.features["weekday"].tolist() == [0, 3]  # type: ignore[union-attr]


def test_genres_are_jagged(small: MovieLens) -> None:
    genre = all_of(small, "test").features["genre"]
    assert isinstance(genre, Jagged)
    names = sorted({"Animation", "Children's", "Comedy", "Action", "unknown", "Drama", "Horror"})
    assert genre.lengths.tolist() == [1, 3]
    assert [names[i] for i in genre.values] == ["Action", "Animation", "Children's", "Comedy"]


def test_tables_hold_every_id(small: MovieLens) -> None:
    group = small.group(4, pin_bytes=3 * 4 * 4)
    rows = {table.name: table.rows for table in group.tables}
    assert rows["user"] == 3 and rows["item"] == 4 and rows["hour"] == 24 and rows["weekday"] == 7
    assert group.pinned_rows == sum(n for n in rows.values() if n <= 3)
    assert group.lookups_per_sample is None
    for split in ("train", "test"):
        batch = all_of(small, split)
        assert list(batch.features) == [feature.name for feature in group.features]
        for name, lookups in batch.features.items():
            values = lookups.values if isinstance(lookups, Jagged) else lookups
            assert values.dtype == np.int64
            assert values.min() >= 0 and values.max() < rows[name]


def test_dense_scale_is_fitted_on_the_training_part_alone(tmp_path: Path) -> None:
    plain = MovieLens.load(write(tmp_path / "a"), test_share=1 / 3)
    train = all_of(plain, "train")
    assert train.dense.dtype == np.float32 and train.dense.shape == (4, plain.dense_width)
    np.testing.assert_allclose(train.dense[:, 0].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(train.dense[:, 0].std(), 1, atol=1e-6)
    assert np.isfinite(train.dense).all()  # the missing year is the mean, never NaN
    # Other ratings in the test part change nothing in the training part.
    changed = [*RATINGS[:4], "7\t9\t5\t700000", "7\t5\t5\t700001"]
    other = MovieLens.load(write(tmp_path / "b", ratings=changed), test_share=1 / 3)
    np.testing.assert_array_equal(other.scale.mean, plain.scale.mean)
    np.testing.assert_array_equal(all_of(other, "train").dense, train.dense)


def test_earlier_ratings_of_a_user_look_back_only(small: MovieLens) -> None:
    column = movielens.DENSE.index("log_user_earlier")
    dense = np.concatenate([all_of(small, s).dense[:, column] for s in ("train", "test")])
    users = np.concatenate([all_of(small, s).features["user"] for s in ("train", "test")])
    raw = dense * small.scale.deviation[column] + small.scale.mean[column]
    counts = np.rint(np.expm1(raw)).astype(int)
    for user in np.unique(users):  # the training part is shuffled, so only the sets are known
        assert sorted(counts[users == user]) == [0, 1]


def test_liked_shares_look_back_and_see_no_label_of_the_test_part(tmp_path: Path) -> None:
    """Checked against a plain loop over the ratings in order of time."""
    rng = np.random.default_rng(0)
    ratings = [
        f"{rng.choice([1, 2, 7])}\t{rng.choice([1, 2, 5, 9])}\t{rng.integers(1, 6)}\t{10 * n}"
        for n in range(40)
    ]
    data = MovieLens.load(write(tmp_path, ratings=ratings), test_share=0.25)
    rows = [tuple(map(int, rating.split("\t"))) for rating in ratings]
    prior = np.mean([rating >= 4 for _, _, rating, _ in rows[:30]])
    for key, name in ((0, "user_liked"), (1, "item_liked")):
        expected = []
        for number, row in enumerate(rows):
            seen = [r[2] >= 4 for r in rows[: min(number, 30)] if r[key] == row[key]]
            expected.append((sum(seen) + 5 * prior) / (len(seen) + 5))
        column = movielens.DENSE.index(name)
        raw = data._dense[:, column] * data.scale.deviation[column] + data.scale.mean[column]
        np.testing.assert_allclose(raw, expected, atol=1e-6)


# -------------------------------------------------------------------------------------- batches


def samples_of(data: MovieLens, seed: int, epoch: int, size: int) -> list[tuple[float, ...]]:
    found = []
    for batch in data.batches("train", size, seed=seed, epoch=epoch):
        users, items = batch.features["user"], batch.features["item"]
        found += [tuple(x) for x in zip(users, items, batch.labels, strict=True)]
    return found


def test_shuffle_depends_on_seed_and_epoch_alone(tmp_path: Path) -> None:
    ratings = [f"{(1, 2, 7)[i % 3]}\t{(1, 2, 5, 9)[i % 4]}\t{1 + i % 5}\t{i}" for i in range(60)]
    data = MovieLens.load(write(tmp_path, ratings=ratings), test_share=0.1)
    first = samples_of(data, 1, 0, 7)
    assert len(first) == 54
    assert samples_of(data, 1, 0, 54) == first
    assert samples_of(data, 1, 1, 7) != first and samples_of(data, 2, 0, 7) != first
    assert sorted(samples_of(data, 2, 3, 7)) == sorted(first)


def test_last_batch_is_partial_and_none_is_lost(small: MovieLens) -> None:
    sizes = [batch.samples for batch in small.batches("train", 3)]
    assert sizes == [3, 1]
    for batch in small.batches("train", 3):
        genre = batch.features["genre"]
        assert isinstance(genre, Jagged)
        assert len(genre.lengths) == batch.samples and genre.lengths.sum() == len(genre.values)


@pytest.mark.parametrize("size", [0, -1])
def test_bad_batch_size_is_refused(small: MovieLens, size: int) -> None:
    with pytest.raises(ConfigError, match="batch_size"):
        next(small.batches("train", size))


def test_unknown_split_is_refused(small: MovieLens) -> None:
    with pytest.raises(ConfigError, match="train, test"):
        next(small.batches("validation", 3))


# -------------------------------------------------------------------------------------- parsing


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "no_final_line_end"])
def test_line_ends(tmp_path: Path, end: str, cut: bool) -> None:
    folder = write(tmp_path, end=end)
    if cut:
        for file in folder.iterdir():
            file.write_bytes(file.read_bytes().removesuffix(end.encode()))
    assert MovieLens.load(folder, test_share=1 / 3).samples("train") == 4


@pytest.mark.parametrize(
    ("file", "row", "what"),
    [
        ("ratings", "1\t1\t5", "3 fields"),
        ("ratings", "1\t1\t5\t0\t0", "5 fields"),
        ("ratings", "1\t1\t6\t0", "rating 6"),
        ("ratings", "1\t1\t4.5\t0", "rating '4.5'"),
        ("ratings", "1\t1\t1_0\t0", "rating '1_0'"),
        ("ratings", "1\t1\t٣\t0", "rating"),
        ("ratings", "1\t1\t-1\t0", "rating '-1'"),
        ("ratings", "1\t1\t5\tnan", "timestamp 'nan'"),
        ("ratings", "3\t1\t5\t0", "user 3 is not in the file"),
        ("ratings", "1\t3\t5\t0", "item 3 is not in the file"),
        ("ratings", "\t1\t5\t0", "user ''"),
        ("ratings", "", "1 fields"),
        ("users", "1\t24\tM\tartist\t12345", "second time"),
        ("users", "8\t24\tX\tartist\t12345", "gender 'X'"),
        ("users", "8\t240\tM\tartist\t12345", "age 240"),
        ("users", "8\t24\tM\tartist\t12", "zip code '12'"),
        ("items", "1\tAgain\t1995\tDrama", "second time"),
        ("items", "8\tFilm\t95\tDrama", "year 95"),
        ("items", "8\tFilm\t1995\t", "empty genre"),
    ],
)
def test_bad_rows_name_file_and_line(tmp_path: Path, file: str, row: str, what: str) -> None:
    rows = {"users": list(USERS), "items": list(ITEMS), "ratings": list(RATINGS)}
    rows[file].insert(2, row)
    folder = write(tmp_path, **rows)  # type: ignore[arg-type]
    with pytest.raises(ParseError, match=f"line 4.*{what}") as caught:
        MovieLens.load(folder, test_share=1 / 3)
    assert len(caught.value.issues) == 1
    name, line, text = caught.value.issues[0]
    assert name.startswith("ml-100k.") and line == 4 and what in text
    # Skipped only when asked; then the rest is what it would be without the row.
    skipped = MovieLens.load(folder, test_share=1 / 3, on_error="skip")
    assert skipped.issues == caught.value.issues
    clean = MovieLens.load(write(tmp_path / "clean"), test_share=1 / 3)
    np.testing.assert_array_equal(all_of(skipped, "train").dense, all_of(clean, "train").dense)


def test_many_bad_rows_are_counted(tmp_path: Path) -> None:
    folder = write(tmp_path, ratings=[*RATINGS, *["bad"] * 9])
    with pytest.raises(ParseError, match=r"9 bad row\(s\).*and 4 more.*--skip-bad-rows"):
        MovieLens.load(folder)


def test_bytes_that_are_no_text_are_a_bad_row(tmp_path: Path) -> None:
    folder = write(tmp_path)
    with (folder / "ml-100k.item").open("ab") as file:
        file.write(b"10\t\xff\xfe\t1995\tDrama\n")
    with pytest.raises(ParseError, match="line 6"):
        MovieLens.load(folder)


def test_wrong_header_is_refused_even_when_skipping(tmp_path: Path) -> None:
    folder = write(tmp_path)
    file = folder / "ml-100k.inter"
    file.write_text(file.read_text().replace("rating:float", "stars:float"))
    with pytest.raises(ParseError, match=r"line 1.*header"):
        MovieLens.load(folder, on_error="skip")


@pytest.mark.parametrize("content", [b"", b"\n", b"user_id:token\titem_id:token\n"])
def test_file_without_rows_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write(tmp_path)
    (folder / "ml-100k.inter").write_bytes(content)
    with pytest.raises(ParseError):
        MovieLens.load(folder)


def parts(lookups: Lookups) -> list[Any]:
    """The arrays that the lookups of a feature are made of."""
    return [lookups.values, lookups.lengths] if isinstance(lookups, Jagged) else [lookups]


def test_grouplens_layout_gives_the_same_data(tmp_path: Path) -> None:
    """u.data, u.item, u.user: the same rows in the original layout make the same batches."""
    folder = tmp_path / "u"
    folder.mkdir()
    (folder / "u.user").write_text("".join(row.replace("\t", "|") + "\n" for row in USERS))
    (folder / "u.data").write_text("".join(row + "\n" for row in RATINGS))
    lines = []
    for row in ITEMS:
        number, title, year, genres = row.split("\t")
        date = f"01-Jan-{year}" if year.isdigit() else ""
        has = genres.split(" ")
        flags = ["1" if genre in has else "0" for genre in movielens._GROUPLENS_GENRES]
        lines.append("|".join([number, f"{title} ({year})", date, "", "http://x", *flags]))
    (folder / "u.item").write_bytes("\n".join(lines).encode("latin-1"))
    ours = MovieLens.load(folder, test_share=1 / 3)
    other = MovieLens.load(write(tmp_path / "recbole"), test_share=1 / 3)
    for split in ("train", "test"):
        a, b = all_of(ours, split), all_of(other, split)
        np.testing.assert_array_equal(a.dense, b.dense)
        np.testing.assert_array_equal(a.labels, b.labels)
        for name in a.features:
            for x, y in zip(parts(a.features[name]), parts(b.features[name]), strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("kind", ["absent", "empty", "file"])
def test_path_without_the_files_says_what_is_needed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "empty":
        path.mkdir()
    if kind == "file":
        path.write_text("")
    with pytest.raises(DataError, match=r"ml-100k\.inter.*u\.data"):
        MovieLens.load(path)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_test_share_must_be_a_share(tmp_path: Path, share: float) -> None:
    with pytest.raises(ConfigError, match="test_share"):
        MovieLens.load(write(tmp_path), test_share=share)


# ------------------------------------------------------------------------------------- fetching


def fake_pip(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], subprocess.CompletedProcess[str]]
) -> list[list[str]]:
    """Replaces the run of pip by ``act`` on its destination folder; returns the commands seen."""
    seen: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        assert options["timeout"]
        seen.append(command)
        return act(Path(command[command.index("--dest") + 1]))

    monkeypatch.setattr(subprocess, "run", run)
    return seen


def wheel_of(source: Path, folder: Path) -> None:
    with zipfile.ZipFile(folder / "recbole-1.2.1-py3-none-any.whl", "w") as archive:
        for name in movielens.SHA256:
            archive.write(source / name, f"{movielens.ARCHIVE_FOLDER}/{name}")


OK = subprocess.CompletedProcess[str]([], 0, "", "")


def test_fetch_verifies_and_fetches_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "source")
    for name in movielens.SHA256:
        digest = hashlib.sha256((source / name).read_bytes()).hexdigest()
        monkeypatch.setitem(movielens.SHA256, name, digest)

    def deliver(folder: Path) -> subprocess.CompletedProcess[str]:
        wheel_of(source, folder)
        return OK

    seen = fake_pip(monkeypatch, deliver)
    monkeypatch.setenv("HOTLINE_CACHE", str(tmp_path / "cache"))
    folder = movielens.fetch()
    assert folder == tmp_path / "cache" / "ml-100k"
    assert sorted(file.name for file in folder.iterdir()) == sorted(movielens.SHA256)
    assert movielens.fetch() == folder and len(seen) == 1
    assert {"--no-deps", movielens.PACKAGE} <= set(seen[0])
    (folder / "ml-100k.user").write_text("cut")  # a damaged file is fetched again
    assert movielens.fetch() == folder and len(seen) == 2
    assert MovieLens.load(test_share=1 / 3).samples("test") == 2


def test_wrong_content_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "source")

    def deliver(folder: Path) -> subprocess.CompletedProcess[str]:
        wheel_of(source, folder)
        return OK

    fake_pip(monkeypatch, deliver)
    with pytest.raises(FetchError, match="SHA-256"):
        movielens.fetch(tmp_path / "cache")
    assert not list((tmp_path / "cache" / "ml-100k").iterdir())


def time_out(_: Path) -> subprocess.CompletedProcess[str]:
    raise subprocess.TimeoutExpired("pip", 1)


def broken_wheel(folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "recbole-1.2.1.whl").write_text("<html>")
    return OK


def other_wheel(folder: Path) -> subprocess.CompletedProcess[str]:
    with zipfile.ZipFile(folder / "recbole-1.2.1.whl", "w") as archive:
        archive.writestr("readme", "")
    return OK


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda _: subprocess.CompletedProcess([], 1, "", "x\nERROR: No matching"), "No matching"),
        (lambda _: subprocess.CompletedProcess([], 1, "", "No module named pip"), "No module"),
        (lambda _: OK, "no wheel"),
        (time_out, "no answer"),
        (broken_wheel, "not the archive"),
        (other_wheel, "not the archive"),
    ],
    ids=["offline", "no_pip", "nothing", "time_out", "broken", "other"],
)
def test_failed_fetch_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Path], subprocess.CompletedProcess[str]],
    what: str,
) -> None:
    fake_pip(monkeypatch, act)
    with pytest.raises(FetchError, match=f"{what}.*pip download --no-deps recbole==1.2.1"):
        movielens.fetch(tmp_path)
    assert not list((tmp_path / "ml-100k").iterdir())


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchError, match="HOTLINE_CACHE"):
        movielens.fetch(tmp_path / "file")


# ----------------------------------------------------------------------------------- popularity


def brute_popular_share(data: MovieLens, hot_rows: int) -> float:
    """Counts with dictionaries what ``popularity`` counts with arrays."""
    group = data.group(2, pin_bytes=2 * 2 * 4)
    counts: dict[int, int] = {}
    samples: list[set[int]] = []
    for batch in data.batches("train", 2):
        rows, owners = row_ids(group, batch)
        for sample in range(batch.samples):
            mine = {int(row) for row in rows[owners == sample] if row >= group.pinned_rows}
            samples.append(mine)
        for row in rows[rows >= group.pinned_rows]:
            counts[int(row)] = counts.get(int(row), 0) + 1
    ranked = sorted(counts, key=lambda row: (-counts[row], row))[:hot_rows]
    return float(np.mean([mine <= set(ranked) for mine in samples]))


def test_popular_share_is_that_of_a_plain_count(tmp_path: Path) -> None:
    ratings = [f"{(1, 2, 7)[i % 3]}\t{(1, 2, 5, 9)[i**2 % 4]}\t3\t{i * 5000}" for i in range(50)]
    data = MovieLens.load(write(tmp_path, ratings=ratings))
    group = data.group(2, pin_bytes=2 * 2 * 4)
    assert 0 < group.pinned_rows < group.total_rows
    found = popularity(group, data.batches("train", 7))
    for hot_rows in range(len(found.counts) + 2):
        assert found.popular_share(hot_rows) == brute_popular_share(data, hot_rows)
    assert found.lookup_share(len(found.counts)) == 1.0
    assert found.lookup_share(0) == found.pinned_lookups / found.lookups


def test_popularity_of_nothing(small: MovieLens) -> None:
    found = popularity(small.group(2), [])
    assert found.samples == 0 and found.popular_share([0, 5]).tolist() == [0.0, 0.0]


# -------------------------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def real() -> MovieLens:
    folder = movielens.cache_folder() / "ml-100k"
    if not movielens._verified(folder):
        pytest.skip("not fetched: run `hotline data ml-100k`")
    return MovieLens.load(folder)


def test_real_sizes_and_skew(real: MovieLens) -> None:
    group = real.group(16, pin_bytes=16 * 16 * 4)
    assert (real.samples("train"), real.samples("test")) == (90_000, 10_000)
    assert not real.issues
    rows = {table.name: table.rows for table in group.tables}
    assert rows == {
        **{"user": 943, "item": 1682, "age": 61, "gender": 2, "occupation": 21, "zip": 382},
        **{"year": 72, "hour": 24, "weekday": 7, "genre": 19},
    }
    share = popularity(group, real.batches("train", 1024)).popular_share([512, 1024, 1536, 2048])
    assert (np.diff(share) > 0).all()
    assert 0.2 <= share[1] <= 0.9  # what the demo's EAL of 1,024 rows relies on
