"""Recognises the text lines of a picture with the OCR models of RapidOCR, which run offline."""

from __future__ import annotations

import json
import math
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polyad.config import ReadSettings
from polyad.errors import MissingExtraError, ReadError
from polyad.readers.text.ocr_cache import FILE_NAME, open_cache

Picture = npt.NDArray[np.uint8]
"""A picture in the colours blue, green and red, of shape ``[height, width, 3]``."""

_DETECTION_SIDE = 1280
"""Pixels of the longer side of the picture in which lines are detected; more take more memory."""

_LEAST_SIDE = 16
"""Least pixels of a side of a picture in which lines are detected."""

_TALL = 1.5
"""Least ratio of height and width of a line that runs upwards or downwards."""

_LONG = 6.0
"""Least ratio of width and height of a line that shows the skew of its page; that of a word is off by some degrees."""

_MIN_CONFIDENCE, _MIN_DENSITY, _MIN_LENGTH = 0.6, 0.4, 40.0
"""Mean confidence of letters, and letters per square of a line's height, below which the script of a page is unknown to
the model; and the squares of the shortest text that is judged. Of Russian and Arabic the model reads hardly any letter.
"""

_SAMPLE_LINES, _CERTAIN = 4, 0.9
"""Longest lines of a page that are read to see its direction, and the mean confidence of letters from which the first
direction is right. PaddleOCR's model of directions misjudges half of the lines in some fonts.
"""

_MIN_LETTERS = 4
"""Letters of a page of uncertain words below which the page has no text: edges in a picture are read as "1" or "I"."""

_VERSION = 3
"""Number of this module's results in the cache; raise it when equal pictures give other lines."""

_DETECTION_MODEL, _RECOGNITION_MODEL = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"


class OcrLine(NamedTuple):
    """A line of text in a picture.

    Attributes:
        text: The text.
        corners: The corners x, y of the line in points from the upper left corner of the page, clockwise in reading
            direction: the first is where the text begins, at its top.
        places: Centre of each character of the text, as a share of the line's width in [0, 1].
        confidences: Confidence of each character, in [0, 1]; that of a space is 1.
    """

    text: str
    corners: tuple[tuple[float, float], ...]
    places: tuple[float, ...]
    confidences: tuple[float, ...]

    @property
    def angle(self) -> float:
        """Direction of the line in degrees, clockwise from left to right, in [-180, 180]."""
        (left, top), (right, bottom) = self.corners[0], self.corners[1]
        return math.degrees(math.atan2(bottom - top, right - left))

    @property
    def width(self) -> float:
        """Length of the line in points."""
        return math.dist(self.corners[0], self.corners[1])

    @property
    def height(self) -> float:
        """Height of the line in points."""
        return math.dist(self.corners[0], self.corners[3])


def is_ocr_installed() -> bool:
    """Return whether the packages of the extra ``ocr`` are installed."""
    return all(map(find_spec, ("rapidocr", "onnxruntime", "PIL")))


class PageOcr:
    """Recognises the pages of one file, and stores the lines of each page, so that an interrupted run continues.

    Args:
        settings: Language, model and folder of the cache.
        digest: SHA-256 of the file, or of a picture inside a document.
        owner: SHA-256 of the document that contains the picture; empty for a file. The lines of a picture are deleted
            with the last document that contains it.

    Attributes:
        is_stored: Whether the lines of the last page came from the cache.
    """

    def __init__(self, settings: ReadSettings, digest: str, owner: str = "") -> None:
        self.is_stored = False
        self._settings = settings
        self._digest = digest
        self._owner = owner

    def read_page(self, page: int, render: Callable[[], tuple[Picture, float]]) -> list[OcrLine]:
        """Return the lines of a page from the cache, or recognise and store them.

        Args:
            page: Number of the page, from 1.
            render: Returns the picture of the page, and its pixels per point.

        Raises:
            ReadError: The script of the page is unknown to the model.
        """
        lines = self.find_page(page)
        self.is_stored = lines is not None
        if lines is None:
            picture, scale = render()
            lines = recognize(picture, scale, self._settings.ocr_model)
            self._store_page(page, lines)
        if _is_unknown_script(lines):
            raise ReadError("its script is unknown to the OCR model (see ocr_model)")
        readable = [line for line in lines if line.text]
        is_noise = " ".join(line.text for line in readable).split() == list_uncertain_words(readable, 0.9)
        letters = sum(character.isalnum() for line in readable for character in line.text)
        return [] if not letters or (is_noise and letters < _MIN_LETTERS) else readable

    def find_page(self, page: int) -> list[OcrLine] | None:
        """Return the stored lines of a page; None if there are none."""
        if not (file := self._get_cache_file()):
            return None
        with closing(open_cache(file)) as cache:
            select = "SELECT lines FROM pages WHERE digest = ? AND page = ?"
            row = cache.execute(select, self._get_key(page)).fetchone()
            if row and self._owner:
                self._add_owner(cache)
        return _parse_lines(row[0]) if row else None

    def _store_page(self, page: int, lines: Sequence[OcrLine]) -> None:
        if file := self._get_cache_file():
            with closing(open_cache(file)) as cache, cache:
                values = (*self._get_key(page), json.dumps(lines))
                cache.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", values)
                if self._owner:
                    self._add_owner(cache)

    def _add_owner(self, cache: sqlite3.Connection) -> None:
        with cache:
            cache.execute("INSERT OR IGNORE INTO owners VALUES (?, ?)", (self._owner, self._digest))

    def _get_key(self, page: int) -> tuple[str, int]:
        return f"{self._digest}-{_VERSION}-{Path(self._settings.ocr_model).name}", page

    def _get_cache_file(self) -> Path | None:
        folder = self._settings.folder
        return Path(folder, FILE_NAME) if folder and Path(folder).is_dir() else None


