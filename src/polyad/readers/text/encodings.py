"""Detects the encoding of bytes: byte order mark, valid UTF-8, declared label, or the most likely letters."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from polyad.errors import ReadError

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark begins the same
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_SAMPLE_BYTES = 64 * 1024
"""Bytes in which UTF-16 and binary data are looked for."""

_MAX_DAMAGE = 0.25
"""Most undecodable sequences for each valid one in text that counts as damaged UTF-8."""

_MAX_DECLARED_DAMAGE = 0.5
"""The same limit for text that is declared to be UTF-8."""

_MAX_UNDECODABLE = 0.1
"""Share of undecodable bytes above which a file is binary."""

_WIDER_CODECS = """
ascii=cp1252 iso8859-1=cp1252 iso8859-9=cp1254 iso8859-11=cp874 tis-620=cp874 shift_jis=cp932 euc_kr=cp949
gb2312=gb18030 gbk=gb18030 big5=big5hkscs cp950=big5hkscs euc_jp=euc_jis_2004
"""
_SUPERSETS = dict(pair.split("=") for pair in _WIDER_CODECS.split())
"""Codec of a label to the codec that browsers use for the label, which has more characters (WHATWG Encoding)."""

_UNKNOWN_LABELS = """
windows-874=cp874 windows-31j=cp932 windows-932=cp932 windows-936=gb18030 windows-949=cp949 windows-950=big5hkscs
cn-big5=big5hkscs korean=cp949 ks-c-5601-1989=cp949 gb-2312=gb18030 gb-2312-80=gb18030 hz-gb-2312=hz
x-mac-roman=mac-roman x-mac-cyrillic=mac-cyrillic logical=iso8859-8 visual=iso8859-8 koi=koi8-r koi8=koi8-r
koi8-ru=koi8-u unicode-1-1-utf-8=utf-8 cseucpkdfmtjapanese=euc_jis_2004
"""
_LABELS = dict(pair.split("=") for pair in _UNKNOWN_LABELS.split())
"""Labels that Python does not know, in lower case with hyphens, and their codecs."""

_NOT_CHARSETS = frozenset({"idna", "mbcs", "oem", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Text codecs of Python that are not encodings of documents."""

_SEVEN_BIT = ("iso2022", "hz", "utf-7")
"""Beginnings of the codecs that write all letters as ASCII bytes, so that their text is valid UTF-8 too."""

_ESCAPED = ("iso2022_jp_ext", "iso2022_kr")
"""Codecs that switch between alphabets by escape sequences."""

_DEFAULT = "cp1252"
"""The declared encoding that many programs write by default, so that the letters may show another one."""

_WORD = re.compile(rb"[^\x00-\x20]++")
_MAX_GUESS_BYTES = 1500
"""Bytes of words with non-ASCII bytes from which the encoding is guessed."""

