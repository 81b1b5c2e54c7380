"""Flawed replies as models give them: cut at a limit, with renamed records, or without scores."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable

from polyad.language_models.scripted import Request, ScriptedReply, extract_passage

_SHARE = 0.6
"""Share of a cut reply that the client receives."""

_KINDS = ("hyperedge", "knowledge_segment", "relationship")
_SCORE_OF_A_RECORD = re.compile(r"<\|>[\d.]+\)")
_SCORE_IN_JSON = re.compile(r'"score": [\d.]+, | \| [\d.]+(?=")')


class FlawedReplies:
    """Returns the replies of another script and damages the first reply about some passages.

    Args:
        script: Replies in the style ``paper`` or ``compact``.
        cut: The reply about every n-th passage ends at the token limit.
        renamed: The reply about every n-th passage names its facts differently than requested.
        unscored: The reply about every n-th passage has no scores.

    The passages differ unless these numbers are small.

    Attributes:
        damaged_passages: The passages by the damage to their reply: ``cut``, ``renamed``, ``unscored``.
    """

    def __init__(
        self, script: Callable[[Request], str], *, cut: int = 20, renamed: int = 30, unscored: int = 40
    ) -> None:
        self.damaged_passages: defaultdict[str, list[str]] = defaultdict(list)
        self._script = script
        self._every = {"renamed": (renamed, 1), "unscored": (unscored, 2), "cut": (cut, 0)}
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> str | ScriptedReply:
        """Return the reply to a request."""
        passage = extract_passage(str(request["messages"][-1]["content"]))
        reply = self._script(request)
        with self._lock:
            if passage in self._seen:
                return reply
            self._seen.add(passage)
            faults = [fault for fault, (every, rest) in self._every.items() if len(self._seen) % every == rest]
            for fault in faults:
                self.damaged_passages[fault].append(passage)
        if "renamed" in faults:
            kind = _KINDS[len(self.damaged_passages["renamed"]) % len(_KINDS)]
            reply = reply.replace("hyper-relation", kind).replace('"text"', '"knowledge_segment"')
        if "unscored" in faults:
            reply = _SCORE_IN_JSON.sub("", _SCORE_OF_A_RECORD.sub(")", reply))
        return (
            ScriptedReply(text=reply[: int(_SHARE * len(reply))], finish_reason="length") if "cut" in faults else reply
        )
