"""Versions of documents: what names, metadata and first lines say, families of versions, and the one in force.

Documents form a family if their paths or titles are equal without the marks of versions: numbers after a word such as
"version", dates, and final words such as "old" or "draft". A family has versions, of which one is in force, if a member
states a version or a time of validity; editions, of which the latest counts, if names differ by years; and otherwise
issues, such as minutes, of which none replaces another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal, NamedTuple

from polyad.model import DocumentVersion, MetadataValue, Origin, VersionStatus
from polyad.text.date_terms import find_periods
from polyad.text.dates import fold_digits
from polyad.text.files import get_source_file, read_package_file
from polyad.text.validity import VALID_FROM, VALID_TO, Interval, format_time

Level = Literal["", "issue", "edition", "version"]
"""The kind of family that the marks of a document make, the weakest first."""

_LEVELS: Sequence[Level] = ("", "issue", "edition", "version")

HEAD_CHARACTERS = 600
"""Characters at the beginning of a text in which it states its version."""

_SHORT_LINE = 60
"""Characters of a line that may state a status without a number or date."""

_MAX_GAP = 6
"""Most characters between words such as "in force from" and the date that belongs to them."""

_MIN_TITLE_WORDS = 2
"""Words of a title by which documents form a family; one word, such as "Form", is too common."""

_FAMILY_MARK = "="
"""The first character of the search terms of families."""

_FIRST_RECORDS = 8
"""Records of a file by which its other versions find it."""

_MAX_LISTED = 5
"""Numbers in a message."""

_DATE_KEYS = (VALID_FROM, "effective_from", "effective_date", "effective", "date", "published", "year")
_REPLACES_KEYS = ("replaces", "supersedes")
_REPLACED_KEYS = ("superseded_by", "replaced_by")
_EDITION_STATUS: Mapping[VersionStatus, VersionStatus] = {"in force": "latest", "superseded": "earlier"}
_STATUS_KINDS = ("superseded", "draft", "in force")

_LETTER = r"[^\W\d_]"
_RELEASE = r"(?<![\w.])(\d+(?:\.\d+)+)(?![\w.]*\d)"
_END_WORDS = r"(?:^|[\s_.(\[\uff08-])@[\s_)\]\uff09-]*$"


class Marks(NamedTuple):
    """What the name, the metadata and the first lines of a document say about its version.

    Attributes:
        unit: Id of the document, or the file of documents that are its rows.
        keys: Documents with a common key belong together.
        number: Parts of the number of the version; empty for none.
        start, end: Times between which the version holds, in seconds since 1970; None if unknown.
        status: ``in force``, ``superseded`` or ``draft``; empty for none.
        level: The kind of family that these marks make.
        replaces: Keys of the documents that this one replaces.
        is_stated: Whether the first lines state the status, or the time from which the document holds.
    """

    unit: str
    keys: tuple[str, ...] = ()
    number: tuple[int, ...] = ()
    start: float | None = None
    end: float | None = None
    status: str = ""
    level: Level = ""
    replaces: tuple[str, ...] = ()
    is_stated: bool = False


class _Name(NamedTuple):
    """A name without the marks of versions, and the marks."""

    stem: str
    number: tuple[int, ...] = ()
    period: Interval | None = None
    status: str = ""
    level: Level = ""


@cache
def _read_words() -> Mapping[str, str]:
    """Return a regex for the words of each kind; words of scripts without spaces have no bounds."""
    lines = read_package_file("polyad.text", "version_words.txt").splitlines()
    kinds = {}
    for kind, _, words in (line.partition(": ") for line in lines if not line.startswith("#")):
        spaced, unspaced = list[str](), list[str]()
        for word in sorted(words.split("|"), key=lambda word: (-len(word), word)):
            (unspaced if word > "\u2e80" else spaced).append(r"[\s_-]+".join(map(re.escape, word.split())))
        kinds[kind] = f"(?:(?<!{_LETTER})(?:{'|'.join(spaced)})(?!{_LETTER})|{'|'.join(unspaced) or '(?!)'})"
    return kinds


@cache
def _compile(kind: str, form: str = "@") -> re.Pattern[str]:
    """Return a regex for the words of a kind in the place of ``@``."""
    return re.compile(form.replace("@", _read_words()[kind]))


@cache
def _compile_versions() -> Sequence[re.Pattern[str]]:
    number = rf"(\d{{1,3}}(?:\.\d+)*(?![\d/-])|(?<=[\s._-])[a-f](?!{_LETTER}|'))"
    return (
        _compile("version", rf"@[\s._:-]*{number}"),
        re.compile(rf"(?<!{_LETTER})v[\s_]?(\d{{1,3}}(?:\.\d+)*)(?![\d/-])"),
        _compile("edition", r"(?<![^\W_])(?<!\.)第?\s?(\d{1,3})(?:st|nd|rd|th|\.|ª|º|ème|e)?\s?@"),
        re.compile(r"第\s?(\d{1,3})\s?版"),
    )


def _find_numbers(text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the span and the number of each version that a text names."""
    for pattern in _compile_versions():
        for match in pattern.finditer(text):
            parts = re.findall(r"\d{1,9}", match[1])
            yield *match.span(), tuple(map(int, parts)) or (ord(match[1]) - ord("a") + 1,)