def _parse_lines(text: str) -> list[OcrLine]:
    return [
        OcrLine(text, tuple((x, y) for x, y in corners), tuple(places), tuple(confidences))
        for text, corners, places, confidences in json.loads(text)
    ]


def _is_unknown_script(lines: Sequence[OcrLine]) -> bool:
    """Return whether the model reads few letters in lines of text, or is uncertain of most."""
    squares = sum(line.width / max(line.height, 1.0) for line in lines)
    letters = [
        confidence
        for line in lines
        for character, confidence in zip(line.text, line.confidences, strict=True)
        if not character.isspace()
    ]
    is_empty = len(letters) < _MIN_DENSITY * squares
    return squares >= _MIN_LENGTH and (is_empty or sum(letters) < _MIN_CONFIDENCE * len(letters))


def recognize(picture: Picture, scale: float, model: str = "") -> list[OcrLine]:
    """Return the lines in a picture, in any order; those without a letter that the model knows have no text.

    Lines are detected in a smaller picture, and recognised in the original one. A line may have any direction.

    Args:
        picture: The picture.
        scale: Pixels per point.
        model: File of another recognition model; empty for that of RapidOCR.

    Raises:
        MissingExtraError: The extra ``ocr`` is not installed.
    """
    engine = _load_engine(model)
    import cv2  # comes with rapidocr
    from rapidocr.main import RapidOCRError
    from rapidocr.utils.process_img import get_rotate_crop_image

    if min(picture.shape[:2]) < _LEAST_SIDE:
        return []
    ratio = min(1.0, _DETECTION_SIDE / max(picture.shape[:2]))
    small = cv2.resize(picture, None, fx=ratio, fy=ratio, interpolation=cv2.INTER_AREA) if ratio < 1 else picture
    try:
        _, detected = engine.detect_and_crop(small, {})
    except RapidOCRError:  # no line
        return []
    boxes = detected.boxes.astype(np.float32) / ratio
    crops = [get_rotate_crop_image(picture, box.copy()) for box in boxes]
    is_tall = np.array([_is_tall(box) for box in boxes])
    is_turned = np.zeros(len(crops), dtype=np.bool_)
    for group in (is_tall, ~is_tall):
        is_turned[group] = _are_turned(engine, [crop for crop, has in zip(crops, group, strict=True) if has])
    recognized = engine.recognize_txt(
        [_turn(crop) if turned else crop for crop, turned in zip(crops, is_turned, strict=True)]
    )
    lines = []
    for place, (text, words) in enumerate(zip(recognized.txts, recognized.word_results, strict=True)):
        first = (1 if is_tall[place] else 0) + (2 if is_turned[place] else 0)
        lines.append(_build_line(text, words, np.roll(boxes[place], -first, axis=0) / scale))
    return lines


def _are_turned(engine: Any, crops: Sequence[Picture]) -> bool:
    """Return whether the recognition model reads more of the longest lines if they are turned by 180 degrees."""
    sample = sorted(crops, key=lambda crop: -max(crop.shape[:2]))[:_SAMPLE_LINES]
    if not sample:
        return False
    sums = []
    for lines in (sample, [*map(_turn, sample)]):
        result = engine.recognize_txt([*lines])
        letters = sum(map(len, result.txts))
        sums.append(sum(len(text) * score for text, score in zip(result.txts, result.scores, strict=True)))
        if letters >= _MIN_LENGTH and sums[0] > _CERTAIN * letters:
            return False
    return bool(sums[1] > sums[0])


