"""Finds the final answer in a reply that reasons first: ``<think>...</think><answer>...</answer>``.

HyperGraphRAG (v2, appendix E) asks for replies of this form. Models keep to it more or less, and a reply may be cut
short, so whatever can still be told apart is.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)(think(?:ing)?|answer)>", re.IGNORECASE | re.ASCII)
_TAGS = tuple(f"<{slash}{name}>" for slash in ("", "/") for name in ("think", "thinking", "answer"))


class AnswerFilter:
    """Takes a reply in pieces, cut anywhere, and gives back what is inside ``<answer>``, as soon as it is certain.

    What is thought is never given back, wherever it stands. Several answers come on lines of their own; one that is
    never closed goes to the end of the reply. Of a reply without any ``<answer>``, all but the thoughts is the answer;
    it is given back at the end.

    >>> reply = AnswerFilter()
    >>> reply.feed("<think>Who?</think><ans") + reply.feed("wer> Odoacer. </answer>") + reply.finish()
    'Odoacer.'
    """

    def __init__(self) -> None:
        self._held = ""  # may be the beginning of a tag
        self._untagged = ""  # the answer, should no tag come that says where it is
        self._thinking = False
        self._answering = False
        self._answers = 0
        self._begun = False  # something was given back
        self._at_start = True  # nothing was given back of the present answer
        self._space = ""  # dropped if the answer ends with it

    def feed(self, piece: str) -> str:
        """What can be shown now that ``piece`` has come."""
        self._held += piece
        shown, position = "", 0
        for tag in _TAG.finditer(self._held):
            shown += self._take(self._held[position : tag.start()])
            self._turn(tag[2].lower() == "answer", closing=bool(tag[1]))
            position = tag.end()
        certain = len(self._held) - _unfinished_tag(self._held[position:])
        shown += self._take(self._held[position:certain])
        self._held = self._held[certain:]
        return shown

    def finish(self) -> str:
        """What is left when no more pieces come: a tag begun and never finished is text."""
        rest, self._held = self._take(self._held), ""
        return rest if self._answers else self._untagged.strip()

    def _take(self, text: str) -> str:
        if self._thinking:
            return ""
        if not self._answers:
            self._untagged += text
        return self._spaced(text) if self._answering else ""

    def _spaced(self, text: str) -> str:
        """``text`` as it goes on the answer, without white space at the answer's ends."""
        text = self._space + text
        if self._at_start:
            text = text.lstrip()
        kept = text.rstrip()
        self._space = text[len(kept) :]
        if not kept:
            return ""
        if self._at_start and self._begun:
            kept = "\n" + kept
        self._at_start, self._begun = False, True
        return kept

    def _turn(self, is_answer: bool, closing: bool) -> None:
        """Go by a tag."""
        if not is_answer:
            if closing and not self._thinking:
                self._untagged = ""  # it was thought: some chat templates open the tag in the prompt
            self._thinking = not closing
        elif closing and not self._thinking:
            self._answering = False
        elif not closing and not self._thinking and not self._answering:
            self._answering, self._at_start, self._space = True, True, ""
            self._answers += 1


def tagged_answer(reply: str) -> str:
    """The final answer in a whole reply; see :class:`AnswerFilter`.

    >>> tagged_answer("Who? </think> Odoacer.")
    'Odoacer.'
    """
    answer = AnswerFilter()
    return answer.feed(reply) + answer.finish()


def _unfinished_tag(text: str) -> int:
    """How many characters at the end of ``text`` may be the beginning of a tag."""
    start = text.rfind("<")
    if start == -1:
        return 0
    end = text[start:].lower()
    return len(text) - start if any(tag.startswith(end) for tag in _TAGS) else 0
