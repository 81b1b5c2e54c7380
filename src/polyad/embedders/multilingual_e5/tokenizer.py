"""The tokenizer of multilingual-e5-small: a SentencePiece unigram model (Kudo, 2018, arXiv 1804.10959)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import sentencepiece

from polyad.model import FloatArray

_BEGIN, _END, _UNKNOWN = b"<s>", b"</s>", b"<unk>"
_CONTROL = (_BEGIN, b"<pad>", _END, b"<mask>")
_UNKNOWN_TYPE, _CONTROL_TYPE = b"\x18\x02", b"\x18\x03"


class UnigramTokenizer:
    """Converts texts to the token ids of an XLM-RoBERTa model, with the library ``sentencepiece``.

    Args:
        pieces: Word pieces in the order of their ids, as UTF-8.
        scores: Log probability of each piece, float32 ``[pieces]``.
    """

    def __init__(self, pieces: Sequence[bytes], scores: FloatArray) -> None:
        self._begin, self._end = pieces.index(_BEGIN), pieces.index(_END)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=_build_model(pieces, scores))

    def split_windows(self, text: str, max_tokens: int) -> list[list[int]]:
        """Return the token ids of a text as one or more windows, each starting with ``<s>`` and ending with ``</s>``.

        Args:
            text: The text.
            max_tokens: Maximum number of tokens in a window, the two special tokens included; 3 or more.
        """
        ids: list[int] = self._processor.encode(text)
        size = max_tokens - 2
        return [[self._begin, *ids[start : start + size], self._end] for start in range(0, max(1, len(ids)), size)]


def _build_model(pieces: Sequence[bytes], scores: FloatArray) -> bytes:
    """Return a SentencePiece model as a protocol buffer: the pieces, and the library's normaliser ``nmt_nfkc``.

    A piece is the first field of the model. Its fields are a text, a number and, for special tokens, a type.
    """
    parts = []
    for piece, score in zip(pieces, scores.tolist(), strict=True):
        kind = _UNKNOWN_TYPE if piece == _UNKNOWN else _CONTROL_TYPE if piece in _CONTROL else b""
        entry = b"\x0a%b%b\x15%b%b" % (bytes([len(piece)]), piece, struct.pack("<f", score), kind)
        parts.append(b"\x0a%b%b" % (bytes([len(entry)]), entry))  # no piece has the 128 bytes of a longer length
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc", add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=True
    )
    return b"".join(parts) + normalizer.serialized_model_proto()
