"""What the command line is set to: flags, environment, ``polyad.toml``, the user's own such file, defaults.

The one place where settings files and polyad's own variables are read; what the OpenAI library knows by variables is
left to it where nothing here says otherwise. The sections of the file are the stages of
:class:`polyad.config.Settings` and ``language_model``; its top level holds what the commands share. The variable for a
key of a section is ``POLYAD_SECTION_KEY``: ``POLYAD_SPLIT_PASSAGE_TOKENS``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from polyad.config import LanguageModelSettings, Settings, shown_address
from polyad.engine.registry import get_sections, get_settings_by_section, methods, retrievers
from polyad.errors import ConfigurationError, SettingError
from polyad.presets import PRESETS, preset_named
from polyad.retrieval.assembly import DEFAULT_K, SearchOptions

FILE_NAME = "polyad.toml"
"""Looked for in the working directory."""

LANGUAGE_MODEL = "language_model"
"""The section of the file that holds :class:`polyad.config.LanguageModelSettings`."""

_VARIABLES = {
    "POLYAD_DEVICE": ("encoder", "device"),
    "POLYAD_MODEL": (LANGUAGE_MODEL, "model"),
    "OPENAI_BASE_URL": (LANGUAGE_MODEL, "base_url"),
    "OPENAI_API_KEY": (LANGUAGE_MODEL, "api_key"),
}
"""Variables that do not follow the rule for names."""

_SECTIONS_OF_FLAGS = {
    "model": (LANGUAGE_MODEL, "model"),
    "rewrite": ("default", "rewriting"),
    "form": ("answer", "form"),
}
"""Flags that set a key of a section; the others are keys of the top level."""

_SERVED = ("encoder", "reranker")
"""Sections of what may be behind the language model's endpoint, where they name none of their own."""

_OPENAI = "https://api.openai.com"
"""Where keys from the environment go by default."""

_SECRET = ("api_key",)
"""Keys whose values are not shown."""

_NO_SETTINGS = ("POLYAD_LOG",)
"""Variables that are read elsewhere."""

_NO_KEY = "no-key"
"""In place of a key: with none at all, the OpenAI library would look into the environment, for one and for the headers
that go with it."""

