"""Experiments: benchmarks, retrievers and variants of settings, each combination a run of its own."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from polyad.config import Settings
from polyad.engine import registry
from polyad.errors import ConfigurationError, SettingError

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Variant:
    """Some settings under a name.

    Attributes:
        name: Of the run's folder.
        settings: Values by ``section.key``; what is not named stays as it is.
        method: How hyperedges are built; empty for what suits the index.
    """

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    method: str = ""


AS_SET = Variant("as set")
"""Everything as flags, environment and file say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Attributes:
        benchmarks: BEIR folders.
        variants: Each is measured on each benchmark.
        retrievers: Asked in each of them.
        k: Depth of the ranking, in documents; None for what is set.
        limit: Only the first so many questions.
        split: Which of the questions.
        seed: Of intervals.
        embedder, mentions: Empty for what is set.
        out: Where the runs go; None for what the command says.
    """

    benchmarks: tuple[Path, ...]
    variants: tuple[Variant, ...] = (AS_SET,)
    retrievers: tuple[str, ...] = ("standard", "default")
    k: int | None = None
    limit: int | None = None
    split: str = "all"
    seed: int = 0
    embedder: str = ""
    mentions: str = ""
    out: Path | None = None


_KINDS: Mapping[str, type] = {
    "benchmarks": list,
    "retrievers": list,
    "methods": list,
    "k": int,
    "limit": int,
    "split": str,
    "seed": int,
    "embedder": str,
    "mentions": str,
    "out": str,
    "sweep": dict,
    "variants": dict,
}

_SPLITS = ("all", "train", "validation", "test")

ABLATIONS: Mapping[str, Sequence[Variant]] = {
    "hypersu": (
        AS_SET,
        Variant("without clues", {"hypersu.use_clues": False}),
        Variant("without backward anchoring", {"hypersu.backward_depth": 0}),
        Variant("without convergence bonus", {"hypersu.convergence_bonus": 1.0}),
        Variant("without expansion", {"hypersu.forward_depth": 0, "hypersu.backward_depth": 0}),
        Variant("units without entities", {"segmentation.method": "mdl-no-entities"}),
        Variant("units without semantics", {"segmentation.method": "mdl-no-semantics"}),
        Variant("units of one sentence", {"segmentation.method": "sentence"}),
        Variant("units of three sentences", {"segmentation.method": "window"}),
        Variant("units by semantic chunking", {"segmentation.method": "semantic-chunking"}),
    ),
    "hypergraphrag": (
        AS_SET,
        Variant("without entities", {"hypergraphrag.use_entities": False}),
        Variant("without hyperedges", {"hypergraphrag.use_hyperedges": False}),
        Variant("without passages", {"hypergraphrag.use_passages": False}),
    ),
    "hyperretriever": (
        AS_SET,
        Variant("fixed threshold", {"hyperretriever.adaptive": False}),
        Variant("binary hyperedges", {"hyperretriever.binary": True}),
        Variant("one hop", {"hyperretriever.depth": 1}),
        Variant("without the passage's cosine", {"hyperretriever.dense_weight": 0.0}),
        Variant("without the way's plausibility", {"hyperretriever.path_weight": 0.0}),
    ),
}
"""What a method loses with each of its parts: HyperSU's Figure 3 and Table 11, HyperGraphRAG's Table 2, HyperRAG's
ablations, as far as they are settings."""


def grid(swept: Mapping[str, Sequence[Value]]) -> list[Variant]:
    """A variant for each combination of values, named by them.

    >>> [variant.name for variant in grid({"hypersu.decay": [0.3, 0.5]})]
    ['hypersu.decay=0.3', 'hypersu.decay=0.5']
    """
    return [
        Variant(", ".join(f"{name}={_written(value)}" for name, value in zip(swept, values, strict=True)), settings)
        for values in itertools.product(*swept.values())
        for settings in [dict(zip(swept, values, strict=True))]
    ]


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def swept_from(text: str) -> tuple[str, list[Value]]:
    """Name and values of ``section.key=A,B,...``, each as TOML has it, or else a word.

    >>> swept_from("segmentation.method=mdl,window")
    ('segmentation.method', ['mdl', 'window'])

    Raises:
        ConfigurationError: it is not of that form, or there is no such setting.
    """
    name, equals, values = text.partition("=")
    if not equals or not all(value.strip() for value in values.split(",")):
        raise ConfigurationError(f"{text!r} sweeps nothing; expected section.key=A,B,... such as hypersu.decay=0.3,0.5")
    found = [_parsed(value.strip()) for value in values.split(",")]
    for value in found:
        with_settings(Settings(), {name.strip(): value})
    return name.strip(), found


def _parsed(text: str) -> Value:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, str | int | float | bool) else text


def with_settings(settings: Settings, changes: Mapping[str, Value]) -> Settings:
    """The settings with some values changed.

    Args:
        settings: As they are.
        changes: By ``section.key``.

    Raises:
        ConfigurationError: there is no such setting, or it cannot have that value.
    """
    given = registry.by_section(settings)
    by_section: dict[str, dict[str, Value]] = {}
    for name, value in changes.items():
        section, _, key = name.partition(".")
        if section not in given:
            raise ConfigurationError(f"{name!r} is no setting; expected section.key, of {', '.join(given)}")
        types = get_type_hints(type(given[section]))
        if key not in types:
            raise ConfigurationError(f"{name!r} is no setting; expected {section}. and one of {', '.join(types)}")
        by_section.setdefault(section, {})[key] = _as_type(name, value, types[key])
    try:
        changed = {section: replace(given[section], **values) for section, values in by_section.items()}
    except SettingError as error:
        raise ConfigurationError(f"in {', '.join(changes)}: {error}") from error
    return settings.but(**changed)


def _as_type(name: str, value: Value, type_: Any) -> Value:
    """The value where it is of the type, a whole number also where any number may stand."""
    is_union = get_origin(type_) in (Union, UnionType)
    options = [kind for kind in (get_args(type_) if is_union else (type_,)) if kind is not NoneType]
    allowed = [str if get_origin(kind) is Literal else kind for kind in options]
    if type(value) is int and float in allowed and int not in allowed:
        return float(value)
    if type(value) not in allowed:
        words = " or ".join(kind.__name__ for kind in allowed)
        raise ConfigurationError(f"{name} is {value!r}; expected a value of type {words}")
    return value


def plan_from(path: Path) -> Plan:
    """Read an experiment's TOML file; folders in it are relative to the file.

    Keys: ``benchmarks``, ``retrievers``, ``methods``, ``k``, ``limit``, ``split``, ``seed``, ``embedder``,
    ``mentions``, ``out``; ``[sweep]`` with lists of values by ``"section.key"``, each combination of which is a
    variant; ``[variants.NAME]`` with values by ``"section.key"``. Each variant is measured with each method.

    Raises:
        ConfigurationError: it cannot be read, a key is unknown or has another type: says file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{str(path)!r} is not TOML: {error}") from error
    try:
        return _plan(path.parent, content)
    except _KeyError as error:
        raise ConfigurationError(f"{str(path)!r}, line {_line(text, error.key)}: {error}") from error


