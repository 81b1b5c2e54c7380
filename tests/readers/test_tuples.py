import json
from dataclasses import replace
from pathlib import Path

import pytest

from polyad.config import ReadSettings
from polyad.errors import ConfigurationError
from polyad.model import Argument, Document, Failure
from polyad.readers.folder.tuples import TupleReader, format_fact

GIVE = {"relation": "give", "arguments": [{"role": "giver", "entity": "Alice"}, {"role": "gift", "entity": "Book"}]}
ARGUMENTS = (Argument("giver", "Alice"), Argument("gift", "Book"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, so that ids are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, *lines: object) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    Path(path).write_text(content, encoding="utf-8")


def read(*paths: str, max_bytes: int = 10**6) -> list[Document | Failure]:
    return list(TupleReader(ReadSettings(max_bytes=max_bytes)).read([Path(path) for path in paths]))


def documents(*paths: str) -> list[Document]:
    results = read(*paths)
    actual = [result for result in results if isinstance(result, Document)]
    assert len(actual) == len(results), results
    return actual


def read_one(path: str) -> Document:
    (document,) = documents(path)
    return document


# JSON lines


def test_a_line_is_a_fact_with_its_arguments_in_order() -> None:
    write("a.jsonl", GIVE | {"_id": "g1", "text": "Alice gave away the Book.", "title": "A gift", "year": 1702})
    fact = read_one("a.jsonl")
    assert fact.metadata["year"] == 1702
    assert replace(fact, metadata={}) == Document(
        "g1", "A gift", "Alice gave away the Book.", source="a.jsonl:1", arguments=ARGUMENTS, relation="give"
    )


def test_a_fact_without_text_is_put_into_words() -> None:
    write("a.jsonl", GIVE)
    assert read_one("a.jsonl").text == "give: giver Alice, gift Book"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("date_of_birth", "date of birth"),
        ("dateOfBirth", "date of birth"),
        ("ISBNNumber", "ISBN number"),
        ("hasISBN", "has ISBN"),
        ("Head of State", "Head of State"),
        ("model3D", "model3D"),
        ("出版社", "出版社"),
    ],
)
def test_names_of_data_are_split_into_words(name: str, words: str) -> None:
    assert format_fact(name, [Argument(name, "X")]) == f"{words}: {words} X"


def test_the_argument_itself_keeps_the_role_as_it_is_written() -> None:
    write("a.jsonl", {"relation": "birth", "arguments": [{"role": "bornIn_city", "entity": " Port\n Lisle "}]})
    document = read_one("a.jsonl")
    assert document.arguments == (Argument("bornIn_city", " Port\n Lisle "),)
    assert document.text == "birth: born in city Port Lisle"


@pytest.mark.parametrize("relation", [{}, {"relation": ""}, {"relation": None}])
def test_a_fact_without_a_relation_has_the_name_of_its_file(relation: dict[str, object]) -> None:
    write("data/gifts.jsonl", {"arguments": GIVE["arguments"]} | relation)
    assert read_one("data/gifts.jsonl").text == "gifts: giver Alice, gift Book"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ([1], "the line is [1]; expected an object"),
        ({"relation": "give"}, '"arguments" is missing; expected a list of at least one {"role", "entity"}'),
        (GIVE | {"arguments": []}, '"arguments" is []; expected a list'),
        (GIVE | {"arguments": {}}, '"arguments" is {}; expected a list'),
        (GIVE | {"arguments": "Alice"}, '"arguments" is "Alice"; expected a list'),
        ({"N": 2}, 'no arguments: expected roles beside "N"'),
        (GIVE | {"relation": 3}, '"relation" is 3; expected a string'),
        (GIVE | {"text": ["x"]}, '"text" is ["x"]; expected a string'),
        (GIVE | {"_id": 1.5}, '"_id" is 1.5; expected a string or a whole number'),
        (GIVE | {"text": "x" * 2000}, "longer than 1,000 characters"),
    ],
)
def test_a_line_that_is_no_fact_is_reported_by_its_place_and_the_rest_is_read(line: object, reason: str) -> None:
    write("a.jsonl", GIVE, line, GIVE)
    first, failure, last = read("a.jsonl", max_bytes=1000)
    assert isinstance(failure, Failure)
    assert failure.id == "a.jsonl:2"
    assert failure.reason.startswith(reason)
    assert isinstance(first, Document)
    assert isinstance(last, Document)


