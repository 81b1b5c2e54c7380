"""The answers and judgements of a run folder: ``answers.jsonl`` and ``judgements.jsonl``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from polyad.errors import ConfigurationError
from polyad.evaluation.answers.judging import AnswerRecord, Judgement, JudgementLog
from polyad.evaluation.datasets.beir import Question
from polyad.evaluation.json_lines import JsonLinesFile, read_json_lines

ANSWERS, JUDGEMENTS = "answers.jsonl", "judgements.jsonl"

T = TypeVar("T")


class AnswerWriter:
    """Adds answers and judgements to a run folder, each as it comes.

    Args:
        folder: That of a run.

    Attributes:
        answers: What is there, by retriever and question.
        judgements: Likewise.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._answers = JsonLinesFile(folder / ANSWERS)
        self._judgements = JsonLinesFile(folder / JUDGEMENTS)
        try:
            self.answers, self.judgements = read_answers(folder)
        except BaseException:
            self.close()
            raise

    def lacks(self, retriever: str, queries: Iterable[Question]) -> list[Question]:
        """Those of the questions that have no answer from what a retriever found."""
        return [query for query in queries if (retriever, query.id) not in self.answers]

    def keep_answer(self, answer: AnswerRecord) -> None:
        """Write an answer."""
        with self._lock:  # several are answered at a time
            self._answers.add([answer.to_json()])
            self.answers[answer.key] = answer

    def keep_judgement(self, judgement: Judgement) -> None:
        """Write a judgement, or a reply that could not be read."""
        self._judgements.add([judgement.to_json()])

    def close(self) -> None:
        """Let others write."""
        self._answers.close()
        self._judgements.close()

    def __enter__(self) -> AnswerWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_answers(folder: Path) -> tuple[dict[tuple[str, str], AnswerRecord], JudgementLog]:
    """The answers in a run folder, and what has been judged of them; none where none were asked for.

    Raises:
        ConfigurationError: a file is damaged: says which and where.
    """
    answers: dict[tuple[str, str], AnswerRecord] = {}
    for one in _read(folder / ANSWERS, AnswerRecord.from_json):
        answers.setdefault(one.key, one)
    judgements = JudgementLog()
    for judgement in _read(folder / JUDGEMENTS, Judgement.from_json):
        judgements.add(judgement)
    return answers, judgements


def _read(path: Path, make: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    if not path.exists():
        return
    for number, line in enumerate(read_json_lines(path), 1):
        try:
            yield make(line)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"{str(path)!r}, line {number}: expected what polyad eval has written") from error
