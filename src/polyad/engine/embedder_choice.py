"""The choice of the embedder of a new index by the languages of its first documents."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from polyad.engine.components import Components
from polyad.engine.loaders import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from polyad.errors import ModelNotFoundError
from polyad.model import Document, Failure
from polyad.protocols.lookups import get_version
from polyad.protocols.store import NO_VALUES, Manifest, Store
from polyad.text.languages import LANGUAGE, find_language

_LOG = logging.getLogger(__name__)

_MAX_DOCUMENTS, _MAX_CHARACTERS = 1000, 8_000_000
"""Limits of the documents that are read before the first is indexed."""


def choose_embedder(
    documents: Iterable[Document | Failure], store: Store, components: Components
) -> Iterator[Document | Failure]:
    """Return ``documents``, after choosing the embedder of an empty index whose embedder the user has not named.

    If most of the text of the first documents is not English, the index gets the multilingual embedder. If that cannot
    be downloaded, a warning is logged and the embedder stays.
    """
    remaining = iter(documents)
    if not components.is_embedder_open or get_version(store):
        return remaining
    first: list[Document | Failure] = []
    characters = Counter[str]()
    for item in remaining:
        first.append(item)
        if isinstance(item, Document):
            characters[_find_language(item)] += len(item.text)
        if len(first) >= _MAX_DOCUMENTS or characters.total() >= _MAX_CHARACTERS:
            break
    _decide(characters, store, components)
    return chain(first, remaining)


def choose_embedder_for_questions(questions: Iterable[str], store: Store, components: Components) -> None:
    """Give an empty index the multilingual embedder if most questions are not English and the user named no embedder.

    If they are English, the documents decide.
    """
    if components.is_embedder_open and not get_version(store):
        characters = Counter[str]()
        for text in questions:
            characters[find_language(text, None)] += len(text)
        if characters["en"] * 2 < characters.total() - characters[""]:
            _decide(characters, store, components)


def _decide(characters: Counter[str], store: Store, components: Components) -> None:
    """Choose the embedder by the number of characters in each language; those of an unknown one have an empty code."""
    components.is_embedder_open = not characters
    languages = Counter({language: count for language, count in characters.items() if language})
    if languages["en"] * 2 < languages.total():
        _use_multilingual_embedder(languages.most_common(1)[0][0], store, components)


def _find_language(document: Document) -> str:
    """Return the code of a document's language; empty for data, whose text joins values."""
    return "" if document.arguments else find_language(document.text, document.metadata.get(LANGUAGE))


def _use_multilingual_embedder(language: str, store: Store, components: Components) -> None:
    """Give an empty index the multilingual embedder, and log why; ``language`` is the code of most of its text."""
    try:
        embedder = components.load_embedder(MULTILINGUAL_EMBEDDER, components.settings.encoder)
    except ModelNotFoundError as error:
        _LOG.warning(
            "most of the text is not English (%s), but the index gets %s, which knows English only: %s",
            language,
            DEFAULT_EMBEDDER,
            error,
        )
        return
    manifest = Manifest(embedder.name, embedder.dimension, store.manifest.mentions)
    store.replace_vectors(manifest, lambda _: ((), NO_VALUES))
    components.replace_embedder(embedder)
    _LOG.warning(
        "most of the text is not English (%s): the new index gets the embedder %s; --embedder names another",
        language,
        embedder.name,
    )
