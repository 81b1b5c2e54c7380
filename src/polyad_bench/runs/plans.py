"""Plans of experiments: benchmarks, retrievers and variants of settings; each combination is one run."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from polyad.config import AnswerForm, AnswerPrompt
from polyad.engine import registry
from polyad.engine.changes import change_settings, parse_toml_value
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError
from polyad.presets import PRESETS, Value
from polyad.text.files import make_file_name, read_file, read_package_file
from polyad_bench.answers.judges import JUDGES
from polyad_bench.answers.judging import RETRIEVAL_SIMILARITY


@dataclass(frozen=True, slots=True)
class Variant:
    """A named set of changed settings that an experiment measures in one run.

    Attributes:
        name: Name of the run's folder.
        settings: Values by ``section.key``; other settings are unchanged.
        method: How hyperedges are built; empty for the default of the index.
        preset: Paper whose preset provides all other settings; empty for none.
        models: Values by the names in :data:`MODELS`, in place of the values of the experiment.
        retrievers: Retrievers of this variant, in place of those of the experiment; empty for these.
    """

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    method: str = ""
    preset: str = ""
    models: Mapping[str, Value] = field(default_factory=dict)
    retrievers: tuple[str, ...] = ()

    @property
    def changes_only_answers(self) -> bool:
        """Whether only settings of answers are changed, so that the variant retrieves what the first one retrieves."""
        return bool(self.settings) and all(name.startswith("answer.") for name in self.settings)


MODELS: Mapping[str, type] = {"embedder": str, "model": str, "judge_model": str, "seed": int}
"""Names and types of values that a sweep varies beside settings: models, and the seed sent to language models."""

SYSTEM = "system"
"""Name of the values of a sweep that are retrievers, each on the construction of its own paper."""

_CHOICES: Mapping[str, Collection[str]] = {"method": tuple(registry.methods), "preset": tuple(PRESETS)}
"""Allowed values of the construction method and of the preset, which a sweep may vary too."""

UNCHANGED = Variant("as set")
"""The settings of flags, environment and ``polyad.toml``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of an experiment: which variants of settings are measured on which benchmarks.

    Attributes:
        benchmarks: Folders of data sets.
        variants: Settings that are measured.
        retrievers: Names of the retrievers.
        k: Depth of the ranking, in documents; None for the configured depth.
        limit: Number of questions, from the first; None for all.
        split: Split of the questions; see :func:`polyad_bench.datasets.selection.select_questions`.
        seed: Seed of confidence intervals.
        embedder: Name of the embedder; empty for the configured one.
        mention_extractor: Name of the mention extractor; empty for the configured one.
        out: Folder of the runs; None for the folder of the command line.
        answers: Whether each question is answered as well.
        judges: Judged measures of the answers and of the returned text.
        judge_model: Language model that judges; empty for the model that answers.
    """

    benchmarks: tuple[Path, ...]
    variants: tuple[Variant, ...] = (UNCHANGED,)
    retrievers: tuple[str, ...] = ("dense", "default")
    k: int | None = None
    limit: int | None = None
    split: str = "all"
    seed: int = 0
    embedder: str = ""
    mention_extractor: str = ""
    out: Path | None = None
    answers: bool = False
    judges: tuple[str, ...] = ()
    judge_model: str = ""


_DEFAULTS = Plan(benchmarks=())

ANSWERING_MODES: Mapping[str, Mapping[str, Value]] = {
    **{prompt: {"answer.prompt": prompt} for prompt in get_args(AnswerPrompt)},
    **{form: {"answer.form": form} for form in get_args(AnswerForm) if form != "text"},
}
"""Settings of each answering mode by name: prompts for an answer in text, or an answer in entity names."""

_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("benchmarks", "retrievers", "methods", "presets", "answering", "judges"), list),
    **dict.fromkeys(("k", "limit", "seed"), int),
    **dict.fromkeys(("split", "embedder", "mention_extractor", "out", "judge_model"), str),
    "answers": bool,
    **dict.fromkeys(("sweep", "variants"), dict),
}
"""Type of the value of each key of an experiment's TOML file."""

_MINIMA = {"k": 1, "limit": 1, "seed": 0}

_SPLITS = ("all", "train", "validation", "test", "unseen")

_NAMES: Mapping[str, Collection[str]] = {
    "retrievers": tuple(registry.retrievers),
    "methods": tuple(registry.methods),
    "presets": ("", *PRESETS),
    "answering": ANSWERING_MODES,
    "judges": (*JUDGES, RETRIEVAL_SIMILARITY),
}
"""Allowed names in the lists of an experiment's TOML file."""


