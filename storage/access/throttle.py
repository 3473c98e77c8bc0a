"""Limits how often a sign-in may be tried, so that passwords can't be guessed and strangers can't lock anybody out.

Attempts are counted in the database, by digests, whether the name exists or not:

- by name and address: after a few wrong ones each further one has to wait, longer each time;
- by name alone, and by address alone, over all others: many addresses cannot try one name quickly, nor one address many names.

An address from which a name has signed in successfully within `KNOWN_FOR` is known for that name: the last two counts are neither
looked at nor raised for it, so that whatever is tried from elsewhere, the right password from there is taken at once.

An attempt is counted before its password is looked at, so that many at once gain nothing.

Where the clock was set back, what was stored may lie further ahead than anything could: such a wait is over, and such an address is not known.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.serve.addresses import network
from storage.records.annotation import SignInError
from storage.schema import engine, workbench

FIRST_WAIT_SECONDS = 5.0
FORGET_AFTER = timedelta(days=1)
KNOWN_FOR = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Budget:
    """`free` attempts in a row without a wait; each further one doubles the wait, up to `longest` seconds."""

    free: int
    longest: float

    def wait_after(self, failures: int) -> float:
        """The seconds to wait after this many failed attempts in a row.

        >>> [Budget(5, 900.0).wait_after(n) for n in (4, 5, 6, 99)]
        [0.0, 5.0, 10.0, 900.0]
        """
        if failures < self.free:
            return 0.0
        return float(min(FIRST_WAIT_SECONDS * 2 ** min(failures - self.free, 30), self.longest))


PAIR_BUDGET = Budget(5, 900.0)  # one name from one address
KNOWN_PAIR_BUDGET = Budget(5, 60.0)  # the same where the address is known for the name
NAME_BUDGET = Budget(20, 60.0)  # one name from all addresses that are not known for it
ADDRESS_BUDGET = Budget(50, 60.0)  # all names from one address that is not known for them
LONGEST_WAIT = max(b.longest for b in (PAIR_BUDGET, KNOWN_PAIR_BUDGET, NAME_BUDGET, ADDRESS_BUDGET))


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).casefold().encode("utf-8", "surrogatepass")).hexdigest()


class Attempt:
    """One attempt to sign in.  Made inside a write transaction, which counts it.  Raises SignInError with the seconds to wait."""

    def __init__(self, session: Session, name: str, address: str) -> None:
        address = network(address)
        self._pair, self._mark = digest("here", name, address), digest("known", name, address)
        self._elsewhere = (digest("name", name), digest("address", address))
        moment = engine.now()
        session.execute(delete(workbench.SignInWait).where(workbench.SignInWait.until < moment - FORGET_AFTER))
        mark = self._row(session, self._mark)
        self._known = mark is not None and moment < mark.until <= moment + KNOWN_FOR
        budgets = {self._pair: KNOWN_PAIR_BUDGET if self._known else PAIR_BUDGET}
        if not self._known:
            budgets |= dict(zip(self._elsewhere, (NAME_BUDGET, ADDRESS_BUDGET), strict=True))
        rows = {key: self._row(session, key) for key in budgets}
        waits = [(row.until - moment).total_seconds() for row in rows.values() if row is not None]
        wait = max((w for w in waits if w <= LONGEST_WAIT), default=0.0)
        if wait > 0:
            raise SignInError(wait)
        for key, budget in budgets.items():
            row = rows[key] or workbench.SignInWait(key=key, failures=0)
            row.failures += 1
            row.until = moment + timedelta(seconds=budget.wait_after(row.failures))
            session.add(row)

    @staticmethod
    def _row(session: Session, key: str) -> workbench.SignInWait | None:
        return session.scalar(select(workbench.SignInWait).filter_by(key=key))

    def succeeded(self, session: Session) -> None:
        """Called inside a later write transaction: the attempt is no longer counted, and its address becomes known for its
        name."""
        moment = engine.now()
        session.execute(delete(workbench.SignInWait).where(workbench.SignInWait.key == self._pair))
        for row in [] if self._known else [self._row(session, key) for key in self._elsewhere]:
            if row is not None:
                row.failures, row.until = max(0, row.failures - 1), moment
        mark = self._row(session, self._mark) or workbench.SignInWait(key=self._mark, failures=0)
        mark.until = moment + KNOWN_FOR
        session.add(mark)
