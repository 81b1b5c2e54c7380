"""Experiments: benchmarks, retrievers and variants of settings, each combination a run of its own."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from polyad.config import AnswerForm, AnswerPrompt, Settings
from polyad.engine import registry
from polyad.engine.changes import Value, with_settings
from polyad.errors import ConfigurationError
from polyad.evaluation.answers.judges import JUDGES
from polyad.evaluation.answers.judging import RETRIEVAL_SIMILARITY
from polyad.presets import PRESETS


@dataclass(frozen=True, slots=True)
class Variant:
    """Some settings under a name.

    Attributes:
        name: Of the run's folder.
        settings: Values by ``section.key``; what is not named stays as it is.
        method: How hyperedges are built; empty for what suits the index.
        preset: Of which paper everything else is; empty for none.
    """

    name: str
    settings: Mapping[str, Value] = field(default_factory=dict)
    method: str = ""
    preset: str = ""


UNCHANGED = Variant("as set")
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
        answers: Whether each question is answered, too.
        judges: Judged measures of the answers, and of what was retrieved.
        judge_model: Who judges; empty for the model that answers.
    """

    benchmarks: tuple[Path, ...]
    variants: tuple[Variant, ...] = (UNCHANGED,)
    retrievers: tuple[str, ...] = ("dense", "default")
    k: int | None = None
    limit: int | None = None
    split: str = "all"
    seed: int = 0
    embedder: str = ""
    mentions: str = ""
    out: Path | None = None
    answers: bool = False
    judges: tuple[str, ...] = ()
    judge_model: str = ""


_KINDS: Mapping[str, type] = {
    "benchmarks": list,
    "retrievers": list,
    "methods": list,
    "presets": list,
    "k": int,
    "limit": int,
    "split": str,
    "seed": int,
    "embedder": str,
    "mentions": str,
    "out": str,
    "answers": bool,
    "answering": list,
    "judges": list,
    "judge_model": str,
    "sweep": dict,
    "variants": dict,
}

ANSWERING_MODES: Mapping[str, Mapping[str, Value]] = {
    **{prompt: {"answer.prompt": prompt} for prompt in get_args(AnswerPrompt)},
    **{form: {"answer.form": form} for form in get_args(AnswerForm) if form != "text"},
}
"""Answering modes by name: how a text is asked for, or names."""

_LEAST = {"k": 1, "limit": 1, "seed": 0}

_SPLITS = ("all", "train", "validation", "test", "unseen")

ABLATIONS: Mapping[str, Sequence[Variant]] = {
    "hypersu": (
        UNCHANGED,
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
        UNCHANGED,
        Variant("without entities", {"hypergraphrag.use_entities": False}),
        Variant("without hyperedges", {"hypergraphrag.use_hyperedges": False}),
        Variant("without passages", {"hypergraphrag.use_passages": False}),
    ),
    "hyperretriever": (
        UNCHANGED,
        Variant("fixed threshold", {"hyperretriever.adaptive": False}),
        Variant("binary hyperedges", {"hyperretriever.binary": True}),
        Variant("one hop", {"hyperretriever.depth": 1}),
        Variant("without the passage's cosine", {"hyperretriever.dense_weight": 0.0}),
        Variant("without the way's plausibility", {"hyperretriever.path_weight": 0.0}),
    ),
}
"""What a method loses with each of its parts: HyperSU's Figure 3 and Table 11, HyperGraphRAG's Table 2, HyperRAG's
ablations, as far as they are settings."""