_WESTERN = "cp1252 iso8859-15 cp850 mac-roman"
_CENTRAL = "cp1250 iso8859-2 cp852"
_CYRILLIC = "cp1251 koi8-r cp866 iso8859-5 mac-cyrillic cp855"
_ALPHABETS = (
    (_WESTERN, "éè üäöß éèàêçîôûùâœëï óíáéñúü¿¡ ãçáéíóêõúâàôª èàùòìé äöåéæø øåæéö ðáþíóöúæéý àóéèíïçúòü ëéïçü"),
    (_CENTRAL, "łżąęśćóńź íáéěčřžšýůúňťďóľôäĺ áéóöőíüúű ăţşîâ šžčćđ"),
    ("cp1257 iso8859-13", "ėšųžįūąčę āīēšūņļģžķč äõüöšž"),
    ("cp1254 cp857", "ıüşğöçâ"),
    (_CYRILLIC, "оеаинтсрвлкмдпуяыьгзбчйжхшюцщэфъё аеиотнрсвдлкпмзъгуячбйцжщхшюф"),
    ("cp1251 koi8-u cp866 iso8859-5", "оанітвиересклмудпяьзбгчйхцїжшєющфґ"),
    ("cp1251 iso8859-5", "аиоенртсвкдулмпјзгбчшцжхњљфћђџѓќѕ анілеыкрястпцдьмвозубэўчгшйхжюфё"),
    ("cp1253 iso8859-7 cp737", "αοιετσνηυρπκμλςίόάγέδήωχθφύβξώζψϊ"),
    ("cp1255 iso8859-8 cp862", "יוהלאתרבמשנדחעקפסגטכצםזןךףץ"),
    ("cp1256 iso8859-6", "الينمرتوةبدعسفهكقحجأطصشخإىضغذزئثءظؤآ،؟ًّ"),
    ("cp1256", "ایرندهمتوبسشکزلگفخقپعجآحطصچغضذژثظ،ئ؛"),
    ("cp874", "านรอกเงมยลวดทส่ตะปบคหแจพชขใไ้ัิี็ืุูำโผถซณธฟศษญภฐฎฏ์"),
    ("cp1258", "đàưáóôạợếêảãệểốấớộịờọữủổửâặắăíùơúầẽứồýỏéõ\u0300\u0301\u0303\u0309\u0323"),
)
"""Encodings, the most frequent first, and for each language that uses them its non-ASCII letters, most frequent first.

The languages: English, German, French, Spanish, Portuguese, Italian, Swedish, Danish, Icelandic, Catalan, Dutch;
Polish, Czech, Slovak, Hungarian, Romanian, Croatian; Lithuanian, Latvian, Estonian, Turkish; Russian, Ukrainian,
Bulgarian, Serbian, Belarusian; Greek, Hebrew, Arabic, Persian, Thai, Vietnamese.
"""

_EAST_ASIAN = (
    (
        ("gb18030", "gb2312", 0xB0, 0xD7, 0.45),
        "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还"
        "成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话",
    ),
    (
        ("big5hkscs", "big5", 0xA4, 0xC6, 0.45),
        "的國年在為一中大是人和有於了以地後成時學民會不日主之與政上軍部發行月南多西個其斯而到來法區世方東分自出北對生他這及家用戰經由公被也最"
        "代作同立建要並市文動等開名高都利教期海第外內長此因所統重位過下現使度共可機前進美業新力但得特產當理定說們你我沒還就那看",
    ),
    (
        ("cp932 euc_jis_2004", "euc_jp", 0xB0, 0xCF, 0.66),
        "のるにはとがてたをいでしなれあらこもすかりさっようまめそやきくどんけおせつみえちわだばろょゅべむひほごじずぐげン"
        "ーイルスラトリアクドレジッロシコタフマテオカムプグバキメサニィセ年日国人大中一会本",
    ),
    (
        ("cp949 johab", "euc_kr", 0xB0, 0xC8, 0.75),
        "이다는의에가을고하지로기도사한리은자인를스서어그나들시아대정부라전수일만해주제으원구성상보여장관공조과비경국과동년있것우용문면중연유신"
        "화니안무와회게생방영저물소교적개산트마위실등진결습발당심금모했때후음행각세미선르학치았내식청요오데까입값없않던려더",
    ),
)
"""Encodings, a codec whose lead bytes tell common characters, their range, the share of the characters listed below."""

# Look-alike marks are listed because texts contain each of them.
_PUNCTUATION = frozenset(
    "\xa0\u2009\u202f“”„’‘‚–—…€«»‹›°§©®™·•№×±£\u2011\xad、。，：；？！（）「」『』《》〈〉【】・～％　"  # noqa: RUF001
)
_JOINING = frozenset("’‘\xad\u2011·・\u200c\u200d")  # noqa: RUF001
_FOREIGN, _UNUSUAL, _DAMAGE = -9.0, -8.0, -14.0
"""Log probabilities of a letter of other languages, of a symbol, and of a control or replacement character."""

_PREFERENCE = 2.0
"""Log ratio of the frequencies of an encoding and the next one of the same language."""

_DECLARED = 30.0
"""Log probability by which another encoding must be better than a declared one that can decode the text."""