def _load_ablations() -> dict[str, tuple[Variant, ...]]:
    by_retriever = tomllib.loads(read_package_file("polyad_bench.runs", "ablations.toml"))
    return {
        retriever: (UNCHANGED, *(Variant(name, settings) for name, settings in variants.items()))
        for retriever, variants in by_retriever.items()
    }


ABLATIONS = _load_ablations()
"""Variants by retriever that show what each part of a method contributes, as far as parts are settings."""


def build_grid(values_by_setting: Mapping[str, Sequence[Value]]) -> list[Variant]:
    """Return one variant of the settings for each combination of the values of several settings.

    >>> [variant.name for variant in build_grid({"hypersu.decay": [0.3, 0.5]})]
    ['hypersu.decay=0.3', 'hypersu.decay=0.5']
    """
    combinations = [
        dict(zip(values_by_setting, values, strict=True)) for values in itertools.product(*values_by_setting.values())
    ]
    variants = []
    for values in combinations:
        retriever, _, construction = str(values.get(SYSTEM, "")).partition("@")
        built = _get_construction(construction or retriever) | values
        variants.append(
            Variant(
                ", ".join(f"{name}={_format_value(value)}" for name, value in values.items()),
                {name: value for name, value in built.items() if "." in name},
                str(built.get("method", "")),
                str(built.get("preset", "")),
                {name: value for name, value in values.items() if name in MODELS},
                (retriever,) if retriever else (),
            )
        )
    return variants


def _get_construction(name: str) -> dict[str, Value]:
    """Return the method and the settings with which the paper of a retriever builds its index and searches.

    The settings of answers are not among them: those of the experiment hold for each system.
    """
    if name not in PRESETS:
        return dict(registry.retrievers[name].construction) if name else {}
    settings = {each.name: each.value for each in PRESETS[name].settings if each.place[0] not in ("", "answer")}
    return {**settings, "method": PRESETS[name].method}


def _format_value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_sweep(option: str) -> tuple[str, list[Value]]:
    """Return the name of a setting and a list of values, parsed from an option ``section.key=A,B,...``.

    The name may also be ``method``, ``preset``, ``system`` or one of :data:`MODELS`. A system is a retriever on the
    construction of its paper, or on that of another one: ``hipporag2``, ``hipporag2@hypersu``.

    >>> parse_sweep("segmentation.method=mdl,window")
    ('segmentation.method', ['mdl', 'window'])

    Raises:
        ConfigurationError: the option does not have this form, or there is no such setting.
    """
    name, equals, values = option.partition("=")
    if not equals or not all(value.strip() for value in values.split(",")):
        raise ConfigurationError(
            f"{option!r} sweeps nothing; expected section.key=A,B,... such as hypersu.decay=0.3,0.5"
        )
    name, parsed = name.strip(), [parse_toml_value(value.strip()) for value in values.split(",")]
    for value in parsed:
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ConfigurationError(f"{name} is {value!r}; expected some of {', '.join(_CHOICES[name])}")
        if name in MODELS and type(value) is not MODELS[name]:
            raise ConfigurationError(f"{name} is {value!r}; expected a value of type {MODELS[name].__name__}")
        for part in str(value).split("@", 1) if name == SYSTEM else ():
            if part not in registry.retrievers:
                raise ConfigurationError(
                    f"{name} is {value!r}; expected A or A@B with retrievers of {', '.join(registry.retrievers)}"
                )
        if name not in {*_CHOICES, *MODELS, SYSTEM}:
            change_settings(Settings(), {name: value})
    return name, parsed


def get_run_names(plan: Plan) -> list[str]:
    """Return a folder name for each run of an experiment; each variant of the settings has one run.

    Raises:
        ConfigurationError: two names are equal, or a name cannot be a folder.
    """
    names = [make_file_name(variant.name) for variant in plan.variants]
    for name, variant in zip(names, plan.variants, strict=True):
        if not variant.name.strip(". "):
            raise ConfigurationError(f"a variant is called {variant.name!r}; expected a name that a folder can have")
        if names.count(name) > 1:
            raise ConfigurationError(f"two variants are called {name!r}; expected names of their own")
    return names


