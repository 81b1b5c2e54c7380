"""The names and keywords of a question."""

from __future__ import annotations

from dataclasses import dataclass

from polyad.protocols.components import LanguageModel, Prompt
from polyad.protocols.snapshot import Snapshot
from polyad.replies.loose_json import collect_distinct_strings, find_first_json, normalize_keys
from polyad.replies.schema import STRING, build_array_schema, build_object_schema
from polyad.retrieval.prompting import BestEffortPrompter
from polyad.retrieval.question import LinkedQuestion, QuestionLinker
from polyad.text.prompts import Prompts
from polyad_baselines import PROMPTS

_SCHEMA = build_object_schema(high_level=build_array_schema(STRING), low_level=build_array_schema(STRING))


@dataclass(frozen=True, slots=True)
class Keywords:
    """Keywords of a question, each kind as one text.

    Attributes:
        low_level: Names and other specific things; empty if the question has none.
        high_level: Themes and relations; empty if there are none.
    """

    low_level: str
    high_level: str


class KeywordExtractor:
    """Extracts keywords with a language model; without a usable reply, the names in a question and all its words.

    Args:
        linker: Finds the names in the question.
        language_model: The language model; None for names and words.
        prompts: The prompts of this package.
    """

    def __init__(
        self, linker: QuestionLinker, language_model: LanguageModel | None = None, prompts: Prompts = PROMPTS
    ) -> None:
        self._linker, self._prompts = linker, prompts
        self._prompter = language_model and BestEffortPrompter(language_model, "keywords are the names in the question")

    def extract(self, question: str, snapshot: Snapshot) -> Keywords:
        """Return the keywords of a question about the index."""
        if self._prompter:
            prompt = Prompt(system=self._prompts.get_text("keywords"), user=question, json_schema=_SCHEMA)
            keywords = self._prompter.ask(prompt, _parse_keywords, '{"high_level": [...], "low_level": [...]}')
            if keywords is not None:
                return keywords
        return Keywords(", ".join(list_names(self._linker.link(question, snapshot))), question)


def _parse_keywords(reply: str) -> Keywords | None:
    """Parse both lists of keywords, by polyad's names or LightRAG's; None if one is missing or there is no keyword."""
    value = find_first_json(reply)
    keyed = normalize_keys(value) if isinstance(value, dict) else {}
    low, high = (keyed.get(name, keyed.get(f"{name}keywords")) for name in ("lowlevel", "highlevel"))
    if not isinstance(low, list) or not isinstance(high, list):
        return None
    keywords = Keywords(*(", ".join(collect_distinct_strings(items)) for items in (low, high)))
    return keywords if keywords.low_level or keywords.high_level else None


def list_names(question: LinkedQuestion) -> list[str]:
    """Return the distinct names in a question, in order of appearance."""
    mentions = sorted([*question.entities.values(), *question.unlinked], key=lambda item: (item.start, -item.end))
    return list(dict.fromkeys(mention.name for mention in mentions))
