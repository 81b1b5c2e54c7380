"""Runs and data sets with one wrong value or byte: each command works, or names the file and ends."""

from __future__ import annotations

import copy
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from polyad.cli import app
from tests.attacks.run_files import measure_run, write_dataset

pytestmark = pytest.mark.attacks

RUN_FILES = (
    *("manifest.json", "cost.json", "hypergraph.json", "per_query.jsonl", "passages.jsonl", "without_gold.jsonl"),
    *("answers.jsonl", "judgements.jsonl"),
)
MAX_SECONDS = 20
"""Processor time that one command may take; sound files take less than a second."""

MEASURE = ("bench", "run", "tarn", "--retriever", "bm25", "--embedder", "hashing:16", "--out", "new")

DATA_FILES = ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv")

VALUES = (
    *("null", "true", "0", "-1", "2", "1.5", "1e308", "-1e308", "NaN", "Infinity", "1e400", str(2**63), str(10**30)),
    *("9" * 5000, '""', '"x"', '" "', '"a\\u0000b"', '"\\ud800"', '"\\udc00a"', '"\\u202e"', '"../../x"', '"$x"'),
    *('"$\\\\frac{1}$"', '"a\\nb"', json.dumps("a" * 100_000), '"q1"', '"q2"', '"bell"', '"bm25"', "[]", "{}", "[[]]"),
    *('[""]', '["x", "x"]', "[null]", '{"x": 1}', '{"": null}', '{"a\\u0000": {"b": 1}}', "[" * 100_000),
    *("[" * 400 + "]" * 400, '{"a":' * 60 + "1" + "}" * 60),
)
"""JSON texts that replace a value."""

MARK = "@@"


def find_places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The path to each value within a JSON value."""
    yield ()
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        for rest in find_places(item):
            yield key, *rest


def replace(value: Any, place: Sequence[str | int], text: str | None) -> str:
    """The JSON with another text at a place; without this place if there is no text."""
    if not place:
        return text or ""
    changed = copy.deepcopy(value)
    parent = changed
    for key in place[:-1]:
        parent = parent[key]
    if text is None:
        del parent[place[-1]]
    else:
        parent[place[-1]] = MARK
    return json.dumps(changed).replace(json.dumps(MARK), text or "")


def add_key(value: Any, place: Sequence[str | int]) -> str:
    changed = copy.deepcopy(value)
    parent = changed
    for key in place:
        parent = parent[key]
    if isinstance(parent, dict):
        parent["an\ud800other"] = 1
        parent["another"] = 1
    return json.dumps(changed)


def change_bytes(contents: bytes) -> Iterator[bytes]:
    middle = len(contents) // 2
    yield from (b"", b"\n", b"\xef\xbb\xbf" + contents, contents + contents, contents[:middle], contents[:-1])
    yield from (b"\xef\xbb\xbf", contents.replace(b"\n", b"\r\n"), contents.replace(b"\n", b"\r"), b"\0" * 100)
    yield from (contents.decode().encode("utf-16"), b"[" * 100_000, b"x" * 100_000, b"{}\n", b"[]\n", b"null\n", b"1\n")
    for byte in (b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\t", b'"', b"\\", b"\x85"):
        yield contents[:middle] + byte + contents[middle:]


def change_lines(contents: bytes) -> Iterator[bytes]:
    lines = contents.splitlines(keepends=True)
    for position in range(len(lines)):
        yield b"".join(lines[:position] + lines[position + 1 :])
        yield b"".join([*lines, lines[position]])


def change_qrels(contents: bytes) -> Iterator[bytes]:
    for value in (b"", b" ", b"x", b"\0", b"nan", b"inf", b"1e999", b"9" * 5000, b"-1", b"q9", b"\xed\xa0\x80"):
        for column in range(3):
            row = [b"q1", b"bell", b"1"]
            row[column] = value
            yield contents + b"\t".join(row) + b"\n"
    yield contents + b"q1\tbell\n"
    yield contents + b"q1\tbell\t1\t2\n"
    yield contents + b"q1\tbell\t0\n"


def change(name: str, contents: bytes) -> Iterator[bytes]:
    """Each file with one change."""
    yield from change_bytes(contents)
    yield from change_lines(contents)
    if name.endswith(".tsv"):
        yield from change_qrels(contents)
        return
    lines = contents.decode().splitlines() if name.endswith(".jsonl") else [contents.decode()]
    for position in {0, len(lines) - 1}:
        value = json.loads(lines[position])
        for place in find_places(value):
            for text in (*VALUES, None):
                changed = replace(value, place, text)
                yield "\n".join([*lines[:position], changed, *lines[position + 1 :], ""]).encode(
                    "utf-8", "surrogatepass"
                )
            yield "\n".join([*lines[:position], add_key(value, place), *lines[position + 1 :], ""]).encode()


@cache
def list_changes(path: Path) -> list[bytes]:
    return list(change(path.name, path.read_bytes()))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a data set and two runs of it."""
    folder = tmp_path_factory.mktemp("sound")
    measure_run(folder / "run")
    measure_run(folder / "other")
    write_dataset(folder / "tarn")
    return folder


