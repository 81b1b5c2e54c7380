"""The module that displays results, which is above the results; :mod:`polyad` states its name."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType


class DisplayLoader:
    """Loads the module whose functions display results, when a result is displayed.

    Attributes:
        load: Imports the module.
    """

    load: Callable[[], ModuleType]