def _turn(crop: Picture) -> Picture:
    return np.ascontiguousarray(crop[::-1, ::-1])


def list_uncertain_words(lines: Sequence[OcrLine], threshold: float = 0.7) -> list[str]:
    """Return the words whose mean confidence is below ``threshold``."""
    uncertain = []
    for line in lines:
        start = 0
        for word in line.text.split():
            start = line.text.index(word, start)
            confidences = line.confidences[start : start + len(word)]
            if sum(confidences) < threshold * len(word):
                uncertain.append(word)
            start += len(word)
    return uncertain


def _is_tall(box: npt.NDArray[np.float32]) -> bool:
    """Return whether a box with corners in clockwise order is so tall that its picture is turned by 90 degrees."""
    width = max(math.dist(box[0], box[1]), math.dist(box[2], box[3]))
    return int(max(math.dist(box[0], box[3]), math.dist(box[1], box[2]))) >= _TALL * int(width)


def _build_line(text: str, words: Any, corners: npt.NDArray[np.float32]) -> OcrLine:
    """Return a line with the place and the confidence of each character.

    Args:
        text: The text as RapidOCR returns it.
        words: RapidOCR's ``WordInfo``: the columns of the characters without spaces, and confidences with spaces.
        corners: Corners of the line, of shape ``[4, 2]``.
    """
    rounded = tuple((round(float(x), 2), round(float(y), 2)) for x, y in corners)
    if not text.strip():
        return OcrLine("", rounded, (), ())
    columns = iter([column for word in words.word_cols for column in word])
    centres = [
        (place, (next(columns, 0) + 0.5) / words.line_txt_len) for place, each in enumerate(text) if not each.isspace()
    ]
    places = np.interp(np.arange(len(text)), *np.array(centres).T).clip(0, 1)
    confidences = [1.0 if each.isspace() else value for each, value in zip(text, words.confs, strict=True)]
    if not any(map(_is_wide, text)):  # Latin text with Chinese punctuation
        text = "".join(
            unicodedata.normalize("NFKC", each)[:1] if "\uff01" <= each <= "\uff5e" else each for each in text
        )
    return OcrLine(text, rounded, tuple(round(float(each), 4) for each in places), tuple(confidences))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) == "W"


@lru_cache(maxsize=1)
def _load_engine(model: str) -> Any:
    """Return RapidOCR with models from files, so that it never downloads any.

    Args:
        model: File of the recognition model; empty for that of RapidOCR.
    """
    _use_hard_memory_limit()
    try:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: F401  # rapidocr does not require a runtime
        import rapidocr
    except ImportError as error:
        raise MissingExtraError("rapidocr", "ocr") from error
    folder = Path(rapidocr.__file__).parent / "models"
    files = {
        "Det.model_path": str(folder / _DETECTION_MODEL),
        "Rec.model_path": model or str(folder / _RECOGNITION_MODEL),
    }
    for file in files.values():
        if not Path(file).is_file():
            raise ReadError(f"the OCR model {Path(file).name} is missing; install rapidocr again, or set ocr_model")
    engine = rapidocr.RapidOCR(
        params={
            **files,
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,  # other documents are read in other processes
            "Rec.rec_batch_num": 1,  # a batch of lines of equal width takes 250 MB more, and more time for padding
        }
    )
    engine.return_word_box = True
    return engine


def _use_hard_memory_limit() -> None:
    """Let this process use the memory that :mod:`polyad.readers.pool.worker` grants to models."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def get_page_angle(lines: Sequence[OcrLine]) -> float:
    """Return the direction of most lines of a page in degrees, in [-180, 180]: a multiple of 90 plus the skew."""
    longest = max(
        ([line for line in lines if round(line.angle / 90) % 4 == quarter] for quarter in range(4)),
        key=lambda group: sum(line.width for line in group),
    )
    if not longest:
        return 0.0
    quarter = 90 * round(longest[0].angle / 90)
    long_lines = [line for line in longest if line.width >= _LONG * line.height]
    if not long_lines:
        return quarter
    return quarter + median((line.angle - quarter + 180) % 360 - 180 for line in long_lines for _ in line.text)
