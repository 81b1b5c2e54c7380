from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyad.errors import UnreadableReplyError
from polyad.indexing.facts.style import ExtractionStyle
from polyad.model import Passage
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction, get_identity
from polyad.text.locate import find_name_spans
from polyad.text.words import count_tokens, sanitize_line

PASSAGE = Passage("d#0", "d", "Ada Lovelace", "She met Babbage in 1833.", 0, 24)
ADA = ExtractedEntity("Ada Lovelace", "person", "Met Babbage.", 90.0)
BABBAGE = ExtractedEntity("Charles Babbage", "person", "Met by Ada.", 80.0)
MET = ExtractedFact("Ada Lovelace met Charles Babbage in 1833.", 9.0, (ADA, BABBAGE))
WROTE = ExtractedFact("Ada Lovelace wrote notes.", 7.0, (ADA,))
FACTS = [
    {"text": MET.text, "score": 9, "entities": ["Ada Lovelace", "Charles Babbage"]},
    {"text": WROTE.text, "score": 7, "entities": ["Ada Lovelace"]},
]
LINES = ["Ada Lovelace | person | Met Babbage. | 90", "Charles Babbage | person | Met by Ada. | 80"]
LINE = "name | type | description | 80"
OBJECTS = [
    {"name": "Ada Lovelace", "type": "person", "description": "Met Babbage.", "score": 90},
    {"name": "Charles Babbage", "type": "person", "description": "Met by Ada.", "score": 80},
]
REPLY = json.dumps({"facts": FACTS, "entities": LINES})


def parse(reply: str) -> Extraction:
    return ExtractionStyle().parse(reply)


def parsed(facts: object, entities: object) -> Extraction:
    return parse(json.dumps({"facts": facts, "entities": entities}))


# Asking


def test_the_prompt_is_the_same_for_all_passages_but_for_the_passage() -> None:
    style = ExtractionStyle()
    first, second = style.build_prompt(PASSAGE), style.build_prompt(Passage("e#0", "e", "", "Other.", 0, 6))
    assert (first.system, first.json_schema) == (second.system, second.json_schema)
    assert first.user == '<passage title="Ada Lovelace">\nShe met Babbage in 1833.\n</passage>'
    assert second.user == "<passage>\nOther.\n</passage>"
    assert style.name == "compact"


def test_the_fixed_part_of_the_prompt_is_short() -> None:
    prompt = ExtractionStyle().build_prompt(PASSAGE)
    assert count_tokens(prompt.system) + count_tokens(json.dumps(prompt.json_schema)) <= 340


def test_a_passage_of_1200_tokens_costs_at_most_two_prompt_tokens_a_token() -> None:
    text = "word " * 1200
    prompt = ExtractionStyle().build_prompt(Passage("d#0", "d", "A title of six words here", text, 0, len(text)))
    request_count = count_tokens(prompt.system + prompt.user) + count_tokens(json.dumps(prompt.json_schema))
    assert count_tokens(text) == 1200
    assert request_count <= 2 * 1200


def test_the_schema_is_strict() -> None:
    def objects(schema: Any) -> list[Any]:
        inner = schema.values() if isinstance(schema, dict) else []
        return [schema] * (isinstance(schema, dict) and schema.get("type") == "object") + [
            result for value in inner for result in objects(value)
        ]

    results = objects(ExtractionStyle().build_prompt(PASSAGE).json_schema)
    assert len(results) == 2
    assert all(schema["additionalProperties"] is False for schema in results)
    assert all(schema["required"] == list(schema["properties"]) for schema in results)


def test_the_form_in_the_prompt_is_read_as_it_says() -> None:
    assert parse(ExtractionStyle().build_prompt(PASSAGE).system.replace('""', '"The name."')).facts == (
        ExtractedFact("The name.", 9.0, (ExtractedEntity("name", "type", "description", 80.0),)),
    )


