"""Splits a text into paragraphs and sentences, by exact character spans.

Texts are wrapped at some column, have one paragraph on a line, or are lists and tables without full stops. A line that
ends because it is full continues on the next line; a line with room for the next word was ended by its writer.

The library sentencex, made for Wikimedia's languages, finds the sentences without a model. It expects running text.
So it receives one paragraph at a time, as a copy of the same length in which misleading characters are masked. It
receives short windows rather than whole paragraphs, because its time grows with the square of the length of Chinese
text and of quotations.
"""

# ruff: noqa: RUF001  signs of lists, quotation marks and characters that look alike

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from sentencex import segment  # type: ignore[import-untyped]  # has no stubs

from polyad.model import Span
from polyad.text.function_words import find_part_language, infer_language
from polyad.text.scripts import SOUTH_EAST_ASIAN
from polyad.text.words import TOKEN

_MIN_WIDTH = 40
"""Columns to which no text is wrapped: in a run of shorter lines, each line is short on purpose."""

_MAX_BLANK = 16
"""Characters of white space that are examined before an offset: blank lines with a few spaces."""

_FULL_SHARE = 0.75
"""Share of the longest line of a run that a wrapped line fills, including the next word. Below 1, because lines of a
PDF are equally wide, but do not have equally many characters."""

_MARGIN = re.compile(r"[^\S\n]*(?:>[^\S\n]*)*")
"""Indentation, and the signs that e-mail programs put before quoted lines."""

BULLETS = (
    "•‣⁃⁌⁍▪▫■□▢▶▷▸▹►▻◆◇◈◉○◌●◘◙◦❍❏❐❑❒★☆✓✔✗✘✦✧❖➔➜➢➣➤➥⮚∎∙⦁⦿"
    "\uf02d\uf06e\uf071\uf075\uf076\uf0a7\uf0a8\uf0b7\uf0d8\uf0e8\uf0fc"
)
"""Characters that only begin an item of a list; those of Word's symbol fonts are for private use."""

_STARTS_PARAGRAPH = re.compile(rf"[{BULLETS}]|#{{1,6}}\s|[A-Z][A-Z .'’-]{{1,30}}:\s")
"""The beginning of a line that always begins a paragraph: a bullet, a Markdown heading, or a speaker in capitals."""

_HEADING = re.compile(r"#{1,6}\s")

_NUMBER = r"(?:\d{1,3}(?:\.\d{1,3}){0,5}|[ivxlcIVXLC]{1,6}|[A-Za-z])"
OPENING = re.compile(
    rf"(?:[-–—―*+·o]|(?:§|§§|Art\.|Sec\.)\s?\d+[a-z]?\.?|\({_NUMBER}\)|\[\d{{1,4}}\]|{_NUMBER}[.)]"
    r"|\d{1,3}(?:\.\d{1,3}){1,5})(?=\s)"
)
"""A list mark or clause number: it begins a paragraph unless a sentence continues with it on a new line."""

_STARTS_ITEM = re.compile(rf"[{BULLETS}]|{OPENING.pattern}")
_SENTENCE_END = re.compile(r"(?:[.!?:;…。！？：；][\"'”’»)\]」』）]*|\b(?:and|or)|[-–—])$")
_ROW = re.compile(r"\t|    | \| |\.\.\.\.| \. \. \.|\|$")
"""Text that only occurs in a line with columns."""

_MAX_LABEL = 80
"""Most characters of a label: a short line, such as a term, that belongs to the text below it."""

_CLAUSE_END = re.compile(r"(?:(?<!\.)\.|[!?;,。！？；，、])[\"'”’»)\]」』）]*$")
"""The end of a sentence or clause that is no label. An ellipsis ends a label too, as in "add FILE ..."."""

_PROSE_WIDTH = 50
"""Median length of lines, in columns, from which lines are wrapped prose rather than a list."""

_OVERLONG, _MAX_OVERLONG_SHARE = 1.5, 1 / 3
"""Multiple of the median above which a line of wrapped prose was joined from several, and most such lines."""

_BRACKETED = r"[^()\[\]]|\([^()]*\)|\[[^\[\]]*\]"
_OPENED, _CLOSES = re.compile(rf"[(\[](?:{_BRACKETED})*+$"), re.compile(rf"(?:{_BRACKETED})*+[)\]]")
"""The end of a line inside a bracket, and the beginning of the next line up to the end of this bracket."""