def find_codec(label: str) -> str:
    """Return the name of Python's codec for a declared encoding, as browsers understand it; empty if there is none.

    Browsers read many labels as the larger encoding that programs really write: ISO-8859-1 as Windows-1252.

    >>> [find_codec(label) for label in ("ISO-8859-1", "x-sjis", "gb2312", "iso-8859-8-i", "nonsense")]
    ['cp1252', 'cp932', 'gb18030', 'iso8859-8', '']
    """
    label = label.strip(" \t\r\n\"'").lower().replace("_", "-")
    for name in (label, label.removeprefix("x-"), label.removeprefix("x-cp").removeprefix("cs"), label[:-2]):
        if name in _LABELS:
            return _LABELS[name]
        try:
            info = codecs.lookup(name)
        except (LookupError, ValueError):
            continue
        is_charset = info._is_text_encoding and info.name.replace("-", "_") not in _NOT_CHARSETS
        return _SUPERSETS.get(info.name, info.name) if is_charset else ""
    return ""


def detect_encoding(sample: bytes, declared: str = "", *, is_whole_file: bool = True) -> str:
    """Return the name of Python's codec for the encoding of ``sample``, the beginning or the whole of a file.

    A byte order mark decides; then zero bytes reveal UTF-16; then valid or slightly damaged UTF-8 is UTF-8; then the
    declared encoding if it decodes the sample to plausible text; otherwise the most likely encoding by its letters.

    Args:
        sample: The beginning of a file.
        declared: Label of the encoding that the file declares; empty if it declares none.
        is_whole_file: Whether the sample is the whole file; otherwise its last character may be cut off.

    Raises:
        ReadError: The sample is not text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return encoding
    if encoding := _detect_wide_encoding(sample):
        return encoding
    codec = find_codec(declared)
    is_certain = bool(codec) and _can_decode(sample, codec, is_whole_file)
    if sample.isascii():
        codecs_of_ascii = (codec if codec.startswith(_SEVEN_BIT) else "", *(_ESCAPED if b"\x1b$" in sample else ()))
        return next((name for name in codecs_of_ascii if name and _can_decode(sample, name, is_whole_file)), "utf-8")
    max_damage = _MAX_DECLARED_DAMAGE if codec == "utf-8" else _MAX_DAMAGE
    if _can_decode(sample, "utf-8", is_whole_file) or _is_damaged_utf8(sample, max_damage):
        return "utf-8"
    return codec if is_certain and codec != _DEFAULT else _guess_encoding(sample, codec, is_certain)


def decode_text(data: bytes, declared: str = "") -> str:
    """Return ``data`` as text in its declared or detected encoding, with U+FFFD for bytes that cannot be decoded.

    Raises:
        ReadError: The data is not text.
    """
    return data.decode(detect_encoding(data, declared), errors="replace")


def _can_decode(sample: bytes, codec: str, is_whole_file: bool) -> bool:
    """Return whether a codec decodes a sample, whose last character may be cut off unless it is the whole file."""
    try:
        codecs.getincrementaldecoder(codec)().decode(sample, final=is_whole_file)
    except (LookupError, ValueError):
        return False
    return True


def _detect_wide_encoding(sample: bytes) -> str:
    """Return the UTF-16 or UTF-32 codec if zero bytes stand where Western text has them; otherwise an empty string."""
    head = sample[:_SAMPLE_BYTES]
    quarter = len(head) // 4
    zeros = [head[place::4].count(0) for place in range(4)]
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    for last, third, codec in ((3, 2, "utf-32-le"), (0, 1, "utf-32-be")):
        if zeros[last] == quarter and 2 * zeros[third] > quarter:
            return codec
    if odd > quarter and even < 0.1 * quarter:
        return "utf-16-le"
    return "utf-16-be" if even > quarter and odd < 0.1 * quarter else ""


def _is_damaged_utf8(sample: bytes, max_damage: float) -> bool:
    """Return whether a sample is UTF-8 with a few invalid sequences, rather than in another encoding."""
    text = sample.decode("utf-8", errors="replace")
    invalid = text.count("\ufffd")
    valid = sum(character > "\x7f" for character in text) - invalid
    return invalid <= max_damage * valid


def _guess_encoding(sample: bytes, declared: str, is_certain: bool) -> str:
    """Return the codec under which the non-ASCII words of a sample are the most likely text of a language.

    Args:
        sample: Text that is not UTF-8.
        declared: Codec of the declared encoding; empty if there is none.
        is_certain: Whether the declared codec decodes the sample.
    """
    words, size = [], 0
    for word in filter(lambda word: not word[0].isascii(), _WORD.finditer(sample)):
        words.append(word[0][:_MAX_GUESS_BYTES])
        size += len(words[-1]) + 1
        if size > _MAX_GUESS_BYTES:
            break
    excerpt = b" ".join(words)[:_MAX_GUESS_BYTES]
    scores = dict(_score_encodings(excerpt))
    if declared:
        scores[declared] = scores.get(declared, -math.inf) + _DECLARED * is_certain
    best = max(scores, key=lambda codec: scores[codec])
    text = sample[:_SAMPLE_BYTES].decode(best, errors="replace")
    if text.count("\ufffd") > 2 + _MAX_UNDECODABLE * len(text):
        raise ReadError("neither UTF-8 nor any other known text encoding; is it binary?")
    return best


def _decode_excerpt(excerpt: bytes, codec: str) -> str:
    """Return an excerpt as text with U+FFFD for damage; the last character of a longer text may be cut off."""
    decoder = codecs.getincrementaldecoder(codec)(errors="replace")
    return decoder.decode(excerpt, final=len(excerpt) < _MAX_GUESS_BYTES)


def _score_encodings(excerpt: bytes) -> Iterator[tuple[str, float]]:
    """Yield each known codec with the log probability of an excerpt in the language that fits best."""
    best: dict[str, float] = {}
    texts: dict[str, tuple[float, Counter[str]]] = {}
    for encodings, probabilities in _build_languages():
        for rank, codec in enumerate(encodings):
            if codec not in texts:
                text = _decode_excerpt(excerpt, codec)
                texts[codec] = _score_form(text), Counter(filter("\x7f".__lt__, text.lower()))
            score, counts = texts[codec]
            score += sum(count * _get_probability(character, probabilities) for character, count in counts.items())
            best[codec] = max(best.get(codec, -math.inf), score - rank * _PREFERENCE + (codec == _DEFAULT))
    yield from best.items()


def _get_probability(character: str, probabilities: dict[str, float]) -> float:
    """Return the log probability of a non-ASCII character in a language."""
    if (probability := probabilities.get(character)) is not None:
        return probability
    if character in _PUNCTUATION:
        return -4.0
    if character.isalpha():
        return _FOREIGN
    return _UNUSUAL if character.isprintable() and character != "\ufffd" else _DAMAGE


def _score_form(text: str) -> float:
    """Return the log probability of the order of letters: capitals within words and mixed scripts are rare."""
    score = 0.0
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if character < "\x80":
            continue
        if not character.isalpha():
            is_symbol = character < "\u0300" or "\u2000" < character < "\u2e80"
            is_inside = is_symbol and before.isalpha() and after.isalpha() and character not in _JOINING
            score -= 4 * is_inside
            continue
        if character.isupper():
            score -= 7 if before.islower() else 0.7 if before.isupper() else 1.5
        is_beside_ascii = any(other.isascii() and other.isalpha() for other in (before, after))
        if character > "\u024f" and not "\u1e00" <= character < "\u1f00":
            score -= is_beside_ascii and (1 if character > "\u2e80" else 5)
        elif before > "\x7f" and before.isalpha():
            score -= 2
    return score


@cache
def _build_languages() -> list[tuple[list[str], dict[str, float]]]:
    """Return the encodings of each language with the log probabilities of its non-ASCII characters."""
    languages = [(names.split(), _spread(letters, 0.8)) for names, words in _ALPHABETS for letters in words.split()]
    for (encodings, reference, first, last, share), characters in _EAST_ASIAN:
        pairs = (bytes((lead, trail)) for lead in range(first, last + 1) for trail in range(0x40, 0xFF))
        common = {text for pair in pairs if len(text := pair.decode(reference, errors="replace")) == 1} - {"\ufffd"}
        probability = math.log((0.9 - share) / len(common))
        probabilities = {**dict.fromkeys(common, probability), **_spread(characters, share)}
        languages.append((encodings.split(), probabilities))
    return languages


def _spread(characters: Iterable[str], share: float) -> dict[str, float]:
    """Return log probabilities that fall with the rank of a character and sum to ``share``."""
    ranks = {character: rank for rank, character in enumerate(dict.fromkeys(characters), 2)}
    total = sum(1 / rank for rank in ranks.values())
    return {character: math.log(share / total / rank) for character, rank in ranks.items()}