def test_more_is_asked_with_the_earlier_replies_but_not_their_thoughts() -> None:
    style = ExtractionStyle()
    prompt, more = (
        style.build_prompt(PASSAGE),
        style.build_gleaning_prompt(PASSAGE, f"<think>Hm {{so_far}}.</think>{REPLY}"),
    )
    assert (more.system, more.json_schema) == (prompt.system, prompt.json_schema)
    assert more.user.startswith(prompt.user)
    assert REPLY in more.user
    assert "Hm" not in more.user
    assert "{so_far}" not in more.user


# Reading


def test_names_in_facts_are_described_by_the_table() -> None:
    assert parse(REPLY) == Extraction((MET, WROTE), {})


FACTS_WITH_OBJECTS = [FACTS[0] | {"entities": OBJECTS}, FACTS[1] | {"entities": OBJECTS[:1]}]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f"Here you are [as asked], in {{JSON}}:\n```json\n{REPLY}\n```\nMore [or less]?", id="fence"),
        pytest.param(json.dumps({"facts": FACTS, "entities": LINES}, indent=2), id="indented"),
        pytest.param(json.dumps({"entities": LINES, "facts": FACTS}), id="table first"),
        pytest.param(json.dumps({"facts": FACTS, "entities": OBJECTS}), id="objects in the table"),
        pytest.param(
            json.dumps({"facts": FACTS, "entities": [x.split(" | ") for x in LINES]}), id="lists in the table"
        ),
        pytest.param(json.dumps(FACTS_WITH_OBJECTS), id="a bare list of facts"),
        pytest.param("\n".join(map(json.dumps, FACTS_WITH_OBJECTS)), id="a fact each line"),
        pytest.param(json.dumps({"facts": FACTS_WITH_OBJECTS}), id="no table"),
        pytest.param(json.dumps({"facts": FACTS_WITH_OBJECTS, "entities": []}), id="an empty table"),
        pytest.param(json.dumps({"result": [{"facts": FACTS, "entities": LINES}]}), id="wrapped"),
        pytest.param(json.dumps({"facts": FACTS}) + "\n" + json.dumps({"entities": LINES}), id="two objects"),
        pytest.param(re.sub(r'"(\w+)":', lambda key: key.group().upper(), REPLY), id="keys in capitals"),
        pytest.param(REPLY.replace("9,", '"9",').replace(" | 90", " | Score: 90"), id="scores as text"),
        pytest.param(REPLY.replace("met Charles", "met\nCharles"), id="a bare line break in a text"),
        pytest.param(REPLY.replace("Ada Lovelace", "Ada\\u0020Lovelace"), id="escapes"),
    ],
)
def test_deviations_of_models_from_the_format_are_parsed(reply: str) -> None:
    assert parse(reply) == Extraction((MET, WROTE), {})


@pytest.mark.parametrize(
    "thoughts", [f"<think>[] {REPLY[:40]}</think>", "Two facts.</think>", f"Perhaps {REPLY}?\n</think>\n\n"]
)
def test_thoughts_in_front_of_a_reply_are_left_out_and_noted(thoughts: str) -> None:
    assert parse(thoughts + REPLY) == Extraction((MET, WROTE), {"thoughts in front of a reply left out": 1})


@pytest.mark.parametrize("tag", ["<think>", "</think>", "<think>Hm.</think>", "<thinking> and </thinking>"])
def test_facts_about_thoughts_are_kept(tag: str) -> None:
    messages = {"text": f"Ada Lovelace wrote {tag} first.", "score": 7, "entities": ["Ada Lovelace", tag]}
    extraction = parsed([FACTS[0], messages], [*LINES, f"{tag} | tag | Opens {tag}. | 50"])
    entity = ExtractedEntity(tag, "tag", f"Opens {tag}.", 50.0)
    assert extraction == Extraction((MET, ExtractedFact(str(messages["text"]), 7.0, (ADA, entity))), {})


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        pytest.param(REPLY.replace("]}, ", ",],}, ")[:-2] + ",],}", "JSON repaired", id="commas before brackets"),
        pytest.param(REPLY.replace("], ", "],\n, "), "JSON broken or cut off", id="two commas"),
        pytest.param(REPLY[:-1], "JSON broken or cut off", id="no end"),
        pytest.param(REPLY[:-2], "JSON broken or cut off", id="no end of the table"),
        pytest.param(REPLY[:-2] + ', "Char', "JSON broken or cut off", id="half a line of the table"),
    ],
)
def test_slips_in_the_json_are_put_right_and_noted(reply: str, note: str) -> None:
    assert parse(reply) == Extraction((MET, WROTE), {note: 1})


