"""Downloads the manuals of the questions beside this file, on Debian or a derived system.

    python benchmarks/manuals/fetch.py FOLDER

Downloads the packages of ``files.tsv`` with ``apt-get download`` and lays the chosen files out in FOLDER. The versions
are those of Debian 12 that the questions were written with. A package that is newer by now is taken as it is; what its
text no longer holds counts as not found. Word files are made from HTML by pandoc, with Word's Title and Heading
styles, since no package ships such manuals.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("files.tsv")


class Manual(NamedTuple):
    """A file: package and version, path in the package, and name here."""

    package: str
    version: str
    path: str
    name: str


def main() -> None:
    """Download every missing file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    for package, group in groupby(manuals(), key=lambda manual: manual.package):
        other_manual = [manual for manual in group if not (folder / manual.name).exists()]
        if other_manual:
            fetch(package, other_manual, folder)


def manuals() -> Iterator[Manual]:
    """Return the files of the list, grouped by package."""
    with LIST.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            yield Manual(**row)


def fetch(package: str, other_manual: list[Manual], folder: Path) -> None:
    """Download one package and copy its files."""
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run(["apt-get", "-qq", "download", package], cwd=temporary, check=True)
        (archive,) = Path(temporary).glob("*.deb")
        unpacked = Path(temporary) / "unpacked"
        unpacked.mkdir()
        subprocess.run(["dpkg-deb", "-x", str(archive), str(unpacked)], check=True)
        version = subprocess.run(
            ["dpkg-deb", "-f", str(archive), "Version"], check=True, capture_output=True, text=True
        ).stdout.strip()
        if version != other_manual[0].version:
            print(f"{package}: {version}; the questions are about {other_manual[0].version}", file=sys.stderr)
        for manual in other_manual:
            source, target = unpacked / manual.path, folder / manual.name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                lay_out(source, target)
            else:
                print(f"{package}: no {manual.path} in {version}", file=sys.stderr)


def lay_out(source: Path, target: Path) -> None:
    """Copy one file; decompress it, or convert it to Word, as its name requires."""
    if target.suffix == ".docx":
        subprocess.run(["pandoc", "--quiet", "-f", "html", str(source), "-o", str(target)], check=True)
    elif source.suffix == ".gz":
        with gzip.open(source) as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    else:
        shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