@lru_cache(maxsize=4096)
def _parse_name(name: str) -> _Name:
    """Return a title or the stem of a file name, in lower case, without marks of versions."""
    number: tuple[int, ...] = ()
    period: Interval | None = None
    status, level = "", 0
    for start, end, parts in _find_numbers(name):
        number, level = parts, _LEVELS.index("version")
        name = f"{name[:start]} {name[end:]}"
        break
    for start, end, dated in sorted(find_periods(name), reverse=True):
        is_year = dated.end - dated.start > 300 * 86400
        period, level = dated, max(level, _LEVELS.index("edition" if is_year else "issue"))
        name = f"{name[:start]} {name[end:]}"
    if not number and (match := re.search(_RELEASE, name)):
        number, level = tuple(map(int, match[1].split("."))), max(level, _LEVELS.index("issue"))
        name = f"{name[: match.start()]} {name[match.end() :]}"
    for kind in _STATUS_KINDS:
        if match := _compile(kind, _END_WORDS).search(name):
            status, level, name = kind, _LEVELS.index("version"), name[: match.start()]
    words = re.findall(r"[^\W_]+", name)
    return _Name(" ".join(words), number, period, status, _LEVELS[level])


def read_marks(id: str, origin: Origin) -> Marks:
    """Return what the path, the title and the metadata of a document say about its version."""
    metadata = origin.metadata
    path = str(metadata.get("path") or get_source_file(origin.source)).replace("\\", "/")
    is_row = bool(path) and origin.source != path and origin.source.startswith(path)
    names = [_parse_name(part.casefold()) for part in _split_path(path)]
    folder = "/".join(name.stem for name in names[:-1] if name.stem)
    reply = _compile("reply", r"^(?:@\s*[:\uff1a]\s*)+")
    has_title = not is_row and metadata.get("title_from") != "file name"
    title = _parse_name(reply.sub("", origin.title.casefold() if has_title else ""))
    keys = [f"path:{folder}/{names[-1].stem}"] if names and names[-1].stem else []
    is_named = len(title.stem) >= 4 * (title.stem > "\u2e80") and (
        len(title.stem.split()) >= _MIN_TITLE_WORDS or title.stem > "\u2e80" or not path
    )
    if title.stem and is_named:
        keys.append(f"title:{folder}/{title.stem}")
    if not path and title.level != "version":  # the years of titles such as those of Wikipedia
        title = _Name(title.stem)
    marks = Marks(path if is_row else id, tuple(keys))
    is_reply = bool(reply.search(origin.title.casefold()))
    for name in (title, *reversed(names), _Name("", level="issue") if is_reply else _Name("")):
        marks = _add_name(marks, name)
    marks = _add_metadata(marks, metadata, folder)
    return marks._replace(keys=tuple(keys), replaces=()) if is_row else marks