@pytest.mark.parametrize("name", ['Ada "Countess" Lovelace', '"Ada"', r"Ada \alpha", r"Ada [\u12", 'Ada {"A" [B]}'])
def test_unescaped_quotes_are_retained_and_noted(name: str) -> None:
    extraction = parse(REPLY.replace("Ada Lovelace", name))
    assert [fact.text for fact in extraction.facts] == [f.text.replace("Ada Lovelace", name) for f in (MET, WROTE)]
    assert extraction.facts[1].entities == (ExtractedEntity(name, "person", "Met Babbage.", 90.0),)
    assert extraction.notes == {"JSON repaired": 1}


@pytest.mark.parametrize(
    "name", ['William "Bill" Gates', '"Weird Al" Yankovic', "“Weird Al” Yankovic", "{x}", "[y]", "a\\q"]
)
def test_quotes_and_brackets_within_a_name_are_kept(name: str) -> None:
    entity = ExtractedEntity(name, "x", "y", 9.0)
    fact = ExtractedFact(f"He is {name}, at last.", 9.0, (entity,))
    facts = [{"text": fact.text, "score": 9, "entities": [name]}]
    assert parsed(facts, [f"{name} | x | y | 9"]) == Extraction((fact,), {})
    bare = f'{{"facts": [{{"text": "He is {name}, at last.", "score": 9, "entities": ["{name}"]}}], "entities": '
    assert parse(f'{bare}["{name} | x | y | 9"]}}').facts == (fact,)
    assert parse(f'{bare}["{name} | x | y | 9", "cut').facts == (fact,)


BARRED = ["P(A|B)", "A|B", "|x|", "a|"]


@pytest.mark.parametrize("name", BARRED)
@pytest.mark.parametrize("line", ["{} | x | y | 9", "{}|x|y|9", "{}| x |y |9", "  {}  |  x |  y  | 9 "])
def test_a_bar_within_a_name_that_a_fact_lists_is_kept(name: str, line: str) -> None:
    facts = [{"text": f"He is {name}, B.", "score": 9, "entities": [name, "B"]}]
    expected = (ExtractedEntity(name, "x", "y", 9.0), ExtractedEntity("B", "x", "y", 9.0))
    extraction = parsed(facts, [line.format(name), line.format("B")])
    assert extraction == Extraction((ExtractedFact(f"He is {name}, B.", 9.0, expected),), {})


@pytest.mark.parametrize("name", BARRED)
def test_a_bar_without_blanks_is_part_of_a_name_whoever_lists_it(name: str) -> None:
    entity = ExtractedEntity(name, "x", "y", 9.0)
    mentioned = parsed([{"text": f"He is {name}.", "score": 9, "entities": []}], [f"{name} | x | y | 9"])
    assert mentioned.facts[0].entities == (entity,)
    bare = parsed([{"text": "He is it.", "score": 9, "entities": [name]}], [])
    assert bare.facts[0].entities == (ExtractedEntity(name),)
    objects = [{"name": name, "type": "x", "description": "y", "score": 9}]
    assert parsed([{"text": "He is it.", "score": 9, "entities": [name]}], objects).facts[0].entities == (entity,)


