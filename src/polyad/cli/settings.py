"""Settings of the command line, from flags, the environment, ``polyad.toml``, the user's settings file and defaults.

Only this module reads settings files and polyad's environment variables. The sections of a file are those of
:class:`polyad.engine.settings.Settings` and ``language_model``; its top level holds :class:`CommandSettings`. The
variable of a key in a section is ``POLYAD_SECTION_KEY``, for example ``POLYAD_SPLIT_PASSAGE_TOKENS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints
from urllib.parse import parse_qsl, quote, unquote, urlencode

from polyad.cli.context import FILE_NAME
from polyad.config import JudgeRequests, LanguageModelSettings, ServerSettings, mask_place, mask_url
from polyad.engine.changes import change_sections, check_setting, parse_setting, parse_toml_value
from polyad.engine.registry import get_sections, get_settings_by_section, methods, replace_sections, retrievers
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError, SettingError
from polyad.presets import PRESETS, get_preset
from polyad.retrieval.options import DEFAULT_K, MinRelevance, SearchOptions
from polyad.text.files import read_file, resolve_path

LANGUAGE_MODEL = "language_model"
"""The section of the file that holds :class:`polyad.config.LanguageModelSettings`."""

MODELS = "models"
"""The section of the file whose sub-sections, such as ``[models.fast]``, each name a model that writes answers."""

SERVER = "server"
"""The section of the file that holds :class:`polyad.config.ServerSettings`."""

_VARIABLES = {
    "POLYAD_DEVICE": ("encoder", "device"),
    "POLYAD_MODEL": (LANGUAGE_MODEL, "model"),
    "OPENAI_BASE_URL": (LANGUAGE_MODEL, "base_url"),
    "OPENAI_API_KEY": (LANGUAGE_MODEL, "api_key"),
}
"""Variables whose names do not follow from section and key."""

_SECTIONS_OF_FLAGS = {
    "model": (LANGUAGE_MODEL, "model"),
    "form": ("answer", "form"),
    "bridge_outside": ("question", "bridge_outside"),
    "gitignore": ("read", "gitignore"),
    "seed": (LANGUAGE_MODEL, "seed"),
    "ocr_language": ("read", "ocr_language"),
}
"""Flags that set a key in a section; all other flags set a key of the top level."""

_SERVED = ("encoder", "reranker")
"""Sections that use the endpoint of the language model unless they set ``base_url``."""

_OPENAI = "https://api.openai.com"
"""The endpoint that API keys of the environment are meant for if no other is set."""

_SECRET = ("api_key",)
"""Keys whose values are not printed."""

_ADDRESSES = ("store", "base_url")
"""Keys whose values may be addresses, which are printed without password and parameters."""

_NO_SETTINGS = ("POLYAD_LOG",)
"""Variables that begin with ``POLYAD_`` and are no settings."""

_NO_KEY = "no-key"
"""Placeholder for an API key. Without a key the OpenAI library would read one, and headers, from the environment."""

_PATHS = (("", "prompts"), ("", "replies"), ("facts", "examples"), ("nearest", "shared_folder"))
"""Settings whose files are written, or sent to a model. The project's file names only files in its own folder."""

_EXPOSING = (
    *(("read", key) for key in ("follow_links", "ocr_model")),
    *((SERVER, key) for key in ("base_url", "hosts", "proxies", "cors_origins")),
)
"""Settings that the project's file cannot set: links could add any file, a model could be any
file, and web pages could read every index."""

_DATABASE = "postgresql://"
_DATABASE_SECRETS = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE")
_DATABASE_PARAMETERS = {"application_name", "connect_timeout", "password", "sslmode", "vectors", "workspace"}
"""Parameters of a database in the project's file. Others of libpq read or write files, or pass on credentials."""