def find_family_terms(title: str, source: str, metadata: Mapping[str, MetadataValue]) -> tuple[str, ...]:
    """Return the search terms by which the other versions of a document are found.

    Of the records of a file, only the first ones, and then every one whose number is a power of two, have these terms.
    """
    number = int(match[1]) if (match := re.search(r":(\d{1,18})$", source)) else 0
    if number > _FIRST_RECORDS and number & (number - 1):
        return ()
    return build_family_terms(read_marks("", Origin(title, source, metadata=metadata)).keys)


def build_family_terms(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the search terms of the keys of families, which no term of a word equals."""
    return tuple(f"{_FAMILY_MARK}{key}" for key in keys)


def _split_path(path: str) -> list[str]:
    """Return the folders of a path and the stem of its file name; dates in folders, as in 2026/05/12, stay together."""
    parts = [part for part in re.sub(r"(?<![^/])((?:19|20)\d\d)/(\d\d)(?=/)", r"\1-\2", path).split("/") if part]
    return [*parts[:-1], re.sub(rf"(?<=.)\.{_LETTER}\w{{0,7}}$", "", parts[-1])] if parts else []


def _add_name(marks: Marks, name: _Name) -> Marks:
    """Add the marks of a name to those of a document, unless it has them already."""
    return marks._replace(
        number=marks.number or name.number,
        start=name.period.start if marks.start is None and name.period else marks.start,
        status=marks.status or name.status,
        level=max(marks.level, name.level, key=_LEVELS.index),
    )


def _add_metadata(marks: Marks, metadata: Mapping[str, MetadataValue], folder: str) -> Marks:
    """Add what metadata say about number, time, status and replaced documents; they take precedence over names."""
    values = {str(key).casefold().replace("-", "_").replace(" ", "_"): value for key, value in metadata.items()}
    number = tuple(map(int, re.findall(r"\d{1,9}", str(values.get("version", "")))[:4]))
    status = find_status(str(values.get("status", "")).casefold(), is_statement=True)
    if any(values.get(key) for key in _REPLACED_KEYS):
        status = "superseded"
    dated = ((key, period) for key in _DATE_KEYS if (period := _read_period(values.get(key))))
    key, period = next(dated, ("", None))
    end = _read_period(values.get(VALID_TO))
    replaces = tuple(
        f"{kind}:{folder}/{stem}"
        for field in _REPLACES_KEYS
        for value in _list_texts(values.get(field))
        if (stem := _parse_name((_split_path(value.casefold()) or [""])[-1]).stem) and not stem.isdecimal()
        for kind in ("path", "title")
    )
    is_version = number or status or replaces or end or (period and key != "date" and key not in _DATE_KEYS[-2:])
    return marks._replace(
        number=number or marks.number,
        status=status or marks.status,
        start=period.start if period else marks.start,
        end=end.end if end else marks.end,
        level="version" if is_version else marks.level,
        keys=(*marks.keys, *replaces),
        replaces=replaces,
    )


def _list_texts(value: MetadataValue | None) -> Sequence[str]:
    return value if isinstance(value, tuple) else [str(value)] if value else []


def _read_period(value: object) -> Interval | None:
    text = fold_digits(str(value or "")).casefold()
    return next((period for _, _, period in find_periods(text)), None)


def find_status(text: str, *, is_statement: bool = False, number: tuple[int, ...] = ()) -> str:
    """Return the status that a text in lower case states: superseded, draft or in force; empty for none.

    Args:
        text: A line, or the value of a field.
        is_statement: Whether the text is nothing but a status, so that it may also be that it is in force.
        number: Version of the document; a sentence about another version says nothing about this one.
    """
    for sentence in re.split(r"(?<=[.;!?\u3002\uff1b])\s*", text):
        start, _, other = next(_find_numbers(sentence), (len(sentence), 0, number))
        for kind in ("draft", "superseded", *(["in force"] if is_statement else [])):
            match = _compile(kind).search(sentence)
            if match and not (number and other != number and start < match.start()):
                return kind
    return ""


def add_statement(marks: Marks, head: str) -> Marks:
    """Add to the marks of a document what the first lines of its text say about its version."""
    text = fold_digits(head[:HEAD_CHARACTERS]).casefold()
    lines = [line for line in text.split("\n") if line.strip()]
    statements = [line for line in lines if len(line) <= _SHORT_LINE or any(_find_numbers(line))]
    number = marks.number or next((parts for line in statements for *_, parts in _find_numbers(line)), ())
    periods = list(find_periods(text))
    since = next(_find_starts(text, periods), None)
    first = periods[0][2] if periods else None
    ends = (period for start, _, period in periods if _compile("until").search(text[max(0, start - 10) : start]))
    end = next((period for period in ends if period != since), None)
    status = next((word for line in statements if (word := find_status(line, number=number))), "")
    start = marks.start if marks.start is not None else (since or first or Interval()).start
    return marks._replace(
        number=number,
        start=None if start == -math.inf else start,
        end=end.end if end and marks.end is None and since and end.start >= since.start else marks.end,
        status=marks.status or status,
        is_stated=bool(since or status),
    )


def _find_starts(text: str, periods: Sequence[tuple[int, int, Interval]]) -> Iterator[Interval]:
    """Yield the dates after words such as "in force from", or before them in Chinese and Japanese."""
    for match in _compile("since").finditer(text):
        is_after = match[0] > "\u2e80"
        for start, end, period in periods:
            if 0 <= start - match.end() <= _MAX_GAP or (is_after and 0 <= match.start() - end <= 1):
                yield period


@dataclass(frozen=True, slots=True)
class VersionConflict:
    """Documents of one family that disagree.

    Attributes:
        family: Name of the family.
        reason: What they disagree about.
        documents: Their ids, or files.
    """

    family: str
    reason: str
    documents: tuple[str, ...]


def _list_units(members: Iterable[Marks]) -> tuple[str, ...]:
    return tuple(member.unit for member in members)


@dataclass(frozen=True)
class VersionFamily:
    """The versions, editions or issues of one document.

    Attributes:
        members: The marks of the documents, or files, sorted by id.
    """

    members: tuple[Marks, ...]

    @cached_property
    def level(self) -> Level:
        """What the members are to each other.

        They are versions if as many of them state a version or validity as have dates only.
        """
        levels = ["version" if member.is_stated else member.level for member in self.members]
        if levels.count("version") >= max(1, levels.count("issue") + levels.count("edition")):
            return "version"
        return next((level for level in ("issue", "edition") if level in levels), "")

    @property
    def name(self) -> str:
        """A name of the family: the path or title that its members have in common, without folders."""
        keys = [key for member in self.members for key in member.keys]
        return min(keys, key=lambda key: (-keys.count(key), key)).rpartition("/")[2]

    def get_order(self, member: Marks) -> tuple[object, ...]:
        """Return a key that sorts the members by age; members with equal keys are copies of one version."""
        if all(each.start is not None for each in self.members):
            return member.start, member.number
        numbers = [each.number for each in self.members if each.number]
        if not numbers:
            return (math.inf if member.start is None else member.start,)
        # A file without a number is the newest if a first version is archived beside it, and otherwise the first.
        missing = (math.inf,) if min(numbers) <= (1,) else (-math.inf,)
        return (member.number or missing,)

    def find_current(self, time: float, *, is_past: bool = False) -> Marks | None:
        """Return the version in force, or the latest edition or issue, at a time; None if there is none.

        Args:
            time: In seconds since 1970.
            is_past: Whether the time is past, so that a version that is superseded now may have been in force. So it
                may if another version begins later.
        """
        is_past = is_past or any(member.start is not None and member.start > time for member in self.members)
        replaced = {key for member in self.members for key in member.replaces}
        candidates = [
            member
            for member in self.members
            if member.status not in (("draft",) if is_past else ("draft", "superseded"))
            and (member.start is None or member.start <= time)
            and (member.end is None or member.end > time)
            and (is_past or not replaced.intersection(member.keys[: -len(member.replaces) or None]))
        ]
        if is_past and any(member.start is not None for member in candidates):
            candidates = [member for member in candidates if member.start is not None]
        return self.find_newest(candidates)

    def find_newest(self, members: Iterable[Marks]) -> Marks | None:
        """Return the newest of some members, the last by id of equally new ones; None if there are none."""
        return max(members, key=lambda member: (self.get_order(member), member.unit), default=None)

    def is_same(self, unit: str, other: Marks) -> bool:
        """Return whether a member is the same version as another, such as a copy in another format."""
        return self.get_order(self._get(unit)) == self.get_order(other)

    def _get(self, unit: str) -> Marks:
        return next(member for member in self.members if member.unit == unit)

    def find_conflicts(self, time: float, texts: Mapping[str, str]) -> Iterator[VersionConflict]:
        """Yield the members that contradict each other: two versions in force, or one version with other numbers.

        Args:
            time: Time at which versions are in force, in seconds since 1970.
            texts: Texts of the members, by unit; a member without a text is not compared.
        """
        valid = [
            member
            for member in self.members
            if member.status == "in force" and (member.start or -math.inf) <= time < (member.end or math.inf)
        ]
        if len({self.get_order(member) for member in valid}) > 1:
            yield VersionConflict(self.name, "several versions are stated to be in force", _list_units(valid))
        copies: dict[tuple[object, ...], list[Marks]] = {}
        for member in self.members if self.level == "version" else ():
            if member.unit in texts:
                copies.setdefault(self.get_order(member), []).append(member)
        for group in copies.values():
            numbers = [set(re.findall(r"\d+(?:[.,:]\d+)*", texts[member.unit])) for member in group]
            if differing := sorted(set.union(*numbers) - set.intersection(*numbers)):
                reason = f"one version has different numbers: {', '.join(differing[:_MAX_LISTED])}"
                yield VersionConflict(self.name, reason, _list_units(group))

    def describe(self, unit: str, time: float) -> DocumentVersion | None:
        """Return the status of a member at a time; None if the members are issues, which do not replace each other."""
        member, current = self._get(unit), self.find_current(time)
        if self.level not in ("version", "edition") or (current is None and member.status != "superseded"):
            return None
        status: VersionStatus = "in force"
        if current is None or self.get_order(member) != self.get_order(current):
            status = "draft" if member.status == "draft" else "superseded"
            if status == "superseded" and member.start is not None and member.start > time:
                status = "future"
        if self.level == "edition":
            status = _EDITION_STATUS.get(status, status)
        return DocumentVersion(
            status,
            self.name,
            ".".join(map(str, member.number)),
            "" if member.start is None else format_time(member.start).removesuffix("T00:00:00Z"),
            current.unit if current and status in ("superseded", "earlier") else "",
        )


class VersionReference(NamedTuple):
    """The version or time that a question names.

    Attributes:
        numbers: Numbers of versions.
        periods: Dates, months and years.
        is_latest: Whether it asks for the latest of something.
        is_previous: Whether it asks for what held before.
    """

    numbers: tuple[tuple[int, ...], ...] = ()
    periods: tuple[Interval, ...] = ()
    is_latest: bool = False
    is_previous: bool = False

    @classmethod
    def from_question(cls, question: str) -> VersionReference:
        """Return what a question says about versions and times.

        >>> VersionReference.from_question("What did version 2 say?").numbers
        ((2,),)
        """
        text = fold_digits(question).casefold()
        return cls(
            tuple(dict.fromkeys(parts for *_, parts in _find_numbers(text))),
            tuple(dict.fromkeys(period for *_, period in find_periods(text))),
            _compile("latest").search(text) is not None,
            _compile("previous").search(text) is not None,
        )

    def choose(self, family: VersionFamily, now: float) -> Marks | None:
        """Return the member of a family that the question is about; None if it is about several or none."""
        if len(self.numbers) > 1 or len(self.periods) > 1:
            return None
        if self.numbers:
            number = self.numbers[0]
            named = (member for member in family.members if member.number[: len(number)] == number)
            return family.find_newest(named)
        if self.periods and family.level == "issue":
            dated = [each for each in family.members if each.start is not None and self.periods[0].contains(each.start)]
            return dated[0] if len(dated) == 1 else None
        if self.periods and not self.periods[0].contains(now):
            middle = sum(self.periods[0]) / 2
            return family.find_current(middle, is_past=middle < now)
        if family.level not in ("version", "edition") and not self.is_latest:
            return None
        current = family.find_current(now)
        if not self.is_previous or current is None:
            return current
        order = family.get_order(current)
        earlier = [member for member in family.members if family.get_order(member) < order and member.status != "draft"]
        return family.find_newest(earlier) or current
