"""How reliably people tell correct answers from others, over all that they wrote, judged and validated; and what their words weigh by it.

The things are answers of questions, the labels "correct" and "not correct": `storage.exchange.consensus.holdings`.  Only answers on which two
people or more spoke tell anything of them.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby, islice

import numpy as np
from sqlalchemy.orm import Session

from core.metrics.agreement.competence import Competence, dawid_skene
from storage.exchange.consensus import Weights, holdings
from storage.exchange.filters import Filters
from storage.exchange.votes import said

LABELS = ("not correct", "correct")
MIN_ANSWERS = 10  # that a person spoke on beside another, before anything is said of them


def competence_of(session: Session, filters: Filters, limit: int | None = None) -> tuple[Competence, Counter[str]]:
    """Everybody's competence, and on how many answers that others spoke on too each of them spoke.  `limit`: of this many questions."""
    votes: list[tuple[tuple[int, int], str, str]] = []
    for one in islice(said(session, filters), limit):
        for group, own in groupby(sorted(holdings(one)), key=lambda holding: holding[0]):
            spoken = list(own)
            if len(spoken) > 1:
                votes += [((one.id, group), person, LABELS[correct]) for _, person, correct in spoken]
    return dawid_skene(votes, LABELS), Counter(person for _, person, _ in votes)


def weights_of(session: Session, filters: Filters) -> Weights:
    """What a person's "correct" and "not correct" weigh; under "" for whom too little is known."""
    found, counts = competence_of(session, filters)
    if not counts:
        return {"": (1.0, -1.0)}
    rates = {person: found.errors[person] for person, count in counts.items() if count >= MIN_ANSWERS}
    rates[""] = np.average([found.errors[person] for person in counts], axis=0, weights=list(counts.values()))
    return {name: (math.log(e[1, 1] / e[0, 1]), math.log(e[1, 0] / e[0, 0])) for name, e in rates.items()}
