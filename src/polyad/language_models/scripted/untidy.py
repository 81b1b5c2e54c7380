"""Replies as models give them on a bad day: cut at a limit, with records by another name, or without scores."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable

from polyad.language_models.scripted.extractor import passage_asked_about
from polyad.language_models.scripted.server import Request, Say, Spoken

_SHARE = 0.6
"""Of a reply that is cut, what comes through."""

_KINDS = ("hyperedge", "knowledge_segment", "relationship")
_SCORE_OF_A_RECORD = re.compile(r"<\|>[\d.]+\)")
_SCORE_IN_JSON = re.compile(r'"score": [\d.]+, | \| [\d.]+(?=")')


class Untidy:
    """Says what another script says, but spoils what it says about some passages, the first time it is asked.

    Args:
        script: Replies in the style ``paper`` or ``compact``.
        cut: Every so manieth passage gets a reply that ends at the limit of tokens.
        renamed: Every so manieth gets facts by another name than was asked for.
        unscored: Every so manieth gets no score at all.

    Not the same ones, as long as these numbers are not small.

    Attributes:
        spoilt: The passages by what was done to the reply: ``cut``, ``renamed``, ``unscored``.
    """

    def __init__(
        self, script: Callable[[Request], str], *, cut: int = 20, renamed: int = 30, unscored: int = 40
    ) -> None:
        self.spoilt: defaultdict[str, list[str]] = defaultdict(list)
        self._script = script
        self._every = {"renamed": (renamed, 1), "unscored": (unscored, 2), "cut": (cut, 0)}
        self._met: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Spoken:
        """The reply to one request."""
        passage = passage_asked_about(str(request["messages"][-1]["content"]))
        said = self._script(request)
        with self._lock:
            if passage in self._met:
                return said
            self._met.add(passage)
            faults = [fault for fault, (every, rest) in self._every.items() if len(self._met) % every == rest]
            for fault in faults:
                self.spoilt[fault].append(passage)
        if "renamed" in faults:
            kind = _KINDS[len(self.spoilt["renamed"]) % len(_KINDS)]
            said = said.replace("hyper-relation", kind).replace('"text"', '"knowledge_segment"')
        if "unscored" in faults:
            said = _SCORE_IN_JSON.sub("", _SCORE_OF_A_RECORD.sub(")", said))
        return Say(text=said[: int(_SHARE * len(said))], finish_reason="length") if "cut" in faults else said