class _KeyError(ConfigurationError):
    """Something is wrong with the value of a key."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def _plan(folder: Path, content: Mapping[str, Any]) -> Plan:
    for key, value in content.items():
        if key not in _KINDS:
            raise _KeyError(key, f"{key} is no key of an experiment; expected some of {', '.join(_KINDS)}")
        if type(value) is not _KINDS[key]:
            raise _KeyError(key, f"{key} is {value!r}; expected a value of type {_KINDS[key].__name__}")
    for key in ("benchmarks", "retrievers", "methods"):
        if key in content and not (content[key] and all(isinstance(item, str) for item in content[key])):
            raise _KeyError(key, f"{key} is {content[key]!r}; expected a list of texts")
    if "benchmarks" not in content:
        raise _KeyError("", "benchmarks are missing; expected a list of folders")
    if content.get("split", "all") not in _SPLITS:
        raise _KeyError("split", f"split is {content['split']!r}; expected one of {', '.join(_SPLITS)}")
    plain = {key: content[key] for key in ("k", "limit", "split", "seed", "embedder", "mentions") if key in content}
    return Plan(
        benchmarks=tuple(folder / name for name in content["benchmarks"]),
        variants=tuple(_variants(content)),
        retrievers=tuple(content.get("retrievers", ("standard", "default"))),
        out=folder / content["out"] if "out" in content else None,
        **plain,
    )


def _variants(content: Mapping[str, Any]) -> list[Variant]:
    """Those that are named and those that are swept, with each method."""
    named = content.get("variants", {})
    for name, settings in named.items():
        if not isinstance(settings, dict):
            raise _KeyError(name, f"the variant {name!r} is {settings!r}; expected settings by section.key")
        _require_settings({key: [value] for key, value in settings.items()})
    swept = content.get("sweep", {})
    _require_settings(swept)
    variants = [Variant(name, settings) for name, settings in named.items()]
    variants += grid(swept) if swept else []
    methods = content.get("methods", [""])
    return [
        replace(variant, name=f"{method}, {variant.name}" if len(methods) > 1 else variant.name, method=method)
        for method in methods
        for variant in variants or [AS_SET]
    ]


def _require_settings(settings: Mapping[str, Any]) -> None:
    for name, values in settings.items():
        if not isinstance(values, list) or not values:
            raise _KeyError(name, f"{name} is {values!r}; expected a list of values")
        for value in values:
            try:
                with_settings(Settings(), {name: value})
            except ConfigurationError as error:
                raise _KeyError(name, str(error)) from error


def _line(text: str, key: str) -> int:
    """The line that a key is given in, from 1; TOML's reader does not say."""
    written = re.compile(rf"^\s*(?:\[.*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\])") if key else re.compile("")
    found = [number for number, line in enumerate(text.splitlines(), 1) if written.match(line)]
    return found[0] if found else 1


def names_of(plan: Plan) -> list[str]:
    """The names of the variants as folders, each of its own.

    Raises:
        ConfigurationError: two are the same, or one is no name for a folder.
    """
    names = [re.sub(r"[^\w.,=+ -]", "_", variant.name) for variant in plan.variants]
    for name in names:
        if not name.strip(". "):
            raise ConfigurationError(f"a variant is called {name!r}; expected a name that a folder can have")
        if names.count(name) > 1:
            raise ConfigurationError(f"two variants are called {name!r}; expected names of their own")
    return names
