"""A random search for inputs whose cost grows faster than their size, over everything that reads what others wrote.

``python -m tests.attacks.growth --minutes 20`` takes turns among the targets of ``growth_targets.py``. Hypothesis
chooses small fragments and a way of repeating them; the input is doubled until it costs enough to be measured, and
what then costs more than three times as much at each of two more doublings, measured again, is printed as a finding
with its fragments cut down. A cost proportional to the size doubles, one in proportion to its square is four times as
much. CPU time is measured, so that other work on the machine matters little. The exit status is 1 if there are any.
"""

# ruff: noqa: RUF001, T201  what looks alike is meant; a script that prints

from __future__ import annotations

import argparse
import gc
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from types import FrameType
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis import target as aim

FACTOR = 3.0
"""How much more twice the input may cost."""

SMALLEST = 2048
"""Characters of the first input of a ladder."""

TELLING = 0.05
"""Seconds of CPU time of the largest input, below which nothing is made of it."""

SURE = 0.15
"""Seconds of CPU time from which on a cost that only doubles is taken to be proportional to the size."""

ENOUGH = 1.5
"""Seconds of CPU time of one input after which it is doubled no more."""

TOO_LONG = 5.0
"""Seconds of CPU time after which an input is given up; that is a finding by itself."""

_DEPTH = 1000
"""Python's own limit of recursion, by which decoders give up what is nested."""

_LONG_RUN = 110
"""How often a long fragment repeats its token: rules look a hundred characters ahead."""


@dataclass(frozen=True)
class Target:
    """What is measured.

    Attributes:
        name: For the report.
        prepare: Makes the input from a text; not measured.
        run: Takes the input; what it raises is no matter of this search.
        tokens: Fragments that mean something to it, beside those of every target.
        only: Whether it takes no other fragments.
        most: Characters of the largest input: no more than what the program lets through, if that is less.
    """

    name: str
    run: Callable[[Any], object]
    prepare: Callable[[str], Any] = str
    tokens: tuple[str, ...] = ()
    only: bool = False
    most: int = 1 << 17


Way = Literal["repeat", "nest", "number"]


