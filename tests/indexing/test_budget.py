from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from polyad.errors import LanguageModelError, NoMoreRepliesError
from polyad.indexing.facts.budget import Budget
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, Prompt, Reply
from polyad.text.prompts import count_prompt_tokens


class Priced:
    """A model that is never asked: 1 dollar a prompt token, 2 dollars a completion token."""

    name = "priced"

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_reply: Callable[[int, Reply], None] | None = None,
        check_budget: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        raise AssertionError("not to be asked")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return prompt_tokens + 2.0 * completion_tokens

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        raise AssertionError("not to be asked")


def prompt(number: int, tokens: int = 100) -> Prompt:
    """Of so many tokens: half instructions, half text, whose first token is the number."""
    return Prompt(user=" ".join([str(number), *["a"] * (tokens // 2 - 1)]), system=" ".join(["b"] * (tokens // 2)))


def used(prompt_tokens: int = 100, completion_tokens: int = 50, calls: int = 1) -> Usage:
    return Usage(calls, prompt_tokens, completion_tokens, prompt_tokens + 2.0 * completion_tokens)


def passed(budget: Budget, prompts: Sequence[Prompt]) -> int:
    """How many pass, one after another without a reply, until one does not."""
    for count, each in enumerate(prompts):
        try:
            budget(each)
        except NoMoreRepliesError:
            return count
    return len(prompts)


def test_the_tokens_of_a_prompt_are_those_of_its_instructions_and_its_text() -> None:
    assert count_prompt_tokens(prompt(1)) == 100


def test_without_a_limit_everything_passes_and_is_counted() -> None:
    budget = Budget(Priced())
    for number in range(50):
        budget(prompt(number))
        budget.settle(prompt(number), used())
    assert budget.spent == Usage(50, 5000, 2500, 10_000.0)


def test_pending_requests_count_toward_the_budget() -> None:
    budget = Budget(Priced(), max_tokens=1100)
    assert passed(budget, [prompt(number) for number in range(20)]) == 4, "each is expected to take 275 tokens"
    assert budget.spent == Usage()


def test_a_prompt_that_was_refused_takes_no_room() -> None:
    budget = Budget(Priced(), max_tokens=1100)
    with pytest.raises(NoMoreRepliesError):
        budget(prompt(0, tokens=1000))
    assert passed(budget, [prompt(number) for number in range(20)]) == 4


def test_replies_show_what_the_next_will_take() -> None:
    budget = Budget(Priced(), max_tokens=3000)
    budget(prompt(0))
    budget.settle(prompt(0), used(120, 40))
    rest = passed(budget, [prompt(number) for number in range(1, 50)])
    assert rest == (3000 - 160) // 200, "each is now expected to take 160 tokens and a quarter more"


def test_the_reply_is_expected_to_be_as_long_as_the_text_demands_and_not_the_instructions() -> None:
    budget = Budget(Priced(), max_tokens=2000)
    budget(prompt(0))
    budget.settle(prompt(0), used(100, 50))
    long = Prompt(user=" ".join(["a"] * 550), system=prompt(0).system)
    assert passed(budget, [long]) == 1, "1.25 * (600 + 550) fits into 1,850"
    assert passed(budget, [prompt(1, 1100)]) == 0


def test_a_failure_gives_its_room_back() -> None:
    budget = Budget(Priced(), max_tokens=600)
    assert passed(budget, [prompt(number) for number in range(5)]) == 2
    budget.settle(prompt(0), Usage())
    assert passed(budget, [prompt(number) for number in range(5, 9)]) == 1
    assert budget.spent == Usage()


def test_settling_what_never_passed_changes_nothing() -> None:
    budget = Budget(Priced(), max_tokens=600)
    assert passed(budget, [prompt(0), prompt(1)]) == 2
    for number in range(10, 20):
        budget.settle(prompt(number), Usage())
    assert passed(budget, [prompt(2)]) == 0


def test_money_is_counted_with_the_models_prices() -> None:
    budget = Budget(Priced(), max_cost=999.0)
    assert passed(budget, [prompt(number) for number in range(9)]) == 2, "150 + 2 * 125 dollars each"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"max_tokens": 1500},
            r"budget of 1,500 tokens has no room .* \(1,200 spent, .*\); .* --max-tokens",
        ),
        (
            {"max_cost": 2500},
            r"budget of \$2,500 .* \(\$2,400\.0000 spent, .*\); .* --max-cost",
        ),
    ],
)
def test_the_message_says_the_limit_what_was_spent_and_what_to_do(limits: dict[str, int], message: str) -> None:
    budget = Budget(Priced(), **limits)
    budget(prompt(0))
    budget.settle(prompt(0), Usage(1, 600, 600, 2400.0))
    with pytest.raises(NoMoreRepliesError, match=message):
        budget(prompt(1))


def test_a_tiny_limit_lets_nothing_pass() -> None:
    for budget in (Budget(Priced(), max_tokens=1), Budget(Priced(), max_cost=0.001)):
        with pytest.raises(NoMoreRepliesError):
            budget(prompt(0))


def test_many_threads_together_do_not_overshoot() -> None:
    budget = Budget(Priced(), max_tokens=20_000)

    def ask(number: int) -> bool:
        each = prompt(number)
        try:
            budget(each)
        except NoMoreRepliesError:
            return False
        budget.settle(each, used(130 + number % 20, 40 + number % 30))
        return True

    with ThreadPoolExecutor(16) as pool:
        request_count = sum(pool.map(ask, range(500)))
    assert request_count == budget.spent.calls
    total = budget.spent.prompt_tokens + budget.spent.completion_tokens
    assert 20_000 - 300 < total <= 20_000


def test_a_budget_limits_the_requests_of_a_model() -> None:
    model = ScriptedLanguageModel(lambda prompt: "yes")
    outcomes = model.complete([prompt(number) for number in range(5)], check_budget=Budget(model, max_tokens=600))
    assert [type(outcome) for outcome in outcomes] == [Reply, Reply, *[NoMoreRepliesError] * 3]


def test_a_refusal_counts_what_was_under_way_once_that_has_come() -> None:
    budget = Budget(Priced(), max_tokens=300)
    budget(prompt(1))
    with pytest.raises(NoMoreRepliesError, match=r"0 spent, .* expected for requests in progress") as refused:
        budget(prompt(2))
    budget.settle(prompt(1), used())
    assert "(150 spent)" in str(budget.update_failure(refused.value))
    other = NoMoreRepliesError("the key is wrong")
    assert budget.update_failure(other) is other