_LONGEST_FILE = 65_536
"""Maximum size of a settings file in bytes. The file may come with somebody else's folder, and dotted keys are slow."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """The settings that several commands share, such as the index directory and the retriever.

    Attributes:
        preset: Paper whose method and settings are the defaults: ``hypergraphrag``, ``hypersu``, ``hyperretriever`` or
            ``hypermemory`` (docs/papers/presets.md); empty for none.
        store: Directory of the index, or the address ``postgresql://USER@HOST/DATABASE?workspace=NAME``.
        prompts: Directory of files that replace prompts of the same name, such as ``hypersu_clues.md``. A file of any
            other name is an error. Empty for the prompts of polyad.
        replies: File that stores the language model's replies; empty for the file beside the index.
        reply_cache: Whether stored replies of the language model are reused.
        embedder: Embedder of a new index: a model of sentence-transformers, ``openai:MODEL`` or
            ``hashing:DIMENSION``; empty for all-MiniLM-L6-v2, or multilingual-e5-small if over 2 % of
            the passages are not English. An existing index whose embedder was named keeps it.
        mention_extractor: ``rules``, ``gliner``, ``llm`` or ``given:FILE``; empty for the extractor of the index, and
            for that of the preset, or ``rules``, if the index is new.
        method: Construction method: ``semantic-units``, ``facts`` or ``tuples``; empty for the method of the index.
        retriever: ``default``, ``hypersu``, ``hypergraphrag``, ``hyperretriever``, ``hypermemory``, ``dense``,
            ``bm25``, ``none``, or the name of a plug-in.
        k: Number of passages to return. None for 5, or for no limit if ``max_words`` is set.
        max_words: Maximum number of words in all hits together; None for no limit.
        min_relevance: Minimum relevance of a passage, in [0, 1]; 0 for no minimum, ``auto`` for the limit of the index.
            None for ``auto`` in ``polyad ask`` and 0 elsewhere.
        judge_requests: Requests for a judgement by statement F1, coverage or faithfulness: as many as the code of the
            ``paper`` takes (3, 2 and 2), or ``one``.
        tokenizer: File ``tokenizer.json`` of GPT-2, or of another model, whose tokens C-Rec and A-Rel count, which are
            measured with ``--answers`` then; empty to count words only.
        rerank: Reranker: ``cross-encoder:MODEL_OR_FOLDER`` or ``endpoint:MODEL``; empty for none.
    """

    preset: str = ""
    store: str = ""
    prompts: str = ""
    replies: str = ""
    reply_cache: bool = True
    embedder: str = ""
    mention_extractor: str = ""
    method: str = ""
    retriever: str = "default"
    k: int | None = None
    max_words: int | None = None
    min_relevance: MinRelevance | None = None
    judge_requests: JudgeRequests = "paper"
    tokenizer: str = ""
    rerank: str = ""

    def __post_init__(self) -> None:
        if self.preset:
            require_one_of("preset", self.preset, PRESETS)
        if self.method:
            require_one_of("method", self.method, methods)
        require_one_of("retriever", self.retriever, retrievers)
        # SearchOptions validates the values.
        SearchOptions(k=self.k, max_words=self.max_words, min_relevance=self.min_relevance or 0.0)

    @property
    def depth(self) -> int:
        """The number of passages to return if no word limit (``max_words``) is set."""
        return self.k or DEFAULT_K

    def require_store(self) -> str:
        """Return the directory or database address of the index; raise an error if none is set.

        Raises:
            ConfigurationError: No directory is set.
        """
        if not self.store:
            raise ConfigurationError(
                f'no index was named; give --store DIR, set POLYAD_STORE, or put store = "DIR" into {FILE_NAME}'
            )
        return self.store


FLAGS = frozenset(each.name for each in fields(CommandSettings)) | _SECTIONS_OF_FLAGS.keys() - {"seed"}
"""Names of the flags that always set a setting; ``--seed`` is left out, because some commands have another seed."""


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """The value of a setting, and the source of the value: a flag, an environment variable or a settings file."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The validated settings of one command, merged from flags, environment and settings files.

    Attributes:
        command: Settings that several commands share.
        stages: Settings of the engine.
        language_model: Settings of the language model; None if no model is set.
        server: Settings of the server.
        models: Further language models, of which a question to the server may name one, by name.
        unknown: Variables that begin with ``POLYAD_`` and name no setting.
        keyless: Endpoints that only a settings file names, to which no API key of the environment is sent.
        database_without_password: The database of ``store``, if only a settings file names it, and passwords of the
            environment are therefore not sent; else empty.
        explicit: Values that are not defaults, by section (empty for the top level) and key.
    """

    command: CommandSettings
    stages: Settings
    language_model: LanguageModelSettings | None
    server: ServerSettings = field(default_factory=ServerSettings)
    models: Mapping[str, LanguageModelSettings] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    keyless: tuple[str, ...] = ()
    database_without_password: str = ""
    explicit: Mapping[tuple[str, str], SourcedValue] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The construction method (how hyperedges are built) that the user set; empty if the user set none.

        An empty string if only a preset sets one.
        """
        is_named = self.explicit.get(("", "method")) not in _preset_layer(self.command.preset).values()
        return self.command.method if is_named else ""

    def values(self) -> Iterator[tuple[str, str, object, str]]:
        """Yield (section, key, value, source) of each setting, without secrets: "(set)" stands for a key."""
        model = self.language_model or LanguageModelSettings(model="none")
        settled = {"": self.command, **get_settings_by_section(self.stages), LANGUAGE_MODEL: model, SERVER: self.server}
        settled |= {f"{MODELS}.{name}": settings for name, settings in self.models.items()}
        for section, settings in settled.items():
            set_keys = [key for name, key in self.explicit if name == section]
            for key in dict.fromkeys([*_types().get(section, ()), *set_keys]):
                explicit = self.explicit.get((section, key))
                value = getattr(settings, key)
                if section == LANGUAGE_MODEL and self.language_model is None:
                    value = explicit.value if explicit else "" if key == "model" else value
                printable = value
                if key in _SECRET and value:
                    printable = "" if value == _NO_KEY else "(set)"
                if key in _ADDRESSES:
                    printable = mask_place(str(value))
                yield section, key, printable, explicit.origin if explicit else "default"