@dataclass(frozen=True)
class Shape:
    """How a text of any size is made: its ends, and what is repeated between them.

    Attributes:
        way: ``repeat`` the fragment, ``nest`` as many of the second fragment behind those of the first, or ``number``
            the fragments so that all differ.
    """

    way: Way
    before: tuple[str, ...]
    fragment: tuple[str, ...]
    second: tuple[str, ...]
    after: tuple[str, ...]

    def text(self, size: int) -> str:
        """A text of about so many characters."""
        before, fragment, second, after = map("".join, (self.before, self.fragment, self.second, self.after))
        if self.way == "repeat":
            body = fragment * max(1, size // len(fragment))
        elif self.way == "nest":
            count = max(1, size // (len(fragment) + len(second)))
            body = fragment * count + second * count
        else:
            count = max(1, size // (len(fragment) + len(second) + 5))
            body = "".join(f"{fragment}{10_000 + number}{second}" for number in range(count))
        return before + body + after

    def smaller(self) -> Iterator[Shape]:
        """The same without one of its tokens, or with a single one in place of a run."""
        for before in _fewer(self.before):
            yield replace(self, before=before)
        for after in _fewer(self.after):
            yield replace(self, after=after)
        for second in _fewer(self.second):
            yield replace(self, second=second)
        for fragment in filter(None, _fewer(self.fragment)):
            yield replace(self, fragment=fragment)

    def __str__(self) -> str:
        parts = ((name, getattr(self, name)) for name in ("before", "fragment", "second", "after"))
        return f"{self.way} " + " ".join(
            f"{name}={' + '.join(map(_written, tokens))}" for name, tokens in parts if tokens
        )


def _written(token: str) -> str:
    short = token[: len(token) // _LONG_RUN]
    return f"{_LONG_RUN} * {short!r}" if short and token == short * _LONG_RUN else repr(token)


def _fewer(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if tokens:
        yield ()
    for place, token in enumerate(tokens):
        if len(tokens) > 1:
            yield tokens[:place] + tokens[place + 1 :]
        short = token[: len(token) // _LONG_RUN]
        if short and token == short * _LONG_RUN:
            yield (*tokens[:place], short, *tokens[place + 1 :])


@dataclass(frozen=True)
class Finding:
    """An input that costs too much: sizes in characters, CPU time in seconds; infinite for one that was given up."""

    target: Target
    shape: Shape
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    def __str__(self) -> str:
        steps = ", ".join(f"{size:,}: {took:.3f} s" for size, took in zip(self.sizes, self.seconds, strict=True))
        return f"{self.target.name}: {self.shape}\n    {steps}"


TOKENS = (
    *"()[]{}<>\"'`|-–—_*#+=~^.,;:!?/\\&%$@\n \t\f\r\x00",
    *"«»“”‘’„「」『』（）【】，。：；！？、…•·†→",
    *"017aAzIxéßİ東京ก가\u0301\u0327\u200d\ufe0f😀\u00ad\u00a0\u2028",
    *("\n\n", "\n\n\n", "  ", "\n    ", "\r\n", ". ", ".. ", "...", " . . . ", ". . ", "--", "---", "===", "***"),
    *("```", "~~~", "::", "](", "![", "[[", "]]", "{{", "}}", "<!--", "-->", "<b>", "</b>", "<a href=", "&amp;", "&#"),
    *("a ", "A ", "Ab ", "ab ", "is a ", "the ", "The ", "of ", "and ", "or ", "Ada Lovelace", "J. ", "R. R. ", "Dr. "),
    *(
        "1. ",
        "1) ",
        "(a) ",
        "- ",
        "* ",
        "> ",
        "# ",
        "| ",
        " | ",
        "|---",
        "§ 1 ",
        "iv ",
        "1,000",
        "1.5 ",
        "12 May 1901 ",
    ),
    *(
        "<a:",
        "<b ",
        "</b ",
        "<a/>",
        "<a></a>",
        "<p/>",
        " a=",
        " a='",
        " xmlns:a=",
        "<w:p/>",
        "<a b=c/>",
        "<![CDATA[",
        "]]>",
    ),
    *("; a=", "; a*0=", "; filename*1=", ";;", "=?utf-8?q?a?= ", "\nX-A: b", "{}", "[]", "null,", '"": ', ",,", '"",'),
    *("don't ", "'s ", "n't", "http://a.b/", "a@b.c", "[1]", "[1, 2]", " (1) ", "\\u0041", "\\", '\\"', '"a"', '", "'),
)
"""Fragments with which rules, splitters and parsers begin or end something."""


@st.composite
def shapes(draw: st.DrawFn, target: Target) -> Shape:
    """Shapes of few fragments that a target takes: what costs much is mostly made of one or two."""
    token = st.sampled_from(target.tokens if target.only else TOKENS)
    if target.tokens and not target.only:
        token = st.one_of(token, st.sampled_from(target.tokens))
    long = token.map(lambda short: short * _LONG_RUN)
    few = st.sampled_from(draw(st.lists(st.one_of(token, token, token, long), min_size=1, max_size=3)))
    ends = st.lists(few, max_size=1).map(tuple)
    ways: tuple[Way, ...] = ("repeat", "repeat", "nest", "number")
    way = draw(st.sampled_from(ways))
    fragment = draw(st.lists(few, min_size=1, max_size=3).map(tuple))
    second = draw(st.lists(few, max_size=2).map(tuple)) if way != "repeat" else ()
    return Shape(way, draw(ends), fragment, second, draw(ends))


class _OverError(BaseException):
    """The way out of Hypothesis, which looks into every Exception."""


class _GivenUpError(BaseException):
    """An input took too long; no Exception, lest what is measured catch it."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Give up after so much CPU time, as far as the code under test lets Python's signals through."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise _GivenUpError

    earlier = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


def cost(target: Target, shape: Shape, size: int) -> float:
    """Seconds of CPU time that an input takes; infinite for one that is given up."""
    given_input = target.prepare(shape.text(size))
    depth = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)  # Hypothesis raises it
    gc.disable()
    began = time.process_time()
    try:
        with _limited(TOO_LONG), suppress(Exception):
            target.run(given_input)
        return time.process_time() - began
    except _GivenUpError:
        return float("inf")
    finally:
        gc.enable()
        sys.setrecursionlimit(depth)


def measure(target: Target, shape: Shape) -> tuple[float, Finding | None]:
    """Enlarge the input until it costs enough, and compare it with its half and its quarter.

    Returns:
        By how much the cost grows at each of two doublings, at least; 0 where it never is large enough to tell. And
        what was found, if that is too much.
    """
    names: dict[int, float] = {}
    size, growth = SMALLEST, 0.0
    while True:
        names[size] = cost(target, shape, size)
        if names[size] == float("inf"):
            return growth, Finding(target, shape, (size,), (names[size],))
        if names[size] >= TELLING:
            sizes = (size // 4, size // 2, size)
            growth = min(_ratios([names.get(one) or cost(target, shape, one) for one in sizes]))
            if growth > FACTOR:
                again = tuple(min(cost(target, shape, one) for _ in range(2)) for one in sizes)
                # The first measurement may have paid for memory pages or waited for another process.
                is_clear = again[-1] >= TELLING and min(_ratios(again)) > FACTOR
                if is_clear and _goes_on(target, shape, size, again[-1]):
                    return growth, Finding(target, shape, sizes, again)
                return growth, None
            if names[size] > SURE and growth < 2.3:
                return growth, None
        if size >= target.most or names[size] > ENOUGH:
            return growth, None
        size = min(target.most, size * (4 if names[size] < TELLING / 4 else 2))


def _goes_on(target: Target, shape: Shape, size: int, before: float) -> bool:
    """Whether the cost still grows so at the next doubling, and no limit ends it: a parser's patience, a window."""
    return 2 * size > target.most or cost(target, shape, 2 * size) > 0.8 * FACTOR * before


def _ratios(costs: Sequence[float]) -> list[float]:
    return [after / max(before, 1e-9) for before, after in pairwise(costs)]


def search(target: Target, seconds: float, chance: int) -> Finding | None:
    """Look for one finding for so many seconds, and cut it down."""
    end = time.monotonic() + seconds
    findings: list[Finding] = []
    tried = 0

    @seed(chance)
    @settings(
        max_examples=1_000_000,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck),
    )
    @given(shapes(target))
    def attempt(shape: Shape) -> None:
        nonlocal tried
        if findings or time.monotonic() > end:
            raise _OverError
        tried += 1
        growth, finding = measure(target, shape)
        aim(growth, label="growth")
        if finding:
            findings.append(finding)
            raise _OverError

    with suppress(_OverError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempt()
    tries[target.name] = tries.get(target.name, 0) + tried
    return _cut_down(findings[0]) if findings else None


tries: dict[str, int] = {}
"""How many shapes each target was tried with."""


def _cut_down(finding: Finding) -> Finding:
    """The finding with as few tokens as still make one, within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        results = (measure(finding.target, shape)[1] for shape in finding.shape.smaller())
        smaller = next((one for one in results if one or time.monotonic() > end), None)
        if smaller is None:
            return finding
        finding = smaller
    return finding


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, and print what was found."""
    from tests.attacks.growth_targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.attacks.growth", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; by default another each time")
    parser.add_argument("--only", default="", help="a part of the names of the targets")
    parser.add_argument("--rounds", type=int, default=2, help="how often each target has its turn")
    given_arguments = parser.parse_args(arguments)
    chance = random.randrange(1 << 30) if given_arguments.seed is None else given_arguments.seed
    targets = [target for target in TARGETS if given_arguments.only in target.name]
    print(f"{len(targets)} targets, seed {chance}", flush=True)
    end = time.monotonic() + 60 * given_arguments.minutes
    findings: list[Finding] = []
    for turn in range(given_arguments.rounds):
        for place, target in enumerate(targets):
            turns_left = len(targets) * (given_arguments.rounds - turn) - place
            share = (end - time.monotonic()) / turns_left
            if share <= 0:
                break
            finding = search(target, share, chance + turn)
            print(f"{target.name}: {tries[target.name]:,} shapes", file=sys.stderr, flush=True)
            if finding:
                findings.append(finding)
                print(finding, flush=True)
    print(f"{sum(tries.values()):,} shapes; fewest for one target {min(tries.values(), default=0):,}", flush=True)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
