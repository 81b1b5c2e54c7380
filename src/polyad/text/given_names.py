"""What tells the entities of facts apart that were given as data: their own text, or id, exactly."""

from __future__ import annotations

from polyad.text.keys import name_key
from polyad.text.literals import one_line


def given_key(value: str) -> str:
    """The key of an entity that was given as data, by what it is known by.

    It is the key that its name has in running text (:func:`polyad.text.keys.name_key`) where nothing but capitals and
    white space is lost by that: so a fact and a text about Ines Moreau meet. Any other value is its own key, which no
    name has: "Georgia (country)" is not Georgia, "AB-" is not "AB".

    >>> given_key("Ines  Moreau"), given_key("Georgia (country)"), given_key("AB-"), given_key("Us"), given_key("US")
    ('ines moreau', 'Georgia (country)', 'AB-', 'us', 'US')
    """
    text = one_line(value)
    key = name_key(text)
    return key if key == text.casefold() else text
