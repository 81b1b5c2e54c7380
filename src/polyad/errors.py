"""Every exception polyad raises.

::

    PolyadError                    base class of all errors of polyad
    ├── ConfigurationError         a setting, a path or a combination of settings is wrong (exit code 2)
    │   ├── SettingError           the value of a setting is invalid
    │   ├── MissingExtraError      an optional package is not installed
    │   ├── ModelNotFoundError     the files of a model are missing and cannot be downloaded
    │   ├── NoLanguageModelError   a language model is required and none is configured
    │   ├── StoreNotFoundError     there is no index at the location
    │   └── IndexMismatchError     the index was built with another embedder or another format
    ├── NotFoundError              no document, passage, entity or hyperedge has the id
    ├── PageImageError             a page cannot be shown as a picture
    ├── StoreError                 the store is damaged, locked or not writable
    │   ├── StoreUnavailableError  the store is undamaged, but full, forbidden or locked by another writer
    │   ├── StaleSnapshotError     text that a snapshot refers to was deleted; the engine repeats the search
    │   └── VersionConflictError   another writer changed the store meanwhile; the engine repeats the change
    ├── ReadError                  a document cannot be read; the run reports it and continues
    ├── RetrieverError             the retriever failed or returned an invalid result
    ├── MentionExtractorError      the mention extractor failed
    ├── EmbedderError              the embedder failed or returned an invalid result
    ├── RerankerError              the reranker failed or returned an invalid result
    └── LanguageModelError         the language model failed after all retries, or sent an unusable reply
        ├── NoMoreRepliesError     all further requests would fail: wrong key, no connection, exhausted budget
        ├── UnreadableReplyError   a reply does not have the requested format
        └── CutReplyError          a reply was cut at the limit on its tokens

Some packages also have exceptions of their own, which they catch themselves.

A message names the value that was wrong, what was expected, and what to do about it. The class attribute ``hint`` says
what helps with most errors of a class, for programs that print errors as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from polyad.model import Usage


class PolyadError(Exception):
    """The base class of all exceptions that polyad raises on purpose."""

    hint: ClassVar[str] = "polyad -v COMMAND prints more of what happens"


class ConfigurationError(PolyadError):
    """Raised if a setting, an option, a path or a combination of them is invalid; nothing was changed."""

    hint = "polyad COMMAND --help lists the options, polyad config the settings in force"


class SettingError(ConfigurationError):
    """Raised if the value of a setting is invalid.

    Attributes:
        setting: Its name.
        is_idle: Whether the value would do, and only does nothing beside other settings.
    """

    def __init__(self, setting: str, value: object, expected: str, *, is_idle: bool = False) -> None:
        super().__init__(f"{setting} is {value!r}; expected {expected}")
        self.setting = setting
        self.is_idle = is_idle


class MissingExtraError(ConfigurationError):
    """Raised if an optional package is needed but not installed."""

    hint = "install the optional package, with the same Python that runs polyad"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f'{package} is not installed; run: pip install "polyad[{extra}]" '
            f'(in a checkout of polyad: pip install ".[{extra}]")'
        )
        self.package = package
        self.extra = extra


class PageImageError(PolyadError):
    """Raised if a page cannot be shown as a picture: not a PDF file or scan, or its file was changed or deleted."""

    hint = "the text of the passage is still there: polyad show passage ID"


class ModelNotFoundError(ConfigurationError):
    """Raised if the files of a model are not on this machine and cannot be downloaded."""

    hint = "connect to the internet once, or choose another embedder with --embedder"


class NoLanguageModelError(ConfigurationError):
    """Raised if an operation needs a language model but none is configured.

    Args:
        what: Needs it.
    """

    hint = "set --model and OPENAI_BASE_URL, or choose a method or retriever that needs no model"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} needs a language model; name one with --model or POLYAD_MODEL, and its endpoint with "
            "OPENAI_BASE_URL"
        )


class StoreNotFoundError(ConfigurationError):
    """Raised if a directory contains no index."""

    hint = "create the index with polyad index PATH --store DIR"


class IndexMismatchError(ConfigurationError):
    """Raised if an index was built with another embedder or another format version."""

    hint = "name the embedder of the index with --embedder, or index into another folder"


class NotFoundError(PolyadError):
    """Raised if an index has no object with the requested id."""

    hint = "polyad list documents, passages, entities or hyperedges prints the ids of an index"


class StoreError(PolyadError):
    """Raised if the database of an index is damaged, locked by another program or not writable."""

    hint = "restore index.sqlite from a copy, or index the documents again into another folder"


class StoreUnavailableError(StoreError):
    """Raised if an undamaged index cannot be used: no disk space, no permission, or another writer."""

    hint = "free space on the disk, or wait for the other program, and repeat the command; nothing was lost"


class VersionConflictError(StoreError):
    """Raised if another writer changed the index after the data for a change were read.

    The engine repeats the operation a few times before the error leaves it.
    """


class StaleSnapshotError(StoreError):
    """Raised if a search needs a passage that was deleted after its snapshot was taken.

    The engine repeats the operation a few times before the error leaves it.
    """

    def __init__(self) -> None:
        super().__init__(
            "a passage was deleted during the search. If documents are being removed, search again; otherwise the "
            "index is damaged: restore it from a copy, or index again"
        )


class ReadError(PolyadError):
    """Raised if a document cannot be read. Indexing reports the document and continues with the next one."""

    hint = "convert the file into another supported format, or leave it out"


class RetrieverError(PolyadError):
    """Raised if a retriever fails or does not return evidence."""

    hint = "polyad -vv COMMAND prints where the retriever failed; tell its author"


class MentionExtractorError(PolyadError):
    """Raised if a mention extractor fails."""

    hint = "check the mention extractor that polyad config names"


class EmbedderError(PolyadError):
    """Raised if an embedder fails or returns vectors of the wrong shape."""

    hint = "check the embedder that polyad config names"


class RerankerError(PolyadError):
    """Raised if a reranker fails or does not return one score for each passage."""

    hint = "check the reranker that polyad config names"


class LanguageModelError(PolyadError):
    """Raised if a language model returns no usable reply after all retries.

    Attributes:
        usage: Tokens and cost of the failed requests.
    """

    hint = "check the endpoint, key and model that polyad config prints; running the command again may help"

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        from polyad.model import Usage  # imports numpy, which `polyad --help` does without

        self.usage = usage or Usage()


class NoMoreRepliesError(LanguageModelError):
    """Raised if all further language model requests would fail too, as with a wrong API key.

    The API key, model or address is wrong, or the budget is exhausted.
    """


class CutReplyError(LanguageModelError):
    """Raised if a reply of a language model was truncated at the maximum number of tokens.

    Its text is used and cached.
    """


class UnreadableReplyError(LanguageModelError):
    """Raised if a reply of a language model does not have the requested format. Such replies are not cached.

    Attributes:
        reply: Text of the reply.
        expected: Description of the requested format.
    """

    def __init__(self, reply: str, expected: str) -> None:
        self.reply, self.expected = reply, expected
        super().__init__(
            f"expected {expected}, but the language model replied {reply[:200]!r}; asking again may help, else another "
            "model"
        )