# Values of every shape


def arguments(line: object) -> list[tuple[str, str, str]]:
    """Role, value and type of each argument of a line."""
    write("a.jsonl", line)
    return [(one.role, one.value, one.type) for one in read_one("a.jsonl").arguments]


@pytest.mark.parametrize(
    ("value", "remaining"),
    [
        (True, ("true", "boolean")),
        (None, ("null", "null")),
        ("", ("", "string")),
        ("Us", ("Us", "entity")),
        ("AB-", ("AB-", "entity")),
        ("Georgia (country)", ("Georgia (country)", "entity")),
        ("Yes", ("Yes", "boolean")),
        ("NO", ("NO", "entity")),
        ("-250", ("-250", "number")),
        ("50 mg", ("50 mg", "number")),
        ("12 Monkeys", ("12 Monkeys", "entity")),
        ("007", ("007", "entity")),
        ("2015-03", ("2015-03", "date")),
        ("\u5bcc\u58eb\u5c71\u00a0", ("\u5bcc\u58eb\u5c71\u00a0", "entity")),
        ({"odd": [1]}, ('{"odd": [1]}', "string")),
        ([], ("[]", "string")),
    ],
)
def test_a_value_is_kept_word_for_word_whatever_it_is(value: object, remaining: tuple[str, str]) -> None:
    line = GIVE | {"arguments": [*GIVE["arguments"], {"role": "odd", "entity": value}]}
    assert arguments(line) == [("giver", "Alice", "entity"), ("gift", "Book", "entity"), ("odd", *remaining)]


@pytest.mark.parametrize(
    ("written", "remaining"), [("1.50", "1.50"), ("1e5", "1e5"), ("NaN", "NaN"), ("-0", "-0"), ("9" * 5000, "9" * 5000)]
)
def test_a_number_keeps_its_spelling(written: str, remaining: str) -> None:
    assert arguments(f'{{"arguments": {{"dose": {written}}}}}')[0][1] == remaining


@pytest.mark.parametrize(
    ("argument", "remaining"),
    [
        ("Alice", ("argument 2", "Alice", "entity")),
        (["Alice", 5], ("argument 2", "Alice", "entity")),
        ({"entity": "Alice"}, ("argument 2", "Alice", "entity")),
        ({"role": " ", "entity": "Alice"}, ("argument 2", "Alice", "entity")),
        ({"role": 1, "entity": "Alice"}, ("1", "Alice", "entity")),
        ({"role": "gift"}, ("gift", "null", "null")),
        ({"role": "gift", "type": "date"}, ("gift", "null", "null")),
    ],
)
def test_one_bad_argument_costs_nothing_else(argument: object, remaining: tuple[str, str, str]) -> None:
    results = arguments({"arguments": [{"role": "giver", "entity": "Bob"}, argument, {"role": "to", "entity": "Cy"}]})
    assert (results[0], results[1], results[-1]) == (("giver", "Bob", "entity"), remaining, ("to", "Cy", "entity"))


def test_arguments_may_be_an_object_and_a_role_have_several_values() -> None:
    values = {"giver": "Alice", "gift": ["Book", "Pen"], "dose": {"value": 5, "unit": "mg"}}
    assert arguments({"arguments": values}) == [
        ("giver", "Alice", "entity"),
        ("gift", "Book", "entity"),
        ("gift", "Pen", "entity"),
        ("dose", "5", "number"),
    ]


