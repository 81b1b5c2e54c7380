"""Tests of the marks of versions in names, metadata and first lines, and of the version in force."""

# ruff: noqa: RUF001  texts are in several scripts

from __future__ import annotations

import pytest

from polyad.model import MetadataValue, Origin
from polyad.text.validity import parse_period
from polyad.text.versions import Marks, VersionFamily, VersionReference, add_statement, read_marks

NOW = parse_period("now", "2026-11-28").start


def read(path: str, title: str = "", head: str = "", **metadata: MetadataValue) -> Marks:
    return add_statement(read_marks(path, Origin(title, path, metadata={"path": path, **metadata})), head)


def find_current(*members: Marks, time: float = NOW) -> str:
    current = VersionFamily(tuple(sorted(members, key=lambda member: member.unit))).find_current(time)
    return current.unit if current else ""


@pytest.mark.parametrize(
    "names",
    [
        ("rules/travel-v1.md", "rules/travel-v2.docx", "rules/travel.md"),
        ("rules/Travel (version 1).pdf", "rules/travel rev B.pdf", "rules/archive/travel_2nd edition.pdf"),
        ("fees/fees-2024.csv", "fees/fees-2025-2026.xlsx", "fees/fees.xlsx"),
        ("minutes/board-2026-01-13.md", "minutes/board 10.02.2026.md", "minutes/board-14-april-2026.txt"),
        ("2025/04/board.md", "2026/05/board.md", "board.md"),
        ("制度/差旅费第2版.docx", "制度/差旅费2024版.docx", "制度/差旅费（旧版）.docx"),
        ("regeln/reisekosten_fassung_2.md", "regeln/reisekosten-entwurf.md", "regeln/alt/reisekosten.md"),
    ],
)
def test_names_that_differ_by_marks_of_versions_make_a_family(names: tuple[str, ...]) -> None:
    assert len({read(name).keys[0] for name in names}) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("contracts/c-2023-006-blueline.md", "contracts/c-2023-007-blueline.md"),
        ("parts/hp-2210.md", "parts/hp-2211.md"),
        ("sop/sop-07.md", "sop/sop-12.md"),
        ("new-york.md", "york.md"),
        ("a/rules-v1.md", "b/rules-v2.md"),
        ("wards/ward-1.md", "wards/ward-2.md"),
    ],
)
def test_names_that_differ_otherwise_make_no_family(names: tuple[str, str]) -> None:
    one, other = map(read, names)
    assert not set(one.keys) & set(other.keys)


def test_titles_make_a_family_within_a_folder() -> None:
    one = read("rules/p1.md", "Travel expenses (version 1)")
    other = read("rules/p7.md", "Travel expenses, version 2")
    assert set(one.keys) & set(other.keys)
    assert not set(one.keys) & set(read("other/p7.md", "Travel expenses, version 2").keys)


def test_metadata_name_the_replaced_document() -> None:
    old, new = read("rules/hotels.md"), read("rules/travel.md", replaces="hotels.md")
    assert set(old.keys) & set(new.keys)
    assert find_current(old, new) == "rules/travel.md"


@pytest.mark.parametrize(
    ("head", "status", "date"),
    [
        ("Rules\n\nVersion 2. In force since 1 November 2023.", "", "2023-11-01"),
        ("Version 1. Was in force from 1 June 2021 until 31 August 2025. Superseded.", "superseded", "2021-06-01"),
        ("Version 3. Draft of 20 September 2026. Not in force.", "draft", "2026-09-20"),
        ("Version 3, valid from 2026-01-01. Version 2 is superseded.", "", "2026-01-01"),
        ("Fassung 2, gültig ab 1. März 2024. Ersetzt Fassung 1.", "", "2024-03-01"),
        ("Version 1, en vigueur depuis le 2 mai 2022. Remplacé par la version 2.", "superseded", "2022-05-02"),
        ("第2版，自2024年3月1日起施行。", "", "2024-03-01"),
        ("Versión 1. Vigente desde el 1 de enero de 2020. Derogada.", "superseded", "2020-01-01"),
    ],
)
def test_first_lines_state_status_and_date(head: str, status: str, date: str) -> None:
    marks = read("rules/x-v9.md" if "9" in head else "rules/x.md", head=head)
    assert (marks.status, marks.start) == (status, parse_period("date", date).start)


def test_the_newest_version_that_has_begun_is_in_force() -> None:
    first = read("r/travel-v1.md", valid_from="2021-03-01")
    second = read("r/travel-v2.md", head="Version 2, in force from 2023-05-01.")
    future = read("r/travel-v3.md", head="Version 3, in force from 2027-01-01.")
    draft = read("r/travel-v4.md", status="draft")
    assert find_current(first, second, future, draft) == "r/travel-v2.md"
    assert find_current(first, second, future, time=parse_period("t", "2022").start) == "r/travel-v1.md"
    assert find_current(first, second, future, time=parse_period("t", "2028").start) == "r/travel-v3.md"
    family = VersionFamily((first, second, future, draft))
    statuses = {member.unit[-5:-3]: family.describe(member.unit, NOW) for member in family.members}
    assert {unit: version and version.status for unit, version in statuses.items()} == {
        "v1": "superseded",
        "v2": "in force",
        "v3": "future",
        "v4": "draft",
    }


def test_a_series_of_minutes_has_no_version_in_force() -> None:
    minutes = tuple(read(f"minutes/board-2026-{month:02}-10.md") for month in range(1, 7))
    with_draft = (*minutes, read("minutes/board-2026-07-10-draft.md"))
    for family in map(VersionFamily, (minutes, with_draft)):
        assert family.level == "issue"
        assert not any(family.describe(member.unit, NOW) for member in family.members)


@pytest.mark.parametrize(
    ("question", "unit"),
    [
        ("How much may a hotel cost?", "r/travel-v3.md"),
        ("What was the limit in 2022?", "r/travel-v1.md"),
        ("What did version 2 say?", "r/travel-v2.md"),
        ("Was galt vorher, in Fassung 2?", "r/travel-v2.md"),
        ("What was the previous limit?", "r/travel-v2.md"),
        ("What is the limit in 2026?", "r/travel-v3.md"),
        ("Did it change from version 1 to version 3?", ""),
        ("Did it change between 2022 and 2024?", ""),
    ],
)
def test_a_question_chooses_a_version(question: str, unit: str) -> None:
    starts = ("2021-03-01", "2023-05-01", "2026-01-01")
    family = VersionFamily(tuple(read(f"r/travel-v{n}.md", valid_from=start) for n, start in enumerate(starts, 1)))
    version = VersionReference.from_question(question).choose(family, NOW)
    assert (version.unit if version else "") == unit


@pytest.mark.parametrize(
    ("question", "unit"),
    [
        ("What was decided in the last meeting?", "m/board-2026-06-10.md"),
        ("Was wurde in der letzten Sitzung beschlossen?", "m/board-2026-06-10.md"),
        ("上次会议决定了什么？", "m/board-2026-06-10.md"),
        ("What was decided in March 2026?", "m/board-2026-03-10.md"),
        ("What was decided about the laser?", ""),
    ],
)
def test_a_question_chooses_an_issue_by_its_date(question: str, unit: str) -> None:
    family = VersionFamily(tuple(read(f"m/board-2026-{month:02}-10.md") for month in range(1, 7)))
    version = VersionReference.from_question(question).choose(family, NOW)
    assert (version.unit if version else "") == unit
