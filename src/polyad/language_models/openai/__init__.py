"""Chat models behind any endpoint that speaks OpenAI's chat-completions protocol."""