def test_an_entity_may_have_an_id_and_names() -> None:
    entity = {"entity": "Q42", "label": "Douglas Adams", "aliases": ["DNA", "Douglas N. Adams"]}
    for line in (
        {"relation": "author", "arguments": {"who": entity}},
        {"relation": "author", "arguments": [{"role": "who"} | entity]},
        {"relation": "author", "arguments": [{"role": "who", "entity": entity}]},
    ):
        write("a.jsonl", line)
        fact = read_one("a.jsonl")
        assert fact.arguments == (Argument("who", "Q42", names=("Douglas Adams", "DNA", "Douglas N. Adams")),)
        assert fact.text == "author: who Douglas Adams"


@pytest.mark.parametrize(
    ("line", "relation", "remaining"),
    [
        (
            {"subject": "Q1", "predicate": "P166", "object": "Q2"}
            | {"qualifiers": {"P585": "1990-05-31", "P1": ["a", "b"]}},
            "P166",
            [("subject", "Q1"), ("object", "Q2"), ("P585", "1990-05-31"), ("P1", "a"), ("P1", "b")],
        ),
        ({"P39": ["Q1", "Q2"], "N": 2}, "P39", [("P39", "Q1"), ("P39", "Q2")]),
        (
            {"N": 3, "P585": ["1990"], "P166_h": "Q1", "P166_t": "Q2"},
            "P166",
            [("P585", "1990"), ("P166_h", "Q1"), ("P166_t", "Q2")],
        ),
        (["people.marriage", "m.1", "m.2"], "people.marriage", [("1", "m.1"), ("2", "m.2")]),
    ],
)
def test_lines_of_knowledge_bases_are_read(line: object, relation: str, remaining: list[tuple[str, str]]) -> None:
    write("a.jsonl", line)
    fact = read_one("a.jsonl")
    assert (fact.relation, [(one.role, one.value) for one in fact.arguments]) == (relation, remaining)
    assert fact.metadata.keys() <= {"path", "folder", "extension", "modified"}


def test_an_argument_a_header_and_a_schema_declare_what_a_value_is() -> None:
    write("a.jsonl", {"arguments": [{"role": "code", "entity": "1200", "type": "entity"}]})
    assert read_one("a.jsonl").arguments == (Argument("code", "1200"),)
    write("b.csv", "film:entity,dose:number[mg],as: of,born:date", "1984,50,x,1990", "24,2 g,,soon")
    assert [fact.arguments for fact in documents("b.csv")] == [
        (
            Argument("film", "1984"),
            Argument("dose", "50", "number", "mg"),
            Argument("as: of", "x"),
            Argument("born", "1990", "date"),
        ),
        (Argument("film", "24"), Argument("dose", "2 g", "number", "g"), Argument("born", "soon", "date")),
    ]
    schema = ["[roles]", 'dose = "number[mg]"', 'author = {type = "entity", separator = ";"}']
    write("facts/schema.toml", *schema)
    write("facts/c.csv", "author,dose", '"Ada; Bob",5')
    write("facts/d.jsonl", {"arguments": {"author": "Ada;Bob", "dose": 5}})
    for file in ("c.csv", "d.jsonl"):
        assert read_one(f"facts/{file}").arguments == (
            Argument("author", "Ada"),
            Argument("author", "Bob"),
            Argument("dose", "5", "number", "mg"),
        )


def test_a_schema_that_declares_nothing_is_reported_with_what_was_expected() -> None:
    write("facts/schema.toml", "[roles]", 'dose = "milligrams"')
    write("facts/a.csv", "dose", "5")
    (failure,) = [item for item in read("facts") if isinstance(item, Failure)]
    assert 'dose in schema.toml is "milligrams"; expected entity, number' in failure.reason


