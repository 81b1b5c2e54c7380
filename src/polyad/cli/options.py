"""Options that several commands share, and the engine that they describe."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from platformdirs import user_config_path

from polyad.cli.context import FILE_NAME, SETTINGS, SETTINGS_FILE, TRUSTS_ENDPOINT
from polyad.cli.settings import FLAGS, Configuration, merge_settings
from polyad.cli.streams import warn
from polyad.engine import METHODS, RETRIEVERS, Engine, loaders
from polyad.engine.registry import RetrieverSpec
from polyad.errors import ConfigurationError
from polyad.presets import PRESETS
from polyad.retrieval.options import MinRelevance, list_options
from polyad.text.filters import Where
from polyad.text.validity import Time

Store = Annotated[
    str | None,
    typer.Option("--store", metavar="DIR", help="Directory of the index, or postgresql://... [POLYAD_STORE]"),
]
KeepStore = Annotated[
    str | None, typer.Option("--store", metavar="DIR", help="Directory that keeps the index for later runs.")
]
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the first N questions.")]
Preset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Method and settings of a paper: {', '.join(PRESETS)}. [POLYAD_PRESET]"),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Embedding model of a new index; an index always uses its own. [POLYAD_EMBEDDER]"
    ),
]
MentionExtractor = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Finds names in texts: rules, gliner (English; gliner:general:urchade/gliner_multi-v2.1 for other "
        "languages), llm or given:FILE. [rules]",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Language model at the endpoint of OPENAI_BASE_URL. [POLYAD_MODEL]"),
]
Replies = Annotated[
    str | None,
    typer.Option("--replies", metavar="FILE", help="File that stores the language model's replies. [beside the index]"),
]
ReplyCache = Annotated[
    bool | None,
    typer.Option(
        "--reply-cache/--no-reply-cache",
        help="Reuse stored replies of the language model. New replies are always stored. [on]",
    ),
]


def _parse_min_relevance(text: str) -> float | str:
    """Return the value of ``--min-relevance`` as a float; a word such as ``auto`` is returned unchanged.

    The settings validate the value.
    """
    with suppress(ValueError):
        return float(text)
    return text


_METAVARS: dict[Any, str] = {MinRelevance: "X", Where: "EXPR", Time: "DATE"}


def _build_flag(name: str) -> Any:
    """Return the command-line option of an option of a search, for a parameter that takes text or a number."""
    option = list_options()[name]
    default = f" [{option.default}]" if option.default else ""
    flag = f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
    parser = _parse_min_relevance if option.type == MinRelevance else None
    return typer.Option(flag, metavar=_METAVARS.get(option.type, "N"), parser=parser, help=option.help + default)


Method = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"Construction method: {', '.join(METHODS)}. [POLYAD_METHOD]")
]
Retriever = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(RETRIEVERS)}. [POLYAD_RETRIEVER]")
]
Depth = Annotated[int | None, _build_flag("k")]
Filtered = Annotated[str | None, _build_flag("where")]
AsOf = Annotated[str | None, _build_flag("as_of")]
KnownAt = Annotated[str | None, _build_flag("known_at")]
_SEARCH_FLAGS: dict[str, Any] = {
    name: Annotated[int | None if option.type == int | None else str | None, _build_flag(name)]
    for name, option in list_options().items()
}
SearchValues = Annotated[dict[str, Any], _SEARCH_FLAGS]
"""Values of the options of :class:`polyad.retrieval.options.SearchOptions` by name; None for an option not set."""

BridgeOutside = Annotated[
    bool | None,
    typer.Option(
        "--bridge-outside/--no-bridge-outside",
        help="Let documents that --where excludes connect others; they are never printed. [off]",
    ),
]
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank", metavar="NAME", help="Rerank the passages: cross-encoder:MODEL_OR_FOLDER or endpoint:MODEL."
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Also print why each passage was retrieved, and by which path.")
]
Full = Annotated[bool, typer.Option("--full", help="Print whole hits in place of excerpts.")]
MaxCost = Annotated[
    float,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        show_default=False,
        help="Stop before the language model costs more than this. [no limit]",
    ),
]
MaxTokens = Annotated[
    int,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=0,
        show_default=False,
        help="Stop before the language model uses more tokens than this. [no limit]",
    ),
]
OcrLanguage = Annotated[
    str | None,
    typer.Option(
        "--ocr-language",
        metavar="CODE",
        show_default=False,
        help="Language of scanned pages and pictures, as ISO 639 code. [auto]",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Form of the answer: text, entity (one name) or entities (a list of names). [text]"
    ),
]
Plots = Annotated[
    str | None,
    typer.Option("--plots", metavar="A,B,...", help="Measures to plot, such as f1, r_s or hits@10. [recall]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFlags:
    """Command-line options that ``polyad search`` and ``polyad ask`` share."""

    store: Store = None
    preset: Preset = None
    retriever: Retriever = None
    options: SearchValues = field(default_factory=dict)
    bridge_outside: BridgeOutside = None
    rerank: Rerank = None
    explain: Explain = False
    full: Full = False
    embedder: Embedder = None
    mention_extractor: MentionExtractor = None
    model: Model = None
    replies: Replies = None
    reply_cache: ReplyCache = None
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFlags:
    """Command-line options that the commands that index documents share."""

    preset: Preset = None
    method: Method = None
    embedder: Embedder = None
    mention_extractor: MentionExtractor = None
    model: Model = None
    replies: Replies = None
    reply_cache: ReplyCache = None
    max_cost: MaxCost = 0.0
    max_tokens: MaxTokens = 0
    ocr_language: OcrLanguage = None
    json: Json = False
    quiet: Quiet = False


def expand_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a Typer command in which the fields of each dataclass parameter are options of their own."""
    types = get_type_hints(command, include_extras=True)
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        for flag, annotation, default in _list_flags(name, types[name], parameter.default):
            annotations[flag], defaults[flag] = annotation, default

    def run(**values: Any) -> None:
        command(**{name: _pop_value(name, types[name], values) for name in inspect.signature(command).parameters})

    run.__doc__, run.__annotations__ = command.__doc__, annotations
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    return run