def build_grid(swept: Mapping[str, Sequence[Value]]) -> list[Variant]:
    """A variant for each combination of values, named by them.

    >>> [variant.name for variant in build_grid({"hypersu.decay": [0.3, 0.5]})]
    ['hypersu.decay=0.3', 'hypersu.decay=0.5']
    """
    return [
        Variant(", ".join(f"{name}={_written(value)}" for name, value in zip(swept, values, strict=True)), settings)
        for values in itertools.product(*swept.values())
        for settings in [dict(zip(swept, values, strict=True))]
    ]


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_sweep(text: str) -> tuple[str, list[Value]]:
    """Name and values of ``section.key=A,B,...``, each as TOML has it, or else a word.

    >>> parse_sweep("segmentation.method=mdl,window")
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


def read_plan(path: Path) -> Plan:
    """Read an experiment's TOML file; folders in it are relative to the file.

    Keys: ``benchmarks``, ``retrievers``, ``methods``, ``presets``, ``k``, ``limit``, ``split``, ``seed``,
    ``embedder``, ``mentions``, ``out``; ``[sweep]`` with lists of values by ``"section.key"``, each combination of
    which is a variant; ``[variants.NAME]`` with values by ``"section.key"``. Each variant is measured with each method
    and each preset, of which "" is none. With ``answers = true`` the questions are answered, with ``answering`` in each
    of some modes; ``judges`` and ``judge_model`` say by what and by whom that is judged.

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
    for key, least in _LEAST.items():
        if content.get(key, least) < least:
            raise _KeyError(key, f"{key} is {content[key]}; expected {least} or more")
    _require_names(content)
    if "benchmarks" not in content:
        raise _KeyError("", "benchmarks are missing; expected a list of folders")
    if content.get("split", "all") not in _SPLITS:
        raise _KeyError("split", f"split is {content['split']!r}; expected one of {', '.join(_SPLITS)}")
    names = ("k", "limit", "split", "seed", "embedder", "mentions", "judge_model")
    plain = {key: content[key] for key in names if key in content}
    return Plan(
        benchmarks=tuple(folder / name for name in content["benchmarks"]),
        variants=tuple(_variants(content)),
        retrievers=tuple(content.get("retrievers", ("dense", "default"))),
        out=folder / content["out"] if "out" in content else None,
        answers=content.get("answers", False) or "answering" in content,
        judges=tuple(content.get("judges", ())),
        **plain,
    )


def _require_names(content: Mapping[str, Any]) -> None:
    """Refuse lists that hold anything but names of what there is."""
    allowed: Mapping[str, Iterable[str]] = {
        "benchmarks": (),
        "retrievers": registry.retrievers,
        "methods": registry.methods,
        "presets": ("", *PRESETS),
        "answering": ANSWERING_MODES,
        "judges": (*JUDGES, RETRIEVAL_SIMILARITY),
    }
    for key, names in allowed.items():
        given = content.get(key, ["none"])
        if not given or not all(isinstance(item, str) for item in given):
            raise _KeyError(key, f"{key} is {given!r}; expected a list of texts")
        for name in content.get(key, ()) if key != "benchmarks" else ():
            if name not in names:
                listed = ", ".join(filter(None, names))
                raise _KeyError(key, f"{key} has {name!r}; expected some of {listed}")


def _variants(content: Mapping[str, Any]) -> list[Variant]:
    """Those that are named and those that are swept, with each method."""
    named = content.get("variants", {})
    for name, settings in named.items():
        if not isinstance(settings, dict):
            raise _KeyError(name, f"the variant {name!r} is {settings!r}; expected settings by section.key")
        _require_settings({key: [value] for key, value in _flat(settings).items()})
    swept = _flat(content.get("sweep", {}))
    _require_settings(swept)
    variants = [Variant(name, _flat(settings)) for name, settings in named.items()]
    variants += build_grid(swept) if swept else []
    methods, presets = content.get("methods", [""]), content.get("presets", [""])
    modes = content.get("answering", [""])
    return [
        replace(
            variant,
            name=", ".join([*_told(presets, preset), *_told(methods, method), variant.name, *_told(modes, mode)]),
            settings={**variant.settings, **ANSWERING_MODES.get(mode, {})},
            method=method,
            preset=preset,
        )
        for preset in presets
        for method in methods
        for variant in variants or [UNCHANGED]
        for mode in modes
    ]


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by ``section.key``, be it in quotes or not: without them TOML makes a table of each section."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _told(names: Sequence[str], chosen: str) -> list[str]:
    """What a variant is called by of a choice: nothing where there is but one."""
    return [chosen or "none"] if len(names) > 1 else []


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


def get_run_names(plan: Plan) -> list[str]:
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
