"""Labels of pictures that the author of a document wrote, not a reader."""

import time

from polyad.text.pictures import find_label


def test_a_long_label_is_looked_for_by_its_beginning() -> None:
    start = time.process_time()
    assert find_label("x " + "a " * 60_000, "a " * 5000 + "b") == 2
    assert time.process_time() - start < 0.5  # seconds; for the whole label, more than 2
