from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from polyad.errors import ConfigurationError
from polyad_bench.measures.answers import (
    answer_relevance,
    contain_accuracy,
    context_recall,
    entity_recall,
    exact_match,
    hotpotqa_f1,
    hyperrag_exact_match,
    load_tokenizer,
    name_hits,
    name_reciprocal_rank,
    normalize_answer,
    rouge_l,
    token_f1,
)


@pytest.mark.parametrize(
    ("answer", "accepted", "exact", "f1", "contained"),
    [
        ("The Bell of Tarn.", ["bell of tarn"], 1.0, 1.0, 1.0),
        ("Ines Moreau", ["Moreau", "Ines Moreau"], 1.0, 1.0, 1.0),
        ("It was cast by Ines Moreau in 1702", ["Ines Moreau"], 0.0, 4 / 10, 1.0),
        ("Moreau, Moreau", ["Moreau Ines Moreau"], 0.0, 4 / 5, 0.0),
        ("Aldby", ["Isk"], 0.0, 0.0, 0.0),
        ("", ["Isk"], 0.0, 0.0, 0.0),
        ("the", [""], 1.0, 1.0, 0.0),
        ("Aldby", [], 0.0, 0.0, 0.0),
    ],
)
def test_an_answer_is_as_good_as_the_accepted_one_nearest_to_it(
    answer: str, accepted: list[str], exact: float, f1: float, contained: float
) -> None:
    assert exact_match(answer, accepted) == exact
    assert token_f1(answer, accepted) == pytest.approx(f1)
    assert contain_accuracy(answer, accepted) == contained


def hotpotqa_script(prediction: str, truth: str) -> float:
    """F1 as hotpot_evaluate_v1.py of HotpotQA computes it: precision and recall, and its rule for yes and no."""
    prediction, truth = normalize_answer(prediction), normalize_answer(truth)
    for one, other in ((prediction, truth), (truth, prediction)):
        if one in ("yes", "no", "noanswer") and one != other:
            return 0.0
    shared, left = 0, truth.split()
    for word in prediction.split():
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction.split()), shared / len(truth.split())
    return 2 * precision * recall / (precision + recall)


WORDS = st.lists(st.sampled_from(["yes", "no", "Yes.", "noanswer", "the", "otter", "Isk"]), min_size=1, max_size=4)


@given(WORDS.map(" ".join), st.lists(WORDS.map(" ".join), min_size=1, max_size=3))
def test_f1_with_hotpotqas_rule_is_that_of_its_script(answer: str, accepted: list[str]) -> None:
    accepted = [text for text in accepted if normalize_answer(text)] or ["Isk"]
    assert hotpotqa_f1(answer, accepted) == pytest.approx(max(hotpotqa_script(answer, text) for text in accepted))


def test_yes_with_an_explanation_is_half_right_for_squad_and_wrong_for_hotpotqa() -> None:
    assert (token_f1("Yes, it is.", ["yes"]), hotpotqa_f1("Yes, it is.", ["yes"])) == (0.5, 0.0)
    assert token_f1("no", ["no otter"]) == pytest.approx(2 / 3)
    assert hotpotqa_f1("no", ["no otter"]) == 0.0
    assert hotpotqa_f1("No!", ["yes", "no"]) == 1.0


def test_c_rec_and_a_rel_count_the_tokens_of_a_tokenizer(tmp_path: Path) -> None:
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    pairs = {"ot": 26, "te": 27, "otte": 28, "fi": 29}
    merges = [("o", "t"), ("t", "e"), ("ot", "te"), ("f", "i")]
    tokenizer = Tokenizer(models.BPE(vocab=letters | pairs, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    name, split = load_tokenizer(tmp_path / "tokenizer.json")
    assert name.startswith("tokenizer.json ")
    # "otter fish" is otte r fi s h; "otters" is otte r s, "fig" is fi g.
    assert context_recall("otters", ["otter fish"], split) == 3 / 5
    assert context_recall("otters", ["otter fish", "otter"], split) == 1.0
    assert answer_relevance("otter fish", "fig otter", split) == 3 / 5
    assert context_recall("otters", ["otter fish"]) == 0.0, "no word is shared"
    with pytest.raises(ConfigurationError, match=r"expected a tokenizer\.json"):
        load_tokenizer(tmp_path / "missing.json")


def test_letters_within_a_word_count_for_the_lenient_measure_alone() -> None:
    assert (contain_accuracy("It is a party.", ["art"]), hyperrag_exact_match("It is a party.", ["art"])) == (0.0, 1.0)
    assert (contain_accuracy("Ines", ["Ines Moreau"]), hyperrag_exact_match("Ines", ["Ines Moreau"])) == (0.0, 1.0), (
        "either way round"
    )
    assert hyperrag_exact_match("rein", ["The rain", "in Re Ines"]) == 1.0, "across blanks"
    assert (
        hyperrag_exact_match("", ["Ines"]),
        hyperrag_exact_match("Ines", ["", " "]),
        hyperrag_exact_match("Ines", []),
    ) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("names", "rank", "hit"),
    [
        (["Isk", "the ALDBY!", "Tarn"], 1 / 2, 1.0),
        (["Isk"] * 10 + ["Tarn"], 1 / 11, 0.0),
        (["Isk"], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_names_are_ranked_as_hyperrag_compares_them(names: list[str], rank: float, hit: float) -> None:
    assert name_reciprocal_rank(names, ["Tarn", "Aldby"]) == pytest.approx(rank)
    assert name_hits(names, ["Tarn", "Aldby"]) == hit


def test_the_measures_of_hypergraphrag_v1_are_parts_of_different_words() -> None:
    accepted = ["Ines Moreau cast it in 1702", "Moreau"]
    assert context_recall("It was cast by INES, Ines!", accepted[:1]) == 0.5
    assert context_recall("Moreau, in Aldby", accepted) == 1.0, "the best of the accepted"
    assert context_recall("Moreau", ["!"]) is None
    assert entity_recall("moreau cast it in Aldby; Ines knew", accepted[:1]) == 0.5, "a capital is part of a name"
    assert entity_recall("Moreau", ["in 1702"]) is None, "there is no name to be found"
    assert answer_relevance("Who cast the bell?", "Moreau cast the bell.") == 0.75
    assert answer_relevance("?", "Moreau") is None


def test_normalising_an_answer_leaves_its_words() -> None:
    assert normalize_answer(" An  otter's \n THE diet (fish)") == "otters diet fish"


def test_rouge_l_is_that_of_rouge_score_on_a_thousand_random_cases() -> None:
    from rouge_score.rouge_scorer import RougeScorer  # imports NLTK, which takes two seconds

    chooser = random.Random(7)
    words = ["otter", "Otters", "eat", "fish", "crabs,", "the", "1702", "well-known", "é", "-", ""]
    words += ["eating", "fishes", "crab", "relational", "relations", "ass", "asses", "hopping", "hoped"]
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    for case in range(1000):
        answer, *accepted = (
            " ".join(chooser.choices(words, k=chooser.randint(0, 12))) for _ in range(chooser.randint(2, 4))
        )
        theirs = max(scorer.score(one, answer)["rougeL"].fmeasure for one in accepted)
        assert rouge_l(answer, accepted) == pytest.approx(theirs, abs=1e-12), (case, answer, accepted)