_Layer = dict[tuple[str, str], SourcedValue]
"""Values of one source, by section (empty for the top level) and key."""


def merge_settings(
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path,
    *,
    user_file: Path | None = None,
    changes: Sequence[str] = (),
    trusts_endpoint: bool = False,
) -> Configuration:
    """Return the settings from flags, environment, project file and user file, merged in this order of priority.

    Args:
        flags: Values of options by key; None for an option that is not set.
        environment: Environment variables.
        file: Settings file of the working directory; may be absent.
        user_file: Settings file of the user; may be absent.
        changes: Options ``--set``, as ``section.key=VALUE``; they take precedence over the environment.
        trusts_endpoint: Whether secrets of the environment may be sent to an endpoint or database that only ``file``
            names. That file may come with somebody else's folder.

    Raises:
        ConfigurationError: A key is unknown or a value is invalid; the message names both and the source.
    """
    from_environment, unknown = _environment_layer(environment)
    from_file, from_user = _file_layer(file), _file_layer(user_file) if user_file else {}
    _check_project_file(file, from_file)
    # A model of the project's file has nothing of one that the user named the same: a key is for one endpoint.
    from_user = {place: from_user[place] for place in from_user if place[0] not in _list_models(from_file)}
    values = from_user | from_file | from_environment | _change_layer(changes) | _flag_layer(flags)
    values = _preset_layer(_get_preset(values)) | values
    keyless = () if trusts_endpoint else _withhold_keys(values, from_file, from_user | from_environment)
    database = "" if trusts_endpoint else _withhold_password(values, from_file, environment)
    _share_endpoint(values)
    _select_model(values)
    explicit_sections = {section for section, _ in values}
    stages: dict[str, object] = {
        name: _build_section(kind, name, values) for name, kind in get_sections().items() if name in explicit_sections
    }
    return Configuration(
        command=_build_section(CommandSettings, "", values),
        stages=replace_sections(Settings(preset=_get_preset(values)), stages),
        language_model=_build_section(LanguageModelSettings, LANGUAGE_MODEL, values)
        if (LANGUAGE_MODEL, "model") in values
        else None,
        server=_build_section(ServerSettings, SERVER, values),
        models={
            section.removeprefix(f"{MODELS}."): _build_section(LanguageModelSettings, section, values)
            for section in _list_models(values)
        },
        unknown=unknown,
        keyless=keyless,
        database_without_password=database,
        explicit=values,
    )


