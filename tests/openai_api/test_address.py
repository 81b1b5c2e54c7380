"""Secrets of endpoints in messages."""

import pytest

from polyad.openai_api.address import Secrets

KEY = "sk-proj-Q7rT9wXk2LmN4pVb"


@pytest.mark.parametrize("echo", [KEY, KEY[:18], KEY[-12:], f"{KEY[:10]}...", f'"{KEY[2:]}"'])
def test_a_key_that_a_server_repeats_in_whole_or_in_part_is_masked(echo: str) -> None:
    masked = Secrets([KEY]).mask(f"Invalid key {echo} of this account.")
    assert "[secret]" in masked
    assert masked.startswith("Invalid key ")
    assert masked.endswith(" of this account.")
    assert not any(KEY[at : at + 8] in masked for at in range(len(KEY) - 7))


def test_other_words_stay() -> None:
    assert Secrets([KEY, "sk-1"]).mask("sk-projects are closed") == "sk-projects are closed"
