"""Names in a question, found by a language model (HyperGraphRAG, appendix A.2; HyperRAG, section 3.1.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from polyad.model import Mention
from polyad.protocols.components import LanguageModel, MentionExtractor, Prompt
from polyad.replies.loose_json import find_strings
from polyad.replies.schema import STRING, build_array_schema, build_object_schema
from polyad.retrieval.asking import BestEffortPrompter
from polyad.text.prompts import DEFAULT_PROMPTS, Prompts

MOST = 16
"""Names of one question."""

_SCHEMA = build_object_schema(entities=build_array_schema(STRING))


class QuestionNames:
    """Asks a language model for the names in questions.

    Names that the model found though they are not in the question, such as a corrected spelling, are kept without a
    place. A question for which there is no usable reply is left to the other extractor.

    Args:
        language_model: Is asked, once a question.
        otherwise: Extracts when the model does not.
        prompts: What the model is told.
    """

    def __init__(
        self, language_model: LanguageModel, otherwise: MentionExtractor, prompts: Prompts = DEFAULT_PROMPTS
    ) -> None:
        self._prompter = BestEffortPrompter(language_model, "names in the question are found by rules")
        self._otherwise = otherwise
        self._instructions = prompts.get_text("question_names", most=MOST)

    @property
    def name(self) -> str:
        """Name of this extractor in messages; no index stores this name."""
        return "question names"

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the names in each question; see :class:`polyad.protocols.components.MentionExtractor`."""
        return [self._mentions(text) for text in texts]

    def _mentions(self, text: str) -> list[Mention]:
        prompt = Prompt(user=text, system=self._instructions, json_schema=_SCHEMA)
        names = self._prompter.ask(prompt, _parse_names, '{"entities": [...]}')
        if names is None:
            return self._otherwise.extract([text])[0]
        return sorted((_locate_name(name, text) for name in names), key=lambda mention: (mention.start, -mention.end))


def _parse_names(reply: str) -> list[str] | None:
    """Parse the names in a reply; return None if the reply has no list of names."""
    names = find_strings(reply, "entities")
    return None if names is None else names[:MOST]


def _locate_name(name: str, text: str) -> Mention:
    pattern = re.escape(name)
    match = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) or re.search(pattern, text, re.IGNORECASE)
    return Mention(match.group(), *match.span()) if match else Mention(name, -1, -1)
