"""What the commands share: options, and the engine that they name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer
from platformdirs import user_config_path

from polyad.cli import output
from polyad.cli.settings import FILE_NAME, Configuration, load
from polyad.engine import METHODS, RETRIEVERS, Engine
from polyad.engine.registry import RetrieverSpec
from polyad.errors import ConfigurationError
from polyad.presets import PRESETS

Store = Annotated[str | None, typer.Option("--store", metavar="DIR", help="Directory of the index. [POLYAD_STORE]")]
Preset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Everything as in a paper: {', '.join(PRESETS)}. [POLYAD_PRESET]"),
]
Embedder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Embedding model; an index keeps the one it was built with. [POLYAD_EMBEDDER]"),
]
Mentions = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How names are found: rules, gliner, llm or given:FILE. [POLYAD_MENTIONS]"),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Language model at the endpoint of OPENAI_BASE_URL. [POLYAD_MODEL]"),
]
Replies = Annotated[
    str | None,
    typer.Option(
        "--replies", metavar="FILE", help="Where replies of the language model are kept; by default beside the index."
    ),
]
ReplyCache = Annotated[
    bool | None,
    typer.Option("--reply-cache/--no-reply-cache", help="Whether replies that are kept are used; new ones are kept."),
]
Method = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"Construction method: {', '.join(METHODS)}. [POLYAD_METHOD]")
]
Retriever = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(RETRIEVERS)}. [POLYAD_RETRIEVER]")
]
Depth = Annotated[int | None, typer.Option("-k", metavar="N", help="Hits to find; 5 by default. [POLYAD_K]")]
MaxWords = Annotated[
    int | None,
    typer.Option("--max-words", metavar="N", help="Return as many hits as fit into N words. [POLYAD_MAX_WORDS]"),
]
MinRelevance = Annotated[
    float | None,
    typer.Option("--min-relevance", metavar="X", help="Leave out what is less relevant, 0 to 1. [0]"),
]
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank", metavar="NAME", help="Reorder what was found: cross-encoder:MODEL_OR_FOLDER or endpoint:MODEL."
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Also say why each passage was found, and by what path.")]
Rewrite = Annotated[
    bool | None,
    typer.Option("--rewrite/--no-rewrite", help="Let `default` also embed rewritten questions; slower. [off]"),
]
MaxCost = Annotated[
    float,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        show_default=False,
        help="Stop before a language model costs more; 0, the default, for no limit.",
    ),
]
MaxTokens = Annotated[
    int,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=0,
        show_default=False,
        help="Stop before it takes more tokens; 0, the default, for no limit.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What an answer is: text, entity (one name) or entities. [text]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Draw no progress bar.")]


TRUSTS_ENDPOINT = ContextVar("TRUSTS_ENDPOINT", default=False)
"""What ``polyad --trust-endpoint`` sets for the command that follows it."""

SETTINGS_FILE: ContextVar[Path | None] = ContextVar("SETTINGS_FILE", default=None)
"""What ``polyad --config`` sets likewise."""


# From flags to an engine


def settings_from(**flags: object) -> Configuration:
    """What flags, environment and files say; warns of variables that look like settings and are none.

    Raises:
        ConfigurationError: a setting is wrong, or there is no file where ``--config`` says.
    """
    file = SETTINGS_FILE.get()
    if file is not None and not file.exists():
        raise ConfigurationError(f"--config is {str(file)!r}, where there is no file; expected one like {FILE_NAME}")
    own = user_config_path("polyad") / FILE_NAME
    settings = load(flags, os.environ, file or Path(FILE_NAME), own=own, trusts_endpoint=TRUSTS_ENDPOINT.get())
    for variable in settings.unknown:
        output.warn("warning", f"{variable} in the environment is no setting of polyad")
    return settings


def require_use_of_rewriting(rewrite: bool | None, retrievers: Sequence[str]) -> None:
    """Raise ConfigurationError where rewriting is asked for, and nobody rewrites."""
    if rewrite is not None and "default" not in retrievers:
        raise ConfigurationError(
            f"--rewrite and --no-rewrite do nothing with {' and '.join(retrievers)}; leave them out, or name the "
            "retriever `default`"
        )


def open_engine(
    settings: Configuration,
    *,
    create: bool = False,
    bare: bool = False,
    reranks: bool = False,
    searches: RetrieverSpec | None = None,
    directory: Path | None = None,
) -> Engine:
    """An engine on the index that the settings name, or on ``directory``.

    Args:
        settings: Everything that was set.
        create: Whether an index is made where there is none.
        bare: Whether no model will be needed.
        reranks: Whether it will search with the reranker, where one is named.
        searches: How it will search, where it will do nothing else: what that has no use for is not loaded.
        directory: Where the index is, if not where the settings say.
    """
    place, command = directory or settings.command.place(), settings.command
    replies = command.replies or None
    if bare:
        return Engine.open(place, create=False, settings=settings.stages, prompts=command.prompts, replies=replies)
    reads_names = searches is None or searches.reads_names
    engine = Engine.open(
        place,
        embedder=command.embedder or None,
        mentions=command.mentions or None if reads_names else None,
        language_model=settings.language_model if reads_names else None,
        reranker=command.rerank or None if reranks else None,
        settings=settings.stages,
        prompts=command.prompts,
        replies=replies,
        reply_cache=settings.command.reply_cache,
        create=create,
    )
    if searches is None or searches.reads_names or searches.embeds_question:
        _warn_of_endpoints(settings)
    return engine


def _warn_of_endpoints(settings: Configuration) -> None:
    """Say which endpoints are asked without the key that is at hand."""
    for address in settings.keyless:
        output.warn(
            "warning",
            f"no API key of the environment is sent to {address}, which only {FILE_NAME} names; put api_key into that "
            "file, name the endpoint in OPENAI_BASE_URL, or confirm it: polyad --trust-endpoint ...",
        )


@contextmanager
def directory_for(store: str | None) -> Iterator[Path]:
    """The directory given, to be kept; or one that is gone afterwards."""
    kept: AbstractContextManager[str] = nullcontext(store) if store else tempfile.TemporaryDirectory(prefix="polyad-")
    with kept as directory:
        yield Path(directory)