def _list_flags(name: str, kind: Any, default: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, annotation and default of each option that a parameter or a field of a dataclass stands for."""
    if kind is SearchValues:
        yield from ((flag, annotation, None) for flag, annotation in _SEARCH_FLAGS.items())
    elif is_dataclass(kind):
        types = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            yield from _list_flags(each.name, types[each.name], each.default)
    else:
        yield name, kind, default


def _pop_value(name: str, kind: Any, values: dict[str, Any]) -> Any:
    """Return the value of a parameter or field, built from the values of the options, which are removed."""
    if kind is SearchValues:
        return {flag: values.pop(flag) for flag in _SEARCH_FLAGS}
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return values.pop(name)
    types = get_type_hints(kind, include_extras=True)
    return kind(**{each.name: _pop_value(each.name, types[each.name], values) for each in fields(kind)})


def split_names(names: str | None) -> tuple[str, ...]:
    """Return the names in an option value ``A,B,...`` as a tuple without duplicates."""
    return tuple(dict.fromkeys(name.strip() for name in names.split(","))) if names else ()


# From flags to an engine


def load_settings(options: object = None, **flags: object) -> Configuration:
    """Return the settings of a command, merged from its flags, environment variables and settings files.

    Variables that begin with ``POLYAD_`` and name no setting cause a warning.

    Args:
        options: Values of a command's options, as attributes; options that are no settings are ignored.
        flags: Values of other flags by key; None for a flag that is not set.

    Raises:
        ConfigurationError: A setting is invalid, or the file of ``--config`` does not exist.
    """
    file = SETTINGS_FILE.get()
    if file is not None and not file.exists():
        raise ConfigurationError(f"--config is {str(file)!r}, which does not exist; expected a file like {FILE_NAME}")
    user_file = user_config_path("polyad") / FILE_NAME
    search_values = getattr(options, "options", {})
    settings = merge_settings(
        {name: getattr(options, name, search_values.get(name)) for name in FLAGS} | flags,
        os.environ,
        file or Path(FILE_NAME),
        user_file=user_file,
        changes=SETTINGS.get(),
        trusts_endpoint=TRUSTS_ENDPOINT.get(),
    )
    for variable in settings.unknown:
        warn("warning", f"{variable} in the environment is no setting of polyad")
    if settings.database_without_password:
        warn(
            "warning",
            f"no password of the environment is sent to {settings.database_without_password}, which only {FILE_NAME} "
            "names; name it in POLYAD_STORE or --store, or confirm it: polyad --trust-endpoint ...",
        )
    return settings


def open_engine(
    settings: Configuration,
    *,
    create: bool = False,
    bare: bool = False,
    reranks: bool = False,
    searches: RetrieverSpec | None = None,
    directory: str | Path | None = None,
    has_models: bool = False,
    loader: loaders.Loader = loaders,
) -> Engine:
    """Return the engine on an index: the index in ``directory``, or by default the index that the settings name.

    Args:
        settings: Settings of the command.
        create: Whether to create the index if it does not exist.
        bare: Whether the engine needs no embedder, language model or reranker.
        reranks: Whether the engine reranks with the reranker of the settings.
        searches: The only retriever that the engine will use; only the components of this retriever are loaded.
        directory: Directory of the index; None for the directory in the settings.
        has_models: Whether an answer may name one of the further language models of the settings.
        loader: Loads the components.
    """
    place, command = directory or settings.command.require_store(), settings.command
    replies = command.replies or None
    if bare:
        return Engine.open(place, create=False, settings=settings.stages, prompts=command.prompts, replies=replies)
    reads_names = searches is None or searches.reads_names
    engine = Engine.open(
        place,
        embedder=command.embedder or None,
        mention_extractor=command.mention_extractor or None if reads_names else None,
        language_model=settings.language_model if reads_names else None,
        language_models=settings.models if has_models else {},
        reranker=command.rerank or None if reranks else None,
        settings=settings.stages,
        prompts=command.prompts,
        replies=replies,
        reply_cache=settings.command.reply_cache,
        create=create,
        loader=loader,
    )
    if searches is None or searches.reads_names or searches.embeds_question:
        _warn_of_endpoints(settings)
    return engine


def _warn_of_endpoints(settings: Configuration) -> None:
    """Print a warning for each endpoint that does not get the API key of the environment."""
    for address in settings.keyless:
        warn(
            "warning",
            f"no API key of the environment is sent to {address}, which only {FILE_NAME} names; put api_key into that "
            "file, name the endpoint in OPENAI_BASE_URL, or confirm it: polyad --trust-endpoint ...",
        )


@contextmanager
def directory_for(store: str | None) -> Iterator[Path]:
    """Yield the index directory ``store``, or, if it is None, a temporary directory that is deleted afterwards.

    Raises:
        ConfigurationError: The store is the address of a database.
    """
    if store and not isinstance(loaders.parse_place(store), Path):
        raise ConfigurationError("--store is the address of a database; expected a folder")
    manager: AbstractContextManager[str] = (
        nullcontext(store) if store else tempfile.TemporaryDirectory(prefix="polyad-")
    )
    with manager as directory:
        yield Path(directory)
