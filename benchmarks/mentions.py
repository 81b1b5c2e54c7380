"""Recall and precision of rule-based mentions against a language model's entities and titles of other passages.

    python benchmarks/mentions.py BEIR_DIR... [--json FILE]

Three measures of each corpus:

- *entities*: precision, recall and F1 of the distinct entity keys of a passage (micro-averaged), where the folder holds
  ``openie.jsonl`` with a language model's entities by passage; exact, and relaxed: words overlap by half or more.
- *titles*: of the cases where a passage names what another passage is about, how many gave a mention with that title's
  key. A title counts as named where it stands in the text exactly as written, without its disambiguator, at the bounds
  of words. ``alone`` leaves out titles inside a longer title or a longer run of capitals ("United" in "United States").
- *time*: milliseconds a passage, one process.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from polyad.indexing.mentions.rules import RuleMentionExtractor
from polyad.model import Mention
from polyad.text.keys import build_entity_key

Record = dict[str, Any]

_DISAMBIGUATOR = re.compile(r"\s+\([^()]*\)$")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:\n]\W*)\Z")
_LAST_WORD = re.compile(r"(\S+)[ -]\Z")


def main() -> None:
    """Print a table for each folder; save the numbers with ``--json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="BEIR folders (corpus.jsonl, and openie.jsonl if any)")
    parser.add_argument("--json", type=Path, help="save the numbers here")
    arguments = parser.parse_args()
    results = {folder.name: measure(folder) for folder in arguments.folders}
    for corpus, result in results.items():
        print(f"\n{corpus}")
        for key, value in result.items():
            print(f"  {key:<28} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps({**_provenance(), "results": results}, indent=2) + "\n", encoding="utf-8")


def measure(folder: Path) -> dict[str, Any]:
    """Return all measures of one corpus."""
    passages = _records(folder / "corpus.jsonl")
    extractor = RuleMentionExtractor()
    began = time.perf_counter()
    mentions = extractor.extract([passage["text"] for passage in passages])
    seconds = time.perf_counter() - began
    keys = [{key for mention in actual if (key := build_entity_key(mention.name))} for actual in mentions]
    result: dict[str, Any] = {
        "passages": len(passages),
        "characters a passage": round(sum(len(passage["text"]) for passage in passages) / len(passages)),
        "ms a passage": round(1000 * seconds / len(passages), 3),
        "entities a passage": round(sum(map(len, keys)) / len(passages), 2),
        "distinct entities": len(set().union(*keys)),
    }
    result |= _title_recall(passages, keys)
    if (folder / "openie.jsonl").exists():
        reference = {
            record["_id"]: {key for name in record["entities"] if (key := build_entity_key(name))}
            for record in _records(folder / "openie.jsonl")
        }
        expected = [reference[passage["_id"]] for passage in passages]
        result["exact"] = _scores(keys, expected, lambda key, others: key in others)
        result["relaxed"] = _scores(keys, expected, _overlaps)
        result["by rule"] = _by_rule(mentions, expected)
    return result


def _title_recall(passages: Sequence[Record], keys: Sequence[set[str]]) -> dict[str, Any]:
    named = list(_named_titles(passages))
    alone = [case for case in named if case[2]]
    return {
        "titles named": len(named),
        "of these found": _share(sum(key in keys[row] for row, key, _ in named), len(named)),
        "titles named alone": len(alone),
        "of these found, alone": _share(sum(key in keys[row] for row, key, _ in alone), len(alone)),
    }


def _named_titles(passages: Sequence[Record]) -> Iterator[tuple[int, str, bool]]:
    """Yield passage row, title key and whether the title stands alone, for each title that a passage names."""
    titles: dict[str, set[str]] = defaultdict(set)
    for passage in passages:
        title = _DISAMBIGUATOR.sub("", passage.get("title", "")).strip()
        if build_entity_key(title) and (" " in title or title[0].isupper()):
            first = _TOKEN.search(title)
            titles[first.group() if first else title].add(title)
    for row, passage in enumerate(passages):
        text = passage["text"]
        spans: dict[str, tuple[int, int]] = {}
        for token in _TOKEN.finditer(text):
            for title in sorted(titles.get(token.group(), ())):
                span = token.start(), token.start() + len(title)
                if _is_named(title, text, *span) and build_entity_key(title) != build_entity_key(
                    passage.get("title", "")
                ):
                    spans.setdefault(build_entity_key(title), span)
        for key, span in spans.items():
            yield row, key, not _is_inside(span, spans.values()) and not _is_flanked(text, *span)


def _is_named(title: str, text: str, start: int, end: int) -> bool:
    if not text.startswith(title, start) or text[end : end + 1].isalnum() or text[max(0, start - 1) : start].isalnum():
        return False
    return " " in title or not _SENTENCE_START.search(text, max(0, start - 6), start)


def _is_inside(span: tuple[int, int], spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end and (start, end) != span for start, end in spans)


def _is_flanked(text: str, start: int, end: int) -> bool:
    before = _LAST_WORD.search(text, max(0, start - 40), start)
    after = text[end : end + 2]
    return bool(before and before.group(1)[0].isupper()) or (after[:1] in " -" and after[1:].isupper())


def _scores(
    results: Sequence[set[str]], expected: Sequence[set[str]], holds: Callable[[str, set[str]], bool]
) -> dict[str, float]:
    precision = _share(
        sum(holds(key, want) for keys, want in zip(results, expected, strict=True) for key in keys),
        sum(map(len, results)),
    )
    recall = _share(
        sum(holds(key, keys) for keys, want in zip(results, expected, strict=True) for key in want),
        sum(map(len, expected)),
    )
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": round(f1, 4)}


def _overlaps(key: str, others: set[str]) -> bool:
    words = set(key.split())
    return any(2 * len(words & set(other.split())) >= len(words | set(other.split())) for other in others)


def _by_rule(mentions: Sequence[Sequence[Mention]], expected: Sequence[set[str]]) -> dict[str, dict[str, float]]:
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for results, want in zip(mentions, expected, strict=True):
        rules: dict[str, str] = {}
        for mention in results:
            rules.setdefault(build_entity_key(mention.name), mention.type)
        rules.pop("", None)
        counts.update(rules.values())
        right.update(rule for key, rule in rules.items() if key in want)
    return {rule: {"entities": counts[rule], "precision": _share(right[rule], counts[rule])} for rule in sorted(counts)}


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _records(path: Path) -> list[Record]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _provenance() -> dict[str, str]:
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False).stdout
    return {"commit": commit.strip(), "python": platform.python_version(), "machine": platform.machine()}


if __name__ == "__main__":
    main()
