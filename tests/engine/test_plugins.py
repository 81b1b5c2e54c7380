"""What other packages add to polyad without touching it, and what becomes of those that are broken."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

TARN = '''
"""Rows for polyad."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyad.model import Passage
from polyad.embedders.hashing import HashingEmbedder
from polyad.readers.format import Content
from polyad.stores.sqlite import SqliteStore
from polyad.engine.registry import RetrieverSpec
from polyad.retrieval.evidence import build_evidence


@dataclass(frozen=True, kw_only=True)
class LongestSettings:
    score: float = 0.5


class Longest:
    """The longest passages, whatever is asked."""

    name = "longest"

    def __init__(self, settings):
        self.settings = settings

    def retrieve(self, query, snapshot):
        texts = [passage.text for passage in snapshot.get(Passage, range(snapshot.passage_count))]
        rows = sorted(range(len(texts)), key=lambda row: -len(texts[row]))[: query.k]
        return build_evidence(snapshot, query.text, self.name, [(row, self.settings.score, "long") for row in rows])


RETRIEVAL = RetrieverSpec(
    lambda components: Longest(components.get_settings("longest", LongestSettings)),
    settings=LongestSettings,
    embeds_question=False,
    reads_names=False,
)


def read_bell(data):
    """Bells are written backwards."""
    return Content("A bell", data.decode()[::-1])


class Tarn(HashingEmbedder):
    name = "tarn:short"


def embedder(rest, settings):
    assert rest == "short"
    return Tarn(16)


def open_boxed(place, manifest=None, *, replies=None):
    """Open a store in a box within its directory."""
    return SqliteStore.open(Path(str(place).partition("://")[2], "box"), manifest, replies=replies)
'''

POINTS = """
[polyad.retrievers]
longest = tarn:RETRIEVAL

[polyad.readers]
.bell = tarn:read_bell

[polyad.embedders]
tarn = tarn:embedder

[polyad.stores]
boxed = tarn:open_boxed
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages in which ``tarn`` is installed."""
    return install(tmp_path / "site", "tarn", "1.2", TARN, POINTS)


def install(site: Path, name: str, version: str, code: str, points: str) -> Path:
    """Put a package where an installer would."""
    about = site / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (site / f"{name}.py").write_text(code, encoding="utf-8")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(points, encoding="utf-8")
    return site


def polyad(site: Path, *arguments: str, program: Sequence[str] = ("-m", "polyad")) -> subprocess.CompletedProcess[str]:
    """Run the command line beside the installed packages."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_a_package_adds_a_retriever_a_reader_an_embedder_and_a_store(site: Path) -> None:
    (site.parent / "a.bell").write_text(".dlo si nraT fo lleB ehT", encoding="utf-8")
    (site.parent / "b.txt").write_text("Otters.", encoding="utf-8")
    (site.parent / "polyad.toml").write_text("store = 'boxed://kb'\n[longest]\nscore = 0.75\n", encoding="utf-8")
    indexed = polyad(site, "index", "a.bell", "b.txt", "--embedder", "tarn:short", "--json")
    assert (indexed.returncode, indexed.stderr) == (0, "")
    assert json.loads(indexed.stdout)["added"] == 2
    assert (site.parent / "kb" / "box").is_dir()
    process = polyad(site, "search", "anything", "--retriever", "longest", "-k", "1", "--json")
    (hit,) = json.loads(process.stdout)["hits"]
    assert (hit["text"], hit["title"], hit["score"]) == ("The Bell of Tarn is old.", "A bell", 0.75)
    assert json.loads(polyad(site, "stats", "--json").stdout)["settings"]["embedder"] == "tarn:short"


@pytest.mark.parametrize("name", ["bell", pytest.param(".BELL", marks=pytest.mark.slow)])
def test_a_reader_whose_name_is_not_a_lower_case_extension_with_a_dot_is_used_all_the_same(
    site: Path, name: str
) -> None:
    points = site / "tarn-1.2.dist-info" / "entry_points.txt"
    points.write_text(f"[polyad.readers]\n{name} = tarn:read_bell\npdf = tarn:no_such_function\n", encoding="utf-8")
    (site.parent / "a.bell").write_text(".dlo si nraT fo lleB ehT", encoding="utf-8")
    indexed = polyad(site, "index", "a.bell", "--store", "kb", "--embedder", "hashing:8", "--json")
    assert (indexed.returncode, json.loads(indexed.stdout)["added"]) == (0, 1), indexed.stderr
    names = [row["name"] for row in list_plugins(site)]
    assert names == [".bell"], "a reader of another package cannot replace that of .pdf"


ALBUM = '''
"""A format with pages, one with pictures inside, and one of records."""