_MAX_REMARK = 200
"""Characters of a line in which a bracket that continues on the next line is looked for."""


class _Line(NamedTuple):
    """A line of text, divided into a margin (indentation and quotation marks ``>``) and the text after the margin.

    Attributes:
        start: Offset of the line in the text, margin included.
        indent: Columns of its margin.
        depth: Quotation signs in the margin.
        text: The text after the margin; empty for a blank line.
        row: Whether the line has columns, as a row of a table or of a table of contents.
    """

    start: int
    indent: int
    depth: int
    text: str
    row: bool


def find_paragraphs(text: str) -> list[int]:
    r"""Return the character offset at which each paragraph of ``text`` begins, in order.

    A line that is much shorter than the width of its lines also ends a paragraph, so a table row, a heading and a list
    item are paragraphs. Each offset is the beginning of a line. Time is linear in the length of the text.

    >>> find_paragraphs("A line that is wrapped since it is full\nends here.\n\n• One.\n• Two.")
    [0, 52, 59]
    """
    return _find_paragraphs(text, joins_clauses=True)


def _find_paragraphs(text: str, *, joins_clauses: bool) -> list[int]:
    starts: list[int] = []
    run: list[_Line] = []
    for line in [*_split_lines(text), _Line(len(text), 0, 0, "", row=False)]:
        if line.text:
            run.append(line)
        else:
            starts.extend(_find_paragraph_starts(run, joins_clauses))
            run = []
    return starts


def find_lines(text: str) -> list[int]:
    r"""Return the character offsets at which the lines of ``text`` begin, without continuations of a wrapped line.

    Unlike in :func:`find_paragraphs`, a short line always ends, even if the next line may continue the sentence:
    commands and items of a list often begin with a small letter.

    >>> find_lines("cd /media\nmkdir cdrom0"), find_paragraphs("cd /media\nmkdir cdrom0")
    ([0, 10], [0])
    """
    return _find_paragraphs(text, joins_clauses=False)


def is_heading(sentence: str) -> bool:
    """Return whether a sentence is a heading of Markdown."""
    return _HEADING.match(sentence) is not None


