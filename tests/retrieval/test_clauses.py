"""Questions that name a clause, section, step, figure or table by its number."""

from __future__ import annotations

import pytest

from polyad.engine import Engine
from polyad.model import Document
from polyad.protocols.components import Embedder

LATE = (
    "Interest of five percent is due from the first day on. A reminder is not needed. Interest ends with the payment."
)
CONTRACT = f"""1. Supply

1.1 The seller delivers within ten days.
1.2 Partial deliveries are allowed, but clause 2.2 and clause 2.1 apply to each.

2. Payment

2.1 Invoices are due in thirty days.
2.2 {LATE}
2.3 Payments in cash are not accepted.

3. Liability

3.1 Liability is limited to the price. The cap in clause 2.2 does not apply to clause 3.1.

Clause 2.2 survives this contract. Clause 2.2, and no other clause, binds the heirs."""
MANUAL = """# Pump

## 4 Care

Section 4.1.3 is for experts. Read section 4.1.3 twice.

### 4.1.3 Rings

The rings are greased with wax. Do this each spring.

## 5 Start

Step 1: Open the valve.

Step 2: Wait for three bar, and see figure 7.

Figure 7: The gauge beside the door.

Article II. The keeper holds the key."""
QUESTIONS = {
    "What does clause 2.2 say?": ("contract", LATE),
    "What does section 2.2 of the contract say?": ("contract", LATE),
    "What is in section 4.1.3?": ("pump", "The rings are greased with wax. Do this each spring."),
    "What is Step 2?": ("pump", "Wait for three bar"),
    "What does figure 7 show?": ("pump", "The gauge beside the door."),
    "Article II?": ("pump", "The keeper holds the key."),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Engine:
    """An index of a contract, a manual, and texts that mention clauses."""
    engine = Engine.open(tmp_path_factory.mktemp("kb"), embedder=embedder)
    engine.index_documents(
        [
            Document("contract", "Contract", CONTRACT),
            Document("pump", "Pump", MANUAL),
            *(
                Document(
                    f"note{number}", "Note", f"Note {number}. Nobody reads clause {number}.2, or section 4.{number}."
                )
                for number in range(1, 9)
            ),
        ]
    )
    return engine


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("retriever", ["default", "bm25"])
def test_a_question_about_a_clause_finds_its_text(engine: Engine, question: str, retriever: str) -> None:
    hit = engine.search(question, retriever=retriever).passages[0]
    document, text = QUESTIONS[question]
    assert hit.passage.document_id == document
    assert hit.excerpt
    assert text in hit.excerpt.text