def require_sound_end(sound: Path, name: str, contents: bytes, *arguments: str) -> None:
    """Run a command on a copy with one changed file: it works, or names the file and what was expected."""
    with TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        folder = Path(shutil.copytree(sound, Path(temporary) / "files"))
        (folder / name).write_bytes(contents)
        patch.chdir(folder)
        started = time.process_time()
        result = CliRunner().invoke(app, list(arguments))
        elapsed = time.process_time() - started
    assert result.exception is None or isinstance(result.exception, SystemExit), (name, contents[:3000])
    assert result.exit_code in (0, 1, 2)
    if result.exit_code == 2:
        folder_name, _, file_name = name.rpartition("/")  # the folder, if two of its files contradict each other
        assert any(each in result.stderr for each in (file_name, f"'{folder_name}'", f"'{folder_name}:")), result.stderr
    assert len(result.stderr) < 20_000
    assert elapsed < MAX_SECONDS, (name, contents[:3000])


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "compare", "run"),
        ("bench", "compare", "run", "other", "--json"),
        ("bench", "report", "run", "other", "--out", "report"),
        (
            "bench",
            "run",
            "tarn",
            "--retriever",
            "bm25,default",
            "--embedder",
            "hashing:16",
            "--refusal",
            "--out",
            "run",
        ),
    ],
)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_run_with_one_wrong_value_is_read_or_refused_by_name(
    sound: Path, arguments: Sequence[str], data: st.DataObject
) -> None:
    name = f"run/{data.draw(st.sampled_from(RUN_FILES))}"
    contents = data.draw(st.sampled_from(list_changes(sound / name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyad_bench.reports.plots.can_plot", lambda _: False)  # plots take seconds: see below
        require_sound_end(sound, name, contents, *arguments)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_plots_are_drawn_of_any_run_that_is_read(sound: Path, data: st.DataObject) -> None:
    name = f"run/{data.draw(st.sampled_from(('manifest.json', 'cost.json', 'hypergraph.json', 'per_query.jsonl')))}"
    contents = data.draw(st.sampled_from(list_changes(sound / name)))
    require_sound_end(sound, name, contents, "bench", "report", "run", "--out", "report")


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_data_set_with_one_wrong_value_is_measured_or_refused_by_name(sound: Path, data: st.DataObject) -> None:
    name = f"tarn/{data.draw(st.sampled_from(DATA_FILES))}"
    contents = data.draw(st.sampled_from(list_changes(sound / name)))
    require_sound_end(sound, name, contents, *MEASURE)


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "folder"])
@pytest.mark.parametrize("name", [*(f"run/{name}" for name in RUN_FILES), *(f"tarn/{name}" for name in DATA_FILES)])
def test_run_files_that_are_no_files_are_refused_by_name(
    name: str, target: str, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "files"))
    (folder / name).unlink()
    if target == "pipe":
        os.mkfifo(folder / name)
    elif target == "folder":
        (folder / name).mkdir()
    else:
        (folder / name).symlink_to(target)
    monkeypatch.chdir(folder)
    for arguments in (("bench", "report", "run"), MEASURE, (*MEASURE[:-1], "run")):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert result.exit_code == 0 or name.rpartition("/")[2] in result.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [("run/per_query.jsonl", 3), ("run/passages.jsonl", 2), ("tarn/queries.jsonl", 2), ("tarn/qrels/test.tsv", 3)],
)
def test_the_wrong_line_is_named(
    name: str, line: int, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "files"))
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    lines[line - 1] = b'{"a": [\n'
    (folder / name).write_bytes(b"".join(lines))
    monkeypatch.chdir(folder)
    for arguments in (("bench", "compare", "run"), MEASURE):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0 or f"{name}', line {line}" in result.stderr
    assert result.exit_code or name.startswith("run")
