"""Settings: frozen, keyword-only, validated on construction. Each stage is given only its own.

Every default carries its unit and its source. Nothing here reads the environment or a file; ``polyad.cli`` does that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from polyad.errors import SettingError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ContextBudget = Literal["shares", "fixed"]
AnswerPrompt = Literal["concise", "think-answer", "sections"]
AnswerForm = Literal["text", "entity", "entities"]
NamesLinked = Literal["all", "found"]
Backend = Literal["auto", "torch", "numpy"]


T = TypeVar("T")


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise SettingError unless it holds."""
    if not holds:
        raise SettingError(name, value, expected)


def require_idle(settings: DataclassInstance, keys: Sequence[str], needed: str) -> None:
    """Raise SettingError where one of some keys, which do nothing with these settings, is not at its default.

    Args:
        settings: A dataclass.
        keys: Names of its fields.
        needed: Description of the setting with which they have an effect.
    """
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        if setting.name in keys and value != setting.default:
            raise SettingError(
                setting.name, value, f"{setting.default!r}: it does nothing without {needed}", is_idle=True
            )


def shown_address(url: str) -> str:
    """Return scheme, host and path of an endpoint's address, without password and query, for messages.

    >>> shown_address("https://user:password@host:8000/v1?api-key=x")
    'https://host:8000/v1'
    """
    scheme, separator, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    rest = re.split("[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    if ":" in host and not re.fullmatch(r"(?:[^:\[\]]*|\[[^\[\]]*\]):\d*", host):
        return f"{scheme}{separator}..."  # what should be a port may be half a password
    return f"{scheme}{separator}{host}{slash}{path}"


def _require_address(base_url: str, example: str) -> None:
    """Raise SettingError, without what may be secret, unless it is empty or begins as an address does."""
    is_address = not base_url or base_url.startswith(("http://", "https://"))
    label = base_url if is_address else shown_address(base_url)
    require(is_address, "base_url", label, f"an address that begins with http:// or https://, such as {example}")


_LEAST_MEMORY = 256 * 1024 * 1024
_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """Limits on what is read.

    Attributes:
        max_bytes: Files larger than this are reported and skipped; of files of records, which are streamed, records.
            64 MiB: several thousand printed pages.
        max_characters: Of the text of one document, once it is unpacked. As many as there are bytes at most in one
            that is plain text.
        max_records: Of one ``.jsonl`` or ``.csv``; what comes after them is not read.
        max_file_characters: Of the texts of all records of such a file together.
        max_seconds: Of processor time that reading one document may take; by the clock it may take ten times as many,
            since the machine may be busy, or twice on Windows, which cannot tell the former. A Word file of 2,500 pages
            takes 36, a PDF of 300 takes 2.
        max_memory: Bytes that the process which reads a document may take, where the system keeps to it (Linux). PDFs
            of 300 pages take 140 MB, a Word file of 2,500 takes 900.
        workers: Processes that read documents, each one at a time. None for as many as there are processors, at
            most 4.
        follow_links: Whether symbolic links are followed to what lies outside the folder that is read. Off, they are
            reported: whoever may put a file there could have any file of this user's read.
    """

    max_bytes: int = 64 * 1024 * 1024
    max_characters: int = 64 * 1024 * 1024
    max_records: int = 10_000_000
    max_file_characters: int = 8 * 1024**3
    max_seconds: float = 120.0
    max_memory: int = 2 * 1024**3
    workers: int | None = None
    follow_links: bool = False

    def __post_init__(self) -> None:
        require(self.max_bytes > 0, "max_bytes", self.max_bytes, "a number of bytes above 0")
        for name in ("max_characters", "max_file_characters"):
            value = getattr(self, name)
            require(value > 0, name, value, "a number of characters above 0")
        require(self.max_records > 0, "max_records", self.max_records, "a number of records above 0")
        require(0 < self.max_seconds <= _DAY, "max_seconds", self.max_seconds, f"seconds above 0, at most {_DAY:,}")
        require(
            self.max_memory >= _LEAST_MEMORY,
            "max_memory",
            self.max_memory,
            f"at least {_LEAST_MEMORY:,} bytes, which a process takes that reads nothing",
        )
        require(self.workers is None or self.workers > 0, "workers", self.workers, "a number of processes above 0")


SHORT_PASSAGES, LONG_PASSAGES = (200, 20), (1200, 100)
"""Tokens of a passage and of what it shares with the one before: for search without a model, and where each is a call
to a language model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How documents are cut into passages.

    Attributes:
        passage_tokens: Longest passage, in tokens; None for what suits the method: 200, in which evidence is
            found best, but 1,200 for ``facts``, where each is a call (HyperGraphRAG, section 4.1).
        overlap_tokens: How much of a passage's end begins the next, in tokens; None for 20 or, for ``facts``, 100
            (HyperGraphRAG), and for a tenth of ``passage_tokens`` where that is given.
        section_tokens: A heading begins a passage, but sections of fewer tokens share one with their neighbours of the
            same kind. What is about one thing is found better; 0 gives each section its own, and what is more than
            ``passage_tokens`` few any, which makes fewer calls where facts are extracted.
        language: Code (ISO 639, perhaps with a region) for the rules that find the ends of sentences.
    """

    passage_tokens: int | None = None
    overlap_tokens: int | None = None
    section_tokens: int = 25
    language: str = "en"

    def __post_init__(self) -> None:
        length, overlap = self.passage_tokens, self.overlap_tokens
        require(length is None or length > 0, "passage_tokens", length, "a number of tokens above 0")
        require(
            overlap is None or 0 <= overlap < (length or LONG_PASSAGES[0]),
            "overlap_tokens",
            overlap,
            f"0 or more and less than passage_tokens ({length or LONG_PASSAGES[0]})",
        )
        require(self.section_tokens >= 0, "section_tokens", self.section_tokens, "a number of tokens, 0 or more")
        is_code = re.fullmatch("[A-Za-z]{2,3}(-[A-Za-z0-9]+)*", self.language)
        require(is_code is not None, "language", self.language, "the code of a language, such as 'en' or 'pt-BR'")

    def sized(self, usual: tuple[int, int]) -> SplitSettings:
        """Return these settings with defaults in place of None.

        Args:
            usual: Default tokens of a passage and of the overlap, such as :data:`SHORT_PASSAGES`.
        """
        length, overlap = usual
        if self.passage_tokens is not None:
            length, overlap = self.passage_tokens, self.passage_tokens // 10
        overlap = overlap if self.overlap_tokens is None else min(self.overlap_tokens, length - 1)
        return replace(self, passage_tokens=length, overlap_tokens=overlap)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings:
    """Where the embedder runs.

    Attributes:
        device: Of a model on this machine, as torch names it: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; ``auto`` is the
            first there is of CUDA, MPS and the processor.
        backend: What computes a model on this machine: ``torch``; ``numpy``, which knows the default model alone; or
            ``auto``, torch where sentence-transformers is installed.
        base_url: The endpoint of ``openai:MODEL``; empty for ``OPENAI_BASE_URL``.
        api_key: Sent to it as a bearer token; empty for ``OPENAI_API_KEY``; local servers need none.
    """

    device: str = "auto"
    backend: Backend = "auto"
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        require(self.backend in get_args(Backend), "backend", self.backend, "auto, torch or numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """What of a passage and its hyperedges is embedded.

    Attributes:
        hyperedge_titles: Whether a hyperedge is embedded under its passage's title, which says what "it" refers to, as
            passages always are. Off, its text alone, as in the papers.
    """

    hyperedge_titles: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettings:
    """Limits on what is asked, and what it is taken to name.

    Attributes:
        max_characters: Longer questions are refused. 8,000: a page or two, above what embedders read of a text.
        names: Which words of a question link to entities. ``all``: those that are an entity's name, whether or not they
            are found to be names, and names that end like a subject's. ``found``: names that the mention extractor
            finds, or the language model where a retriever asks it, and that are an entity's name exactly, as in the
            papers.
    """

    max_characters: int = 8000
    names: NamesLinked = "all"

    def __post_init__(self) -> None:
        require(self.names in get_args(NamesLinked), "names", self.names, "all or found")
        require(self.max_characters > 0, "max_characters", self.max_characters, "a number of characters above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelSettings:
    """An OpenAI-compatible endpoint and how hard it may be driven.

    Attributes:
        model: The model's name at the endpoint.
        base_url: Such as ``http://localhost:11434/v1``; empty for the SDK's default (``OPENAI_BASE_URL``, else OpenAI).
        api_key: Sent as a bearer token; empty for the SDK's default (``OPENAI_API_KEY``); local servers need none.
        cache_name: What replies are kept by, in the index they were bought for; empty for the model's name and the
            endpoint's address, so that a model of the same name elsewhere is asked itself. Whoever sets it promises
            that all that goes by it is one model, as where one has moved. Replies kept by earlier versions, which knew
            no addresses, are found by the model's name.
        concurrency: Requests under way at once; after one that times out, half as many, until replies come in time.
        timeout: Seconds the endpoint may be silent before a try is given up, and four times as many until its reply
            has to be whole. Slow local models take a minute.
        max_reply_bytes: Longest reply, unpacked; of a stream, sixteen times as many, since each word comes in an event
            of its own. 8 MiB: some 2 million tokens.
        max_retries: Further tries after a failure that may pass (429, 5xx, a cut connection, an empty reply).
        retry_delay: Seconds before the first further try; doubles with each, up to 8. A ``Retry-After`` goes before.
        requests_per_minute: 0 for no limit.
        tokens_per_minute: Prompt and completion tokens together; 0 for no limit.
        prompt_price: US dollars a million prompt tokens; 0 where unknown.
        completion_price: US dollars a million completion tokens; 0 where unknown.
        seed: Sent with every request, and kept by: replies of one seed are not recalled for another, so that runs at a
            temperature above 0 can be repeated independently. 0 for none.
    """

    model: str
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    cache_name: str = ""
    concurrency: int = 16
    timeout: float = 120.0
    max_reply_bytes: int = 8 * 1024 * 1024
    max_retries: int = 5
    retry_delay: float = 0.5
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    prompt_price: float = 0.0
    completion_price: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(bool(self.model.strip()), "model", self.model, "the name of a model at the endpoint")
        _require_address(self.base_url, "http://localhost:11434/v1")
        require(self.concurrency >= 1, "concurrency", self.concurrency, "1 or more")
        require(self.timeout > 0, "timeout", self.timeout, "seconds above 0")
        require(self.max_reply_bytes > 0, "max_reply_bytes", self.max_reply_bytes, "a number of bytes above 0")
        for name in (
            "max_retries",
            "retry_delay",
            "requests_per_minute",
            "tokens_per_minute",
            "prompt_price",
            "completion_price",
            "seed",
        ):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How much evidence an answer is written from, what it looks like, and how long it may be.

    Attributes:
        max_context_tokens: Evidence shown to the model with budget ``shares``, in tokens. 6,000.
        max_answer_tokens: Longest answer, in tokens, a reasoning model's thoughts included; 0 for no limit. 2,048.
        temperature: 0 for the model's likeliest answer, so that the same question gives the same answer.
        budget: ``shares`` divides max_context_tokens between hyperedges, entities and passages, filled in this order,
            and passes on what one leaves over (HyperRAG, section 3.1.6). ``fixed`` gives each its own tokens and
            passes nothing on (HyperGraphRAG's code).
        hyperedge_share: Part for hyperedges with ``shares``, 0 to 1 (HyperRAG: 0.5).
        entity_share: Part for entities (HyperRAG: 0.3); the rest is the passages'.
        hyperedge_tokens: Tokens for hyperedges with ``fixed`` (HyperGraphRAG: 4,000).
        entity_tokens: Tokens for entities (HyperGraphRAG: 4,000).
        passage_tokens: Tokens for passages (HyperGraphRAG: 4,000).
        use_hyperedges: Show hyperedges. Off is an ablation of HyperRAG, as are the next two.
        use_entities: Show entities that have a description, or a type that says more than how the name is written.
        use_passages: Show passages.
        prompt: ``concise`` asks for the answer alone; ``think-answer`` for reasoning in ``<think>``, then the answer in
            ``<answer>`` (HyperGraphRAG v2, appendix E); ``sections`` for markdown with headings and comments
            (HyperGraphRAG v1, appendix C.3).
        form: ``text``; or names in a JSON array, exactly one (``entity``, open domain) or all that there are
            (``entities``, closed domain; both HyperRAG, appendix D).
    """

    max_context_tokens: int = 6000
    max_answer_tokens: int = 2048
    temperature: float = 0.0
    budget: ContextBudget = "shares"
    hyperedge_share: float = 0.5
    entity_share: float = 0.3
    hyperedge_tokens: int = 4000
    entity_tokens: int = 4000
    passage_tokens: int = 4000
    use_hyperedges: bool = True
    use_entities: bool = True
    use_passages: bool = True
    prompt: AnswerPrompt = "concise"
    form: AnswerForm = "text"

    def __post_init__(self) -> None:
        require(self.max_context_tokens > 0, "max_context_tokens", self.max_context_tokens, "tokens above 0")
        require(self.max_answer_tokens >= 0, "max_answer_tokens", self.max_answer_tokens, "0 or more")
        require(0 <= self.temperature <= 2, "temperature", self.temperature, "0 to 2")
        for name, allowed in (("budget", ContextBudget), ("prompt", AnswerPrompt), ("form", AnswerForm)):
            value, names = getattr(self, name), get_args(allowed)
            require(value in names, name, value, f"one of {', '.join(names)}")
        of_shares, of_fixed = (
            ("max_context_tokens", "hyperedge_share", "entity_share"),
            ("hyperedge_tokens", "entity_tokens", "passage_tokens"),
        )
        for name in of_fixed:
            require(getattr(self, name) > 0, name, getattr(self, name), "tokens above 0")
        if self.budget == "fixed":
            require_idle(self, of_shares, 'budget = "shares"')
        else:
            require_idle(self, of_fixed, 'budget = "fixed"')
        require(0 <= self.hyperedge_share <= 1, "hyperedge_share", self.hyperedge_share, "0 to 1")
        most = round(1 - self.hyperedge_share, 9)
        require(0 <= self.entity_share <= most, "entity_share", self.entity_share, f"0 to what is left ({most})")
        require(
            self.use_hyperedges or self.use_entities or self.use_passages,
            "use_passages",
            self.use_passages,
            "True where use_hyperedges and use_entities are False; there would be nothing to answer from",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestSettings:
    """Settings of the search for nearest vectors.

    Attributes:
        exact_up_to: Number of vectors of one kind (passages, hyperedges or entities) up to which a search is exact.
            More vectors are divided into clusters. Comparing 200,000 vectors of 384 numbers takes 14 ms.
        nprobe: Number of nearest clusters that a search reads: 256 of the 4,096 clusters of 300,000 vectors find 98 %
            of the 40 nearest vectors in a tenth of the time. 0 reads all clusters, which is exact.
    """

    exact_up_to: int = 200_000
    nprobe: int = 256

    def __post_init__(self) -> None:
        for name in ("exact_up_to", "nprobe"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings:
    """Where the reranker ``endpoint:MODEL`` is, and how hard it is tried.

    Attributes:
        base_url: What ``/rerank`` is put behind, such as ``http://localhost:8000/v1``; empty for ``OPENAI_BASE_URL``.
        api_key: Sent as a bearer token; empty for ``OPENAI_API_KEY``; local servers need none.
        timeout: Seconds the endpoint may be silent before a try is given up, and four times as many until its reply
            has to be whole; 50 passages take a few.
        max_reply_bytes: Longest reply, unpacked. 8 MiB: a score takes some 50 bytes.
        max_retries: Further tries after a failure that may pass.
        retry_delay: Seconds before the first further try; doubles with each.
    """

    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0
    max_reply_bytes: int = 8 * 1024 * 1024
    max_retries: int = 3
    retry_delay: float = 0.5

    def __post_init__(self) -> None:
        _require_address(self.base_url, "http://localhost:8000/v1")
        require(self.timeout > 0, "timeout", self.timeout, "seconds above 0")
        require(self.max_reply_bytes > 0, "max_reply_bytes", self.max_reply_bytes, "a number of bytes above 0")
        for name in ("max_retries", "retry_delay"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


class Settings:
    """The settings of an engine, by section, as in ``polyad.toml``; a section that is not given has its defaults.

    >>> settings = Settings(split=SplitSettings(passage_tokens=100))
    >>> settings.of(SplitSettings).passage_tokens, settings.of(EncoderSettings).device
    (100, 'auto')

    Args:
        preset: Name of the preset that they are of (:func:`polyad.engine.changes.preset_settings`), by which an engine
            also chooses the method and the retriever where none is named; empty for none.
        sections: Dataclasses, by name.
    """

    def __init__(self, *, preset: str = "", **sections: object) -> None:
        self.preset = preset
        self.sections: Mapping[str, object] = {
            name: section for name, section in sections.items() if section != type(section)()
        }

    def of(self, kind: type[T]) -> T:
        """Return the section of this class, or its defaults."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None) or kind()

    def but(self, **sections: object) -> Settings:
        """Return these settings with some sections replaced."""
        return Settings(preset=self.preset, **{**self.sections, **sections})

    def __repr__(self) -> str:
        preset = {"preset": self.preset} if self.preset else {}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in (preset | {**self.sections}).items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and (self.preset, self.sections) == (other.preset, other.sections)

    def __hash__(self) -> int:
        return hash((self.preset, *sorted(self.sections.items())))
