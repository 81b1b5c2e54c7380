from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyad.errors import UnreadableReplyError
from polyad.indexing.facts.style import ExtractionStyle
from polyad.model import Passage
from polyad.replies.facts import ExtractedEntity, ExtractedFact, Extraction, get_identity
from polyad.text.words import sanitize_line

PASSAGE = Passage("d#0", "d", "Ada Lovelace", "She met Babbage in 1833.", 0, 24)
ADA = ExtractedEntity("Ada Lovelace", "person", "Met Babbage.", 90.0)
BABBAGE = ExtractedEntity("Charles Babbage", "person", "Met by Ada.", 80.0)
MET = ExtractedFact("Ada Lovelace met Charles Babbage in 1833.", 9.0, (ADA, BABBAGE))
WROTE = ExtractedFact("Ada Lovelace wrote notes.", 7.0, (ADA,))
REPLY = """("hyper-relation"<|>Ada Lovelace met Charles Babbage in 1833.<|>9)##
("entity"<|>Ada Lovelace<|>person<|>Met Babbage.<|>90)##
("entity"<|>Charles Babbage<|>person<|>Met by Ada.<|>80)##
("hyper-relation"<|>Ada Lovelace wrote notes.<|>7)##
("entity"<|>Ada Lovelace<|>person<|>Met Babbage.<|>90)
<|COMPLETE|>"""


def parse(reply: str) -> Extraction:
    return ExtractionStyle(style="paper").parse(reply)


def rendered(facts: list[ExtractedFact]) -> list[str]:
    """Each fact's and each entity's record, whole."""
    records = []
    for fact in facts:
        records.append(f'("hyper-relation"<|>{fact.text}<|>{fact.score:g})')
        for entity in fact.entities:
            records.append(f'("entity"<|>{entity.name}<|>{entity.type}<|>{entity.description}<|>{entity.score:g})')
    return records


# Asking


def test_the_passage_is_asked_about_under_instructions_that_are_the_same_for_all() -> None:
    style = ExtractionStyle(style="paper")
    prompt = style.build_prompt(PASSAGE)
    assert prompt.user == '<passage title="Ada Lovelace">\nShe met Babbage in 1833.\n</passage>'
    assert prompt.system == style.build_prompt(Passage("e#0", "e", "", "Other.", 0, 6)).system
    assert '("hyper-relation"<|>' in prompt.system
    assert "<|COMPLETE|>" in prompt.system
    assert "{" not in prompt.system


def test_more_is_asked_with_the_earlier_replies_but_not_their_thoughts() -> None:
    style = ExtractionStyle(style="paper")
    more = style.build_gleaning_prompt(PASSAGE, f"<think>Hm {{so_far}}.</think>{REPLY}")
    assert more.user.startswith(style.build_prompt(PASSAGE).user)
    assert REPLY in more.user
    assert "Hm" not in more.user
    assert "{so_far}" not in more.user


def test_the_example_in_the_prompt_is_read_as_it_says() -> None:
    example = ExtractionStyle(style="paper").build_prompt(PASSAGE).system.split("Example of the reply:")[1]
    extraction = parse(example)
    assert [len(fact.entities) for fact in extraction.facts] == [5, 2]
    assert extraction.notes == {}


# Reading


