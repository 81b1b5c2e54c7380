"""Finds names in scripts without capital letters: Chinese, Japanese, Thai, Arabic, Hebrew, Hindi and others.

No dictionary and no segmenter is needed. Names in Katakana, in the characters by which Chinese spells foreign names,
and around a middle dot are found by their script. Other terms are the runs of words or characters between function
words, as in RAKE (Rose et al., 2010), and the character n-grams that recur with different neighbours (accessor variety,
Feng et al., 2004). Each text is read alone, so that its names do not depend on other texts.
"""

# ruff: noqa: RUF001  look-alike signs of other scripts are matched

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from polyad.text.folding import build_letter_table
from polyad.text.function_words import get_function_words
from polyad.text.scripts import (
    HAN,
    HANGUL,
    HIRAGANA,
    KATAKANA,
    SOUTH_EAST_ASIAN,
    UNCASED,
    WITHOUT_CAPITALS,
    compile_letters,
)

_MAX_TERM_CHARACTERS = 24
"""Most characters of a term in a script without spaces."""

_MAX_HAN_TERM, _MAX_RECURRING = 8, 8
"""Most characters of a Chinese term without a mark, and of a recurring n-gram."""

_MAX_LENGTH_RANK = 12
"""Characters up to which a longer term is taken first."""

_MIN_THAI_TERM = 4
"""Fewest characters of a term in Thai, Lao, Burmese and Khmer, which have several characters a syllable."""

_MAX_THAI_NAME = 12
"""Most characters of a given or family name in Thai."""

_MAX_TERM_WORDS = 3
"""Most words of a term in scripts with spaces."""

_CHARACTERS_PER_TERM = 10
"""Characters of text, on average, for each term that has no mark of a name."""

_SHORT_LETTER = 0.5
"""Share of a Chinese character that a letter of another script counts: its words have more letters."""

_MIN_TERMS = 12
"""Terms without a mark of a name that a short text may have."""

_TRANSCRIPTION = (
    "阿埃艾爱愛安奥奧澳巴柏班贝貝比彼毕畢博布查茨达達戴丹德登邓迪蒂丁顿頓多厄恩尔爾法范菲费費芬弗夫福盖蓋冈岡戈格古哈海汉漢赫亨"
    "胡霍基吉加贾賈杰傑金卡凯凱坎康考柯科克肯库庫奎拉莱萊赖賴兰蘭朗劳勞勒雷蕾利里理莉列林琳留卢盧鲁魯伦倫罗羅洛马馬玛瑪麦麥曼梅蒙"
    "米密莫默姆穆纳納娜奈内內尼涅宁寧努诺諾欧歐帕潘佩彭皮珀普奇齐齊乔喬琼瓊荣榮茹瑞若萨薩塞赛賽桑森沙莎舍史士斯丝絲苏蘇索塔泰坦"
    "汤湯特腾騰提廷托瓦万萬威韦韋维維魏温溫沃乌烏吴吳伍西希锡錫席夏肖谢謝辛休逊遜雅亚亞扬楊耶叶葉伊因英尤约約泽澤扎詹朱兹茲佐"
)
"""Characters by which Chinese texts spell foreign names."""

_SURNAME = (
    "(?:欧阳|歐陽|司马|司馬|诸葛|諸葛|上官|[王李张張刘劉陈陳杨楊黄黃赵趙吴吳周徐孙孫马馬朱胡郭何高林罗羅郑鄭梁谢謝宋唐许許邓鄧冯馮韩韓曹曾彭"
    "萧蕭蔡潘田董袁于余叶葉蒋蔣杜苏蘇魏程吕呂丁沈任姚卢盧傅钟鍾姜崔谭譚廖范汪陆陸金石戴贾賈韦韋夏邱方侯邹鄒熊孟秦白江阎閻薛尹段雷黎史龙龍陶贺賀顾顧"
    "毛郝龚龔邵万萬钱錢严嚴覃武戚莫孔向汤湯])"
)
"""Frequent Chinese family names."""

_PERSON = re.compile(rf"(?<=[师師家者员員长長手士授军軍统統席帝子妻父母人])({_SURNAME}[{HAN}]{{1,2}})\Z")
"""A Chinese name behind a profession, at the end of a run of characters."""

_INSTITUTION = re.compile(
    rf"[{HAN}]{{2,7}}?(?:大学|大學|学院|學院|公司|银行|銀行|书店|書店|医院|醫院|博物馆|博物館|图书馆|圖書館|研究所|出版社|委员会|委員會"
    r"|协会|協會|集团|集團|法院|教堂|大桥|大橋|铁路|鐵路|机场|機場|车站|車站|水库|水庫|战争|戰爭|王朝|帝国|帝國|共和国|共和國)"
)
"""A Chinese name that ends with its kind."""