import base64

from polyad.model import Document, Failure, Location
from polyad.readers.format import Content, Format


def read_album(source, context):
    """Read a file with a page on each line."""
    pages = source.read().decode().splitlines()
    for number, _ in enumerate(pages, 1):
        context.on_page(number, len(pages), "new")
    places, start = [], 0
    for number, page in enumerate(pages, 1):
        places.append(Location(start, start + len(page), page=number))
        start += len(page) + 1
    return Content("Album", "\\n".join(pages), places=tuple(places))


def draw_album(source, context, request):
    """Draw a page: its text is the picture."""
    page = source.read().splitlines()[request["page"] - 1]
    return {"png": base64.b64encode(page).decode(), "pages": 2, "figures": 0, "boxes": []}


def read_card(source, context):
    """Read a card with a picture on it."""
    caption, _, picture = source.read().partition(b"|")
    text = context.pictures.read("picture.png", lambda: picture, caption.decode())
    return Content("Card", caption.decode() + text)


def read_register(source, context):
    """Read a file with a document on each line."""
    for number, line in enumerate(source.path.read_text().splitlines(), 1):
        place = f"{source.name}:{number}"
        yield Document(place, "", line, source=place) if line else Failure(place, "empty")


ALBUMS = Format(name="album", extensions=(".album", ".book"), read="album:read_album", render="album:draw_album")
CARDS = Format(
    name="card",
    extensions=(".card",),
    read="album:read_card",
    pictures="polyad_readers.pictures.embedded:open_pictures",
    render="polyad_readers.pdf.page_image:render_marked_page",
)
REGISTERS = Format(name="register", extensions=(".register",), read="album:read_register", has_records=True)
FORMATS = (ALBUMS, CARDS, REGISTERS)
'''


@pytest.mark.parametrize("points", ["[polyad.formats]\nalbum = album:FORMATS\n", ".album .card .register"])
def test_a_format_of_another_package_has_pages_pictures_and_records(tmp_path: Path, points: str) -> None:
    rows = zip(points.split(), ("ALBUMS", "CARDS", "REGISTERS"), strict=False)
    entry_points = (
        points if "=" in points else "[polyad.readers]\n" + "".join(f"{name} = album:{row}\n" for name, row in rows)
    )
    site = install(tmp_path / "site", "album", "1", ALBUM, entry_points)
    pixels = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(pixels, "PNG")
    (tmp_path / "a.book").write_text("Otters sleep.\nSeals dive.", encoding="utf-8")
    (tmp_path / "b.card").write_bytes(b"A red flag.|" + pixels.getvalue())
    (tmp_path / "c.register").write_text("Newts swim.\n\nToads walk.", encoding="utf-8")

    indexed = polyad(
        site, "index", "a.book", "b.card", "c.register", "--store", "kb", "--embedder", "hashing:8", "--json"
    )

    assert json.loads(indexed.stdout)["added"] == 4, indexed.stderr
    assert "c.register:2" in indexed.stdout
    process = polyad(site, "search", "Seals dive", "--store", "kb", "--retriever", "bm25", "-k", "1", "--json")
    (hit,) = json.loads(process.stdout)["hits"]
    assert (hit["document_id"], hit["page"]) == ("a.book", 2)
    process = polyad(site, "show", "passage", hit["passage_id"], "--page", "2", "--image", "page.png", "--store", "kb")
    assert (process.returncode, (tmp_path / "page.png").read_bytes()) == (0, b"Seals dive."), process.stderr
    process = polyad(site, "show", "document", "b.card", "--picture", "1", "--image", "flag.png", "--store", "kb")
    assert process.returncode == 0, process.stderr
    assert Image.open(tmp_path / "flag.png").size == (40, 20)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return ['a card']", "it returned ['a card']; expected a polyad.readers.format.Content"),
        pytest.param("raise SystemExit(3)", "SystemExit", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_breaks_the_contract_is_named(site: Path, body: str, reason: str) -> None:
    install(site, "cards", "0.1", f"def read(data):\n    {body}\n", "[polyad.readers]\ncard = cards:read\n")
    (site.parent / "a.card").write_text("A card.", encoding="utf-8")
    indexed = polyad(site, "index", "a.card", "--store", "kb", "--embedder", "hashing:8")
    assert indexed.returncode == 1
    assert reason in " ".join(indexed.stderr.split())


def list_plugins(site: Path) -> list[dict[str, Any]]:
    """Return the listed plug-ins of other distributions; polyad's own registers its baselines in the same way."""
    listed = json.loads(polyad(site, "plugins", "--json").stdout)["plugins"]
    return [row for row in listed if row["package"] != "polyad"]


def test_plugins_are_listed_with_package_and_version(site: Path) -> None:
    listed = list_plugins(site)
    assert {(row["table"], row["name"]) for row in listed} == {
        ("retrievers", "longest"),
        ("readers", ".bell"),
        ("embedders", "tarn"),
        ("stores", "boxed"),
    }
    assert {(row["package"], row["version"], row["sound"]) for row in listed} == {("tarn", "1.2", True)}


def test_a_broken_package_is_one_warning_and_the_rest_works(site: Path) -> None:
    reasons: dict[str, str] = {}
    for number, (code, reason) in enumerate(
        [
            ("raise RuntimeError('no bell')", "RuntimeError: no bell"),
            ("import no_such_module", "No module named 'no_such_module'"),
            ("raise SystemExit", "SystemExit"),
            ("import sys; sys.exit(0)", "SystemExit: 0"),
            ("ROW = 7", "cracked4:ROW is 7, which is not a valid row of polyad.retrievers"),
        ]
    ):
        points = f"[polyad.retrievers]\ncrack{number} = cracked{number}:ROW\nfissure{number} = cracked{number}:ROW\n"
        install(site, f"cracked{number}", "0.1", code, points)
        reasons |= {f"crack{number}": reason, f"fissure{number}": reason}
    (site.parent / "b.txt").write_text("Otters.", encoding="utf-8")
    indexed = polyad(site, "index", "b.txt", "--store", "kb", "--embedder", "hashing:8")
    assert indexed.returncode == 0, indexed.stderr
    lines = {line.split("'")[1]: line for line in indexed.stderr.splitlines()}
    assert (lines.keys(), indexed.stderr.count("\n")) == (reasons.keys(), len(reasons)), "one for each row"
    for name, line in lines.items():
        assert f"of cracked{name[-1]} 0.1 cannot be used: " in line
        assert reasons[name] in line
    process = polyad(site, "search", "otters", "--store", "kb", "--retriever", "crack3")
    assert process.returncode == 2
    assert "retriever 'crack3' of cracked3 0.1 cannot be used" in process.stderr
    rows = json.loads(polyad(site, "plugins", "--json").stdout)["plugins"]
    assert {row["name"] for row in rows if not row["sound"]} == reasons.keys()


def test_the_log_names_a_package_that_ends_the_process(site: Path) -> None:
    install(site, "leaver", "0.1", "import os; os._exit(0)", "[polyad.retrievers]\nleave = leaver:ROW\n")
    process = polyad(site, "-v", "plugins")
    assert process.stdout == ""
    assert "'leave' of leaver" in process.stderr.splitlines()[-1]


def test_a_package_cannot_take_the_name_of_a_row_of_polyads_own(site: Path) -> None:
    install(site, "usurper", "2", "raise RuntimeError", "[polyad.retrievers]\ndefault = usurper:ROW\n")
    listed = polyad(site, "plugins", "--json")
    assert "default" not in {row["name"] for row in json.loads(listed.stdout)["plugins"]}
    assert "'default' of usurper 2" in listed.stderr


def test_a_package_that_is_imported_slowly_is_named(site: Path) -> None:
    code = "import time; time.sleep(1); ROW = 7"
    install(site, "sloth", "3", code, "[polyad.retrievers]\nslow = sloth:ROW\n")
    impatient = "from polyad import cli, plugin_tables; plugin_tables._SLOW_SECONDS = 0.1; cli.main()"
    listed = polyad(site, "plugins", "--json", program=("-c", impatient))
    assert "'slow' of sloth takes more than 0.1 seconds" in listed.stderr