def test_a_line_that_a_fact_lists_is_read_as_a_line() -> None:
    assert parsed([FACTS[0] | {"entities": LINES}, FACTS[1]], LINES) == Extraction((MET, WROTE), {})
    assert parsed([FACTS[0] | {"entities": LINES}], []) == Extraction((MET,), {})


@pytest.mark.parametrize("key", ["score", "importance", "Importance", "key_score", "key score", "keyScore"])
def test_the_importance_of_an_object_is_read_by_the_names_that_models_give_it(key: str) -> None:
    objects = [{key if name == "score" else name: value for name, value in items.items()} for items in OBJECTS]
    assert parsed(FACTS, objects) == Extraction((MET, WROTE), {})
    assert parsed([FACTS[0] | {"entities": objects}], []) == Extraction((MET,), {})


@pytest.mark.parametrize("key", ["score", "completeness", "COMPLETENESS", "completeness_score"])
def test_the_completeness_of_a_fact_is_read_by_the_names_that_models_give_it(key: str) -> None:
    facts = [{key if name == "score" else name: value for name, value in fact.items()} for fact in FACTS]
    assert parsed(facts, LINES) == Extraction((MET, WROTE), {})


def test_a_name_that_the_table_leaves_out_is_kept_and_noted() -> None:
    extraction = parsed([FACTS[0]], LINES[:1])
    assert extraction.facts[0].entities == (ADA, ExtractedEntity("Charles Babbage"))
    assert extraction.notes == {"name missing from the table": 1}


def test_the_table_describes_other_spellings_of_a_name() -> None:
    extraction = parsed([{"text": "The ADA LOVELACE wrote.", "score": 7, "entities": ["The ADA LOVELACE"]}], LINES[:1])
    assert extraction.facts[0].entities == (ExtractedEntity("The ADA LOVELACE", "person", "Met Babbage.", 90.0),)


def test_an_entity_that_no_fact_lists_joins_the_facts_that_mention_it() -> None:
    extraction = parsed(
        [FACTS[0] | {"entities": []}, FACTS[1] | {"entities": []}], [*LINES, "Rome | city | Capital. | 5"]
    )
    assert extraction.facts == (MET, WROTE)
    assert extraction.notes == {"entity in no fact": 1, "entity joined to the facts that mention it": 2}


def test_an_acronym_joins_the_facts_that_have_it_in_capitals() -> None:
    facts = [{"text": "They told us.", "score": 9, "entities": []}, {"text": "美国(US)。", "score": 9, "entities": []}]
    extraction = parsed(facts, ["US | country | x | 90"])
    assert [len(fact.entities) for fact in extraction.facts] == [0, 1]


def test_entities_that_no_fact_lists_are_looked_for_where_their_words_are_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []

    def counted(name: str, text: str) -> list[tuple[int, int]]:
        looked.append(name)
        return find_name_spans(name, text)

    monkeypatch.setattr("polyad.replies.facts.find_name_spans", counted)
    names = [f"{kind} {number}" for kind in ("Town", "村") for number in range(100)] + [
        f"ก{chr(0xE20 + n)}" for n in range(9)
    ]
    facts = [{"text": f"Long ago {name} fell in {1700 + place}.", "score": 9} for place, name in enumerate(names)]
    extraction = parsed(facts, [f"{name} | x | y | 9" for name in [*names, "?!", "Nowhere"]])
    assert [[entity.name for entity in fact.entities] for fact in extraction.facts] == [[name] for name in names]
    assert len(looked) == len(names)
    assert extraction.notes["entity in no fact"] == 2


def test_an_entity_described_twice_is_joined_and_noted() -> None:
    extraction = parsed([FACTS[1]], ["Ada Lovelace | person | x | 5", "ADA LOVELACE | | y | 70"])
    assert extraction.facts[0].entities == (ExtractedEntity("Ada Lovelace", "person", "x\ny", 70.0),)
    assert extraction.notes == {"entity described twice": 1}