_MIDDLE_DOTS = "·・‧•"
_KATAKANA_NAME = rf"(?=[{KATAKANA}]{{2}})[{KATAKANA}]+(?:[{_MIDDLE_DOTS}＝=][{KATAKANA}]+)*"
_MARKED = re.compile(
    rf"(?P<dotted>(?:(?<![{HAN}])[{HAN}]{{1,5}}|[{_TRANSCRIPTION}]{{1,8}}[{HAN}]?)"
    rf"(?:[{_MIDDLE_DOTS}](?:[{_TRANSCRIPTION}]{{1,8}}|[{HAN}]{{1,6}}?(?=[^{HAN}]|\Z)|[{HAN}]{{1,3}}))+)"
    rf"|(?P<place>[{HAN}]{{1,4}})?(?P<katakana>{_KATAKANA_NAME})(?P<noun>[{HAN}]{{1,4}})?"
    rf"|(?P<foreign>[{_TRANSCRIPTION}]{{3,8}})"
)

_HAN_RUN = re.compile(f"[{HAN}]+")
_HAN_OR_KANA = re.compile(f"[{HAN}{HIRAGANA}{KATAKANA}]")
_KANA = re.compile(f"[{HIRAGANA}{KATAKANA}]")
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_THAI_RUN = re.compile(f"[{SOUTH_EAST_ASIAN}]+")
_HANGUL_RUN = re.compile(f"[{HANGUL}]{{2,}}")
_HANGUL_PARTICLE = re.compile("(?<=..)(?:에서는|에서|에게|으로|까지|부터|에는|은|는|이|가|을|를|의|에|와|과|도|로)$")
_NUMERAL = re.compile("[一二三四五六七八九十百千万萬年月日〇個个回第]+")
_WITHIN_WORDS = frozenset({"ขึ้น", "ออก", "เข้า", "พื้น", "หน้า", "โครง", "เหล่า", "เหตุ", "ชื่อ"})
"""Thai function words that are parts of other words."""

_SPACED_WORD = re.compile(
    rf"[{WITHOUT_CAPITALS}](?:[{WITHOUT_CAPITALS}\u200c\u200d'\"׳״-]*[{WITHOUT_CAPITALS}])?(?<![،؛؟۔।॥])"
)
_CONJUNCTIONS = "وفبلك"
_ARTICLE = "ال"
_SPACED_LANGUAGES = ("ar", "fa", "ur", "he", "hi", "mr", "bn")

Spans = Iterable[tuple[int, int]]


def mask_uncased_letters(text: str) -> str:
    """Return the text with the letters of scripts without capitals replaced by NUL characters, so that offsets stay."""
    return compile_letters(UNCASED).sub("\x00", text)