def require_one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Raise SettingError if ``value``, the value of the setting ``name``, is not in ``allowed``."""
    names = tuple(allowed)
    if value not in names:
        raise SettingError(name, value, f"one of {', '.join(names)}")


# The sources of settings, each of which is validated when it is read


_PRESET_ORIGIN = "preset "
"""Beginning of the origin of a preset's value."""


def _get_preset(values: _Layer) -> str:
    return str(values[("", "preset")].value) if ("", "preset") in values else ""


def _preset_layer(name: str) -> _Layer:
    """Return the settings of a preset, keyed by (section, key), with the paper's section as source."""
    if not name:
        return {}
    return {
        setting.place: SourcedValue(setting.value, f"{_PRESET_ORIGIN}{name}: {setting.source}")
        for setting in get_preset(name).settings
    }


def _flag_layer(flags: Mapping[str, object]) -> _Layer:
    return {
        _SECTIONS_OF_FLAGS.get(key, ("", key)): SourcedValue(
            value, f"--{key.replace('_', '-')}" if len(key) > 1 else f"-{key}"
        )
        for key, value in flags.items()
        if value is not None
    }


def _change_layer(changes: Sequence[str]) -> _Layer:
    values = dict(map(parse_setting, changes))
    sections = change_sections({**get_settings_by_section(Settings()), SERVER: ServerSettings()}, values)
    places = [(section, key) for section, _, key in (name.partition(".") for name in values)]
    return {(section, key): SourcedValue(getattr(sections[section], key), "--set") for section, key in places}


def _environment_layer(environment: Mapping[str, str]) -> tuple[_Layer, tuple[str, ...]]:
    layer: _Layer = {}
    unknown = []
    variables = get_variables()
    for variable in sorted(environment, key=lambda name: (name in _VARIABLES, name)):  # POLYAD_... before OPENAI_...
        text = environment[variable]
        if not text.strip():
            continue
        if variable in variables:
            section, key = variables[variable]
            value = _parse_variable(variable, text.strip(), _types()[section][key])
            layer.setdefault((section, key), SourcedValue(value, variable))
        elif variable.startswith("POLYAD_") and variable not in _NO_SETTINGS:
            unknown.append(variable)
    return layer, tuple(unknown)


def _file_layer(file: Path) -> _Layer:
    try:
        text = read_file(file, _LONGEST_FILE).decode("utf-8-sig")
        import tomllib  # takes 6 ms, and most commands read no TOML

        content = tomllib.loads(text)
        repr(content)  # fails for hexadecimal numbers that no message could print
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested too deeply
        raise ConfigurationError(f"{str(file)!r} is not TOML: {error}") from error
    layer: _Layer = {}
    for name, value in content.items():
        if (name in _types() and name) or name == MODELS:
            if not isinstance(value, dict):
                raise ConfigurationError(f"{name} in {str(file)!r} is {value!r}; expected a section: [{name}]")
            layer.update(_validate_models(file, value) if name == MODELS else _validate_section(file, name, value))
        else:
            layer.update(_validate_section(file, "", {name: value}))
    return layer


def _validate_models(file: Path, models: Mapping[str, object]) -> _Layer:
    """Return the values in the sections ``[models.NAME]``; the name is the default of ``model``."""
    layer: _Layer = {}
    for name, values in models.items():
        if not isinstance(values, dict) or not name.strip():
            raise ConfigurationError(f"{MODELS} in {str(file)!r} has {name!r}; expected sections: [{MODELS}.NAME]")
        section = f"{MODELS}.{name}"
        layer[section, "model"] = SourcedValue(name, str(file))
        layer.update(_validate_section(file, section, values))
    return layer


def _list_models(layer: _Layer) -> list[str]:
    """Return the sections ``models.NAME`` that have values, in their order."""
    return list(dict.fromkeys(section for section, _ in layer if section.startswith(f"{MODELS}.")))