def test_a_name_listed_twice_in_a_fact_is_joined_and_noted() -> None:
    extraction = parsed([FACTS[1] | {"entities": ["Ada Lovelace", "ADA Lovelace"]}], LINES[:1])
    assert extraction == Extraction((WROTE,), {"entity named twice in a fact": 1})


@pytest.mark.parametrize(
    ("score", "read", "notes"),
    [
        ("0", 0.5, {}),
        ("NaN", None, {"score that is not a number": 1}),
        ("true", None, {"score that is not a number": 1}),
        ('"high"', 7.5, {"score given in words": 1}),
        ("[8]", None, {"score that is not a number": 1}),
        ("Infinity", 10.0, {"score out of range": 1}),
        ("-Infinity", 0.5, {"score out of range": 1}),
        ("1" * 400, 10.0, {"score out of range": 1}),
        ("1e999", 10.0, {"score out of range": 1}),
        ("null", None, {"score missing": 1}),
        ('"8/10"', 8.0, {"score given as a share": 1}),
        ('"90%"', 9.0, {"score given as a share": 1}),
    ],
)
def test_a_score_that_is_none_is_repaired_and_noted(score: str, read: float | None, notes: dict[str, int]) -> None:
    extraction = parse(f'{{"facts": [{{"text": "A fact.", "score": {score}, "entities": []}}], "entities": []}}')
    assert extraction == Extraction((ExtractedFact("A fact.", read),), notes)


@pytest.mark.parametrize(
    "facts",
    [
        {"1": FACTS[0], "2": FACTS[1]},
        {
            MET.text: {"score": 9, "entities": FACTS[0]["entities"]},
            WROTE.text: {"score": 7, "entities": ["Ada Lovelace"]},
        },
    ],
    ids=["numbered", "by text"],
)
@pytest.mark.parametrize(
    "table",
    [
        {"Ada Lovelace": OBJECTS[0], "Charles Babbage": OBJECTS[1]},
        {"Ada Lovelace": "person | Met Babbage. | 90", "Charles Babbage": "person | Met by Ada. | 80"},
        {"Ada Lovelace": ["person", "Met Babbage.", 90], "Charles Babbage": ["person", "Met by Ada.", 80]},
        {"people": OBJECTS},
        [
            {
                "entity_name": o["name"],
                "entity_type": o["type"],
                "entity_description": o["description"],
                "key_score": o["score"],
            }
            for o in OBJECTS
        ],
    ],
    ids=["objects", "lines", "lists", "groups", "published keys"],
)
def test_tables_given_as_objects_are_read(facts: object, table: object) -> None:
    assert parsed(facts, table) == Extraction((MET, WROTE), {})


def test_a_table_of_facts_may_be_texts_alone_or_texts_with_scores() -> None:
    assert [fact.text for fact in parsed({"1": MET.text, "2": WROTE.text}, {}).facts] == [MET.text, WROTE.text]
    scored = parsed({MET.text: 9, WROTE.text: ["Ada Lovelace"]}, {"Ada Lovelace": "a woman who wrote notes"}).facts
    ada = ExtractedEntity("Ada Lovelace", "", "a woman who wrote notes")
    assert scored == (ExtractedFact(MET.text, 9.0), ExtractedFact(WROTE.text, None, (ada,)))


def test_an_object_in_place_of_a_list_is_one_record_not_a_table() -> None:
    assert parsed(FACTS[1], OBJECTS[0]).facts == (WROTE,)
    with pytest.raises(UnreadableReplyError, match="expected"):
        parsed({"content": "x", "score": 9}, {"title": "Ada", "type": "person"})


def test_missing_fields_are_left_empty_and_noted() -> None:
    extraction = parse(
        '{"facts": [{"text": "Ada met Bo and Cy."}, "A fact."], "entities": ["Ada", "Bo | person", {"name": "Cy"}]}'
    )
    assert extraction.facts == (
        ExtractedFact(
            "Ada met Bo and Cy.",
            None,
            (ExtractedEntity("Ada"), ExtractedEntity("Bo", "person"), ExtractedEntity("Cy")),
        ),
        ExtractedFact("A fact."),
    )
    assert extraction.notes == {"entity joined to the facts that mention it": 3, "score missing": 5}