_FENCE = re.compile(r"^[^\S\n]*(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)
"""The line before and after a Markdown code block. Only the one before it may name the language."""


_CAPTION = re.compile(
    r"(?:fig(?:ure)?|table|abb(?:ildung)?|tab(?:elle)?|tableau|figura|tabla|\u56fe|\u8868|\u56f3)\.?"
    r"\s*[A-Z]?\d[\d.-]*",
    re.IGNORECASE,
)
_CONTENTS_LINE = re.compile(r"(?:[.\u00b7\u2026_]\s?){3,}\s*(?:\d{1,4}|[ivxlc]{1,6})\s*$")
_MAX_HALF_WORDS = 40
"""Words of a sentence up to which the next line may belong to it; longer ones are lists without marks."""


def is_statement(sentence: str) -> bool:
    """Return whether a sentence may state something, and is no heading, caption or line of a table of contents.

    >>> [is_statement(text) for text in ("# Pumps", "Figure 3: A pump", "1.2 Pumps ..... 14", "Pumps are loud.")]
    [False, False, False, True]
    """
    is_whole = _CLAUSE_END.search(sentence.rstrip()) is not None
    return not (
        is_heading(sentence)
        or (not is_whole and _CAPTION.match(sentence.lstrip("*_ ")))
        or _CONTENTS_LINE.search(sentence)
    )


def join_halves(text: str, sentences: Sequence[Span]) -> list[Span]:
    r"""Return the spans of sentences, where lines that a reader (OCR) could not join form one sentence.

    A line without punctuation at its end goes on in the next line if that begins with a small letter.

    >>> text = "The seal of the pump\nis made of rubber."
    >>> [span.of(text) for span in join_halves(text, [Span(0, 20), Span(21, 39)])] == [text]
    True
    """
    joined: list[Span] = []
    for sentence in sentences:
        previous = joined[-1] if joined else sentence
        half, gap = previous.of(text), text[previous.end : sentence.start]
        is_rest = text[sentence.start : sentence.start + 1].islower() and bool(joined) and not gap.strip()
        goes_on = is_rest and gap.count("\n") == 1 and len(half.split()) <= _MAX_HALF_WORDS
        if goes_on and half[-1:].isalpha() and " " in half and not _ROW.search(half) and is_statement(half):
            joined[-1] = Span(previous.start, sentence.end)
        else:
            joined.append(sentence)
    return joined


def is_fence(line: str) -> bool:
    """Return whether a line is the first or last line of a Markdown code block, such as three backticks."""
    return _FENCE.fullmatch(line) is not None


def find_code_blocks(text: str) -> list[Span]:
    r"""Return the spans of the Markdown code blocks of a text, including their fences (lines of three backticks).

    The text may begin or end inside a code block.

    >>> [span.of("Run:\n```sh\nmake\n```\nWait.") for span in find_code_blocks("Run:\n```sh\nmake\n```\nWait.")]
    ['```sh\nmake\n```']
    """
    fences = list(_FENCE.finditer(text))
    closing = list(takewhile(lambda fence: not fence[2].strip(), fences))
    starts_inside = len(closing) % 2 == 1 and (len(closing) < len(fences) or not _follows_blank(text, fences[0]))
    blocks: list[Span] = []
    start = 0 if starts_inside else None
    for fence in fences:
        if start is None:
            start = fence.start()
        elif not fence[2].strip():
            blocks.append(Span(start, fence.end()))
            start = None
    return blocks if start is None else [*blocks, Span(start, len(text))]


def _follows_blank(text: str, code_fence: re.Match[str]) -> bool:
    """Return whether a code fence can begin a code block: at the start of ``text`` or after a blank line."""
    before = text[: code_fence.start()]
    return not before.strip() or before.rstrip(" \t").endswith("\n\n")


def begins_paragraph(text: str, offset: int) -> bool:
    r"""Return whether a paragraph of ``text`` begins at ``offset``: after a blank line or at the start.

    >>> begins_paragraph("One.\n\nTwo. Three.", 6), begins_paragraph("One.\n\nTwo. Three.", 11)
    (True, False)
    """
    before = text[max(0, offset - _MAX_BLANK) : offset]
    blank = before[len(before.rstrip()) :]
    return blank.count("\n") > 1 or (blank == before and offset <= _MAX_BLANK)


def _split_lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        margin = _MARGIN.match(line)
        body = margin.end() if margin else 0
        rest = line[body:].strip()
        row = _ROW.search(rest) is not None
        yield _Line(start, len(line[:body].expandtabs()), line.count(">", 0, body), rest, row)
        start += len(line)


def _find_paragraph_starts(lines: Sequence[_Line], joins_clauses: bool) -> Iterator[int]:
    """Yield the offsets at which paragraphs begin in ``lines``, consecutive lines without blank lines.

    With ``joins_clauses``, a line that begins with a small letter continues the sentence of the previous line.
    """
    if not lines:
        return
    width = _measure_width(lines)
    base = min(line.indent for line in lines)
    yield lines[0].start
    sign = lines[0].text[:2]  # the bullet or number, if the paragraph is an item of a list
    for before, line in pairwise(lines):
        opening = OPENING.match(line.text) is not None
        if (
            _STARTS_PARAGRAPH.match(line.text)
            or (opening and (line.text[:2] == sign or _ends_sentence(before.text) or _is_short(before, line, width)))
            or _is_deliberate_break(before, line, width, base, joins_clauses)
        ):
            yield line.start
            sign = line.text[:2]


def _measure_width(lines: Sequence[_Line]) -> int:
    """Return the width, in columns, to which a run of lines is wrapped: the length of its longest line.

    A few much longer lines of prose do not count: a reader joined them where a word was hyphenated.
    """
    lengths = sorted(line.indent + len(line.text) for line in lines)
    typical = lengths[(len(lengths) - 1) // 2]
    regular = bisect_right(lengths, _OVERLONG * typical)
    if typical < _PROSE_WIDTH or len(lengths) - regular > _MAX_OVERLONG_SHARE * len(lengths):
        regular = len(lengths)
    return max(_MIN_WIDTH, lengths[regular - 1])


def _ends_sentence(line: str) -> bool:
    """Return whether the last characters of ``line`` end a sentence or clause, such as a full stop or "and"."""
    return _SENTENCE_END.search(line[-20:]) is not None


def _is_short(line: _Line, next_line: _Line, width: int) -> bool:
    """Return whether ``line`` had space for the next line's first word within ``width``, so it was not wrapped."""
    word = next_line.text.split(maxsplit=1)[0]
    return line.indent + len(line.text) + 1 + len(word) <= _FULL_SHARE * width


def _is_deliberate_break(line: _Line, next_line: _Line, width: int, min_indent: int, joins_clauses: bool) -> bool:
    """Return whether the break between two lines ends a paragraph, rather than being a wrap at ``width`` columns."""
    if line.depth != next_line.depth or line.row or _HEADING.match(line.text):
        return True
    if _OPENED.search(line.text[-_MAX_REMARK:]) and _CLOSES.match(next_line.text[:_MAX_REMARK]):
        return False
    if next_line.indent > min_indent and line.indent != next_line.indent and _ends_sentence(line.text):
        return True
    goes_on = joins_clauses and next_line.text[0].islower() and line.indent == next_line.indent
    return not goes_on and (next_line.row or (not line.text.endswith(",") and _is_short(line, next_line, width)))


def find_labels(text: str, sentences: Sequence[Span]) -> list[bool]:
    r"""Return for each sentence of ``text`` whether it is a label of the next sentence, such as a term.

    A label is a short line without a full stop. The next line is indented further, or no blank line separates them and
    the next line is a sentence, a label too, or the only other line of its paragraph.

    >>> text = "--quiet\nReport no progress.\n\n--prune\n  Delete old objects.\n\nSee also git-repack."
    >>> find_labels(text, split_sentences(text, "en"))
    [True, False, True, False, False]
    """
    labels = [False] * len(sentences)
    for place in range(len(sentences) - 2, -1, -1):
        label, following = sentences[place], sentences[place + 1]
        gap = text[label.end : following.start]
        if not gap.strip() and "\n" in gap and _is_label_line(text, label):
            is_term = gap.count("\n") == 1 and not _STARTS_ITEM.match(text, label.start)
            labels[place] = _measure_indent(text, following) > _measure_indent(text, label) or (
                is_term
                and (labels[place + 1] or not _is_label_line(text, following) or _is_pair(text, label, following))
            )
    return labels


def _is_label_line(text: str, sentence: Span) -> bool:
    """Return whether a sentence has the form of a label: short lines without columns and without a full stop."""
    label = sentence.of(text)
    begins_line = not text[text.rfind("\n", 0, sentence.start) + 1 : sentence.start].strip()
    return (
        len(label) <= _MAX_LABEL and begins_line and not any(mark.search(label) for mark in (_CLAUSE_END, _ROW, _FENCE))
    )


def _is_pair(text: str, line: Span, next_line: Span) -> bool:
    """Return whether two consecutive lines are a paragraph of their own, between blank lines."""
    start = text.rfind("\n", 0, line.start) + 1
    rest = text[next_line.end : next_line.end + _MAX_BLANK]
    is_line = "\n" not in line.of(text)
    return (
        is_line
        and begins_paragraph(text, start)
        and (rest.count("\n", 0, len(rest) - len(rest.lstrip())) > 1 or not rest.strip())
    )


def _measure_indent(text: str, sentence: Span) -> int:
    return len(text[text.rfind("\n", 0, sentence.start) + 1 : sentence.start].expandtabs())


HEADING_SEPARATOR = " / "
"""Separates a heading from a heading one level below."""

SIBLING_SEPARATOR = "; "
"""Separates headings on the same level."""

MAX_HEADINGS = 4
"""Most headings of one level that are shown; further headings are replaced by an ellipsis."""

_ELLIPSIS = "..."


def join_headings(paths: Iterable[Iterable[str]]) -> str:
    """Join heading paths, such as ``["Pump manual", "Safety"]``: shared headings first, then the other headings.

    If a path is the beginning of the next path, only the longer path is used.

    Args:
        paths: The headings above each part of the text, the highest level first.

    >>> join_headings([["Pump manual", "Safety"], ["Pump manual", "Oil change"]])
    'Pump manual / Safety; Oil change'
    >>> join_headings([["Pump manual"], ["Pump manual", "Safety"]])
    'Pump manual'
    """
    distinct = list(dict.fromkeys(map(tuple, paths)))
    leaves = [path for path, after in pairwise([*distinct, ("",)]) if after[: len(path)] != path]
    if len(leaves) < 2:
        return HEADING_SEPARATOR.join(distinct[0]) if distinct else ""
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*leaves, strict=False))]
    joined = [HEADING_SEPARATOR.join(path[len(common) :]) for path in leaves]
    siblings = [name for path in joined for name in path.split(SIBLING_SEPARATOR)]
    names = [name for name in dict.fromkeys(siblings) if name not in ("", _ELLIPSIS)]
    if len(names) > MAX_HEADINGS or _ELLIPSIS in siblings:
        names = [*names[:MAX_HEADINGS], _ELLIPSIS]
    return HEADING_SEPARATOR.join([*common, SIBLING_SEPARATOR.join(names)])


