"""Settings of the stages of indexing, search and answering, as frozen dataclasses that check their values.

This module reads no file and no environment variable; :mod:`polyad.cli.settings` does. The settings of a construction
method or a retriever are defined beside it, and :class:`polyad.engine.settings.Settings` holds all sections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import unquote

from polyad.errors import SettingError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ContextBudget = Literal["shares", "fixed"]
AnswerPrompt = Literal["concise", "think-answer", "sections"]
AnswerForm = Literal["text", "entity", "entities"]
NamesLinked = Literal["all", "found"]
Backend = Literal["auto", "torch", "numpy"]
JudgeRequests = Literal["paper", "one"]
"""Whether a judgement takes as many requests as in the code of its paper, or one."""

NOT_IN_FILE: Mapping[str, bool] = {"not_in_file": True}
"""Metadata of a field that is no key of ``polyad.toml``; presets, sweeps, ``polyad --set`` and Python set it."""


_MAX_NUMBER = 1e12
"""Largest number in a setting; larger ones overflow where they are used."""


def require(is_valid: bool, name: str, value: object, expected: str) -> None:
    """Raise SettingError with the setting's name, its value and what is ``expected``, unless ``is_valid`` is true.

    A number must also be finite and at most :data:`_MAX_NUMBER`.
    """
    if isinstance(value, int | float) and not abs(value) <= _MAX_NUMBER:
        raise SettingError(name, value, f"{expected}; a number up to {_MAX_NUMBER:,.0f}")
    if not is_valid:
        raise SettingError(name, value, expected)


def require_idle(settings: DataclassInstance, idle_keys: Sequence[str], needed: str) -> None:
    """Raise SettingError if a setting in ``idle_keys`` is not the default, since it has no effect without ``needed``.

    An example is an option of a component that is not in use.

    Args:
        settings: A settings dataclass.
        idle_keys: Names of the fields that have no effect.
        needed: Description of the setting with which they have an effect.
    """
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        if setting.name in idle_keys and value != setting.default:
            raise SettingError(
                setting.name, value, f"{setting.default!r}: it does nothing without {needed}", is_idle=True
            )


def mask_url(url: str) -> str:
    """Return a URL without password and query, to show in messages.

    >>> mask_url("https://user:password@host:8000/v1?api-key=x")
    'https://host:8000/v1'
    """
    scheme, separator, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    rest = re.split("[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    if ":" in host and not re.fullmatch(r"(?:[^:\[\]]*|\[[^\[\]]*\]):\d*", host):
        return f"{scheme}{separator}..."  # the text after the colon may be half a password
    return f"{scheme}{separator}{host}{slash}{path}"


def mask_place(place: str) -> str:
    """Return the folder or address of an index without password and most parameters, to show in messages.

    >>> mask_place("postgresql://ann:password@host/db?sslmode=require&workspace=team")
    'postgresql://ann@host/db?workspace=team'
    """
    scheme, separator, rest = mask_url(place).partition("://")
    if "://" not in place:
        return place
    user = re.match(r"\w+://([\w.-]+)(?::[^@/?#]*)?@", place)
    parameters = "&".join(re.findall(r"[?&]((?:dbname|host|port|user|workspace)=[^&]*)", place))
    return f"{scheme}{separator}{f'{user[1]}@' if user else ''}{rest}{f'?{parameters}' if parameters else ''}"


def drop_password(place: str) -> str:
    """Return the address of an index without its password, from which another process can open the index.

    >>> drop_password("postgresql://ann:password@host/db?sslmode=require&password=x")
    'postgresql://ann@host/db?sslmode=require'
    """
    location, _, query = place.partition("?")
    location = re.sub(r"^(\w+://[^:@/]*):[^@/]*@", r"\1@", location)
    parameters = "&".join(each for each in query.split("&") if not re.match("(ssl)?password=", unquote(each)))
    return f"{location}?{parameters}" if parameters else location


def _require_url(base_url: str, example: str) -> None:
    """Raise SettingError unless ``base_url`` is empty or begins with ``http://`` or ``https://``.

    The message contains no password.
    """
    is_valid = not base_url or base_url.startswith(("http://", "https://"))
    label = base_url if is_valid else mask_url(base_url)
    require(is_valid, "base_url", label, f"an address that begins with http:// or https://, such as {example}")


_MINIMUM_MEMORY = 256 * 1024 * 1024
_DAY = 24 * 60 * 60


OCR_LANGUAGES = (
    *("af", "az", "bs", "ca", "cs", "cy", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "id"),
    *("is", "it", "ja", "ku", "la", "lb", "lt", "lv", "mi", "ms", "mt", "nl", "no", "oc", "pl", "pt", "qu", "rm", "ro"),
    *("sk", "sl", "sq", "sr", "sv", "sw", "tl", "tr", "uz", "vi", "zh"),
)
"""Languages that the recognition model of RapidOCR reads (PP-OCRv6 small); Serbian and Kurdish in Latin letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """Limits on the size of files to index, and on the processes that read them.

    Attributes:
        max_bytes: Maximum size of a file; larger files are reported and skipped. A PDF file may be 16 times as large,
            because one page at a time is loaded. For files of records, which are streamed, the maximum size of a
            record. 64 MiB are several thousand printed pages.
        max_characters: Maximum length of the text of one document.
        max_records: Maximum number of records that are read from one ``.jsonl`` or ``.csv`` file.
        max_file_characters: Maximum length of the texts of all records of one file together.
        max_seconds: Maximum processor time for reading one document. The limit on elapsed time is ten times as high (on
            Windows, where processor time cannot be limited, twice). A Word file of 2,500 pages takes 36 s, a PDF of
            300 pages 2 s.
        max_memory: Maximum memory, in bytes, of a process that reads a document; enforced on Linux. PDFs of 300 pages
            take 140 MB, a Word file of 2,500 pages takes 900 MB.
        workers: Number of processes that read documents; None for the number of processors, at most 4.
        follow_links: Whether symbolic links that lead out of the indexed folder are followed. If false, they are
            reported: a link could otherwise add any file that the user may read.
        gitignore: Whether files that .gitignore files in an indexed folder name are left out, and folders that tools
            generate: node_modules, __pycache__ and virtual environments. The report counts them.
        ocr_language: Language of scanned pages and pictures, as ISO 639 code; ``auto`` for any language of the OCR
            model. The model of the extra ``ocr`` reads Chinese, Japanese and languages in Latin letters; another
            language needs ``ocr_model``.
        ocr_model: File of another recognition model of PaddleOCR in the ONNX format, with its characters in the
            metadata; empty for the model of the extra ``ocr``.
        max_pictures: Maximum number of pictures inside a document (Word, PowerPoint, HTML, EPUB, e-mail) whose text is
            recognised; 0 for none. A picture takes one to five seconds.
        keep_files: Whether copies of PDF files, pictures and documents with pictures are stored with the index, so that
            their pages and pictures can be shown after the files were changed or deleted.
        folder: Folder for the lines of scanned pages and for copies of files; empty for none. The engine sets it.
    """

    max_bytes: int = 64 * 1024 * 1024
    max_characters: int = field(default=64 * 1024 * 1024, metadata=NOT_IN_FILE)
    max_records: int = field(default=10_000_000, metadata=NOT_IN_FILE)
    max_file_characters: int = field(default=8 * 1024**3, metadata=NOT_IN_FILE)
    max_seconds: float = 120.0
    max_memory: int = 1024**3
    workers: int | None = None
    follow_links: bool = False
    gitignore: bool = True
    ocr_language: str = "auto"
    ocr_model: str = ""
    max_pictures: int = 200
    keep_files: bool = False
    folder: str = field(default="", metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        expected = "auto, a language of the OCR model (" + ", ".join(OCR_LANGUAGES) + "), or any with ocr_model"
        is_readable = self.ocr_language in ("auto", *OCR_LANGUAGES) or bool(self.ocr_model)
        require(is_readable, "ocr_language", self.ocr_language, expected)
        require(self.max_bytes > 0, "max_bytes", self.max_bytes, "a number of bytes above 0")
        for name in ("max_characters", "max_file_characters"):
            value = getattr(self, name)
            require(value > 0, name, value, "a number of characters above 0")
        require(self.max_records > 0, "max_records", self.max_records, "a number of records above 0")
        require(0 < self.max_seconds <= _DAY, "max_seconds", self.max_seconds, f"seconds above 0, at most {_DAY:,}")
        require(
            self.max_memory >= _MINIMUM_MEMORY,
            "max_memory",
            self.max_memory,
            f"at least {_MINIMUM_MEMORY:,} bytes, which a process needs before it reads a file",
        )
        require(self.workers is None or self.workers > 0, "workers", self.workers, "a number of processes above 0")
        require(self.max_pictures >= 0, "max_pictures", self.max_pictures, "a number of pictures, 0 or more")


SHORT_PASSAGES, LONG_PASSAGES = (200, 20), (1200, 100)
"""Tokens of a passage and of its overlap: for search without a language model, and with one call for each passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """Settings for splitting documents into passages (chunks): sizes and overlap.

    Attributes:
        passage_tokens: Maximum length of a passage in tokens. None for 200, which retrieves best; for the method
            ``facts``, which calls the language model for each passage, 1,200 (HyperGraphRAG, section 4.1).
        overlap_tokens: Tokens at the end of a passage that the next one repeats. None for 20, or 100 for ``facts``
            (HyperGraphRAG); if ``passage_tokens`` is set, for a tenth of it.
        section_tokens: A passage begins at each heading, but a section of fewer tokens is merged with neighbouring
            sections of the same level. 0 merges no sections; a value above ``passage_tokens`` ignores headings, which
            makes fewer calls with ``facts``.
        language: ISO 639 code, optionally with a region, for the rules that find sentence ends. With ``en``, a text
            that is evidently in another language has the rules of its own.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSettings:
    """Device, library or endpoint with which the embedder runs.

    Attributes:
        device: Torch device of a local model: ``cpu``, ``cuda``, ``cuda:1`` or ``mps``; ``auto`` takes CUDA, else MPS,
            else the processor.
        backend: Library that runs a local model: ``torch``; ``numpy``, for the default model only; or ``auto``. For
            the default model ``auto`` is numpy for questions and for the first 80,000 characters of documents, then
            torch if sentence-transformers is installed; for other models torch.
        base_url: Endpoint of an embedder ``openai:MODEL``; empty for ``OPENAI_BASE_URL``.
        api_key: Bearer token for the endpoint; empty for ``OPENAI_API_KEY``. Local servers need none.
        query_prefix: Text before each query that is sent to the endpoint, such as ``"query: "``. ``auto`` is the prefix
            that a well-known model was trained with, else none. An index opens only with the prefixes that built it.
        passage_prefix: Text before each other text that is sent to the endpoint; ``auto`` as for queries.
        batch_size: Maximum number of texts in one request to the endpoint. If the endpoint refuses as many, smaller
            requests are sent.
    """

    device: str = "auto"
    backend: Backend = "auto"
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    query_prefix: str = "auto"
    passage_prefix: str = "auto"
    batch_size: int = 64

    def __post_init__(self) -> None:
        require(self.batch_size > 0, "batch_size", self.batch_size, "a number of texts above 0")
        require(self.backend in get_args(Backend), "backend", self.backend, "auto, torch or numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """Settings of the texts to embed: whether a hyperedge is embedded with the title of its passage.

    Attributes:
        hyperedge_titles: Whether a hyperedge is embedded with the title of its passage, which says what "it" refers to.
            False, as in the papers, embeds the text of the hyperedge alone. Passages always have their titles.
    """

    hyperedge_titles: bool = field(default=True, metadata=NOT_IN_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettings:
    """How names in a question are linked to entities, and which documents connect entities.

    Attributes:
        max_characters: Maximum length of a question; longer questions are refused.
        names: Words of a question that link to entities. ``all``: every name of an entity that occurs in the question,
            and names that end like the name of a subject. ``found``, as in the papers: names that the mention extractor
            or the language model extracts from the question and that equal the name of an entity.
        bridge_outside: Whether documents that a filter excludes may connect those that it selects. Nothing of them is
            displayed, so hits have no reasons and evidence has no trace. Documents that the index did not know at the
            time of ``--known-at`` connect nothing.
        versions: Whether the version of a document that is in force, or that the question names by number or time,
            stands before its other versions, and the newest first where the question asks for the latest.
    """

    max_characters: int = field(default=8000, metadata=NOT_IN_FILE)
    names: NamesLinked = "all"
    bridge_outside: bool = False
    versions: bool = True

    def __post_init__(self) -> None:
        require(self.names in get_args(NamesLinked), "names", self.names, "all or found")
        require(self.max_characters > 0, "max_characters", self.max_characters, "a number of characters above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelSettings:
    """An OpenAI-compatible endpoint of a language model and the limits on its use.

    Attributes:
        model: Name of the model at the endpoint.
        base_url: Address of the endpoint, such as ``http://localhost:11434/v1``; empty for ``OPENAI_BASE_URL``, else
            the address of OpenAI.
        api_key: Bearer token for the endpoint; empty for ``OPENAI_API_KEY``. Local servers need none.
        cache_name: Name of the model in the reply cache; empty for the model's name and the address of the endpoint. If
            a model moves to another address, the same name keeps its replies; never use one name for two models.
        concurrency: Maximum number of concurrent requests. It is halved after a timeout until replies come in time.
        timeout: Seconds without a byte from the endpoint after which a request is abandoned; a whole reply may take
            four times as long. Slow local models take a minute.
        max_reply_bytes: Maximum size of a decompressed reply; of a stream, in which each word is an event, sixteen
            times as much. 8 MiB are some 2 million tokens.
        max_retries: Number of retries after a temporary failure (429, 5xx, a broken connection or an empty reply).
        retry_delay: Seconds before the first retry; doubles with each retry, up to 8. A ``Retry-After`` header takes
            precedence.
        requests_per_minute: Maximum number of requests in a minute; 0 for no limit.
        tokens_per_minute: Maximum number of prompt and completion tokens in a minute; 0 for no limit.
        prompt_price: US dollars for a million prompt tokens; 0 if unknown.
        completion_price: US dollars for a million completion tokens; 0 if unknown.
        seed: Seed that is sent with every request and is part of the key of cached replies, so that runs at a
            temperature above 0 can be repeated; 0 for none.
    """

    model: str
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    cache_name: str = ""
    concurrency: int = 16
    timeout: float = 120.0
    max_reply_bytes: int = field(default=8 * 1024 * 1024, metadata=NOT_IN_FILE)
    max_retries: int = 5
    retry_delay: float = field(default=0.5, metadata=NOT_IN_FILE)
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    prompt_price: float = 0.0
    completion_price: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(bool(self.model.strip()), "model", self.model, "the name of a model at the endpoint")
        _require_url(self.base_url, "http://localhost:11434/v1")
        require(self.concurrency >= 1, "concurrency", self.concurrency, "1 or more")
        require(0 < self.timeout <= _DAY, "timeout", self.timeout, f"seconds above 0, at most {_DAY:,}")
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
class WorkerSettings:
    """How worker processes take indexing jobs from an index in PostgreSQL.

    Attributes:
        lease_seconds: Seconds after which the jobs of a worker that does not respond are taken by another one. A worker
            renews its leases three times in this time.
        max_attempts: Failed attempts after which a document is set aside.
    """

    lease_seconds: float = 30.0
    max_attempts: int = 3

    def __post_init__(self) -> None:
        require(
            0 < self.lease_seconds <= _DAY, "lease_seconds", self.lease_seconds, f"seconds above 0, at most {_DAY:,}"
        )
        require(self.max_attempts > 0, "max_attempts", self.max_attempts, "1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How much evidence the prompt of an answer contains, and the form of the answer.

    Attributes:
        max_context_tokens: Maximum tokens of evidence in the prompt.
        max_answer_tokens: Maximum tokens of the answer, including the thoughts of a reasoning model; 0 for no limit.
        temperature: Sampling temperature, in [0, 2]. 0 gives the same answer to the same question.
        budget: How max_context_tokens is divided between hyperedges, entities and passages, in this order. ``shares``
            passes the unused tokens of one kind on to the next (HyperRAG, section 3.1.6); ``fixed`` does not
            (HyperGraphRAG's published code).
        hyperedge_share: Share of the tokens for hyperedges, in [0, 1]; 0 leaves hyperedges out (HyperRAG: 0.5).
        entity_share: Share for entities; 0 leaves entities out (HyperRAG: 0.3). Passages have the remaining share, and
            are left out if it is 0.
        prompt: ``concise`` asks for the answer only; ``think-answer`` for reasoning in ``<think>``, then the answer in
            ``<answer>`` (HyperGraphRAG v2, appendix E); ``sections`` for markdown with headings and comments
            (HyperGraphRAG v1, appendix C.3).
        own_knowledge: Whether the language model may add what it knows to what the evidence says.
        form: ``text``; or a JSON array of names, with exactly one name (``entity``, open domain) or all names
            (``entities``, closed domain; both HyperRAG, appendix D).
    """

    max_context_tokens: int = 6000
    max_answer_tokens: int = 2048
    temperature: float = 0.0
    budget: ContextBudget = "shares"
    hyperedge_share: float = 0.5
    entity_share: float = 0.3
    prompt: AnswerPrompt = "concise"
    form: AnswerForm = "text"
    own_knowledge: bool = field(default=False, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        require(self.max_context_tokens > 0, "max_context_tokens", self.max_context_tokens, "tokens above 0")
        require(self.max_answer_tokens >= 0, "max_answer_tokens", self.max_answer_tokens, "0 or more")
        require(0 <= self.temperature <= 2, "temperature", self.temperature, "0 to 2")
        for name, allowed in (("budget", ContextBudget), ("prompt", AnswerPrompt), ("form", AnswerForm)):
            value, names = getattr(self, name), get_args(allowed)
            require(value in names, name, value, f"one of {', '.join(names)}")
        require(0 <= self.hyperedge_share <= 1, "hyperedge_share", self.hyperedge_share, "0 to 1")
        remainder = round(1 - self.hyperedge_share, 9)
        require(
            0 <= self.entity_share <= remainder, "entity_share", self.entity_share, f"0 to the remainder ({remainder})"
        )

    @property
    def passage_share(self) -> float:
        """The share of an answer prompt's evidence tokens that passages may use, in [0, 1]."""
        return round(1 - self.hyperedge_share - self.entity_share, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestSettings:
    """Settings of the search for nearest vectors.

    Attributes:
        exact_up_to: Number of vectors of one kind (passages, hyperedges or entities) up to which a search compares all
            of them. Of more vectors, those with the nearest binary codes are compared.
        clusters_from: Number of vectors of one kind from which they are also divided into clusters.
        nprobe: Number of nearest clusters that a search reads: 256 of the 4,096 clusters of 300,000 vectors find 98 %
            of the 40 nearest vectors in a tenth of the time. 0 compares all vectors, which is exact.
        shared_folder: Folder, such as a network drive, through which machines that search one index in a database share
            the files of its snapshots; empty for none. The files are checked, and may be deleted at any time.
    """

    exact_up_to: int = field(default=20_000, metadata=NOT_IN_FILE)
    clusters_from: int = field(default=200_000, metadata=NOT_IN_FILE)
    nprobe: int = 256
    shared_folder: str = ""

    def __post_init__(self) -> None:
        for name in ("exact_up_to", "clusters_from", "nprobe"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerSettings:
    """The endpoint of a reranker that is configured as ``endpoint:MODEL``.

    Attributes:
        base_url: Address of the endpoint, to which ``/rerank`` is appended, such as ``http://localhost:8000/v1``; empty
            for ``OPENAI_BASE_URL``.
        api_key: Bearer token for the endpoint; empty for ``OPENAI_API_KEY``. Local servers need none.
        timeout: Seconds without a byte from the endpoint after which a request is abandoned; a whole reply may take
            four times as long.
        max_reply_bytes: Maximum size of a decompressed reply. A score takes some 50 bytes.
        max_retries: Number of retries after a temporary failure.
        retry_delay: Seconds before the first retry; doubles with each retry.
    """

    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    timeout: float = 60.0
    max_reply_bytes: int = field(default=8 * 1024 * 1024, metadata=NOT_IN_FILE)
    max_retries: int = field(default=3, metadata=NOT_IN_FILE)
    retry_delay: float = field(default=0.5, metadata=NOT_IN_FILE)

    def __post_init__(self) -> None:
        _require_url(self.base_url, "http://localhost:8000/v1")
        require(0 < self.timeout <= _DAY, "timeout", self.timeout, f"seconds above 0, at most {_DAY:,}")
        require(self.max_reply_bytes > 0, "max_reply_bytes", self.max_reply_bytes, "a number of bytes above 0")
        for name in ("max_retries", "retry_delay"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Limits and addresses of the server ``polyad serve``.

    Attributes:
        base_url: Address under which clients reach the server, for the links of citations, such as
            ``https://search.example.org``; empty for the address of each request.
        hosts: Names under which clients reach the server, separated by commas, besides those of this machine and of
            ``base_url``. A request for another host is rejected.
        proxies: Addresses of proxies, separated by commas, whose header ``X-Forwarded-For`` names the client; empty for
            none.
        cors_origins: Origins of web pages that may call the API, separated by commas; empty for none. The value ``*``,
            for every page, needs a key.
        max_body_mb: Maximum size of a request that adds documents, in megabytes; of others at most 8.
        max_question_characters: Maximum length of a question.
        max_k: Maximum number of hits.
        searches: Number of searches that run at the same time, in each worker.
        answers: Number of answers that are written at the same time, in each worker.
        heavy_requests: Number of page pictures, exact text searches, searches by retrievers of other packages and views
            of the whole graph that run at the same time, in each worker; one workspace uses at most half of them.
        queue: Number of searches, of answers and of heavy requests that wait for others; further ones are rejected.
        answer_seconds: Maximum duration of an answer.
        requests_per_minute: Maximum number of requests a minute for each key, or for each address without a key; each
            worker counts by itself.
        model_answers_per_minute: Maximum number of answers a minute for each key and each of the ``[models]`` that
            requests name, and of answers that replace stored ones (``regenerate``); each worker counts by itself.
        retrievers: Retrievers that requests may name, separated by commas, besides that of the server; empty for those
            of polyad itself. Those of other packages, such as the baselines, may take much memory.
        list_retrievers: Whether the list of models of the OpenAI-compatible API has each workspace with each retriever,
            such as ``kb@bm25``, besides the workspace itself. Requests may name both in any case.
        citation_footer: Whether answers of the OpenAI-compatible API end with a list of their sources.
        log_questions: Whether logs and traces contain questions.
        mcp_sessions: Whether the MCP server keeps sessions. Without them, a client continues after a restart.
        mcp_text: Whether results of MCP tools are sent as text beside the structured content. Without it, a client that
            passes on both pays once; results of ``search`` and ``fetch`` are text for all clients.
        drain_seconds: Time that answers and jobs get to end when the server is stopped.
        allow_urls: Whether the web page and the API may add web pages by their address. The server then fetches public
            addresses that a client names; addresses of private networks are refused.
    """

    base_url: str = ""
    hosts: str = ""
    proxies: str = ""
    cors_origins: str = ""
    max_body_mb: int = 64
    max_question_characters: int = 8000
    max_k: int = 100
    searches: int = 8
    answers: int = 8
    heavy_requests: int = 4
    queue: int = 64
    answer_seconds: float = 120.0
    requests_per_minute: int = 600
    model_answers_per_minute: int = 30
    retrievers: str = ""
    list_retrievers: bool = False
    citation_footer: bool = False
    log_questions: bool = False
    mcp_sessions: bool = False
    mcp_text: bool = True
    drain_seconds: float = 30.0
    allow_urls: bool = False

    def __post_init__(self) -> None:
        limits = "max_body_mb", "max_question_characters", "max_k", "searches", "answers", "requests_per_minute"
        for name in (*limits, "heavy_requests", "model_answers_per_minute"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("queue", "answer_seconds", "drain_seconds"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _require_url(self.base_url, "https://search.example.org")