def _check_project_file(file: Path, layer: _Layer) -> None:
    """Make the paths in a settings file relative to its folder, and reject what such a file is not trusted with.

    The settings file may come with somebody else's folder.

    Raises:
        ConfigurationError: A path is outside that folder, or a setting would expose files or indexes of the user.
    """
    variables = {place: variable for variable, place in get_variables().items()}
    for place in [each for each in layer if each in _PATHS and layer[each].value]:
        value, path = layer[place].value, file.parent / str(layer[place].value)
        if not resolve_path(path).is_relative_to(resolve_path(file.parent)):
            raise ConfigurationError(
                f"{_label(*place)} in {str(file)!r} is {value!r}; expected a path in the same folder, or below it "
                f"({variables[place]} may name any)"
            )
        layer[place] = SourcedValue(str(path), layer[place].origin)
    for place in [each for each in _EXPOSING if each in layer and layer[each].value]:
        raise ConfigurationError(
            f"{_label(*place)} in {str(file)!r} may come from another person; set {variables[place]}, --set, or the "
            f"key in your own {FILE_NAME}"
        )


def _validate_section(file: Path, section: str, values: Mapping[str, object]) -> _Layer:
    """Return the values in a section of a settings file, keyed by (section, key), after a check of keys and types."""
    types = _types()[LANGUAGE_MODEL if section.startswith(f"{MODELS}.") else section]
    layer: _Layer = {}
    for key, value in values.items():
        where = f"{_label(section, key)} in {str(file)!r}"
        if key not in types:
            expected = f"one of {', '.join(types)}" + ("" if section else f", or a section: {_section_names()}")
            raise ConfigurationError(f"{where} is no setting; expected {expected}")
        layer[section, key] = SourcedValue(check_setting(where, value, types[key]), str(file))
    return layer


def _parse_variable(variable: str, text: str, type_: Any) -> object:
    """Convert ``text``, the value of an environment variable, to the type of the setting."""
    value: object = parse_toml_value(text)
    if type_ is bool:
        value = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(text.lower(), text)
    elif get_origin(type_) is tuple:
        value = tuple(part.strip() for part in text.split(","))
    elif type_ is str:
        value = text
    return check_setting(variable, value, type_)


# Secrets


def _withhold_keys(values: _Layer, from_file: _Layer, from_user: _Layer) -> tuple[str, ...]:
    """Remove the user's API keys from endpoints that only the project's file names, and return their addresses.

    An endpoint from the file gets the key that the same file sets for it, or a placeholder.
    """
    trusted = {_OPENAI} | {_get_origin(value) for (_, key), value in from_user.items() if key == "base_url"}
    shared = values.get((LANGUAGE_MODEL, "base_url"))
    keyless = []
    for section in (LANGUAGE_MODEL, *_SERVED, *_list_models(values)):
        section_address = values.get((section, "base_url"))
        address = section_address or shared
        if address is None or address not in from_file.values() or _get_origin(address) in trusted:
            continue
        keys = [from_user.get((name, "api_key")) for name in (section, LANGUAGE_MODEL)]
        inherited_key = None if section_address else values.get((LANGUAGE_MODEL, "api_key"))
        key = from_file.get((section, "api_key")) or inherited_key
        values[section, "api_key"] = key or SourcedValue(_NO_KEY, "")
        keyless += [mask_url(str(address.value))] if any(keys) and not key else []
    return tuple(dict.fromkeys(keyless))