def test_junk_among_the_records_is_dropped_and_noted() -> None:
    junk: list[object] = [
        None,
        1.5,
        {"a": [{"b": [[]]}]},
        {"name": ["x"]},
        "",
        "  | person | x | 5",
        [],
        [None, "x"],
        {"text": {}},
    ]
    extraction = parsed([*junk[:4], *FACTS, *junk[6:]], [*junk, *LINES])
    assert extraction.facts == (MET, WROTE)
    assert extraction.notes == {"entity without a name": len(junk), "fact without a text": 7}
    members = parsed([FACTS[0] | {"entities": [*junk, *OBJECTS]}, FACTS[1] | {"entities": "Ada Lovelace"}], [])
    assert members.facts == (MET, ExtractedFact(WROTE.text, 7.0, (ExtractedEntity("Ada Lovelace"),)))


def test_a_year_given_as_a_number_is_a_name() -> None:
    extraction = parsed([{"text": "It was 1833.", "score": 9, "entities": [1833]}], [["1833", "year", "Then.", 50]])
    assert extraction.facts[0].entities == (ExtractedEntity("1833", "year", "Then.", 50.0),)


def test_half_a_character_cannot_be_stored_and_counts_as_no_text() -> None:
    reply = (
        r'{"facts": [{"text": "Half \ud83d", "score": 9, "entities": []}, {"text": "Whole \ud83d\ude00", "score": 9}]}'
    )
    extraction = parse(reply)
    assert extraction == Extraction((ExtractedFact("Whole \U0001f600", 9.0),), {"fact without a text": 1})


@pytest.mark.parametrize(
    "reply",
    ["[]", "{}", "```json\n[]\n```", '{"facts": []}', '{"entities": []}', '{"facts": [], "entities": []} None.'],
)
def test_an_empty_list_is_an_answer(reply: str) -> None:
    assert parse(reply) == Extraction((), {})


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "No facts.",
        '{"facts": nothing}',
        '{"facts": null}',
        '{"error": "too long"}',
        '["Ada", "Babbage"]',
        '{"facts": [{"text": "Ada met',
        json.dumps(ExtractionStyle().build_prompt(PASSAGE).json_schema),
    ],
)
def test_a_reply_without_a_record_is_refused(reply: str) -> None:
    with pytest.raises(UnreadableReplyError, match="facts"):
        parse(reply)


@pytest.mark.parametrize(
    "filler",
    ["[" * 9999, '{"a":' * 5000, '["' * 9999, "\n" * 20000, '", ' * 9999, "\\" * 9999, '{"a":[' * 300 + "]}" * 300],
)
def test_a_model_that_repeats_itself_costs_neither_time_nor_facts(filler: str) -> None:
    assert parse(f"{REPLY}\n{filler}").facts == (MET, WROTE)
    assert parse(f"{REPLY[:-1]}, {filler}").facts == (MET, WROTE)


# Properties

words = st.text(
    st.characters(exclude_characters="|<", exclude_categories=["Cs"]) | st.sampled_from("\n \"'“”()[]{}\\,:"),
    min_size=1,
    max_size=12,
)
names = words.map(lambda text: f"N{text}n")
lines = st.builds(
    lambda name, kind, about, score: f"{name} | {kind} | {about} | {score}", names, names, names, st.integers(1, 100)
)
drawn_facts = st.lists(
    st.fixed_dictionaries({"text": names, "score": st.integers(1, 10), "entities": st.lists(names, max_size=3)}),
    min_size=1,
    max_size=4,
    unique_by=lambda fact: sanitize_line(str(fact["text"])),
)
tables = st.lists(lines, max_size=4)
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[\"\\/bfnrt]")