def test_entities_belong_to_the_nearest_fact_before_them() -> None:
    assert parse(REPLY) == Extraction((MET, WROTE), {})


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f"Sure, here are the records:\n\n```\n{REPLY}\n```\nAnything else?", id="prose and fence"),
        pytest.param(f"{REPLY}\n\nI have found (as asked) two facts.", id="prose after the mark"),
        pytest.param(REPLY.replace("\n<|COMPLETE|>", "\n\nI hope (really) that this helps."), id="prose, no mark"),
        pytest.param(REPLY.replace("\n<|COMPLETE|>", " I hope (really) that this helps."), id="prose on the line"),
        pytest.param(REPLY.replace("##", ""), id="a line each"),
        pytest.param(REPLY.replace("##", "").replace("\n", "\n\n"), id="a paragraph each"),
        pytest.param(REPLY.replace("##\n", " ## "), id="all on one line"),
        pytest.param(REPLY.replace("##\n", "##"), id="nothing between"),
        pytest.param(REPLY.replace("##\n", ",\n"), id="commas between"),
        pytest.param(REPLY.replace("<|>", " <|> "), id="blanks around the delimiter"),
        pytest.param(REPLY.replace("<|>", "<| >"), id="blanks in the delimiter"),
        pytest.param(REPLY.replace("<|>", "\n<|>\n"), id="line breaks around the delimiter"),
        pytest.param(REPLY.replace("<|>", "<|#|>"), id="another delimiter"),
        pytest.param(REPLY.replace(")##", "##").replace(")\n", "\n"), id="no closing brackets"),
        pytest.param(REPLY.replace("(", "").replace(")", ""), id="no brackets"),
        pytest.param(REPLY.replace('("', "( ").replace('"<|>', "<|>"), id="no quotes"),
        pytest.param(REPLY.replace('("', "(“").replace('"<|>', "”<|>"), id="typographic quotes"),
        pytest.param(REPLY.replace("hyper-relation", "HYPER_RELATION").replace("entity", "Entity"), id="capitals"),
        pytest.param(REPLY.replace("hyper-relation", "hyperrelation"), id="one word"),
        pytest.param(REPLY.replace("hyper-relation", "hyper relation"), id="two words"),
        pytest.param(REPLY.replace('("', '- ("'), id="a list"),
        pytest.param("\n".join(f"{n}. {line}" for n, line in enumerate(REPLY.split("\n"), 1)), id="numbers"),
        pytest.param(
            REPLY.replace("Ada Lovelace", '"Ada Lovelace"', 2).replace('"Ada Lovelace" met', "Ada Lovelace met"),
            id="a quoted name",
        ),
        pytest.param(REPLY.replace(" met ", "\nmet\n").replace("met by", "met\n\nby"), id="texts of several lines"),
        pytest.param(REPLY.replace("\n", "\r\n"), id="other line ends"),
        pytest.param(REPLY.replace("<|COMPLETE|>", ""), id="no mark"),
        pytest.param(REPLY.replace("<|COMPLETE|>", "<|COMPL"), id="half a mark"),
        pytest.param(REPLY.replace("9)", "Score: 9)").replace("<|>90)", '<|>"90")'), id="scores in words"),
    ],
)
def test_deviations_of_models_from_the_format_are_parsed(reply: str) -> None:
    assert parse(reply) == Extraction((MET, WROTE), {})


@pytest.mark.parametrize(
    "thoughts", [f"<think>First ({REPLY}) or so.</think>", "Two facts.</think>", f"Perhaps {REPLY}?\n</think>\n\n"]
)
def test_thoughts_in_front_of_a_reply_are_left_out_and_noted(thoughts: str) -> None:
    assert parse(thoughts + REPLY) == Extraction((MET, WROTE), {"thoughts in front of a reply left out": 1})


@pytest.mark.parametrize("tag", ["<think>", "</think>", "<think>Hm.</think>", "<thinking> and </thinking>"])
def test_facts_about_thoughts_are_kept(tag: str) -> None:
    message = f'("hyper-relation"<|>R1 writes {tag} first.<|>9)##("entity"<|>{tag}<|>tag<|>Opens {tag}.<|>50)##'
    entity = ExtractedEntity(tag, "tag", f"Opens {tag}.", 50.0)
    fact = ExtractedFact(f"R1 writes {tag} first.", 9.0, (entity,))
    assert parse(message + REPLY) == Extraction((fact, MET, WROTE), {})


@pytest.mark.parametrize(
    "name",
    ['"Weird Al" Yankovic', 'William "Bill" Gates', "“Weird Al” Yankovic", "Rock 'n' Roll", "Heron (ship)", "C#", ":)"],
)
def test_quotes_and_brackets_within_a_name_are_kept(name: str) -> None:
    extraction = parse(f'("hyper-relation"<|>He is {name}<|>9)##("entity"<|>{name}<|>x<|>y<|>9)##("entity"<|>{name})##')
    assert extraction.facts == (ExtractedFact(f"He is {name}", 9.0, (ExtractedEntity(name, "x", "y", 9.0),)),)


def test_a_kind_in_the_place_of_a_type_begins_no_record() -> None:
    reply = (
        '("hyper-relation"<|>A fact.<|>9)##("entity"<|>Ada<|>entity<|>Entity<|>90)##("entity"<|>Bob<|>\nentity<|>x<|>8)'
    )
    assert parse(reply).facts[0].entities == (
        ExtractedEntity("Ada", "entity", "Entity", 90.0),
        ExtractedEntity("Bob", "entity", "x", 8.0),
    )


def test_missing_fields_are_left_empty_and_noted() -> None:
    extraction = parse(
        '("hyper-relation"<|>A fact)\n("entity"<|>Ada)\n("entity"<|>Bob<|>person)\n("entity"<|>Cy<|>man<|>70)'
    )
    assert extraction.facts == (
        ExtractedFact(
            "A fact",
            None,
            (ExtractedEntity("Ada"), ExtractedEntity("Bob", "person"), ExtractedEntity("Cy", "man", score=70.0)),
        ),
    )
    assert extraction.notes == {"score missing": 3}


