"""Facts like those of a register of clinical trials, with all that is awkward in them; the same for a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random

Value = str | int | float | bool | None

SPONSORS = ("Us", "US", "It", "Norvalis", "Kestrel & Søn", "富士製薬", "Ärzte ohne Eile", "The Who Trust", "A", "24")
COUNTRIES = ("Georgia", "Georgia (country)", "NO", "SE", "Côte d'Ivoire", "München", "Корея", "日本")
BLOOD = ("A", "AB", "AB-", "AB+", "O", "O-", "O+")
PHASES = ("Phase 1", "Phase 1/2", "Phase 2", "I", "II", "N/A")
DRUGS = ("Zincor", "zincor", "Zincor-B", "Zincor (B)", "β-Lactan", "Ibu 400", "Will", "12 Monkeys")
SITES = ("Aldby", "Port  Lisle", "Oslo (Øst)", "St. Ines", "Ines", "Isk\u00a0Nord")
ARMS = ("A", "B", "placebo", "control", "no treatment")
OUTCOMES = ("ongoing", "Done", "done", "stopped: too few", "—", "?")


@dataclass(frozen=True, slots=True)
class Trial:
    """A fact: its id, its relation, and role and value of each argument in order; a role may come several times."""

    id: str
    relation: str
    arguments: tuple[tuple[str, Value], ...]

    def line(self) -> str:
        """As a line of JSON, in one of the shapes in which facts are given."""
        number = int(self.id[1:])
        if number % 2:
            pairs: object = [{"role": role, "entity": value} for role, value in self.arguments]
        else:
            by_role: dict[str, list[Value]] = {}
            for role, value in self.arguments:
                by_role.setdefault(role, []).append(value)
            pairs = {role: values[0] if len(values) == 1 else values for role, values in by_role.items()}
        return json.dumps({"_id": self.id, "relation": self.relation, "arguments": pairs}, ensure_ascii=number % 3 == 0)


def make_trials(count: int, seed: int) -> list[Trial]:
    """Facts of 20 roles and three relations."""
    chance = Random(seed)
    return [_trial(number, chance) for number in range(count)]


def _trial(number: int, chance: Random) -> Trial:
    date = f"{chance.randint(1985, 2024)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    one: dict[str, list[Value]] = {
        "sponsor": [chance.choice(SPONSORS)],
        "country": chance.sample(COUNTRIES, chance.randint(1, 3)),
        "blood group": [chance.choice(BLOOD)],
        "phase": [chance.choice(PHASES)],
        "drug": chance.sample(DRUGS, chance.randint(1, 2)),
        "dose": [f"{chance.choice([1, 2.5, 50, 250, 1200])} {chance.choice(['mg', 'g', 'µg'])}"],
        "site": [chance.choice(SITES)],
        "arm": [chance.choice(ARMS)],
        "outcome": [chance.choice(OUTCOMES)],
        "patients": [chance.randint(0, 120)],
        "reading": [chance.choice([-250, 250, -2.5, 0, 42, 1e-3])],
        "randomised": [chance.random() < 0.5],
        "responder": [chance.choice(["Yes", "No"])],
        "start": [chance.choice([date, date[:7], f"{date}T08:30:00Z"])],
        "birth year": [chance.randint(1930, 2005)],
        "score": [round(chance.uniform(-9, 9), 3)],
        "withdrawn": [chance.choice([True, False, None])],
        "registry": [f"NCT{chance.randint(0, 10**7):08}"],
        "batch": [f"00{chance.randint(1, 99)}"],
        "note": ["one\ntwo " + "long words " * chance.randint(0, 9)],
    }
    pairs = [(role, value) for role, values in one.items() for value in values]
    return Trial(f"t{number:04}", chance.choice(["treats", "compares", "follows_up"]), tuple(pairs))