def test_a_cell_may_hold_a_list_and_keeps_its_blanks() -> None:
    write("a.csv", "author,note,odd", '"[""Ada"", ""Bob""]", two  blanks ,[x')
    assert [(one.role, one.value) for one in read_one("a.csv").arguments] == [
        ("author", "Ada"),
        ("author", "Bob"),
        ("note", " two  blanks "),
        ("odd", "[x"),
    ]


def test_a_fact_may_be_asked_for_by_the_name_of_its_file_where_it_names_no_relation() -> None:
    write("gifts.csv", "giver", "Alice")
    assert read_one("gifts.csv").relation == "gifts"


# Values that the text lacks


@pytest.mark.parametrize(
    ("value", "text"), [(42, "42"), (1702, "1702"), (3.5, "3.5"), (-1, "-1"), (10**400, "1" + "0" * 400)]
)
def test_a_number_is_kept_as_it_is_written(value: float, text: str) -> None:
    write("a.jsonl", {"relation": "count", "arguments": [{"role": "amount", "entity": value}]})
    assert read_one("a.jsonl").arguments == (Argument("amount", text, "number"),)
    assert read_one("a.jsonl").text == f"count: amount {text}"


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        ("Alice was the treasurer.\n", "Alice was the treasurer. (age 42)"),
        ("Alice was 42 and the treasurer.", "Alice was 42 and the treasurer."),
        ("Alice was born in 1942.", "Alice was born in 1942. (age 42)"),
    ],
)
def test_a_value_that_cannot_be_an_entity_is_never_missing_from_the_text(text: str, remaining: str) -> None:
    arguments = [{"role": "person", "entity": "Bob"}, {"role": "age", "entity": 42}]
    write("a.jsonl", {"relation": "post", "arguments": arguments, "text": text})
    assert read_one("a.jsonl").text == remaining


# Identities


def test_a_fact_is_known_by_its_content_wherever_it_stands() -> None:
    other = GIVE | {"relation": "lend"}
    write("a.jsonl", GIVE, other)
    before = documents("a.jsonl")
    write("a.jsonl", "", GIVE | {"relation": "sell"}, other, GIVE | {"arguments": GIVE["arguments"][::-1]})
    _, *after = documents("a.jsonl")
    assert [document.id for document in after] == [document.id for document in before][::-1]
    assert before[0].id.startswith("a.jsonl:")


def test_facts_that_differ_in_anything_have_different_ids() -> None:
    variants = [
        GIVE,
        GIVE | {"relation": "lend"},
        GIVE | {"text": "Alice gave a Book."},
        GIVE | {"arguments": [{"role": "giver", "entity": "Book"}, {"role": "gift", "entity": "Alice"}]},
        GIVE | {"arguments": [{"role": "giver", "entity": "Alice"}]},
    ]
    write("a.jsonl", *variants)
    assert len({document.id for document in documents("a.jsonl")}) == len(variants)


def test_the_same_fact_twice_stays_two_facts() -> None:
    write("a.jsonl", GIVE, GIVE, GIVE)
    first, second, third = documents("a.jsonl")
    assert (second.id, third.id) == (f"{first.id}~2", f"{first.id}~3")
    assert first.arguments == second.arguments == third.arguments


def test_the_same_fact_in_two_files_is_two_documents() -> None:
    write("facts/a.jsonl", GIVE)
    write("facts/b.jsonl", GIVE)
    first, second = documents("facts")
    assert first.id != second.id


def test_a_given_id_is_kept_as_it_is() -> None:
    write("a.jsonl", GIVE | {"_id": 7}, GIVE | {"_id": 7})
    assert [document.id for document in documents("a.jsonl")] == ["7", "7"]


