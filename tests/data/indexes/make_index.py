"""Make a small index with the polyad that is installed, to see that later ones can read it.

PYTHONPATH=src python tests/data/indexes/make_index.py DIRECTORY && gzip -9n DIRECTORY/index.sqlite
"""

import sys

from polyad import Document, Engine
from polyad.embedders.hashing import HashingEmbedder
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Usage
from polyad.protocols.components import Reply

TEXTS = {
    "bell": "Ines Moreau cast the Bell of Tarn. The bell hangs in Oslo.",
    "moreau": "Ines Moreau was born in Aldby. She met Bob Stone in Oslo.",
    "odd": "An odd page.",
    "stone": "Bob Stone sells bronze in Aldby.",
    "tower": "The tower of Tarn fell.",
}
FACTS = (
    '{"facts": [{"text": "Ines Moreau met Bob Stone.", "score": 8, "entities": ["Ines Moreau", "Bob Stone"]}], '
    '"entities": [{"name": "Ines Moreau", "type": "person", "description": "A founder of bells.", "score": 90}]}'
)

reply = Reply(FACTS, Usage(1, 10, 5, 0.25))
unusable = Reply("Gladly!", Usage(1, 10, 5, 0.5))
model = ScriptedLanguageModel(lambda prompt: unusable if "odd" in prompt.user else reply)
documents = [Document(id, id.title(), text, f"{id}.txt") for id, text in TEXTS.items()]
with Engine.open(sys.argv[1], embedder=HashingEmbedder(8), language_model=model) as engine:
    engine.index_documents(documents[:3], method="facts")
    engine.index_documents(documents[3:], method="semantic-units")
    engine.remove("tower")
    engine.prepare("hypergraphrag")
