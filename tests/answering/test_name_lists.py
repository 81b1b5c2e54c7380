"""Names are read from whatever a model makes of a JSON array, and found again in what it was shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.answering.citations import CitableSource
from polyad.answering.name_lists import SEPARATOR, cite_names, parse_names


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('["Odoacer", "Zeno"]', ("Odoacer", "Zeno")),
        ('```json\n["Odoacer"]\n```', ("Odoacer",)),
        ('It follows from [1] and [2, 3] that ["Odoacer"] is it.', ("Odoacer",)),
        ('{"answers": ["Odoacer"], "citations": [1]}', ("Odoacer",)),
        ('["Odoacer", "Zeno",]', ("Odoacer", "Zeno")),
        ("['Odoacer', \"Zeno's\"]", ("Odoacer", "Zeno's")),
        ('["Odoacer", "Ze', ("Odoacer",)),
        ('["Odoacer", Brave", "Zeno"]', ("Odoacer",)),
        ('["Odoacer", 476, null, ["x"]]', ("Odoacer",)),
        ('[476, ["Odoacer"]]', ("Odoacer",)),
        ('["Odoacer", "ODOACER", " Odoacer ", ""]', ("Odoacer",)),
        ('["Odoacer [2]", "calix[4]arene"]', ("Odoacer", "calix[4]arene")),
        ('["The\\n Great", "\\u7f57\\u9a6c"]', ("The Great", "\u7f57\u9a6c")),
        ('["a\\qb",]', ("a\\qb",)),
        ('["half \\ud800"]', ("half",)),
        ('"Odoacer", "Zeno"', ("Odoacer", "Zeno")),
        ('"Odoacer",', ("Odoacer",)),
        ("Odoacer", ("Odoacer",)),
        ("**Washington, D.C.**", ("Washington, D.C.",)),
        ("```\nOdoacer\n```", ("Odoacer",)),
        ("[]", ()),
        ("Nobody: []", ()),
        ("I do not know.", None),
        ("I don\u2019t know", None),
        ("Unknown", ()),
        ("None", ()),
        ("N/A", ()),
        ("null", ()),
        ("[null]", ()),
        ("**None.**", ()),
        ("No information available", None),
        ("No relevant information was found.", None),
        ("There is no answer in these passages.", None),
        ("The passages don\u2019t mention who took Rome.", None),
        ("I'm not sure.", None),
        ("- None", ()),
        ('["I don\u2019t know."]', ()),
        ('["Unknown"]', ()),
        ('["N/A"]', ()),
        ('["none", "null"]', ()),
        ('["The answer is not provided in the context."]', ()),
        ('["Sorry, I cannot determine the name from the passages."]', ()),
        ('["Odoacer", "Unknown"]', ("Odoacer",)),
        (
            '["Don\'t Look Up", "I\'m Not There", "Unknown Pleasures"]',
            ("Don't Look Up", "I'm Not There", "Unknown Pleasures"),
        ),
        ('["No Country for Old Men", "No", "Nil", "The Text"]', ("No Country for Old Men", "No", "Nil", "The Text")),
        ("[1990]", ("1990",)),
        ("```json\n[1990, 3.5]\n```", ("1990", "3.5")),
        ("Zeno took it [1990]", None),
        ("[NaN]", None),
        ("[true]", None),
        ("- Odoacer\n- Zeno", ("Odoacer", "Zeno")),
        ("The kings are:\n\n* **Odoacer** [1]\n* Zeno, [2]\n", ("Odoacer", "Zeno")),
        ('1. "Odoacer",\n2. Washington, D.C.\n3. Zeno', ("Odoacer", "Washington, D.C.", "Zeno")),
        ("\u2022 Odoacer", ("Odoacer",)),
        ("2. Bundesliga", ("2. Bundesliga",)),
        ("1. Odoacer\n3. Zeno", None),
        ("- Odoacer took it from Romulus.\n- Zeno", None),
        ("- Odoacer\nBut not Zeno", None),
        ("I do not know. But it may be Zeno.", None),
        ("Odoacer took it from Romulus.", None),
        ("a line of more words than any name that is known has", None),
        ("Odoacer\nZeno", None),
        ("Odoacer [2]", None),
        ("[1]", None),
        ("", None),
        ("[" * 5000, None),
    ],
)
def test_names_are_read_from_any_reply_that_lists_them(reply: str, names: tuple[str, ...] | None) -> None:
    assert parse_names(reply) == names


def test_numbers_of_sources_are_no_names_and_other_numbers_are() -> None:
    assert parse_names("[2, 3]", {1: "", 2: "", 3: ""}) is None
    assert parse_names("[476]", {1: "", 2: "", 3: ""}) == ("476",)
    assert parse_names("[3, 4]", {1: "", 2: "", 3: ""}) == ("3", "4")
    assert parse_names("[476]") is None


@given(
    # Each ends in letters of its own, as "none" and the like are no names.
    names=st.lists(st.text(st.characters(categories=["L", "P", "Zs"])).map(lambda text: f"{text}odo")),
    around=st.sampled_from(["", "So:\n", "```\n"]),
)
def test_a_valid_array_gives_its_strings(names: list[str], around: str) -> None:
    results = parse_names(around + json.dumps(names))
    assert results is not None
    assert {" ".join(name.split()).casefold() for name in names} - {""} == {name.casefold() for name in results}
    assert len({name.casefold() for name in results}) == len(results)


@given(st.text(alphabet='["\\],{}a1 \n`', max_size=40))
def test_no_reply_is_too_odd_to_be_read(reply: str) -> None:
    names = parse_names(reply)
    assert names is None or all(name == name.strip() != "" for name in names)


def sources(*texts: str) -> list[CitableSource]:
    return [CitableSource(number, f"d{number}#0", f"d{number}", text) for number, text in enumerate(texts, start=1)]


def test_each_name_is_cited_from_every_source_that_holds_it() -> None:
    names = ("Odoacer", "Rome")
    citations = cite_names(names, sources("ROME fell.", "Odoacer\ntook Rome.", "Zeno."))
    text = SEPARATOR.join(names)
    assert [(c.number, c.passage_id, c.document_id, c.answer_span.of(text)) for c in citations] == [
        (2, "d2#0", "d2", "Odoacer"),
        (1, "d1#0", "d1", "Rome"),
        (2, "d2#0", "d2", "Rome"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("Rome", "Romeo", False),
        ("Rome", "Jerome", False),
        ("Rome", "the Rome-born", True),
        ("D.C.", "in D.C. and", True),
        ("New York", "new\n  york", True),
        ("\u7f57\u9a6c", "\u5728\u7f57\u9a6c\u57ce", True),
        ("Rome", "\u5728Rome\u57ce", True),
        ("a.b", "axb", False),
        ("476", "in 1476", False),
    ],
)
def test_a_source_holds_a_name_that_stands_in_it_by_itself(name: str, text: str, holds: bool) -> None:
    assert bool(cite_names([name], sources(text))) == holds
