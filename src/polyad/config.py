"""Settings: frozen, keyword-only, validated on construction. Each stage is given only its own.

Every default carries its unit and its source. Nothing here reads the environment or a file; ``polyad.cli`` does that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar, get_args

from polyad.errors import SettingError

Segmentation = Literal["mdl", "mdl-no-entities", "mdl-no-semantics", "sentence", "window", "semantic-chunking"]
Semantics = Literal["words", "embedder"]
ContextBudget = Literal["shares", "fixed"]
AnswerPrompt = Literal["concise", "think-answer", "sections"]
AnswerForm = Literal["text", "entity", "entities"]

ExtractionStyleName = Literal["compact", "paper"]

T = TypeVar("T")


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise SettingError(name, value, expected)


def shown_address(url: str) -> str:
    """What of an endpoint's address a message may say: scheme, host and path, without password and query.

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
    shown = base_url if is_address else shown_address(base_url)
    _require(is_address, "base_url", shown, f"an address that begins with http:// or https://, such as {example}")


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
        _require(self.max_bytes > 0, "max_bytes", self.max_bytes, "a number of bytes above 0")
        for name in ("max_characters", "max_file_characters"):
            value = getattr(self, name)
            _require(value > 0, name, value, "a number of characters above 0")
        _require(self.max_records > 0, "max_records", self.max_records, "a number of records above 0")
        _require(0 < self.max_seconds <= _DAY, "max_seconds", self.max_seconds, f"seconds above 0, at most {_DAY:,}")
        _require(
            self.max_memory >= _LEAST_MEMORY,
            "max_memory",
            self.max_memory,
            f"at least {_LEAST_MEMORY:,} bytes, which a process takes that reads nothing",
        )
        _require(self.workers is None or self.workers > 0, "workers", self.workers, "a number of processes above 0")


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
        _require(length is None or length > 0, "passage_tokens", length, "a number of tokens above 0")
        _require(
            overlap is None or 0 <= overlap < (length or LONG_PASSAGES[0]),
            "overlap_tokens",
            overlap,
            f"0 or more and less than passage_tokens ({length or LONG_PASSAGES[0]})",
        )
        _require(self.section_tokens >= 0, "section_tokens", self.section_tokens, "a number of tokens, 0 or more")
        is_code = re.fullmatch("[A-Za-z]{2,3}(-[A-Za-z0-9]+)*", self.language)
        _require(is_code is not None, "language", self.language, "the code of a language, such as 'en' or 'pt-BR'")

    def sized(self, usual: tuple[int, int]) -> SplitSettings:
        """These settings with what is not given filled in.

        Args:
            usual: Tokens of a passage and of the overlap, such as :data:`SHORT_PASSAGES`.
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
        base_url: The endpoint of ``openai:MODEL``; empty for ``OPENAI_BASE_URL``.
        api_key: Sent to it as a bearer token; empty for ``OPENAI_API_KEY``; local servers need none.
    """

    device: str = "auto"
    base_url: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettings:
    """Limits on what is asked.

    Attributes:
        max_characters: Longer questions are refused. 8,000: a page or two, above what embedders read of a text.
    """

    max_characters: int = 8000

    def __post_init__(self) -> None:
        _require(self.max_characters > 0, "max_characters", self.max_characters, "a number of characters above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentationSettings:
    """How a passage's sentences are grouped into semantic units (HyperSU, section 4.1 and Table 11).

    Attributes:
        method: ``mdl`` is the paper's; the others are its Table 11.
        semantics: How alike sentences are: by their ``words``, which costs nothing, or by the ``embedder``'s vectors of
            each sentence, as in the paper, which is a third of all that is embedded.
        kappa: Semantic reward scale. None takes what suits the words or the embedder: the paper's 75 is for bge-large,
            where units average 3 to 6 sentences; with lower cosines it cuts almost each of them apart.
        effective_dimension: d_eff of the complexity term (Table 10: 32).
        min_words: Shortest unit, in words (20).
        max_words: Longest unit, in words (200).
        window: Sentences in a unit of method ``window`` (Table 11: 3).
        percentile: For ``semantic-chunking``: cut where the distance of neighbours is above this percentile, 0-100.
    """

    method: Segmentation = "mdl"
    semantics: Semantics = "words"
    kappa: float | None = None
    effective_dimension: int = 32
    min_words: int = 20
    max_words: int = 200
    window: int = 3
    percentile: float = 80.0

    def __post_init__(self) -> None:
        _require(self.method in get_args(Segmentation), "method", self.method, f"one of {get_args(Segmentation)}")
        _require(self.semantics in get_args(Semantics), "semantics", self.semantics, f"one of {get_args(Semantics)}")
        _require(self.kappa is None or self.kappa >= 0, "kappa", self.kappa, "0 or more")
        _require(self.effective_dimension >= 1, "effective_dimension", self.effective_dimension, "1 or more")
        _require(self.min_words >= 0, "min_words", self.min_words, "0 or more")
        _require(
            self.max_words >= max(1, self.min_words),
            "max_words",
            self.max_words,
            f"min_words ({self.min_words}) or more",
        )
        _require(self.window >= 1, "window", self.window, "1 or more")
        _require(0 <= self.percentile <= 100, "percentile", self.percentile, "0 to 100")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSettings:
    """How a language model extracts n-ary facts from a passage (HyperGraphRAG, section 4.1 and appendix A.1).

    Attributes:
        style: ``compact`` asks for JSON in one call a passage; ``paper`` for the tuple records of the published prompt.
        gleaning: Further calls a passage that ask for what was missed. The published code makes 2.
        language: Of the extracted texts, in words ("German"); empty for that of the passage.
        attempts: Times a passage is asked about whose reply cannot be read.
        max_records: Facts, entities and names in facts that one reply may have, taken together; a reply with more
            counts as one that cannot be read. 10,000: a passage of 1,200 tokens has some 100.
        drop_ungrounded: Whether entities whose name does not occur in the passage are left out, not only flagged.
        join_subject: Whether what a fact stands under, the title and headings of its passage, are members of it; where
            there are none, what the passage defines or begins with.
    """

    style: ExtractionStyleName = "compact"
    gleaning: int = 0
    language: str = ""
    attempts: int = 2
    max_records: int = 10_000
    drop_ungrounded: bool = False
    join_subject: bool = True

    def __post_init__(self) -> None:
        _require(self.style in get_args(ExtractionStyleName), "style", self.style, "compact or paper")
        _require(self.gleaning >= 0, "gleaning", self.gleaning, "0 or more")
        _require(self.attempts >= 1, "attempts", self.attempts, "1 or more")
        _require(self.max_records >= 1, "max_records", self.max_records, "1 or more")


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

    def __post_init__(self) -> None:
        _require(bool(self.model.strip()), "model", self.model, "the name of a model at the endpoint")
        _require_address(self.base_url, "http://localhost:11434/v1")
        _require(self.concurrency >= 1, "concurrency", self.concurrency, "1 or more")
        _require(self.timeout > 0, "timeout", self.timeout, "seconds above 0")
        _require(self.max_reply_bytes > 0, "max_reply_bytes", self.max_reply_bytes, "a number of bytes above 0")
        for name in (
            "max_retries",
            "retry_delay",
            "requests_per_minute",
            "tokens_per_minute",
            "prompt_price",
            "completion_price",
        ):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How much evidence an answer is written from, what it looks like, and how long it may be.

    Attributes:
        max_context_tokens: Evidence shown to the model with budget ``shares``, in tokens. 6,000: five passages of the
            default length.
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
        _require(self.max_context_tokens > 0, "max_context_tokens", self.max_context_tokens, "tokens above 0")
        _require(self.max_answer_tokens >= 0, "max_answer_tokens", self.max_answer_tokens, "0 or more")
        _require(0 <= self.temperature <= 2, "temperature", self.temperature, "0 to 2")
        for name, allowed in (("budget", ContextBudget), ("prompt", AnswerPrompt), ("form", AnswerForm)):
            _require(getattr(self, name) in get_args(allowed), name, getattr(self, name), f"one of {get_args(allowed)}")
        for name in ("hyperedge_tokens", "entity_tokens", "passage_tokens"):
            _require(getattr(self, name) > 0, name, getattr(self, name), "tokens above 0")
        _require(0 <= self.hyperedge_share <= 1, "hyperedge_share", self.hyperedge_share, "0 to 1")
        most = round(1 - self.hyperedge_share, 9)
        _require(0 <= self.entity_share <= most, "entity_share", self.entity_share, f"0 to what is left ({most})")
        _require(
            self.use_hyperedges or self.use_entities or self.use_passages,
            "use_passages",
            self.use_passages,
            "True where use_hyperedges and use_entities are False; there would be nothing to answer from",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperSUSettings:
    """Clue-guided bidirectional expansion (HyperSU, section 4.2; values of its Table 10 unless noted).

    Attributes:
        max_clues: M, clues taken from the language model; without one, clues come from the question itself.
        activation_threshold: delta, in [0, 1). None takes the default for the embedder: 0.5 for bge-large.
        sharpening: gamma.
        forward_depth: Hops from the question's entities.
        backward_depth: Hops from the entities of the nearest passages; 0 switches backward anchoring off.
        width: K, new entities kept at each hop.
        decay: beta, in (0, 1].
        anchors: Nearest passages whose entities the backward walk starts from.
        convergence_bonus: mu, for hyperedges reached both ways.
        units_per_passage: L, hyperedges whose mean is the passage's score.
        dense_weight: In [0, 1]. The published code mixes the passage's cosine in with 0.5; the paper does not (0).
        link_threshold: Lowest cosine at which a name in the question is taken for an entity of another name, in (0, 1];
            1 links exact names only, as in the paper's experiments (C.2): on the benchmarks a lower one gains nothing.
        use_clues: Off, the question is the only clue (the paper's ablation "w/o clue agent").
    """

    max_clues: int = 3
    activation_threshold: float | None = None
    sharpening: float = 1.0
    forward_depth: int = 4
    backward_depth: int = 2
    width: int = 30
    decay: float = 0.5
    anchors: int = 10
    convergence_bonus: float = 2.0
    units_per_passage: int = 3
    dense_weight: float = 0.0
    link_threshold: float = 1.0
    use_clues: bool = True

    def __post_init__(self) -> None:
        threshold = self.activation_threshold
        _require(threshold is None or 0 <= threshold < 1, "activation_threshold", threshold, "0 or more, below 1")
        _require(0 < self.link_threshold <= 1, "link_threshold", self.link_threshold, "above 0, at most 1")
        _require(0 < self.decay <= 1, "decay", self.decay, "above 0, at most 1")
        _require(0 <= self.dense_weight <= 1, "dense_weight", self.dense_weight, "0 to 1")
        _require(self.sharpening > 0, "sharpening", self.sharpening, "above 0")
        _require(self.convergence_bonus >= 1, "convergence_bonus", self.convergence_bonus, "1 or more")
        for name in ("max_clues", "width", "units_per_passage"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("forward_depth", "backward_depth", "anchors"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperMemorySettings:
    """Beam search guided by a language model (HyperRAG, section 3.2; width and depth of its appendix B.1).

    Attributes:
        width: w, paths kept at each depth, and hyperedges followed from each entity.
        depth: d, hops from the question's entities.
        edge_tokens: Hyperedges shown in one prompt, in tokens; those nearest to the question come first. 2,000: a
            dozen semantic units of average length.
        entity_limit: Entities of one hyperedge that are shown in one prompt. 30: more than nearly any hyperedge joins.
        max_calls: Prompts sent for one question; the search ends there with what it has. 40: a question with one
            entity needs at most (1 + 3 + 1) + (3 + 9 + 1) + (3 + 9) = 30 with the calls of the paper, and mostly far
            fewer; 6 with one prompt a depth.
        calls: ``batched`` scores all texts and entities of one depth in one prompt, each by itself from 0 to 1;
            ``paper`` asks once for each entity and once for each text, for shares that add up to 1 (eqs. 14 and 15).
        composite: Score of a triple: ``product`` of all scores on the path to it, or ``triple``, of its own two alone
            (eq. 16).
        max_seconds: After which nothing more is asked for one question, what is under way apart. 120.
        max_failures: Tries that may fail one after another before nothing more is asked for one question.
    """

    width: int = 3
    depth: int = 3
    edge_tokens: int = 2000
    entity_limit: int = 30
    max_calls: int = 40
    calls: Literal["batched", "paper"] = "batched"
    composite: Literal["product", "triple"] = "product"
    max_seconds: float = 120.0
    max_failures: int = 6

    def __post_init__(self) -> None:
        for name in ("width", "depth", "edge_tokens", "entity_limit", "max_calls", "max_failures"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        _require(self.calls in ("batched", "paper"), "calls", self.calls, "batched or paper")
        _require(self.composite in ("product", "triple"), "composite", self.composite, "product or triple")
        _require(self.max_seconds > 0, "max_seconds", self.max_seconds, "seconds above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperGraphRAGSettings:
    """Dual retrieval and fusion (HyperGraphRAG, section 5.1).

    Attributes:
        entities: k_V, entities retrieved (60).
        hyperedges: k_H, hyperedges retrieved (60).
        passages: k_C, passages added by similarity (5; 3 in the paper's first version).
        expanded: Hyperedges of K_H in the evidence, best first. The paper takes all, which for entities that everything
            names are thousands. 200.
        thresholds: ``measured`` takes those found for the embedder, ``paper`` those of the paper (50, 5 and 0.5), which
            are also taken for an embedder that was not measured. Encoders differ in how high their cosines are.
        entity_threshold: tau_V, cosine times score (0, 100]. None takes that of ``thresholds``; so do the next two.
        hyperedge_threshold: tau_H, cosine times score (0, 10].
        passage_threshold: tau_C, cosine.
        names: How the names in a question meet the entities: ``together`` as one text (the paper), or ``each`` by
            itself as well, the better counting: on the benchmarks that finds more.
        use_entities: Off, no entity is retrieved (the ablation "w/o ER").
        use_hyperedges: Off, no hyperedge is retrieved ("w/o HR").
        use_passages: Off, no passage is added by similarity ("w/o CR").
    """

    entities: int = 60
    hyperedges: int = 60
    passages: int = 5
    expanded: int = 200
    names: Literal["together", "each"] = "each"
    thresholds: Literal["measured", "paper"] = "measured"
    entity_threshold: float | None = None
    hyperedge_threshold: float | None = None
    passage_threshold: float | None = None
    use_entities: bool = True
    use_hyperedges: bool = True
    use_passages: bool = True

    def __post_init__(self) -> None:
        _require(self.names in ("together", "each"), "names", self.names, "together or each")
        _require(self.thresholds in ("measured", "paper"), "thresholds", self.thresholds, "measured or paper")
        for name in ("entities", "hyperedges", "passages", "expanded"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name, highest in (("entity_threshold", 100), ("hyperedge_threshold", 10), ("passage_threshold", 1)):
            value = getattr(self, name)
            _require(value is None or 0 <= value <= highest, name, value, f"0 to {highest}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperRetrieverSettings:
    """Search along triples that a trained scorer holds plausible (HyperRAG, section 3.1; values of its appendix B.1).

    What the scorer reads (``rounds``, ``distance_starts``, ``closeness``) and learns (``positives``) is decided in
    training; at search its file says which it was. Where a value is not the paper's, or the paper gives none, the
    points named are of Recall@5: on questions of 2WikiMultiHopQA that were not trained on, and, as transfer, the mean
    of those on musique and hotpotqa (docs/adr/0011).

    Attributes:
        weights: A file written by ``polyad train hyperretriever``; empty for the weights that come with polyad, which
            were trained on 244 questions of 2WikiMultiHopQA.
        threshold: tau_0, plausibility from which a triple is kept and its tail expanded, in (0, 1].
        decay: c, by which the threshold is lowered.
        reductions: N_max, how often at most.
        minimum_hyperedges: M, hyperedges to keep at each hop.
        low_density: Delta_lo, hyperedges an entity. Up to here, what a lowered threshold lets in is not expanded.
        high_density: Delta_up. Above it at most ``triples_kept`` are kept at each hop.
        triples_kept: See there. 1,000; the paper gives none.
        depth: Hops from the question's entities, in training and in search. 2; the paper goes on while triples are
            plausible, and a third hop lets in more that is wrong than right (3: 4 points less, in transfer none).
        triples_per_hop: Triples scored at one hop, those of the hyperedges nearest to the question first: the bound
            on what a hub costs. 8,000: above what nearly any hop of the benchmarks has.
        hyperedges_per_passage: The mean of so many best hyperedges is the passage's plausibility (2).
        dense_weight: Share of the passage's cosine in its score, in [0, 1]. 0.4, best on the questions for validation;
            the paper ranks hyperedges only (0: as good, in transfer 4 points less).
        path_weight: What the way to a triple counts for in its score: the plausibility of the best way to its head,
            which is 1 for the question's entities, to this power; 0 or more. 0.5; the paper ranks by the triple alone
            (0: as good on passages; of answers among given facts, 5 to 7 points of Hits@10 less).
        adaptive: Off, the threshold stays at tau_0 and only what reaches it is kept (2 points less).
        binary: Search the pairs of entities that share a hyperedge, each a hyperedge of its own. The triples are the
            same, so weights serve both; density and counts of hyperedges are not (3 points less, in transfer 2).
        signals: The scorer also reads the signals of the default retriever; takes weights trained that way (5 points
            more, in transfer 1).
        rounds: L of the directional distance encoding; 0 or more. 2; the paper gives none.
        distance_starts: Where that encoding starts: the question's ``topics``, as the published code does, or every
            one of the ``heads`` (eq. 4; 0 to 5 points less). Training expands only what is right, so an encoding that
            shows which entities were heads gives the labels away.
        closeness: The scorer also reads the cosines of the question to head, hyperedge and tail, beyond eq. 9. From a
            few hundred questions it does not learn to multiply two vectors (off: 1 to 5 points less in transfer).
        positives: Triples that training calls right. ``answers``: those on shortest paths to the answer, as in the
            paper. ``evidence``: those whose hyperedge is in a gold passage (19 points more, in transfer 8): the paths
            to an answer pass by evidence that it does not stand in, such as the other side of a comparison.
    """

    weights: str = ""
    threshold: float = 0.5
    decay: float = 0.1
    reductions: int = 5
    minimum_hyperedges: int = 50
    low_density: float = 2.35
    high_density: float = 5.0
    triples_kept: int = 1000
    depth: int = 2
    triples_per_hop: int = 8000
    hyperedges_per_passage: int = 2
    dense_weight: float = 0.4
    path_weight: float = 0.5
    adaptive: bool = True
    binary: bool = False
    signals: bool = False
    rounds: int = 2
    distance_starts: Literal["heads", "topics"] = "topics"
    closeness: bool = True
    positives: Literal["evidence", "answers"] = "evidence"

    def __post_init__(self) -> None:
        _require(0 < self.threshold <= 1, "threshold", self.threshold, "above 0, at most 1")
        _require(0 <= self.decay <= 1, "decay", self.decay, "0 to 1")
        _require(0 <= self.dense_weight <= 1, "dense_weight", self.dense_weight, "0 to 1")
        _require(self.path_weight >= 0, "path_weight", self.path_weight, "0 or more")
        _require(self.low_density >= 0, "low_density", self.low_density, "0 or more")
        _require(
            self.high_density >= self.low_density,
            "high_density",
            self.high_density,
            f"low_density ({self.low_density}) or more",
        )
        for name in ("minimum_hyperedges", "triples_kept", "depth", "triples_per_hop", "hyperedges_per_passage"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("reductions", "rounds"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        for name, allowed in (("distance_starts", ("heads", "topics")), ("positives", ("evidence", "answers"))):
            _require(getattr(self, name) in allowed, name, getattr(self, name), " or ".join(allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSettings:
    """The default retriever.

    Attributes:
        rewriting: Also embed the question with the names of linked entities in place of those it names: sixteen short
            texts a search. On the benchmarks it changes Recall@5 by less than a point either way, so it is off.
        weights: A file written by ``polyad train default``; empty for the weights that come with polyad.
    """

    rewriting: bool = False
    weights: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestSettings:
    """How the vectors nearest to a question are found.

    Attributes:
        exact_up_to: Vectors, of passages, hyperedges or entities, up to which all are compared with the question. More
            lie in cells of near ones. To compare 200,000 of 384 numbers takes 14 ms.
        cells: Of those nearest to the question, how many are looked into: 128 of the 4,096 of a million vectors find
            0.97 of the 40 nearest in a tenth of the time. 0 for all, which is exact.
    """

    exact_up_to: int = 200_000
    cells: int = 128

    def __post_init__(self) -> None:
        for name in ("exact_up_to", "cells"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


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
        _require(self.timeout > 0, "timeout", self.timeout, "seconds above 0")
        _require(self.max_reply_bytes > 0, "max_reply_bytes", self.max_reply_bytes, "a number of bytes above 0")
        for name in ("max_retries", "retry_delay"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")


class Settings:
    """The settings of an engine, by section, as in ``polyad.toml``; a section that is not given has its defaults.

    >>> settings = Settings(split=SplitSettings(passage_tokens=100))
    >>> settings.of(SplitSettings).passage_tokens, settings.of(EncoderSettings).device
    (100, 'auto')
    """

    def __init__(self, **sections: object) -> None:
        self.sections: Mapping[str, object] = {
            name: section for name, section in sections.items() if section != type(section)()
        }

    def of(self, kind: type[T]) -> T:
        """The section that holds settings of this kind."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None) or kind()

    def but(self, **sections: object) -> Settings:
        """These settings with other sections in place of their own."""
        return Settings(**{**self.sections, **sections})

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={section!r}' for name, section in self.sections.items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.sections == other.sections

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.sections.items())))