def test_an_entity_without_a_name_is_dropped_and_noted() -> None:
    extraction = parse('("hyper-relation"<|>A fact.<|>9)##("entity"<|> <|>person<|>Who?<|>9)##("entity"<|>)')
    assert extraction == Extraction((ExtractedFact("A fact.", 9.0),), {"entity without a name": 2})


def test_a_fact_without_a_text_is_dropped_with_its_entities() -> None:
    extraction = parse(f'{REPLY}##("hyper-relation"<|>""<|>9)##("entity"<|>Ada<|>person<|>Who?<|>9)')
    assert extraction.facts == (MET, WROTE)
    assert extraction.notes == {"entity of a fact without a text": 1, "fact without a text": 1}


BLOCK = """("entity"<|>Ada Lovelace<|>person<|>Met Babbage.<|>90)##
("entity"<|>Charles Babbage<|>person<|>Met by Ada.<|>80)##
"""
FACTS_ALONE = """("hyper-relation"<|>Ada Lovelace met Charles Babbage in 1833.<|>9)##
("hyper-relation"<|>Ada Lovelace wrote notes.<|>7)##
"""


@pytest.mark.parametrize("reply", [BLOCK + FACTS_ALONE, FACTS_ALONE + BLOCK], ids=["before", "after"])
def test_entities_before_or_after_all_facts_belong_to_those_that_mention_them(reply: str) -> None:
    extraction = parse(reply + "<|COMPLETE|>")
    assert extraction == Extraction((MET, WROTE), {"entity joined to the facts that mention it": 2})


def test_the_entities_around_a_lone_fact_are_its_own() -> None:
    extraction = parse(f'("entity"<|>She<|>person<|>x<|>90)##("hyper-relation"<|>A.<|>9)##{BLOCK}')
    assert [[entity.name for entity in fact.entities] for fact in extraction.facts] == [
        ["She", "Ada Lovelace", "Charles Babbage"]
    ]


def test_an_entity_in_a_list_of_its_own_that_no_fact_mentions_is_noted() -> None:
    extraction = parse(f'{FACTS_ALONE}{BLOCK}("entity"<|>Paris<|>city<|>x<|>9)')
    assert extraction.facts == (MET, WROTE)
    assert extraction.notes["entity in no fact"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        f"{BLOCK}<|COMPLETE|>",
        BLOCK,
        '("hyper-relation"<|>""<|>9)##<|COMPLETE|>',
        '("claim"<|>Ada<|>Babbage<|>8)##<|COMPLETE|>',
        '("hyper-relation"<|>Ada met Bab',
        '("hyper-relation"<|>Ada (1815)',
    ],
)
def test_records_without_a_fact_are_refused(reply: str) -> None:
    with pytest.raises(UnreadableReplyError):
        parse(reply)


