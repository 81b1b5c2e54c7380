"""The choice of the embedder of an index by the languages of its documents.

An index whose embedder the user has not named has the multilingual one if more than :data:`_MAX_OTHER_SHARE` of its
passages are in other languages than English, whatever the order in which they came. The first documents choose before
they are embedded. When later changes cross the limit, all texts are embedded again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from polyad.engine.components import Components
from polyad.engine.loaders import DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER
from polyad.errors import ModelNotFoundError
from polyad.model import Document, Failure
from polyad.protocols.components import Embedder
from polyad.protocols.lookups import get_version
from polyad.protocols.store import EMBEDDER_CHOICE, NO_VALUES, Manifest, Store
from polyad.text.languages import LANGUAGE, describe_languages, find_language

_LOG = logging.getLogger(__name__)

LANGUAGE_EMBEDDERS = (DEFAULT_EMBEDDER, MULTILINGUAL_EMBEDDER)
"""The embedders that the languages of an index choose from."""

_MAX_DOCUMENTS, _MAX_CHARACTERS = 1000, 8_000_000
"""Limits of the documents that are read before the first is indexed."""

_MAX_OTHER_SHARE = 0.02
"""Share of the text in other languages than English that an index with the embedder for English may have. Of 14,900
passages of English benchmarks, none is taken for another language."""


def choose_embedder(
    documents: Iterable[Document | Failure], store: Store, components: Components
) -> Iterator[Document | Failure]:
    """Return ``documents``, after choosing the embedder of an empty index whose embedder the user has not named."""
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
    if characters:
        store.put_values(EMBEDDER_CHOICE, {EMBEDDER_CHOICE: b"languages"})
        follow_languages(characters, store, components, lambda embedder: _use_embedder(embedder, store))
    return chain(first, remaining)


def choose_embedder_for_questions(questions: Iterable[str], store: Store, components: Components) -> None:
    """Give an empty index the multilingual embedder if most questions are not English and the user named no embedder.

    It stays, whatever the documents. If the questions are English, the documents decide.
    """
    if components.is_embedder_open and not get_version(store):
        characters = Counter[str]()
        for text in questions:
            characters[find_language(text, None)] += len(text)
        if characters["en"] * 2 < characters.total() - characters[""]:
            follow_languages(characters, store, components, lambda embedder: _use_embedder(embedder, store))
            components.is_embedder_open = False


def follow_languages(
    sizes: Mapping[str, int], store: Store, components: Components, replace_vectors: Callable[[Embedder], object]
) -> bool:
    """Give an index the embedder for the languages of its text; return whether that is another than before.

    Log a warning that says so, or that the embedder which the user named does not know the languages.

    Args:
        sizes: Size of the text in each language, as ISO 639-1 code; that in an unknown language has an empty code.
        store: The index.
        components: Components of the index.
        replace_vectors: Replaces all vectors by those of an embedder.
    """
    present, choice = store.manifest.embedder, select_embedder(sizes)
    if present == choice:
        return False
    languages, english_only = describe_languages(sizes), f"the embedder {DEFAULT_EMBEDDER!r} knows English only"
    if not components.is_embedder_open:
        if choice == MULTILINGUAL_EMBEDDER:
            _LOG.warning(
                "the text is in %s, but %s; replace it: polyad embed --embedder %s", languages, english_only, choice
            )
        return False
    try:
        embedder = components.load_embedder(choice, components.settings.encoder)
    except ModelNotFoundError as error:
        _LOG.warning("the text is in %s, but %s: %s", languages, english_only, error)
        return False
    _LOG.warning("the text is in %s: the index gets the embedder %s; --embedder names another", languages, choice)
    replace_vectors(embedder)
    components.replace_embedder(embedder)
    return True


def select_embedder(sizes: Mapping[str, int]) -> str:
    """Return the name of the embedder for text in these languages; see :func:`follow_languages`.

    >>> select_embedder({"en": 99, "de": 1}), select_embedder({"en": 90, "de": 10, "": 5})
    ('all-MiniLM-L6-v2', 'multilingual-e5-small')
    """
    others = sum(size for language, size in sizes.items() if language not in ("", "en"))
    is_english = others <= _MAX_OTHER_SHARE * (others + sizes.get("en", 0))
    return DEFAULT_EMBEDDER if is_english else MULTILINGUAL_EMBEDDER


def _find_language(document: Document) -> str:
    """Return the code of a document's language; empty for data, whose text joins values."""
    return "" if document.arguments else find_language(document.text, document.metadata.get(LANGUAGE))


def _use_embedder(embedder: Embedder, store: Store) -> None:
    """Make ``embedder`` that of an empty index."""
    store.replace_vectors(
        Manifest(embedder.name, embedder.dimension, store.manifest.mentions), lambda _: ((), NO_VALUES)
    )