_LONGEST_FILE = 65_536
"""Bytes of a settings file: it may have come with a folder, and keys of many parts take time to read."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """What the commands share.

    Attributes:
        preset: Of which paper everything is that is not set: ``hypergraphrag``, ``hypersu``, ``hyperretriever`` or
            ``hypermemory`` (docs/papers.md); empty for none.
        store: The directory of the index; empty where none was given.
        prompts: Directory of files that replace prompts by their names, such as ``hypersu_clues.md``; a file of another
            name is an error that lists the names there are. Empty for those that come with polyad.
        replies: The file of the language model's replies; empty for the one beside the index.
        reply_cache: Whether replies that are kept are used.
        embedder: Name of the embedder; empty for the index's own.
        mentions: Name of the mention extractor; empty for the index's own.
        method: How hyperedges are built; empty for what suits the index.
        retriever: How evidence is found.
        k: Hits to find. None for 5, or where there is a budget of words for no limit.
        max_words: Maximum number of words in all hits together; None for no limit.
        min_relevance: Relevance, in [0, 1], below which nothing is shown or answered from; 0 for none.
        rerank: Name of the reranker; empty for none.
    """

    preset: str = ""
    store: str = ""
    prompts: str = ""
    replies: str = ""
    reply_cache: bool = True
    embedder: str = ""
    mentions: str = ""
    method: str = ""
    retriever: str = "default"
    k: int | None = None
    max_words: int | None = None
    min_relevance: float = 0.0
    rerank: str = ""

    def __post_init__(self) -> None:
        if self.preset:
            require_one_of("preset", self.preset, PRESETS)
        if self.method:
            require_one_of("method", self.method, methods)
        require_one_of("retriever", self.retriever, retrievers)
        SearchOptions(
            k=self.k, max_words=self.max_words, min_relevance=self.min_relevance
        )  # says what is wrong with them

    @property
    def depth(self) -> int:
        """Passages to find where there is no budget of words."""
        return self.k or DEFAULT_K

    def place(self) -> str:
        """Where the index is.

        Raises:
            ConfigurationError: none was given.
        """
        if not self.store:
            raise ConfigurationError(
                f'no index was named; give --store DIR, set POLYAD_STORE, or put store = "DIR" into {FILE_NAME}'
            )
        return self.store


@dataclass(frozen=True, slots=True)
class Given:
    """A value and where it was given."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that flags, environment and file say.

    Attributes:
        command: What the commands share.
        stages: Of the pipelines.
        language_model: None where no model is named.
        unknown: Variables that look like settings and are none.
        keyless: Endpoints that only the file names, and that a key from the environment is therefore not sent to.
        given: Every value that was given and where, by section (empty for the top level) and key.
    """

    command: CommandSettings
    stages: Settings
    language_model: LanguageModelSettings | None
    unknown: tuple[str, ...] = ()
    keyless: tuple[str, ...] = ()
    given: Mapping[tuple[str, str], Given] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The method that was named; empty where only a preset has one, which is for an index that is new."""
        is_named = self.given.get(("", "method")) not in _preset_layer(self.command.preset).values()
        return self.command.method if is_named else ""

    def values(self) -> Iterator[tuple[str, str, object, str]]:
        """Section, key, value and origin of every setting; of a secret only whether it is given."""
        model = self.language_model or LanguageModelSettings(model="none")
        settled = {"": self.command, **get_settings_by_section(self.stages), LANGUAGE_MODEL: model}
        for section, settings in settled.items():
            for key in _types()[section]:
                given = self.given.get((section, key))
                value = getattr(settings, key)
                if section == LANGUAGE_MODEL and self.language_model is None:
                    value = given.value if given else "" if key == "model" else value
                shown = "(set)" if key in _SECRET and value else value
                yield section, key, shown, given.origin if given else "default"


_Layer = dict[tuple[str, str], Given]
"""Values by section (empty for the top level) and key."""


def load(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path,
    *,
    own: Path | None = None,
    trusts_endpoint: bool = False,
) -> Configuration:
    """Settle every setting.

    Args:
        flags: Values of options by key; None where an option was not given.
        environment: Variables.
        file: The settings file; it need not exist.
        own: The user's, for what no other says; it need not exist either.
        trusts_endpoint: Whether a key from the environment may go to an endpoint that only the file names. The file
            may have come with a folder that somebody else made.

    Raises:
        ConfigurationError: a key is unknown or a value is not what the key takes; says which and where.
    """
    from_environment, unknown = _environment_layer(environment)
    from_file, from_user = _file_layer(file), _file_layer(own) if own else {}
    given = from_user | from_file | from_environment | _flag_layer(flags)
    given = _preset_layer(_preset_of(given)) | given
    keyless = () if trusts_endpoint else _withhold_keys(given, from_file, from_user | from_environment)
    _share_endpoint(given)
    named = {section for section, _ in given}
    stages: dict[str, object] = {
        name: _section(kind, name, given) for name, kind in get_sections().items() if name in named
    }
    return Configuration(
        command=_section(CommandSettings, "", given),
        stages=Settings(preset=_preset_of(given), **stages),
        language_model=_language_model(given),
        unknown=unknown,
        keyless=keyless,
        given=given,
    )