def read_plan(path: Path) -> Plan:
    """Return the plan of an experiment, read from a TOML file; paths in the file are relative to the file.

    Keys: ``benchmarks``, ``retrievers``, ``methods``, ``presets``, ``k``, ``limit``, ``split``, ``seed``,
    ``embedder``, ``mention_extractor``, ``out``, ``answers``, ``answering``, ``judges``, ``judge_model``.
    ``[sweep]`` holds lists of values by ``"section.key"``; each combination is a variant. ``[variants.NAME]`` holds
    values by ``"section.key"``. Each variant is measured with each method, each preset ("" is none) and each answering
    mode.

    Raises:
        ConfigurationError: the file cannot be read, a key is unknown or a value is invalid; the message names file and
            line.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
        content = tomllib.loads(text)
        repr(content)  # fails for huge hexadecimal numbers, which no error message could print
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{str(path)!r} is not TOML: {error}") from error
    try:
        return _build_plan(path.parent, content)
    except _KeyError as error:
        raise ConfigurationError(f"{str(path)!r}, line {_find_line(text, error.key)}: {error}") from error


class _KeyError(ConfigurationError):
    """Raised if a key, or the value of a key, in an experiment's TOML file is invalid."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def _build_plan(folder: Path, content: Mapping[str, Any]) -> Plan:
    for key, value in content.items():
        _require_valid(key, value)
    if "benchmarks" not in content:
        raise _KeyError("", "benchmarks are missing; expected a list of folders")
    options: dict[str, Any] = {key: value for key, value in content.items() if hasattr(_DEFAULTS, key)}
    options |= {key: tuple(value) for key, value in options.items() if isinstance(value, list)}
    options["benchmarks"] = tuple(folder / name for name in content["benchmarks"])
    options["variants"] = tuple(_build_variants(content))
    options["answers"] = content.get("answers", False) or "answering" in content
    options |= {"out": folder / content["out"]} if "out" in content else {}
    return Plan(**options)


def _require_valid(key: str, value: Any) -> None:
    """Raise an error unless ``key`` may be in an experiment's TOML file and ``value`` is a valid value of this key."""
    if key not in _TYPES:
        raise _KeyError(key, f"{key} is no key of an experiment; expected some of {', '.join(_TYPES)}")
    if type(value) is not _TYPES[key]:
        raise _KeyError(key, f"{key} is {value!r}; expected a value of type {_TYPES[key].__name__}")
    if isinstance(value, int) and value < _MINIMA.get(key, value):
        raise _KeyError(key, f"{key} is {value}; expected {_MINIMA[key]} or more")
    if key == "split" and value not in _SPLITS:
        raise _KeyError(key, f"split is {value!r}; expected one of {', '.join(_SPLITS)}")
    if isinstance(value, list):
        if not value or not all(isinstance(name, str) for name in value):
            raise _KeyError(key, f"{key} is {value!r}; expected a list of texts")
        for name in value:
            if name not in _NAMES.get(key, value):
                raise _KeyError(key, f"{key} has {name!r}; expected some of {', '.join(filter(None, _NAMES[key]))}")


def _build_variants(plan: Mapping[str, Any]) -> list[Variant]:
    """Return the variants of an experiment's TOML file: combinations of settings, preset, method and answering mode."""
    variants = []
    for name, settings in plan.get("variants", {}).items():
        if not isinstance(settings, dict):
            raise _KeyError(name, f"the variant {name!r} is {settings!r}; expected settings by section.key")
        variants.append(Variant(name, _flatten(settings)))
        _require_settings({key: [value] for key, value in variants[-1].settings.items()})
    sweep = _flatten(plan.get("sweep", {}))
    _require_settings(sweep)
    variants += build_grid(sweep) if sweep else []
    presets, methods, modes = (plan.get(key, [""]) for key in ("presets", "methods", "answering"))
    return [
        replace(
            variant,
            name=", ".join(
                [
                    *_list_name_part(presets, preset),
                    *_list_name_part(methods, method),
                    variant.name,
                    *_list_name_part(modes, mode),
                ]
            ),
            settings={**variant.settings, **ANSWERING_MODES.get(mode, {})},
            method=method,
            preset=preset,
        )
        for preset in presets
        for method in methods
        for variant in variants or [UNCHANGED]
        for mode in modes
    ]


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return TOML tables (nested dictionaries) as one dictionary with keys such as ``section.key``."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _list_name_part(choices: Sequence[str], choice: str) -> list[str]:
    """Return ``choice`` in a list, as a part of a variant's name; an empty list if there is no other choice."""
    return [choice or "none"] if len(choices) > 1 else []


def _require_settings(settings: Mapping[str, Any]) -> None:
    for name, values in settings.items():
        if not isinstance(values, list) or not values:
            raise _KeyError(name, f"{name} is {values!r}; expected a list of values")
        for value in values:
            try:
                change_settings(Settings(), {name: value})
            except ConfigurationError as error:
                raise _KeyError(name, str(error)) from error


def _find_line(text: str, key: str) -> int:
    """Return the line number at which the text of a TOML file defines ``key``; ``tomllib`` reports no line numbers."""
    pattern = re.compile(rf"^\s*(?:\[.*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\])") if key else re.compile("")
    lines = text.splitlines()
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1)