def decoded(reply: str) -> str:
    """``reply`` with its JSON escapes put in full."""
    return _ESCAPES.sub(lambda escape: str(json.loads(f'"{escape.group()}"')), reply)


def assert_nothing_is_invented(reply: str) -> None:
    try:
        extraction = parse(reply)
    except UnreadableReplyError:
        return
    sources = sanitize_line(reply), sanitize_line(decoded(reply))
    for fact in extraction.facts:
        assert fact.text
        assert any(fact.text in source for source in sources)
        assert fact.score is None or 0 < fact.score <= 10
        for entity in fact.entities:
            assert entity.name
            assert any(entity.name in source for source in sources)
            assert entity.score is None or 0 < entity.score <= 100
    assert all(extraction.notes.values())


@given(st.text() | st.lists(st.sampled_from(re.findall(r"\w+|\W", REPLY)), max_size=60).map("".join))
def test_no_text_whatever_breaks_the_reader_or_makes_it_invent(reply: str) -> None:
    assert_nothing_is_invented(reply)


junk_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["a | b", "a|b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["facts", "Text", "entities", "name", "importance", "type", "x"]), inner, max_size=4
        )
    ),
)


@given(junk_values)
def test_no_json_whatever_breaks_the_reader_or_makes_it_invent(value: object) -> None:
    assert_nothing_is_invented(json.dumps(value))
    assert_nothing_is_invented(json.dumps(value, ensure_ascii=False))


@given(drawn_facts, tables, st.booleans(), st.data())
def test_no_noise_in_a_reply_breaks_the_reader_or_makes_it_invent(
    facts: list[dict[str, Any]], table: list[str], ensure_ascii: bool, data: st.DataObject
) -> None:
    reply = json.dumps({"facts": facts, "entities": table}, ensure_ascii=ensure_ascii)
    start, end = sorted((data.draw(st.integers(0, len(reply))), data.draw(st.integers(0, len(reply)))))
    noise = data.draw(st.binary(max_size=12)).decode(errors="replace")
    assert_nothing_is_invented(reply[:start] + noise + reply[start:])
    assert_nothing_is_invented(reply[:start] + noise + reply[end:])


@given(drawn_facts, tables, st.booleans(), st.sampled_from([None, 1]), st.data())
def test_every_whole_record_of_a_reply_that_is_cut_short_is_kept(
    facts: list[dict[str, Any]], table: list[str], table_first: bool, indent: int | None, data: st.DataObject
) -> None:
    records: list[tuple[str, Any]] = [("facts", facts), ("entities", table)]
    reply = json.dumps(dict(reversed(records) if table_first else records), indent=indent)
    cut = data.draw(st.integers(0, len(reply)))
    whole_facts: list[dict[str, Any]] = []
    whole_lines: list[str] = []
    position = 0
    ordered: list[Any] = [*table, *facts] if table_first else [*facts, *table]
    for record in ordered:
        written = json.dumps(record, indent=indent).replace("\n", "\n  ")
        position = reply.index(written, position) + len(written)
        if position <= cut:
            (whole_lines if isinstance(record, str) else whole_facts).append(record)
    if not whole_facts:
        return
    extraction = parse(reply[:cut])
    assert [fact.text for fact in extraction.facts] == [sanitize_line(record["text"]) for record in whole_facts]
    for fact, record in zip(extraction.facts, whole_facts, strict=True):
        members = {get_identity(entity.name) for entity in fact.entities}
        assert {get_identity(sanitize_line(name)) for name in record["entities"]} <= members
    described = {get_identity(sanitize_line(line.split("|")[0])) for line in whole_lines}
    for fact in extraction.facts:
        for entity in fact.entities:
            assert bool(entity.type) == (get_identity(entity.name) in described)