def require_one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Raise ConfigurationError unless ``value`` is one of ``allowed``."""
    names = tuple(allowed)
    if value not in names:
        raise SettingError(name, value, f"one of {', '.join(names)}")


# The layers, each checked as it is read


def _preset_of(given: _Layer) -> str:
    return str(given[("", "preset")].value) if ("", "preset") in given else ""


def _preset_layer(name: str) -> _Layer:
    """What a preset sets, each with where the paper says so."""
    if not name:
        return {}
    return {line.place: Given(line.value, f"preset {name}: {line.source}") for line in preset_named(name).lines}


def _flag_layer(flags: Mapping[str, object]) -> _Layer:
    return {
        _SECTIONS_OF_FLAGS.get(key, ("", key)): Given(
            value, f"--{key.replace('_', '-')}" if len(key) > 1 else f"-{key}"
        )
        for key, value in flags.items()
        if value is not None
    }


def _environment_layer(environment: Mapping[str, str]) -> tuple[_Layer, tuple[str, ...]]:
    layer: _Layer = {}
    unknown = []
    variables = {**_derived_variables(), **_VARIABLES}
    for variable in sorted(environment, key=lambda name: (name in _VARIABLES, name)):  # polyad's own go first
        text = environment[variable]
        if not text.strip():
            continue
        if variable in variables:
            section, key = variables[variable]
            value = _parsed(text.strip(), _types()[section][key], variable)
            layer.setdefault((section, key), Given(value, variable))
        elif variable.startswith("POLYAD_") and variable not in _NO_SETTINGS:
            unknown.append(variable)
    return layer, tuple(unknown)


def _file_layer(file: Path) -> _Layer:
    try:
        if file.exists() and not file.is_file() and not file.is_dir():  # a pipe or a device has no end
            raise ConfigurationError(f"{str(file)!r} is a pipe or a device; expected a file")
        with file.open("rb") as data:
            written = data.read(_LONGEST_FILE + 1)
        if len(written) > _LONGEST_FILE:
            raise ConfigurationError(f"{str(file)!r} is longer than {_LONGEST_FILE:,} bytes; no settings are so long")
        content = tomllib.loads(written.decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not TOML, or not UTF-8, or nested without end
        raise ConfigurationError(f"{str(file)!r} is not TOML: {error}") from error
    layer: _Layer = {}
    for name, value in content.items():
        if name in _types() and name:
            if not isinstance(value, dict):
                raise ConfigurationError(f"{name} in {str(file)!r} is {value!r}; expected a section: [{name}]")
            layer.update(_checked(file, name, value))
        else:
            layer.update(_checked(file, "", {name: value}))
    return layer


def _checked(file: Path, section: str, values: Mapping[str, object]) -> _Layer:
    """The values of one section of the file, each of its key's type."""
    types = _types()[section]
    layer: _Layer = {}
    for key, value in values.items():
        where = f"{_label(section, key)} in {str(file)!r}"
        if key not in types:
            expected = f"one of {', '.join(types)}" + ("" if section else f", or a section: {_section_names()}")
            raise ConfigurationError(f"{where} is no setting; expected {expected}")
        kinds = _kinds(types[key])
        if isinstance(value, int) and not isinstance(value, bool) and float in kinds and int not in kinds:
            value = float(value)
        if type(value) not in kinds:
            raise ConfigurationError(f"{where} is {value!r}; expected {_in_words(types[key])}")
        layer[section, key] = Given(value, str(file))
    return layer


def _parsed(text: str, type_: Any, variable: str) -> object:
    """The text of a variable as what its key takes."""
    kinds = _kinds(type_)
    try:
        if bool in kinds:
            return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}[text.lower()]
        if int in kinds:
            return int(text)
        if float in kinds:
            return float(text)
    except (KeyError, ValueError):
        raise ConfigurationError(f"{variable} is {text!r}; expected {_in_words(type_)}") from None
    return text


# Keys and who gets them