KINDS = ["hyperedge", "Hyperedge", "knowledge_segment", "knowledge segment", "relationship", "relation", "fact"]
KINDS += ["hyper_relationship", "n-ary relation"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("around", ['("{}"', "({}", '"{}"', "{}"])
def test_a_fact_by_another_name_is_a_fact(kind: str, around: str) -> None:
    written = around.format(kind)
    assert parse(REPLY.replace('("hyper-relation"', written)).facts == (MET, WROTE)


def test_a_relation_of_two_names_is_a_fact_where_it_says_something() -> None:
    text = "Ada Lovelace met Charles Babbage in 1833."
    extraction = parse(f'{BLOCK}("relationship"<|>Ada Lovelace<|>Charles Babbage<|>{text}<|>meeting<|>9)##<|COMPLETE|>')
    assert extraction.facts == (MET,)


def test_field_names_of_the_published_prompt_are_left_out() -> None:
    reply = REPLY.replace("<|>Ada Lovelace<|>", "<|>entity_name: Ada Lovelace<|>entity_type: ")
    reply = reply.replace("entity_type: person", 'entity_type="person"').replace("<|>9)", "<|>completeness_score: 9)")
    assert parse(reply).facts == (MET, WROTE)


@pytest.mark.parametrize("key", ["knowledge_segment", "hyper-relation", "fact"])
def test_json_in_place_of_records_is_read_with_the_keys_of_the_published_prompt(key: str) -> None:
    ada, babbage = (
        {
            "entity_name": item.name,
            "entity_type": item.type,
            "entity_description": item.description,
            "key_score": item.score,
        }
        for item in (ADA, BABBAGE)
    )
    reply = json.dumps(
        [
            {key: MET.text, "completeness_score": 9, "entities": [ada, babbage]},
            {key: WROTE.text, "completeness_score": 7, "entities": [ada]},
        ]
    )
    assert parse(reply) == Extraction((MET, WROTE), {"JSON in place of records": 1})


@pytest.mark.parametrize(
    "record", ['("relationship"<|>Ada<|>Babbage<|>met<|>8)', "relationship<|>Ada<|>Babbage", "(claim<|>Ada<|>8)"]
)
def test_records_of_another_kind_are_dropped_and_noted(record: str) -> None:
    extraction = parse(REPLY.replace("##\n", f"##\n{record}##\n", 1))
    assert extraction == Extraction((MET, WROTE), {"record of an unknown kind": 1})


def test_an_entity_named_twice_in_a_fact_is_joined_and_noted() -> None:
    extraction = parse(
        '("hyper-relation"<|>A.<|>9)##("entity"<|>Ada<|>person<|>x<|>9)##("entity"<|>ADA<|>woman<|>y<|>8)##'
    )
    assert extraction.facts[0].entities == (ExtractedEntity("Ada", "person", "x\ny", 9.0),)
    assert extraction.notes == {"entity named twice in a fact": 1}


def test_fields_too_many_are_dropped_and_noted() -> None:
    extraction = parse('("hyper-relation"<|>A.<|>more<|>9)##("entity"<|>Ada<|>person<|>x<|>y<|>9)')
    assert extraction == Extraction(
        (ExtractedFact("A.", 9.0, (ExtractedEntity("Ada", "person", "x", 9.0),)),), {"field too many": 2}
    )


@pytest.mark.parametrize(
    ("cut", "facts"),
    [
        ('("hyper-relation"<|>A fact.<|>', (ExtractedFact("A fact."),)),
        ('("hyper-relation"<|>A fact.<|>9)##("entity"<|>Ada Lov', (ExtractedFact("A fact.", 9.0),)),
        ('("hyper-relation"<|>A fact.<|>9)##("entity"<|>1912', (ExtractedFact("A fact.", 9.0),)),
        (
            '("hyper-relation"<|>A fact.<|>9)##("entity"<|>Ada<|>person<|>She wro',
            (ExtractedFact("A fact.", 9.0, (ExtractedEntity("Ada", "person"),)),),
        ),
    ],
)
def test_half_a_field_at_the_end_of_a_reply_is_dropped_and_noted(cut: str, facts: tuple[ExtractedFact, ...]) -> None:
    extraction = parse(cut)
    assert extraction.facts == facts
    assert extraction.notes["record cut off at the end of the reply"] == 1


@pytest.mark.parametrize("reply", ["<|COMPLETE|>", "There are no facts in it.\n<|COMPLETE|>", "<| complete |>"])
def test_a_lone_completion_mark_is_an_answer(reply: str) -> None:
    assert parse(reply) == Extraction((), {})


@pytest.mark.parametrize("reply", ["", " \n", "The passage is about Ada.", "(Ada, person)", "## Facts\n- Ada"])
def test_a_reply_without_a_record_is_refused(reply: str) -> None:
    with pytest.raises(UnreadableReplyError, match="hyper-relation"):
        parse(reply)


@pytest.mark.parametrize(
    "filler", ["(" * 20000, "\n" * 20000, '("entity' * 3000, "<|" * 10000, ") " * 10000, "#" * 9999]
)
def test_a_model_that_repeats_itself_costs_neither_time_nor_facts(filler: str) -> None:
    assert parse(f"{REPLY}\n{filler}").facts == (MET, WROTE)


# Properties

words = st.text(
    st.characters(exclude_characters="<|>#`", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n \"'“”()[]{}\\"),
    min_size=1,
    max_size=12,
)
names = words.map(lambda text: f"N{text}n")
entities = st.builds(ExtractedEntity, names, names, names, st.integers(1, 100).map(float))
drawn_facts = st.lists(
    st.builds(ExtractedFact, names, st.integers(1, 10).map(float), st.lists(entities, max_size=3).map(tuple)),
    min_size=1,
    max_size=4,
    unique_by=lambda fact: sanitize_line(fact.text),
)


def is_block(facts: list[ExtractedFact]) -> bool:
    """Whether the entities look like a list of their own, as they all come after the last of several facts."""
    return len(facts) > 1 and not any(fact.entities for fact in facts[:-1])


def summarise(facts: tuple[ExtractedFact, ...]) -> list[tuple[str, set[str]]]:
    return [(fact.text, {get_identity(entity.name) for entity in fact.entities}) for fact in facts]


def assert_nothing_is_invented(reply: str) -> None:
    try:
        extraction = parse(reply)
    except UnreadableReplyError:
        return
    source = sanitize_line(reply)
    for fact in extraction.facts:
        assert fact.text
        assert fact.text in source
        assert fact.score is None or 0 < fact.score <= 10
        for entity in fact.entities:
            assert entity.name
            assert entity.name in source
            assert entity.score is None or 0 < entity.score <= 100
    assert all(extraction.notes.values())


@given(st.text() | st.lists(st.sampled_from(re.findall(r"\w+|\W", REPLY)), max_size=60).map("".join))
def test_no_text_whatever_breaks_the_reader_or_makes_it_invent(reply: str) -> None:
    assert_nothing_is_invented(reply)


@given(drawn_facts, st.data())
def test_no_noise_in_a_reply_breaks_the_reader_or_makes_it_invent(
    facts: list[ExtractedFact], data: st.DataObject
) -> None:
    reply = "##\n".join(rendered(facts))
    start, end = sorted((data.draw(st.integers(0, len(reply))), data.draw(st.integers(0, len(reply)))))
    noise = data.draw(st.binary(max_size=12)).decode(errors="replace")
    assert_nothing_is_invented(reply[:start] + noise + reply[start:])
    assert_nothing_is_invented(reply[:start] + noise + reply[end:])


@given(drawn_facts, st.data(), st.sampled_from(["##\n", "\n", "##", " ## "]))
def test_every_whole_record_of_a_reply_that_is_cut_short_is_kept(
    facts: list[ExtractedFact], data: st.DataObject, between: str
) -> None:
    assume(not any(is_block(facts[:last]) for last in range(len(facts) + 1)))
    records = rendered(facts)
    reply = between.join(records) + between + "<|COMPLETE|>"
    cut = data.draw(st.integers(0, len(reply)))
    whole: list[tuple[str, set[str]]] = []
    position = 0
    for fact in facts:
        for number, record in enumerate(rendered([fact])):
            position += len(record)
            if position <= cut and number == 0:
                whole.append((sanitize_line(fact.text), set()))
            elif position <= cut:
                whole[-1][1].add(get_identity(sanitize_line(fact.entities[number - 1].name)))
            position += len(between)
    if whole:
        results = summarise(parse(reply[:cut]).facts)
        assert [text for text, _ in results[: len(whole)]] == [text for text, _ in whole]
        assert all(remaining <= members for (_, remaining), (_, members) in zip(whole, results, strict=False))
        assert len(results) <= len(whole) + 1


@given(drawn_facts)
def test_a_whole_reply_is_read_as_it_was_meant(facts: list[ExtractedFact]) -> None:
    assume(not is_block(facts) and max(fact.score or 0 for fact in facts) > 1)
    extraction = parse("##\n".join([*rendered(facts), "<|COMPLETE|>"]))
    assert [(fact.text, fact.score) for fact in extraction.facts] == [
        (sanitize_line(fact.text), fact.score) for fact in facts
    ]
    assert set(extraction.notes) <= {"entity named twice in a fact"}


def test_the_example_of_the_prompt_does_not_become_a_fact() -> None:
    style = ExtractionStyle(style="paper")
    example = style.build_prompt(PASSAGE).system
    assert style.parse_about(f"{example}\n{REPLY}", PASSAGE).facts == (MET, WROTE)
    with pytest.raises(UnreadableReplyError):
        style.parse_about(example, PASSAGE)


def test_a_passage_may_say_what_the_example_says() -> None:
    text = "The Heron carried mail in winter, when ice closed the road."
    passage = Passage("d#0", "d", "", text, 0, len(text))
    extraction = ExtractionStyle(style="paper").parse_about(f'("hyper-relation"<|>{text}<|>9)<|COMPLETE|>', passage)
    assert [fact.text for fact in extraction.facts] == [text]


def test_a_reply_of_more_records_than_allowed_is_refused_by_the_name_of_the_limit() -> None:
    reply = '("hyper-relation"<|>Ada met Bo.<|>9)##("entity"<|>Ada<|>person<|>She.<|>50)<|COMPLETE|>'
    assert len(ExtractionStyle(style="paper").parse(reply, 2).facts) == 1
    with pytest.raises(UnreadableReplyError, match=r"at most 1 facts.*max_records"):
        ExtractionStyle(style="paper").parse(reply, 1)
