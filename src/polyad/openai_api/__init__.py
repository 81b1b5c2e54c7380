"""The HTTP client for OpenAI-compatible endpoints: addresses, retries, rate limits."""