def _withhold_password(values: _Layer, from_file: _Layer, environment: Mapping[str, str]) -> str:
    """Keep the user's passwords from a database that only the project's file names, and return its address.

    Raises:
        ConfigurationError: The address has parameters that such a file is not trusted with.
    """
    store = values.get(("", "store"))
    if store is None or store is not from_file.get(("", "store")) or not str(store.value).startswith(_DATABASE):
        return ""
    address, _, query = str(store.value).partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    if unsafe := sorted(parameters.keys() - _DATABASE_PARAMETERS):
        raise ConfigurationError(
            f"store in {store.origin!r} sets {unsafe[0]!r}; expected only {', '.join(sorted(_DATABASE_PARAMETERS))} "
            "(an address in POLYAD_STORE or --store may set any parameter)"
        )
    if address.startswith(f"{_DATABASE}/"):  # the server of this machine, or of the environment
        return ""
    user_password = re.match(f"{_DATABASE}[^:@/]*:([^@/]+)@", address)
    password = parameters.get("password") or (unquote(user_password[1]) if user_password else "")
    # libpq takes the last of two passwords, and looks for none in the environment or in files.
    query = urlencode({**parameters, "password": password or _NO_KEY}, quote_via=quote)
    values["", "store"] = SourcedValue(f"{address}?{query}", store.origin)
    has_secrets = any(map(environment.get, _DATABASE_SECRETS)) or Path("~/.pgpass").expanduser().exists()
    return mask_url(address) if has_secrets and not password else ""


def _share_endpoint(values: _Layer) -> None:
    """Copy the language model's endpoint to encoder, reranker and further models, unless they have an endpoint."""
    for section in (*_SERVED, *_list_models(values)):
        if (section, "base_url") not in values:
            for key in ("base_url", "api_key"):
                if value := values.get((LANGUAGE_MODEL, key)):
                    values.setdefault((section, key), value)


def _select_model(values: _Layer) -> None:
    """Let a language model called NAME be that of the section ``[models.NAME]``, with its endpoint and key."""
    if model := values.get((LANGUAGE_MODEL, "model")):
        section = f"{MODELS}.{model.value}"
        values.update({(LANGUAGE_MODEL, key): value for (name, key), value in values.items() if name == section})


def _get_origin(address: SourcedValue) -> str:
    """Return scheme, host and port of a URL, which together identify a server."""
    return "/".join(mask_url(str(address.value)).lower().split("/", 3)[:3])


# From values to settings


def _build_section(kind: type[T], name: str, values: _Layer) -> T:
    section_values = {key: value for (section, key), value in values.items() if section == name}
    try:
        return kind(**{key: value.value for key, value in section_values.items()})
    except SettingError as error:
        setting = error.setting
        if error.is_idle and setting in section_values and section_values[setting].origin.startswith(_PRESET_ORIGIN):
            del values[name, setting]  # another source makes this value of the preset useless
            return _build_section(kind, name, values)
        origins = {
            value.origin for key, value in section_values.items() if key == setting or setting not in section_values
        }
        shared = values.get((LANGUAGE_MODEL, setting))
        where = f"[{LANGUAGE_MODEL if shared and shared is section_values.get(setting) else name}] " if name else ""
        raise ConfigurationError(f"{where}{error} (given by {', '.join(sorted(origins))})") from error


# Keys and types


@cache
def _types() -> dict[str, dict[str, Any]]:
    """Return the types of all settings in nested dictionaries, keyed by section and then by key."""
    return {
        name: {each.name: get_type_hints(kind)[each.name] for each in list_keys(kind)}
        for name, kind in get_file_sections().items()
    }


def get_file_sections() -> dict[str, type]:
    """Return the settings class of each section of a settings file, keyed by section name.

    The empty name is the top level.
    """
    sections = {"": CommandSettings, **get_sections(), LANGUAGE_MODEL: LanguageModelSettings, SERVER: ServerSettings}
    return {name: kind for name, kind in sections.items() if list_keys(kind)}


def list_keys(section: type) -> list[Field[Any]]:
    """Return the dataclass fields of the settings class ``section`` that a settings file may set."""
    return [each for each in fields(section) if not each.metadata.get("not_in_file")]


def get_variables() -> dict[str, tuple[str, str]]:
    """Return the setting (section, key) that each environment variable sets, keyed by variable name."""
    derived = {
        "_".join(part for part in ("POLYAD", section, key) if part).upper(): (section, key)
        for section, types in _types().items()
        for key in types
    }
    return {**derived, **_VARIABLES}


def _label(section: str, key: str) -> str:
    return f"[{section}] {key}" if section else key


def _section_names() -> str:
    return ", ".join(f"[{name}]" for name in _types() if name)