def test_without_an_id_of_its_own_a_corrected_fact_is_another_fact() -> None:
    corrected = GIVE | {"arguments": [{"role": "giver", "entity": "Alice"}, {"role": "gift", "entity": "Pen"}]}
    write("before.jsonl", GIVE, GIVE | {"_id": 7})
    write("after.jsonl", corrected, corrected | {"_id": 7})
    (hashed, document), (other, same) = documents("before.jsonl"), documents("after.jsonl")
    assert hashed.id.removeprefix("before") != other.id.removeprefix("after"), "so that the wrong one stays indexed"
    assert document.id == same.id, "so that it is replaced"


# CSV


def test_a_row_is_a_fact_whose_columns_are_roles_and_empty_cells_are_left_out() -> None:
    write("gifts.csv", "giver,recipient,gift,title", 'Alice,"Bob\nStone",,"Emma, a novel"', ",,,", "Alice,Carol,Pen,")
    first, second = documents("gifts.csv")
    assert first.arguments == (
        Argument("giver", "Alice"),
        Argument("recipient", "Bob\nStone"),
        Argument("title", "Emma, a novel"),
    )
    assert first.text == "gifts: giver Alice, recipient Bob Stone, title Emma, a novel"
    assert (first.source, second.source) == ("gifts.csv:2", "gifts.csv:4")
    assert second.text == "gifts: giver Alice, recipient Carol, gift Pen"


def test_the_columns_for_identity_relation_and_text_are_no_roles() -> None:
    write("gifts.csv", "_ID;Relation;Text;giver", "x;lend;Alice lent it.;Alice", ";;;Bob")
    first, second = documents("gifts.csv")
    assert replace(first, metadata={}) == Document(
        "x", "", "Alice lent it.", source="gifts.csv:2", arguments=(Argument("giver", "Alice"),), relation="lend"
    )
    assert second.text == "gifts: giver Bob"
    assert second.id.startswith("gifts.csv:")


def test_of_two_relations_in_a_row_none_is_lost() -> None:
    write("gifts.csv", "relation,relation,giver", "give,lend,Alice", "give,,Bob", ",lend,Carol")
    failed, first, second = read("gifts.csv")
    assert isinstance(failed, Failure)
    assert "several columns are called 'relation'" in failed.reason
    assert [fact.text for fact in (first, second) if isinstance(fact, Document)] == [
        "give: giver Bob",
        "lend: giver Carol",
    ]


def test_a_row_and_a_line_of_the_same_fact_say_the_same() -> None:
    write("give.csv", "giver,gift", "Alice,Book")
    write("give.jsonl", GIVE)
    row, line = documents("give.csv", "give.jsonl")
    assert (row.title, row.text, row.arguments) == (line.title, line.text, line.arguments)


def test_two_columns_of_one_name_and_cells_past_the_last_column_are_kept() -> None:
    write("papers.csv", "author,author", "Ines Moreau,Tomas Ferrand,1702")
    assert [(argument.role, argument.value) for argument in read_one("papers.csv").arguments] == [
        ("author", "Ines Moreau"),
        ("author", "Tomas Ferrand"),
        ("column 3", "1702"),
    ]


def test_a_row_without_arguments_is_reported() -> None:
    write("gifts.csv", "_id,text,giver", "x,Something was given.,", "y,,Alice")
    failure, document = read("gifts.csv")
    assert failure == Failure("gifts.csv:2", "no arguments: expected a value in at least one column that names a role")
    assert document.id == "y"


# Files


def test_other_files_in_a_folder_are_passed_over_and_those_named_are_failures() -> None:
    write("facts/a.jsonl", GIVE)
    write("facts/notes.md", "# Notes")
    reader = TupleReader()
    assert len(list(reader.read([Path("facts")]))) == 1
    assert reader.skipped == ["facts/notes.md"]
    assert read("facts/notes.md") == [Failure("facts/notes.md", "cannot read .md; expected .csv, .jsonl")]


def test_a_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.csv cannot be read"):
        read("missing.csv")


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_without_facts_is_reported(name: str) -> None:
    write(name, "")
    assert read(name) == [Failure(name, "empty: no records")]