def _withhold_keys(given: _Layer, from_file: _Layer, from_user: _Layer) -> tuple[str, ...]:
    """Leave each endpoint that only the file names the key of the file alone; those that lost another one by that."""
    known = {_OPENAI} | {_origin(value) for (_, key), value in from_user.items() if key == "base_url"}
    shared = given.get((LANGUAGE_MODEL, "base_url"))
    keyless = []
    for section in (LANGUAGE_MODEL, *_SERVED):
        own = given.get((section, "base_url"))
        address = own or shared
        if address is None or address not in from_file.values() or _origin(address) in known:
            continue
        keys = [from_user.get((name, "api_key")) for name in (section, LANGUAGE_MODEL)]
        key = from_file.get((section, "api_key")) or (None if own else given.get((LANGUAGE_MODEL, "api_key")))
        given[section, "api_key"] = key or Given(_NO_KEY, "")
        keyless += [shown_address(str(address.value))] if any(keys) and not key else []
    return tuple(dict.fromkeys(keyless))


def _share_endpoint(given: _Layer) -> None:
    """Put what may be behind the language model's endpoint there, unless it has one of its own."""
    for section in _SERVED:
        if (section, "base_url") not in given:
            for key in ("base_url", "api_key"):
                if value := given.get((LANGUAGE_MODEL, key)):
                    given.setdefault((section, key), value)


def _origin(address: Given) -> str:
    """Scheme, host and port: what is one server."""
    return "/".join(shown_address(str(address.value)).lower().split("/", 3)[:3])


# From layers to settings


def _section(kind: type[T], name: str, given: _Layer) -> T:
    own = {key: value for (section, key), value in given.items() if section == name}
    try:
        return kind(**{key: value.value for key, value in own.items()})
    except SettingError as error:
        origins = {value.origin for key, value in own.items() if key == error.setting or error.setting not in own}
        shared = given.get((LANGUAGE_MODEL, error.setting))
        where = f"[{LANGUAGE_MODEL if shared and shared is own.get(error.setting) else name}] " if name else ""
        raise ConfigurationError(f"{where}{error} (given by {', '.join(sorted(origins))})") from error


def _language_model(given: _Layer) -> LanguageModelSettings | None:
    """The endpoint's settings, where a model is named; without one there is nothing to ask."""
    if (LANGUAGE_MODEL, "model") not in given:
        return None
    return _section(LanguageModelSettings, LANGUAGE_MODEL, given)


# What can be set


@cache
def _types() -> dict[str, dict[str, Any]]:
    """The type of every key, by section."""
    kinds = {"": CommandSettings, **get_sections(), LANGUAGE_MODEL: LanguageModelSettings}
    return {name: {own.name: get_type_hints(kind)[own.name] for own in fields(kind)} for name, kind in kinds.items()}


def _derived_variables() -> dict[str, tuple[str, str]]:
    return {
        "_".join(part for part in ("POLYAD", section, key) if part).upper(): (section, key)
        for section, types in _types().items()
        for key in types
    }


def variables_of(section: str, key: str) -> list[str]:
    """The variables of the environment that set a key."""
    found = {**_derived_variables(), **_VARIABLES}
    return [variable for variable, place in found.items() if place == (section, key)]


def types_of(section: str) -> dict[str, str]:
    """What each key of a section takes where that is one of some names, in words; else empty."""
    return {
        key: f"{_in_words(type_).capitalize()}." if get_origin(type_) is Literal else ""
        for key, type_ in _types()[section].items()
    }


def _kinds(type_: Any) -> tuple[type, ...]:
    """The plain types that a value may have: of ``float | None``, float."""
    if get_origin(type_) is Literal:
        return (str,)
    if get_origin(type_) in (Union, UnionType):
        return tuple(kind for kind in get_args(type_) if kind is not type(None))
    return (type_,)


def _in_words(type_: Any) -> str:
    if get_origin(type_) is Literal:
        return f"one of {', '.join(map(repr, get_args(type_)))}"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text in quotation marks"}
    return " or ".join(names.get(kind, kind.__name__) for kind in _kinds(type_))


def _label(section: str, key: str) -> str:
    return f"[{section}] {key}" if section else key


def _section_names() -> str:
    return ", ".join(f"[{name}]" for name in _types() if name)
