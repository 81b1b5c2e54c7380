"""Evidence, hits and answers as text, HTML, dictionaries and data frames, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from polyad.errors import ConfigurationError
from polyad.model import Answer, Citation, Evidence, ScoredPassage
from polyad.schemas.evidence import answer_json, evidence_json, hit_json
from polyad.schemas.objects import JsonObject
from polyad.schemas.places import describe_citation, describe_hit, summarize_hit
from polyad.text.json_types import format_value

Displayed = Evidence | ScoredPassage | Answer


def to_dict(value: Displayed) -> Mapping[str, Any]:
    """Return the object that ``polyad search --json`` or ``polyad ask --json`` prints; of a hit, the part about it."""
    if isinstance(value, ScoredPassage):
        shape: JsonObject = hit_json(value, ())
    else:
        shape = answer_json(value, explain=False) if isinstance(value, Answer) else evidence_json(value, explain=False)
    formatted: dict[str, Any] = format_value(shape)
    return formatted


def to_pandas(value: Displayed) -> Any:
    """Return a pandas data frame with one row for each hit; of an answer, for each citation.

    Raises:
        ConfigurationError: pandas is not installed.
    """
    try:
        import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]  # optional, without types
    except ImportError as error:
        raise ConfigurationError("pandas is not installed; run: pip install pandas") from error
    return pandas.DataFrame(list(_list_rows(value)))


def format_text(value: Displayed) -> str:
    """Return the answer with its sources, or the hits with their best sentences, as readable text."""
    if isinstance(value, Answer):
        sources = (f"[{each.number}] {describe_citation(each, value.evidence)}" for each in _list_sources(value))
        return "\n".join(filter(None, (value.text or str(value.evidence), value.note, *sources)))
    if isinstance(value, ScoredPassage):
        return f"{_describe_hit(value)}\n{_join_lines(summarize_hit(value))}"
    hits = (f"{number}. {format_text(hit)}" for number, hit in enumerate(value.passages, 1))
    return "\n".join([value.question, *(hits if value.passages else ("no passage",))])


def format_html(value: Displayed) -> str:
    """Return the answer with its sources, or the hits with their best sentences marked, as HTML."""
    if isinstance(value, Answer):
        sources = "".join(
            f"<li value={each.number}>{escape(describe_citation(each, value.evidence))}</li>"
            for each in _list_sources(value)
        )
        text = f"<p>{escape(value.text)}</p><ol>{sources}</ol>" if value.text else format_html(value.evidence)
        return f"{text}<p><small>{escape(value.note)}</small></p>" if value.note else text
    if isinstance(value, ScoredPassage):
        best = "".join(span.of(value.passage.text) for span in value.best_sentences[:1])
        return f"<b>{escape(_describe_hit(value))}</b><br>{_mark(summarize_hit(value), best)}"
    hits = "".join(f"<li>{format_html(hit)}</li>" for hit in value.passages)
    return f"<p>{escape(value.question)}</p><ol>{hits}</ol>"


def _list_rows(value: Displayed) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, Answer):
        names = {"number", "claim", "title", "source", "page", "heading", "document_id", "passage_id"}
        citations = answer_json(value, explain=False).citations
        return ({name: item for name, item in vars(each).items() if name in names} for each in citations)
    names = {"title", "text", "score", "relevance", "source", "page", "heading", "document_id", "passage_id"}
    hits = value.passages if isinstance(value, Evidence) else (value,)
    return (
        {
            "best_sentence": "".join(span.of(hit.passage.text) for span in hit.best_sentences[:1]),
            **{name: value for name, value in vars(hit_json(hit, ())).items() if name in names},
        }
        for hit in hits
    )


def _list_sources(answer: Answer) -> list[Citation]:
    """Return one citation for each number, in the order of the numbers."""
    return [each for _, each in sorted({each.number: each for each in answer.citations}.items())]


def _describe_hit(hit: ScoredPassage) -> str:
    return describe_hit(hit) if hit.relevance is None else f"{describe_hit(hit)} (relevance {hit.relevance:.2f})"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _mark(text: str, sentence: str) -> str:
    """Return a text as HTML, in which a sentence of it is marked."""
    before, marked, after = text.partition(sentence) if sentence else (text, "", "")
    return f"{escape(before)}<mark>{escape(marked)}</mark>{escape(after)}"
