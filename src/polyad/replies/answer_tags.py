"""Extracts the final answer from a reply that reasons first: ``<think>...</think><answer>...</answer>``.

HyperGraphRAG (v2, appendix E) asks for replies of this form. Models often deviate from it, and a reply may be cut
short, so the filter accepts incomplete tags.
"""

from __future__ import annotations

import re

from polyad.replies.thoughts import ThoughtFilter, count_unfinished, remove_thoughts

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE | re.ASCII)
_TAGS = ("<answer>", "</answer>")


class AnswerFilter:
    """Extracts the text between ``<answer>`` and ``</answer>`` from a reply that arrives piece by piece.

    Thoughts are removed wherever they are. Several answers become lines; an answer that is never closed ends with the
    reply. If the reply has no ``<answer>``, all of it except the thoughts is the answer, which :meth:`finish` returns.

    >>> reply = AnswerFilter()
    >>> reply.feed("<think>Who?</think><ans") + reply.feed("wer> Odoacer. </answer>") + reply.finish()
    'Odoacer.'
    """

    def __init__(self) -> None:
        self._thoughts = ThoughtFilter()
        self._held = ""  # possibly the beginning of a tag
        self._untagged = ""  # the answer if the reply has no answer tag
        self._answering = False
        self._answers = 0
        self._has_output = False  # any text was returned
        self._at_start = True  # no text of the current answer was returned
        self._space = ""  # dropped if it is at the end of the answer

    def feed(self, piece: str) -> str:
        """Add the next piece of a streamed reply, and return the new text of the answer, without parts of tags."""
        self._held += self._thoughts.feed(piece)
        output, position = "", 0
        for tag in _TAG.finditer(self._held):
            output += self._consume(self._held[position : tag.start()])
            if not tag[1] and not self._answering:
                self._at_start, self._space = True, ""
                self._answers += 1
            self._answering = not tag[1]
            position = tag.end()
        certain = len(self._held) - count_unfinished(self._held[position:], _TAGS)
        output += self._consume(self._held[position:certain])
        self._held = self._held[certain:]
        return output

    def finish(self) -> str:
        """Return the answer's last characters after the last piece; an incomplete tag counts as text."""
        rest = self._consume(self._held + self._thoughts.finish())
        self._held = ""
        return rest if self._answers else remove_thoughts(self._untagged)

    def _consume(self, text: str) -> str:
        if not self._answers:
            self._untagged += text
        return self._append_to_answer(text) if self._answering else ""

    def _append_to_answer(self, text: str) -> str:
        """Return ``text`` for the streamed answer, without white space at the start and end of the answer."""
        text = self._space + text
        if self._at_start:
            text = text.lstrip()
        stripped = text.rstrip()
        self._space = text[len(stripped) :]
        if not stripped:
            return ""
        if self._at_start and self._has_output:
            stripped = "\n" + stripped
        self._at_start, self._has_output = False, True
        return stripped


def extract_tagged_answer(reply: str) -> str:
    """Return the text between ``<answer>`` tags of a complete reply; without tags, the reply without thoughts.

    See :class:`AnswerFilter`.

    >>> extract_tagged_answer("Who? </think> Odoacer.")
    'Odoacer.'
    """
    answer = AnswerFilter()
    return answer.feed(reply) + answer.finish()
