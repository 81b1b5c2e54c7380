"""Chat models behind any endpoint that speaks OpenAI's chat-completions protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from polyad.config import LanguageModelSettings
from polyad.errors import LanguageModelError
from polyad.model import Usage
from polyad.protocols.components import BudgetCheck, OnOutcome, Prompt, Reply

if TYPE_CHECKING:
    from polyad.language_models.openai.chat import Chat
    from polyad.openai_api.rate_limit import RateLimiter


class OpenAILanguageModel:
    """A chat model at an OpenAI-compatible endpoint: OpenAI, vLLM, Ollama, llama.cpp or another server.

    Prompts are sent from a pool of threads, within the per-minute limits. What may pass is tried again with growing
    delays, or when the endpoint says (``Retry-After``): status 408, 409, 425, 429 and 5xx, timeouts, cut connections,
    replies that are not JSON or have no text. A wrong key, model or address fails at once, and for the whole batch.
    What an endpoint rejects in a request and can be done without (JSON schemas, usage in streams, ...) is left out
    from then on; see :mod:`polyad.language_models.openai.dialect`.

    Attributes:
        name: Name of the language model at the endpoint.
        endpoint: Scheme, host and path of the endpoint's address, without credentials.
        cache_name: Name of the language model in the cache of replies: the configured name, or model and endpoint.

    Raises:
        MissingExtraError: the extra ``llm`` is not installed.
        ConfigurationError: the API key cannot be sent.
    """

    def __init__(self, settings: LanguageModelSettings, limiter: RateLimiter | None = None) -> None:
        # Imported here, so that naming this class costs nothing and works without the extra.
        from polyad.language_models.openai.chat import Chat

        self.name = settings.model
        self._chat: Chat = Chat(settings, limiter)
        self.endpoint = self._chat.address
        name = settings.cache_name or f"{settings.model} at {self._chat.address}"
        self.cache_name = f"{name} seed {settings.seed}" if settings.seed else name

    @property
    def usage(self) -> Usage:
        """Total token usage of all requests by this object, including failures."""
        return self._chat.spent

    def complete(
        self,
        prompts: Sequence[Prompt],
        on_outcome: OnOutcome | None = None,
        check_budget: BudgetCheck | None = None,
    ) -> list[Reply | LanguageModelError]:
        """Send prompts concurrently, and return a reply or an error for each, in the order of ``prompts``.

        See :class:`polyad.protocols.components.LanguageModel`.
        """
        outcomes: dict[int, Reply | LanguageModelError] = {}
        for position, outcome in self._chat.outcomes(prompts, check_budget):
            outcomes[position] = outcome
            try:
                if on_outcome is not None:
                    on_outcome(position, outcome)
            except LanguageModelError as refusal:
                outcomes[position] = refusal
        return [outcomes[position] for position in range(len(prompts))]

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of a request in US dollars, from its token counts; 0 if the settings have no prices."""
        return self._chat.cost(prompt_tokens, completion_tokens)

    def stream(self, prompt: Prompt, on_text: Callable[[str], None]) -> Reply:
        """Return the reply to one prompt, and pass each piece of its text to ``on_text`` as it arrives.

        See :class:`polyad.protocols.components.LanguageModel`.

        A failed request is repeated unless text has arrived. An endpoint that cannot stream gets a plain request.

        Raises:
            LanguageModelError: There was no reply, or the stream broke off; the message states after how much text.
        """
        return self._chat.stream(prompt, on_text)