_UNSAFE = re.compile("[^\\S ]|[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters at which sentencex panics or raises: white space other than space and newline, control characters, and
surrogates."""

_QUOTED_LINE = re.compile(r"(?m)^[^\S\n]*>[^\S\n>]*(?:>[^\S\n>]*)*")
_BULLET = re.compile(rf"^\s*[{BULLETS}]+")
_OPENING = re.compile(rf"^\s*(?:{OPENING.pattern})")
_SIGN = re.compile(r"[^\w\s]")
_DOTS = re.compile(r"\.(?:\.{3,}+|(?: \.){3,}+)| \.(?: \.){2,}+")
_PAGE = re.compile(r"[^\S\n]*\w{1,6}[^\S\n]*$", re.MULTILINE)
"""The page number after the dots of a table of contents. It is searched once for each run of dots: a single pattern
took quadratic time."""


def _match_abbreviations(abbreviations: str) -> str:
    """Return a regex for the end of an abbreviation such as "fig."; ``abbreviations`` are separated by spaces."""
    return "|".join(rf"(?<=\b{word}\.)" for word in abbreviations.split())


_ABBREVIATION = re.compile(
    r"\.(?=\s)(?:"
    rf"(?:{_match_abbreviations('fig figs vol vols p pp ch chs chap sec secs sect eq eqs para paras')})(?=\s+[\dIVXLC])"
    rf"|(?:{_match_abbreviations('no nos art arts tab tabs cl reg app')})(?=\s+\d)"
    rf"|{_match_abbreviations('conf dept lieut mons proc ste tel trans univ')})",
    re.IGNORECASE,
)
"""Full stops of abbreviations that sentencex does not know, where they end no sentence: before a number, or anywhere.

This pattern and those below search for a character and then look behind it: a pattern that starts with a lookbehind is
tried at every letter."""

_ABBREVIATIONS = {
    "ar": "أ د م", "de": "[Dd]r Fa [Hh]l Hrsg [Ii]nkl Nr Prof St Str [Zz]zgl", "el": "Αγ Δρ κ κα", "es": "Av Dn Dª",
    "fr": "av apr Mlle Mlles MM Mme Mmes Mgr", "hi": "डॉ प्रो श्री", "it": "Avv dott Ing prof sig Sig St", "mr": "डॉ प्रा",
    "nl": "Dhr dhr drs Mevr mevr Mr St", "pl": "im ks prof św r ul w", "pt": "Av Dr Dra Exmo Sr Sra Sto",
    "ro": "Bd Dl D-l D-na Dna dl dna nr Nr Str str", "ru": "г гг д им св ул ул Ул", "sv": "Dr S:t",
    "tr": "Av Dr Prof Sn St",    "uk": "вул им ім м р св", "cs": "ing Ing sv tzv", "da": "Dr Hr Skt", "no": "Dr Hr St",
}  # fmt: skip
"""Words whose full stop ends no sentence before a letter or digit, by language, beyond those that sentencex knows."""

_DAYS_BEFORE = {
    "de": "am im der dem den des das die zum zur vom beim seit bis ab und ins",
    "da": "den det de d i og", "no": "den det de i og", "fi": "ja", "hu": "a az és", "cs": "dne od do ve v z a",
    "sk": "dňa od do vo v z a", "tr": "ve", "pl": "dnia od do w z i",
}  # fmt: skip
"""Words before an ordinal number such as "14.", by language: no sentence ends behind it."""

_INITIAL_BEFORE_HYPHEN = re.compile(r"\.(?=-\w)")
_ORDINAL_BEFORE_WORD = re.compile(r"(?<=\d)\.(?=\s[^\W\d_A-Z])")
_MONTH = re.compile(
    r"(?<=\d)\.(?=\s(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jänner|Ocak|Şubat"
    r"|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık|Jahrhundert|Jh)\w*\b)"
)
_QUOTED_END = re.compile(r"[。！？](?=[」』）][ぁ-ん])")
"""The end of a quoted sentence inside a Japanese sentence."""

_MARK = re.compile(r"--+|—|[_*](?<![\w*][_*])[_*]*+(?=\w)")
"""Characters that hide the word behind them from sentencex: a dash without a space, or the beginning of emphasis."""

_LONG_QUOTATION = re.compile(
    r"[“‘«„「『\"'(\[（](?:(?<=“)(?=[^”]{100})|(?<=‘)(?=[^’]{100})|(?<=«)(?=[^»]{100})|(?<=„)(?=[^“”]{100})"
    r"|(?<=[「『])(?=[^」』]{100})|(?<![^\s(\[—–-][\"'])(?:(?<=\")(?=[^\"]{100})|(?<=')(?=[^']{100}))"
    r"|(?<=[(\[（])(?=[^()\[\]（）]{200}))"
)
"""Opening marks of a quotation or remark that is never closed, or too long to be part of one sentence."""

_WINDOW_CHARACTERS = 2048
"""Characters that sentencex receives at once. At this length a window takes up to 8 ms for Chinese, 0.04 ms for
English."""

_MAX_TOKENS = 240
"""Longest sentence, in tokens (about 200 words); longer sentences are cut. Small encoders read no more tokens at
once."""

_CUTS = (
    re.compile(r"[;；](?=\s|$)|[；]|(?:--|—)|\n(?=[^\S\n])"),
    re.compile(r"\n"),
    re.compile(r"[,，、](?=\s|$)|[，、]"),
    re.compile(rf"(?<=[{SOUTH_EAST_ASIAN}])\s(?=[{SOUTH_EAST_ASIAN}])"),
)
"""Places where an overlong sentence is cut, best first."""


def split_sentences(text: str, language: str) -> list[Span]:
    """Return the character spans of the sentences in ``text``, in order, by the rules of its language.

    The spans are disjoint and cover all but white space. No sentence continues across the beginning of a paragraph; see
    :func:`polyad.text.sentences.find_paragraphs`. A sentence of more than 200 words is cut at a semicolon, dash, line
    end or comma, if there is one. The time is linear in the length of the text.

    Args:
        text: Any text.
        language: ISO 639 code, optionally with a region. An unknown language has only the rules common to all. A text
            that is evidently not in English has the rules of its own language in place of those of ``en``.
    """
    language = language.lower()  # sentencex knows lower-case codes only
    is_inferred = language == "en"
    if is_inferred:
        language = infer_language(text)
    cuts = [0]
    for start, end in pairwise([*find_paragraphs(text), len(text)]):
        part = text[start:end]
        of_part = find_part_language(part, language) if is_inferred else language
        cuts.extend(start + place for place in _find_sentence_ends(part, of_part))
    cuts[1 if len(cuts) == 1 else -1 :] = [len(text)]
    whole = (trim_span(text, start, end) for start, end in pairwise(cuts))
    return [part for span in whole if span is not None for part in _split_overlong(text, span)]


def trim_span(text: str, start: int, end: int) -> Span | None:
    """Return the span from ``start`` to ``end`` without white space at its ends; None if ``text`` is blank there."""
    part = text[start:end]
    stripped = part.lstrip()
    if not stripped:
        return None
    start = end - len(stripped)
    return Span(start, start + len(stripped.rstrip()))


def _find_sentence_ends(paragraph: str, language: str) -> Iterator[int]:
    """Yield the offset at which each sentence of ``paragraph`` ends; ``language`` is an ISO 639 code.

    A piece without a word belongs to the sentence before it. In a text that begins sentences with capitals, no sentence
    ends before a lower-case letter.
    """
    copy = _mask_misleading_characters(paragraph)
    if language != "en":
        copy = _mask_full_stops(copy, language.partition("-")[0])
    end, first = 0, ""
    for start, piece in _find_sentences(copy, language):
        holds_words = any(map(str.isalnum, piece))
        if end and holds_words and not (first.isupper() and piece.lstrip()[0].islower()):
            yield end
            first = ""
        first = first or next(filter(str.isalpha, piece), "")
        length = len(piece.rstrip())
        if length and (end or holds_words):
            end = start + length
    if end or copy.strip():
        yield end or len(copy.rstrip())


def _find_sentences(text: str, language: str) -> Iterator[tuple[int, str]]:
    """Yield pairs of offset and piece for each sentence that the library sentencex finds in ``text``."""
    start = done = 0
    while start < len(text):
        window = text[start : start + _WINDOW_CHARACTERS]
        pieces = _split_window(window, language)
        if start + len(window) < len(text):
            if len(pieces) == 1:  # no sentence ends here; half is repeated, so that no end falls between two windows
                start += _find_middle(window)
                continue
            pieces.pop()  # the window cut this piece off, so the next window begins with it
        for piece in pieces:
            start += len(piece)
            yield done, text[done:start]
            done = start


def _find_middle(window: str) -> int:
    """Return the offset of a word's end near the middle of the text ``window``."""
    middle = len(window) // 2
    return max(window.rfind(" ", middle // 2, middle), 0) or middle


def _mask_misleading_characters(paragraph: str) -> str:
    """Return ``paragraph`` with characters that mislead the sentence splitter, such as dot leaders, blanked out."""
    copy = _QUOTED_LINE.sub(_blank_out, paragraph)
    copy = _DOTS.sub(_blank_leaders, copy)
    copy = _LONG_QUOTATION.sub(" ", copy)
    copy = _MARK.sub(_blank_out, copy)
    copy = _ABBREVIATION.sub(",", copy)
    return _UNSAFE.sub(" ", copy)


def _mask_full_stops(paragraph: str, language: str) -> str:
    """Return ``paragraph`` with a comma for each full stop of an ordinal number or abbreviation in its language."""
    copy = _INITIAL_BEFORE_HYPHEN.sub(",", _QUOTED_END.sub("、", paragraph))
    if language in _DAYS_BEFORE:
        copy = _MONTH.sub(",", _ORDINAL_BEFORE_WORD.sub(",", copy))
    pattern = _compile_abbreviations(language)
    return pattern.sub(lambda match: f"{match[0][:-1]},", copy) if pattern else copy


@cache
def _compile_abbreviations(language: str) -> re.Pattern[str] | None:
    """Return a regex for the abbreviations and the ordinal numbers of a language; None without any."""
    alternatives = []
    if abbreviations := _ABBREVIATIONS.get(language):
        alternatives.append(rf"(?:{'|'.join(abbreviations.split())})\.(?=\s?[^\W_])")
    if words := _DAYS_BEFORE.get(language):
        alternatives.append(rf"(?:{'|'.join(words.split())})\s\d{{1,3}}\.(?=\s)")
    return re.compile(rf"(?<![^\s(«„“])(?:{'|'.join(alternatives)})") if alternatives else None


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _blank_leaders(dots: re.Match[str]) -> str:
    return _blank_out(dots) if _PAGE.match(dots.string, dots.end()) else dots.group()


def _split_window(window: str, language: str) -> list[str]:
    """Return the sentences in a short text as the library sentencex finds them; the whole text if sentencex fails.

    A list mark at the beginning would make one sentence of the whole window, so the library does not see it.
    """
    window_without_bullet = _BULLET.sub(_blank_out, window, count=1)
    masked = _OPENING.sub(lambda opening: _SIGN.sub(" ", opening[0]), window_without_bullet, count=1)
    try:
        pieces: list[str] = segment(language, masked)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a Rust panic is not an Exception, and cannot be imported
            raise
        return [window]
    return pieces if "".join(pieces) == masked else [window]


def _split_overlong(text: str, sentence: Span) -> Iterator[Span]:
    """Yield the span of a sentence or, if it has over 240 tokens, the spans of its parts."""
    if sentence.end - sentence.start <= _MAX_TOKENS:
        yield sentence
        return
    ends = [token.end() for token in TOKEN.finditer(text, sentence.start, sentence.end)]
    start, first = sentence.start, 0
    while len(ends) - first > _MAX_TOKENS:
        cut = _find_cut(text, ends[first + _MAX_TOKENS // 3], ends[first + _MAX_TOKENS - 1])
        if cut is None:
            first += _MAX_TOKENS // 2  # no place to cut, so the part continues
            continue
        part = trim_span(text, start, cut)
        if part is not None:
            yield part
        start, first = cut, bisect_right(ends, cut)
    part = trim_span(text, start, sentence.end)
    if part is not None:
        yield part


def _find_cut(text: str, start: int, end: int) -> int | None:
    """Return the best offset from ``start`` to ``end`` to cut an overlong sentence; None if there is none."""
    for boundary in _CUTS:
        places = [match.end() for match in boundary.finditer(text, start, end)]
        if places:
            return places[-1]
    return None