def find_uncapitalised_names(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield span and rule (``name`` or ``phrase``) of the names and terms in scripts without capitals.

    Time is linear in the length of the text.
    """
    names = list(dict.fromkeys(_find_marked_names(text)))
    yield from ((span, "name") for span in names)
    terms: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in dict.fromkeys([*_find_terms(text), *_find_spaced_terms(text), *_find_recurring(text)]):
        terms[text[start:end]].append((start, end))
    characters = sum(1 if _HAN_OR_KANA.match(one) else _SHORT_LETTER for one in compile_letters(UNCASED).findall(text))
    count = round(characters / _CHARACTERS_PER_TERM) + _MIN_TERMS
    best = sorted(terms, key=lambda term: (-len(terms[term]), -min(len(term), _MAX_LENGTH_RANK), terms[term][0], term))
    yield from ((span, "phrase") for term in best[:count] for span in terms[term])


def _find_marked_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of names that their script shows: Katakana, middle dots and transcriptions."""
    for match in _MARKED.finditer(text):
        yield match.span("katakana") if match["katakana"] else match.span()
        if match["place"] or match["noun"]:
            yield match.span()


def _find_terms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs without function words in scripts without spaces, and of Korean words."""
    yield from _find_han_terms(text)
    yield from _find_thai_names(text)
    for run in _THAI_RUN.finditer(text):
        for start, end in _split_run(run, _compile_words("th", "lo", "my", "km")):
            is_term = text[start:end] not in get_function_words("th")
            if is_term and _MIN_THAI_TERM <= end - start <= _MAX_TERM_CHARACTERS:
                yield start, end
    korean = get_function_words("ko")
    for word in _HANGUL_RUN.finditer(text):
        particle = _HANGUL_PARTICLE.search(word[0])
        end = word.end() - (len(particle[0]) if particle else 0)
        if word[0] not in korean and text[word.start() : end] not in korean:
            yield word.start(), end


def _find_han_terms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of Chinese characters without function words, and of the names that end these runs."""
    is_japanese = _KANA.search(text) is not None
    for run in _HAN_RUN.finditer(text):
        pieces = [run.span()] if is_japanese else _split_run(run, _compile_words("zh"))
        for start, end in pieces:
            is_number = _NUMERAL.fullmatch(text, start, end) is not None
            if 2 <= end - start <= _MAX_HAN_TERM and not is_number and text[start:end] not in get_function_words("ja"):
                yield start, end
            if not is_japanese:
                yield from (match.span() for match in _INSTITUTION.finditer(text, start, end))
            if not is_japanese and (person := _PERSON.search(text[start:end])):
                yield start + person.start(), end


def _find_thai_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of pairs of short runs with a space between them, as given and family names have in Thai."""
    words = _compile_words("th", "lo", "my", "km")
    for first, second in pairwise(_THAI_RUN.finditer(text)):
        if text[first.end() : second.start()] == " ":
            start = max((start for start, _ in _split_run(first, words)), default=first.start())
            end = min((end for _, end in _split_run(second, words)), default=second.end())
            if 2 < first.end() - start <= _MAX_THAI_NAME and 2 < end - second.start() <= _MAX_THAI_NAME:
                yield start, end


def _split_run(run: re.Match[str], separator: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans between function words in a run of characters."""
    start = run.start()
    for word in separator.finditer(run.string, *run.span()):
        yield start, word.start()
        start = word.end()
    yield start, run.end()


@cache
def _compile_words(*languages: str) -> re.Pattern[str]:
    """Return a regex for the function words of languages without spaces, the longest first.

    Short words of Thai and its neighbours are parts of many other words, so they do not count.
    """
    words = {
        word
        for language in languages
        for word in get_function_words(language)
        if language == "zh" or (len(word) >= 3 and word not in _WITHIN_WORDS) or word in ("ใน", "ໃນ")
    }
    alternatives = "|".join(sorted(words, key=lambda word: (-len(word), word)))
    return re.compile(rf"(?<![\u0e40-\u0e44\u0ec0-\u0ec4])(?:{alternatives})(?![\u0e30-\u0e3a\u0e47-\u0e4e])")


def _find_recurring(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of n-grams of Chinese characters that recur with different neighbours on both sides."""
    if _HIRAGANA.search(text):
        return
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for run in _HAN_RUN.finditer(text):
        for piece_start, piece_end in _split_run(run, _compile_words("zh")):
            for start in range(piece_start, piece_end - 1):
                for end in range(start + 2, min(start + _MAX_RECURRING, piece_end) + 1):
                    spans[text[start:end]].append((start, end))
    for term, places in spans.items():
        before = {text[start - 1 : start] for start, _ in places}
        after = {text[end : end + 1] for _, end in places}
        if len(before) > 1 and len(after) > 1 and not _NUMERAL.fullmatch(term):
            yield from places


def _find_spaced_terms(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of at most three words between function words, in scripts such as Arabic and Hindi."""
    run: list[re.Match[str]] = []
    for word in _SPACED_WORD.finditer(text):
        if run and text[run[-1].end() : word.start()] != " ":
            yield from _trim_words(run)
            run = []
        if _is_function_word(word[0]):
            yield from _trim_words(run)
            run = []
        else:
            run.append(word)
    yield from _trim_words(run)


def _trim_words(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a short run of words, and of its pairs, words, and triples with two Arabic articles."""
    if 0 < len(run) <= _MAX_TERM_WORDS:
        yield _skip_conjunction(run[0]), run[-1].end()
    yield from ((_skip_conjunction(first), last.end()) for first, last in pairwise(run))
    for first, second, third in zip(run, run[1:], run[2:], strict=False):
        if second[0].startswith(_ARTICLE) and third[0].startswith(_ARTICLE):
            yield _skip_conjunction(first), third.end()
    yield from ((_skip_conjunction(word), word.end()) for word in run if len(word[0]) > _MAX_TERM_WORDS)


def _skip_conjunction(word: re.Match[str]) -> int:
    """Return the offset at which a word begins behind an Arabic preposition or conjunction before its article."""
    has_prefix = word[0][0] in _CONJUNCTIONS and word[0].startswith(_ARTICLE, 1)
    return word.start() + (1 if has_prefix else 0)


def _is_function_word(word: str) -> bool:
    """Return whether a word of a script with spaces is a function word, perhaps behind an Arabic conjunction."""
    words = _collect_spaced_function_words()
    bare = word.translate(build_letter_table())
    return len(bare) < 2 or bare in words or (bare[0] in _CONJUNCTIONS and bare[1:] in words)


@cache
def _collect_spaced_function_words() -> frozenset[str]:
    table = build_letter_table()
    return frozenset(word.translate(table) for one in _SPACED_LANGUAGES for word in get_function_words(one))
