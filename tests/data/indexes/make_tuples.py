"""Make a small index of facts given as data with the polyad that is installed, to see that later ones can read it.

PYTHONPATH=src python tests/data/indexes/make_tuples.py DIRECTORY && gzip -9n DIRECTORY/index.sqlite
"""

import sys

from polyad import Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.model import Argument, Document

FACTS = {
    "g1": (("giver", "Alice Stone"), ("gift", "Book"), ("gift", "Pen"), ("age", "42")),
    "g2": (("giver", "Bob"), ("gift", "Book"), ("year", "1961")),
}

with Engine.open(sys.argv[1], embedder=HashingEmbedder(8)) as engine:
    for id, arguments in FACTS.items():
        text = f"gift {id}: " + ", ".join(f"{role} {value}" for role, value in arguments)
        given = tuple(Argument(role, value) for role, value in arguments)
        engine.index_documents([Document(id, "", text, arguments=given)], method="tuples")
