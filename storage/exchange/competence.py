"""Estimates how reliably people distinguish correct answers from others, over everything they wrote, judged and validated, and
weights their votes accordingly.

The items are answers of questions, the labels "correct" and "not correct": `storage.exchange.consensus.holdings`.  Only answers with votes of
two people or more say anything about people.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import groupby, islice
from operator import itemgetter

import numpy as np
from sqlalchemy.orm import Session

from core.metrics.agreement.competence import Competence, dawid_skene
from storage.exchange.consensus import Weights, holdings
from storage.exchange.filters import Filters
from storage.exchange.votes import contributed_questions

LABELS = ("not correct", "correct")
MIN_ANSWERS = 10  # shared with another person, before a person's own error rates count


def competence_of(session: Session, filters: Filters, limit: int | None = None) -> tuple[Competence, Counter[str]]:
    """Everybody's competence, and the number of answers on which each of them voted together with others.  `limit`: the number
    of questions used."""
    votes: list[tuple[tuple[int, int], str, str]] = []
    for question in islice(contributed_questions(session, filters), limit):
        for group, stances in groupby(sorted(holdings(question)), key=itemgetter(0)):
            labels = [((question.id, group), person, LABELS[correct]) for _, person, correct in stances]
            if len(labels) > 1:
                votes += labels
    return dawid_skene(votes, LABELS), Counter(person for _, person, _ in votes)


def weights_of(session: Session, filters: Filters) -> Weights:
    """The weights of a person's "correct" and "not correct"; under "" the weights of people with too few answers."""
    competence, counts = competence_of(session, filters)
    if not counts:
        return {"": (1.0, -1.0)}
    rates = {person: competence.errors[person] for person, count in counts.items() if count >= MIN_ANSWERS}
    rates[""] = np.average([competence.errors[person] for person in counts], axis=0, weights=list(counts.values()))
    return {name: (math.log(e[1, 1] / e[0, 1]), math.log(e[1, 0] / e[0, 0])) for name, e in rates.items()}
