"""Flags before environment before file before defaults."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from polyad.cli.settings import Configuration, merge_settings
from polyad.engine.changes import change_settings, parse_setting
from polyad.engine.settings import Settings
from polyad.errors import ConfigurationError


def settings(folder: Path, toml: str = "", environment: dict[str, str] | None = None, **flags: object) -> Configuration:
    file = folder / "polyad.toml"
    if toml:
        file.write_text(toml, encoding="utf-8")
    return merge_settings(flags, environment or {}, file)


def test_nothing_given_means_the_defaults(tmp_path: Path) -> None:
    configuration = settings(tmp_path)
    assert (configuration.command.retriever, configuration.command.k, configuration.command.store) == (
        "default",
        None,
        "",
    )
    assert configuration.stages == Settings()
    assert configuration.language_model is None
    assert configuration.unknown == ()


def test_a_flag_goes_before_the_environment_before_the_file(tmp_path: Path) -> None:
    toml = 'k = 1\nretriever = "bm25"\nstore = "from-file"\n'
    environment = {"POLYAD_K": "2", "POLYAD_RETRIEVER": "dense"}
    command = settings(tmp_path, toml, environment, k=3, retriever=None).command
    assert (command.k, command.retriever, command.store) == (3, "dense", "from-file")


def test_sections_of_the_file_are_the_stages(tmp_path: Path) -> None:
    toml = "[split]\npassage_tokens = 300\n[segmentation]\nkappa = 12\n[hypersu]\nactivation_threshold = 0.4\n"
    stages = settings(tmp_path, toml, {"POLYAD_SPLIT_PASSAGE_TOKENS": "400", "POLYAD_READ_FOLLOW_LINKS": "yes"}).stages
    assert stages.split.passage_tokens == 400
    assert stages.segmentation.kappa == 12.0
    assert isinstance(stages.segmentation.kappa, float)
    assert (stages.hypersu.activation_threshold, stages.read.follow_links) == (0.4, True)


def test_an_ontology_is_set_by_the_file_the_environment_an_option_or_beside_a_preset(tmp_path: Path) -> None:
    toml = (
        'preset = "hypergraphrag"\n[facts]\nentity_types = ["person"]\nrelations = ["owns"]\nexamples = "some/ex.md"\n'
    )
    environment = {"POLYAD_FACTS_RELATIONS": "owns, works for", "POLYAD_FACTS_STRICT": "no"}
    facts = settings(tmp_path, toml, environment).stages.facts
    assert (facts.entity_types, facts.relations) == (("person",), ("owns", "works for"))
    assert (facts.style, facts.strict, facts.examples) == ("paper", False, str(tmp_path / "some" / "ex.md"))
    changes = ['facts.relations=["leads"]', "facts.entity_types=[]", "facts.examples=/elsewhere.md"]
    configuration = merge_settings({}, environment, tmp_path / "polyad.toml", changes=changes)
    facts = configuration.stages.facts
    assert (facts.entity_types, facts.relations, facts.examples) == ((), ("leads",), "/elsewhere.md")
    origins = {key: origin for section, key, _, origin in configuration.values() if section == "facts"}
    assert (origins["relations"], origins["strict"]) == ("--set", "POLYAD_FACTS_STRICT")


@pytest.mark.parametrize("path", ["/etc/hosts", "../examples.md", "inside/../../examples.md", "link/examples.md"])
def test_a_settings_file_names_no_examples_outside_its_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(
        ConfigurationError, match=r"examples in '.*polyad\.toml' is '.*examples|hosts'; expected a path in"
    ):
        settings(folder, f'[facts]\nexamples = "{path}"\n')


@pytest.mark.parametrize("name", ["replies", "prompts", "nearest.shared_folder"])
def test_a_settings_file_names_no_files_to_write_or_to_send_outside_its_folder(tmp_path: Path, name: str) -> None:
    section, _, key = name.rpartition(".")
    header = f"[{section}]\n" if section else ""
    with pytest.raises(ConfigurationError, match=rf"{key} in .* is '\.\./x'; expected a path in the same folder"):
        settings(tmp_path, f'{header}{key} = "../x"\n')
    values = {each[:2]: each[2] for each in settings(tmp_path, f'{header}{key} = "x"\n').values()}
    assert values[section, key] == str(tmp_path / "x")
    variable = {f"POLYAD_{name.replace('.', '_').upper()}": "/elsewhere/x"}
    configuration = merge_settings({}, variable, tmp_path / "none.toml")
    assert {each[:2]: each[2] for each in configuration.values()}[section, key] == "/elsewhere/x"


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("server", "base_url", "https://elsewhere.example"),
        ("server", "hosts", "elsewhere.example"),
        ("server", "proxies", "*"),
        ("server", "cors_origins", "https://elsewhere.example"),
        ("read", "follow_links", True),
    ],
)
def test_a_settings_file_does_not_expose_files_or_indexes(
    tmp_path: Path, section: str, key: str, value: object
) -> None:
    toml = f"[{section}]\n{key} = {json.dumps(value)}\n"
    with pytest.raises(ConfigurationError, match=f"{key} in .* set POLYAD_{section.upper()}_{key.upper()}"):
        settings(tmp_path, toml)
    configuration = merge_settings({}, {}, tmp_path / "none.toml", user_file=tmp_path / "polyad.toml")
    assert {each[:2]: each[2] for each in configuration.values()}[section, key] == value


def test_a_language_model_is_set_by_its_name(tmp_path: Path) -> None:
    toml = '[language_model]\nbase_url = "http://localhost:1/v1"\ntimeout = 9\nprompt_price = 0.5\n'
    assert settings(tmp_path, toml).language_model is None
    environment = {"OPENAI_BASE_URL": "http://localhost:2/v1", "OPENAI_API_KEY": "key", "POLYAD_MODEL": "small"}
    actual = settings(tmp_path, toml, environment, model="large").language_model
    assert actual is not None
    assert (actual.model, actual.base_url, actual.api_key) == ("large", "http://localhost:2/v1", "key")
    assert (actual.timeout, actual.prompt_price) == (9.0, 0.5)


def test_a_variable_of_polyads_own_goes_before_the_general_one(tmp_path: Path) -> None:
    name, general = "http://localhost:1/v1", "http://localhost:2/v1"
    environment = {"OPENAI_BASE_URL": general, "POLYAD_LANGUAGE_MODEL_BASE_URL": name, "POLYAD_MODEL": "m"}
    actual = settings(tmp_path, "", environment).language_model
    assert actual is not None
    assert actual.base_url == name


def test_a_blank_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert settings(tmp_path, "k = 7", {"POLYAD_K": " "}).command.k == 7


def test_a_misspelt_variable_is_named(tmp_path: Path) -> None:
    assert settings(tmp_path, "", {"POLYAD_STOER": "kb", "OTHER": "x"}).unknown == ("POLYAD_STOER",)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("kk = 3", r"kk in '.*polyad\.toml' is no setting; expected one of preset, store, prompts, .*\[split\]"),
        ("[splitt]\npassage_tokens = 3", r"splitt in '.*polyad\.toml' is no setting"),
        ("[split]\ntokens = 3", r"\[split\] tokens in '.*polyad\.toml' is no setting; expected one of passage_tokens"),
        ("[split]\npassage_tokens = '3'", r"\[split\] passage_tokens in '.*' is '3'; expected a whole number"),
        ("[split]\npassage_tokens = 1.5", r"passage_tokens in '.*' is 1\.5; expected a whole number"),
        ("[split]\nlanguage = 'German'", "language is .German.; expected the code of a language"),
        ("[segmentation]\nkappa = true", r"\[segmentation\] kappa in '.*' is True; expected a number"),
        ("[read]\nfollow_links = 1", r"follow_links in '.*' is 1; expected true or false"),
        ("[facts]\nrelations = 'owns'", r"relations in '.*' is 'owns'; expected an array"),
        ("[facts]\nrelations = ['owns', 3]", r"relations in '.*'\[1\] is 3; expected a text"),
        ("[facts]\nrelations = ['a|b']", r"\[facts\] relations is \('a\|b',\); expected names of one line"),
        ("split = 3", r"split in '.*' is 3; expected a section: \[split\]"),
        ("k = [", r"'.*polyad\.toml' is not TOML"),
        ("[segmentation]\nmethod = 'x'", r"\[segmentation\] method in '.*' is 'x'; expected one of 'mdl', "),
        ("retriever = 'x'", r"retriever is 'x'; expected one of default, .*given by .*polyad\.toml"),
        ("min_relevance = 'low'", r"min_relevance in '.*' is 'low'; expected a number or one of 'auto'"),
        ("k = 0", r"k is 0; expected 1 or more"),
        ("[answer]\nform = 'poem'", r"\[answer\] form in '.*' is 'poem'; expected one of 'text', 'entity', "),
    ],
)
def test_a_bad_file_is_an_error_that_names_key_value_and_expectation(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        settings(tmp_path, toml)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("POLYAD_K", "two", "POLYAD_K is 'two'; expected a whole number"),
        ("POLYAD_SEGMENTATION_KAPPA", "x", "POLYAD_SEGMENTATION_KAPPA is 'x'; expected a number"),
        ("POLYAD_SEGMENTATION_KAPPA", "-1", r"\[segmentation\] kappa is -1.0; .*given by POLYAD_SEGMENTATION_KAPPA"),
        ("OPENAI_BASE_URL", "ftp://x", r"^\[language_model\] base_url is 'ftp://x'; .*given by OPENAI_BASE_URL"),
        ("POLYAD_RERANKER_BASE_URL", "ftp://x", r"^\[reranker\] base_url is 'ftp://x'; .*POLYAD_RERANKER_BASE_URL"),
        ("POLYAD_FACTS_RELATIONS", "owns,", r"\[facts\] relations is .*given by POLYAD_FACTS_RELATIONS"),
        ("POLYAD_READ_FOLLOW_LINKS", "maybe", "POLYAD_READ_FOLLOW_LINKS is 'maybe'; expected true or false"),
    ],
)
def test_a_bad_variable_is_an_error_that_names_it(tmp_path: Path, variable: str, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        settings(tmp_path, "", {variable: text})


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "polyad.toml").write_bytes(b"store = '\xff'")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        settings(tmp_path)


def test_a_file_that_an_editor_began_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "polyad.toml").write_bytes(b"\xef\xbb\xbfk = 3\n")
    assert settings(tmp_path).command.k == 3


@pytest.mark.parametrize("toml", ["k = " + "[" * 20_000, "#" * 70_000])
def test_a_file_that_is_nested_without_end_or_too_long_is_an_error(tmp_path: Path, toml: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not TOML|is longer than 65,536 bytes"):
        settings(tmp_path, toml)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e308", "1" + "0" * 30, "1" + "0" * 400, "0x1" + "0" * 4000])
@pytest.mark.parametrize("name", ["hypersu.width", "hypersu.sharpening", "segmentation.kappa", "reranker.timeout"])
def test_a_number_that_would_overflow_is_an_error(tmp_path: Path, name: str, value: str) -> None:
    section, _, key = name.partition(".")
    with pytest.raises(ConfigurationError, match=rf"{key}|polyad\.toml"):
        settings(tmp_path, f"[{section}]\n{key} = {value}")
    with pytest.raises(ConfigurationError):
        change_settings(Settings(), dict([parse_setting(f"{name}={value}")]))


def test_a_device_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "polyad.toml").symlink_to("/dev/null")
    with pytest.raises(ConfigurationError, match="is a pipe or a device; expected a file"):
        settings(tmp_path)


@pytest.mark.parametrize("toml", ["", "[language_model]\n", "[nearest]\n"])
def test_a_null_character_is_an_error(tmp_path: Path, toml: str) -> None:
    name = {"": "store", "[language_model]\n": "model", "[nearest]\n": "shared_folder"}[toml]
    with pytest.raises(ConfigurationError, match=f"{name} in .* expected a text without null characters"):
        settings(tmp_path, f'{toml}{name} = "a\\u0000b"')


def test_the_device_has_a_variable_of_its_own(tmp_path: Path) -> None:
    assert merge_settings({}, {"POLYAD_DEVICE": "cpu"}, tmp_path / "none.toml").stages.encoder.device == "cpu"


# Keys of the environment and endpoints of the file

ENDPOINT = '[language_model]\nmodel = "m"\nbase_url = "https://elsewhere.example/v1"\n'
RERANKER = '[reranker]\nbase_url = "https://elsewhere.example/v1"\n'


def keys_sent(configuration: Configuration) -> set[str]:
    """All keys that could go to an endpoint; the OpenAI library would fill in what is empty."""
    model = configuration.language_model
    assert model is not None
    return {model.api_key, configuration.stages.encoder.api_key, configuration.stages.reranker.api_key}


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "POLYAD_LANGUAGE_MODEL_API_KEY"])
def test_a_key_of_the_environment_is_not_for_an_endpoint_that_only_the_file_names(
    tmp_path: Path, variable: str
) -> None:
    configuration = settings(tmp_path, ENDPOINT, {variable: "sk-own"})
    assert keys_sent(configuration) == {"no-key"}
    assert configuration.keyless == ("https://elsewhere.example/v1",)


def test_the_key_in_the_file_is_for_the_endpoint_in_the_file(tmp_path: Path) -> None:
    configuration = settings(tmp_path, ENDPOINT + 'api_key = "sk-file"\n', {"OPENAI_API_KEY": "sk-own"})
    assert keys_sent(configuration) == {"sk-file"}
    assert configuration.keyless == ()


def test_a_flag_confirms_the_endpoint(tmp_path: Path) -> None:
    (tmp_path / "polyad.toml").write_text(ENDPOINT, encoding="utf-8")
    configuration = merge_settings({}, {"OPENAI_API_KEY": "sk-own"}, tmp_path / "polyad.toml", trusts_endpoint=True)
    assert configuration.language_model is not None
    assert (configuration.language_model.api_key, configuration.keyless) == ("sk-own", ())


@pytest.mark.parametrize(
    ("base_url", "environment"),
    [
        ("https://elsewhere.example/v1", {"OPENAI_BASE_URL": "https://mine.example/v1"}),
        ("https://Mine.example/v2", {"POLYAD_RERANKER_BASE_URL": "https://mine.example/v1"}),
        ("https://api.openai.com/v1", {}),
    ],
)
def test_an_endpoint_that_the_environment_names_too_gets_its_key(
    tmp_path: Path, base_url: str, environment: dict[str, str]
) -> None:
    toml = f'[language_model]\nmodel = "m"\nbase_url = "{base_url}"\n'
    configuration = settings(tmp_path, toml, {"OPENAI_API_KEY": "sk-own", **environment})
    assert configuration.language_model is not None
    assert (configuration.language_model.api_key, configuration.keyless) == ("sk-own", ())


@pytest.mark.parametrize(
    "base_url",
    [
        "http://mine.example/v1",
        "https://mine.example:8443/v1",
        "https://mine.example.elsewhere.example/v1",
        "https://mine.example@elsewhere.example/v1",
        "https://api.openai.com:1/v1",
        "https://elsewhere.example?https://mine.example/",
    ],
)
def test_another_scheme_port_or_host_is_another_endpoint(tmp_path: Path, base_url: str) -> None:
    environment = {"OPENAI_API_KEY": "sk-own", "POLYAD_RERANKER_BASE_URL": "https://mine.example/v1"}
    configuration = settings(tmp_path, f'[language_model]\nmodel = "m"\nbase_url = "{base_url}"\n', environment)
    assert configuration.language_model is not None
    assert configuration.language_model.api_key == "no-key"


# Models of which a question may name one

MODELS = """
[models.qwen3]
[models.large]
model = "qwen3:32b"
base_url = "https://gpu.example/v1"
api_key = "sk-gpu"
"""


def test_further_models_share_the_endpoint_unless_they_name_another(tmp_path: Path) -> None:
    environment = {"OPENAI_BASE_URL": "https://mine.example/v1", "OPENAI_API_KEY": "sk-own"}
    small, large = settings(tmp_path, MODELS, environment).models.values()
    assert (small.model, small.base_url, small.api_key) == ("qwen3", "https://mine.example/v1", "sk-own")
    assert (large.model, large.base_url, large.api_key) == ("qwen3:32b", "https://gpu.example/v1", "sk-gpu")
    assert "sk-" not in str([*settings(tmp_path, MODELS, environment).values()])


def test_the_language_model_may_be_a_further_model_with_its_endpoint_and_key(tmp_path: Path) -> None:
    environment = {"OPENAI_BASE_URL": "https://mine.example/v1", "OPENAI_API_KEY": "sk-own"}
    (tmp_path / "polyad.toml").write_text(MODELS, encoding="utf-8")
    for name, expected in (
        ("large", ("qwen3:32b", "https://gpu.example/v1", "sk-gpu")),
        ("gpt-5", ("gpt-5", "https://mine.example/v1", "sk-own")),
    ):
        model = merge_settings(
            {"model": name}, environment, tmp_path / "polyad.toml", trusts_endpoint=True
        ).language_model
        assert model is not None
        assert (model.model, model.base_url, model.api_key) == expected


def test_no_key_of_the_user_goes_to_a_model_that_only_the_project_file_names(tmp_path: Path) -> None:
    (tmp_path / "user.toml").write_text(MODELS, encoding="utf-8")
    (tmp_path / "polyad.toml").write_text('[models.large]\nbase_url = "https://elsewhere.example/v1"\n', "utf-8")
    user_file, environment = tmp_path / "user.toml", {"OPENAI_API_KEY": "sk-own"}
    for trusts_endpoint, key in ((False, "no-key"), (True, "")):
        configuration = merge_settings(
            {}, environment, tmp_path / "polyad.toml", user_file=user_file, trusts_endpoint=trusts_endpoint
        )
        assert configuration.models["large"].api_key == key
        assert configuration.models["large"].model == "large"
        assert set(configuration.models) == {"qwen3", "large"}


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("models = 3", r"expected a section: \[models\]"),
        ("[models]\nfast = 3", r"expected sections: \[models.NAME\]"),
        ("[models.' ']", r"expected sections: \[models.NAME\]"),
        ("[models.fast]\nmodl = 'x'", "is no setting; expected one of model, base_url"),
        ("[models.fast]\nbase_url = 'x'", r"\[models.fast\] base_url is 'x'; expected an address"),
    ],
)
def test_mistakes_in_further_models_are_errors(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        settings(tmp_path, toml)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "POLYAD_RERANKER_API_KEY"])
@pytest.mark.parametrize("toml", [RERANKER, ENDPOINT])
def test_the_reranker_keeps_keys_to_itself_as_well(tmp_path: Path, variable: str, toml: str) -> None:
    assert settings(tmp_path, toml, {variable: "sk-own"}).stages.reranker.api_key == "no-key"


def test_without_a_key_there_is_nothing_to_warn_of(tmp_path: Path) -> None:
    configuration = settings(tmp_path, ENDPOINT)
    assert keys_sent(configuration) == {"no-key"}  # lest the OpenAI library send what else the environment has
    assert configuration.keyless == ()


@pytest.mark.parametrize("variable", ["PGPASSWORD", "PGPASSFILE", "PGSERVICE"])
@pytest.mark.parametrize("user", ["", "u@", "u:@", "u@h:1,x:y@"])
def test_a_database_that_only_the_file_names_gets_no_password_of_the_environment(
    tmp_path: Path, user: str, variable: str
) -> None:
    toml = f'store = "postgresql://{user}elsewhere.example/db?workspace=w"\n'
    configuration = settings(tmp_path, toml, {variable: "secret"})
    fields = conninfo_to_dict(configuration.command.store.replace("workspace=w&", ""))
    assert fields["password"] not in ("", "secret")
    assert configuration.database_without_password.endswith("elsewhere.example/db")
    assert settings(tmp_path, toml).database_without_password == ""


def test_a_database_of_the_file_is_reached_with_the_password_of_the_file(tmp_path: Path) -> None:
    configuration = settings(tmp_path, 'store = "postgresql://u:a%2Bb%20c@h/db"\n', {"PGPASSWORD": "secret"})
    assert conninfo_to_dict(configuration.command.store)["password"] == "a+b c"
    assert configuration.database_without_password == ""


@pytest.mark.parametrize(
    ("toml", "environment"),
    [
        ("", {"POLYAD_STORE": "postgresql://u@h/db?passfile=own"}),
        ('store = "postgresql://elsewhere.example/db"', {"POLYAD_STORE": "postgresql://u@h/db?passfile=own"}),
        ('store = "postgresql:///db"', {}),
    ],
)
def test_a_database_of_the_environment_gets_its_password(
    tmp_path: Path, toml: str, environment: dict[str, str]
) -> None:
    configuration = settings(tmp_path, toml, {"PGPASSWORD": "secret", **environment})
    assert "password" not in configuration.command.store
    assert configuration.database_without_password == ""


@pytest.mark.parametrize("parameter", ["passfile", "service", "sslkeylogfile", "gssdelegation", "host"])
def test_a_database_of_the_file_sets_no_parameter_that_reads_files_or_passes_on_credentials(
    tmp_path: Path, parameter: str
) -> None:
    toml = f'store = "postgresql://u@h/db?{parameter}=x"\n'
    with pytest.raises(ConfigurationError, match=f"sets '{parameter}'; expected only"):
        settings(tmp_path, toml)
    (tmp_path / "polyad.toml").write_text(toml, encoding="utf-8")
    trusting = merge_settings({}, {}, tmp_path / "polyad.toml", trusts_endpoint=True)
    assert trusting.command.store.endswith(f"{parameter}=x")


def test_parameters_of_papers_are_set_by_options_not_by_files(tmp_path: Path) -> None:
    changes = ["hyperretriever_training.rounds=3", "hypersu.use_remainder=false", "hypersu.decay=1"]
    configuration = merge_settings({}, {}, tmp_path / "none.toml", changes=changes)
    assert (configuration.stages.hyperretriever_training.rounds, configuration.stages.hypersu.use_remainder) == (
        3,
        False,
    )
    listed = {(section, key): (value, origin) for section, key, value, origin in configuration.values()}
    assert listed["hyperretriever_training", "rounds"] == (3, "--set")
    assert listed["hypersu", "decay"] == (1.0, "--set")
    for toml in ("[hyperretriever_training]\nrounds = 3", "[hypersu]\nuse_remainder = false"):
        with pytest.raises(ConfigurationError):
            settings(tmp_path, toml)


@pytest.mark.parametrize(
    "change", ["hypersu.decay", "hypersu.decay=", "decay=1", "hypersu.decai=1", "hypersu.decay=no"]
)
def test_an_option_that_sets_nothing_is_an_error_that_names_it(tmp_path: Path, change: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(change.partition("=")[0])):
        merge_settings({}, {}, tmp_path / "none.toml", changes=[change])


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[hypersu]\nbackward_depth = 0\nanchors = 5", "anchors is 5; expected 10: it does nothing"),
        ("[hypergraphrag]\ntop_k_passages = 0\npassage_threshold = 0.5", "passage_threshold is 0.5; expected None"),
        (
            "[hyperretriever]\nreductions = 0\ndecay = 0.2",
            "decay is 0.2; expected 0.1: it does nothing",
        ),
    ],
)
def test_a_key_that_does_nothing_where_it_is_given_is_an_error(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        settings(tmp_path, toml)