@given(drawn_facts, tables, st.booleans())
def test_a_whole_reply_is_read_as_it_was_meant(
    facts: list[dict[str, Any]], table: list[str], ensure_ascii: bool
) -> None:
    extraction = parse(json.dumps({"facts": facts, "entities": table}, ensure_ascii=ensure_ascii))
    assert [(fact.text, fact.score) for fact in extraction.facts] == [
        (sanitize_line(fact["text"]), float(fact["score"])) for fact in facts
    ]
    assert not {"JSON repaired", "JSON broken or cut off", "score missing"} & set(extraction.notes)


@given(
    st.lists(st.from_regex(r"N[a-c()|]{0,3}\|[a-c()|]{0,3}n", fullmatch=True), min_size=1, max_size=4), st.booleans()
)
def test_no_bar_within_names_makes_the_reader_invent_others(listed: list[str], described: bool) -> None:
    facts = [{"text": "A fact.", "score": 9, "entities": listed}]
    extraction = parsed(facts, [f"{name} | x | y | 9" for name in listed] * described)
    labels = {get_identity(name): name for name in reversed(listed)}
    assert [entity.name for entity in extraction.facts[0].entities] == list(
        dict.fromkeys(labels[get_identity(name)] for name in listed)
    )


# What models make of it


@pytest.mark.parametrize(
    "untidy",
    [
        REPLY.replace("{", '{ // as asked: "it\'s"\n', 1),
        REPLY.replace('"score": 9', '"score": 9 /* of 10 */'),
        REPLY.replace('": ', '"\uff1a').replace('", ', '"\uff0c'),
        f'<tool_call>\n{{"name": "reply", "arguments": {REPLY}}}\n</tool_call>',
        json.dumps(ExtractionStyle().schema, default=dict) + "\n" + REPLY,
    ],
)
def test_nothing_is_lost_of_a_reply_that_is_not_quite_as_asked(untidy: str) -> None:
    assert parse(untidy).facts == (MET, WROTE)


@pytest.mark.parametrize(
    "reply",
    [
        '{"facts": [{"fact_text": "Ada met Babbage."}], "entities": []}',
        '{"facts": [{"text": "", "score": 9, "entities": ["name"]}], "entities": []}',
        '{"facts": [{"text": Ada met Babbage., "entities": ["Ada"]}], "entities": ["Ada | person | Met him. | 90"]}',
        json.dumps(ExtractionStyle().schema, default=dict),
    ],
)
def test_a_reply_of_which_every_fact_would_be_lost_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReplyError, match="text"):
        parse(reply)


def test_the_line_that_shows_the_form_does_not_become_an_entity() -> None:
    reply = json.dumps({"facts": [{**FACTS[0], "text": "Her name was Ada."}], "entities": [LINE, *LINES]})
    extraction = ExtractionStyle().parse_about(reply, PASSAGE)
    assert [entity.name for fact in extraction.facts for entity in fact.entities] == ["Ada Lovelace", "Charles Babbage"]
    assert extraction.notes["entity copied from the instructions left out"] == 1


def test_a_model_that_says_one_thing_without_end_is_read_in_good_time() -> None:
    facts = [{"text": "Ada met Bo.", "entities": [f"N{place}"]} for place in range(10_000)]
    (fact,) = parse(json.dumps({"facts": facts, "entities": [f"Ada | person | said {n}" for n in range(20_000)]})).facts
    assert len(fact.entities) == 10_001
    assert fact.entities[1].description.endswith("\nsaid 19998\nsaid 19999")


@pytest.mark.parametrize(("most", "is_read"), [(7, True), (6, False)])
def test_a_reply_of_more_records_than_allowed_is_refused_by_the_name_of_the_limit(most: int, is_read: bool) -> None:
    style = ExtractionStyle()
    if is_read:
        assert style.parse_about(REPLY, PASSAGE, most).facts == (MET, WROTE)
    else:
        with pytest.raises(UnreadableReplyError, match=r"at most 6 facts, entities and names in facts \(max_records\)"):
            style.parse_about(REPLY, PASSAGE, most)
