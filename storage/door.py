"""The store as a session sees it: each call is checked against `storage.people.permissions`, before it and in each of its transactions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from core.errors import NotAllowedError
from storage.people.permissions import ACTION_OF, ACTIONS, Action, Name
from storage.people.visitors import Visitor, check_visitor
from storage.store import Store

if TYPE_CHECKING:
    _Methods = Store  # those that some action names; another one is refused
else:
    _Methods = object


class Door(_Methods):
    """Methods of `Store` for the visitor that `who` names at each call (None: nobody is signed in).

    A call raises SignedOutError where the visitor does not stand any more, NotAllowedError where the role is a lesser one than the
    action's, the method is for the local operator, or it would act under another name; else it is the store's.
    """

    def __init__(self, store: Store, who: Callable[[], Visitor | None]) -> None:
        self._store, self._who = store, who

    def _for(self, action: Action) -> Store:
        if action.role is None:
            return self._store
        bound = copy.copy(self._store)
        bound.gate = partial(check_visitor, visitor=self._who(), needed=action.role)
        return bound

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Store, name):
            raise AttributeError(f"the store has no {name!r}")
        if name not in ACTION_OF:
            raise NotAllowedError(f"'{name}' is for the local operator (python -m storage), not for a session")

        @wraps(getattr(self._store, name))
        def call(*args: Any, **kw: Any) -> Any:
            bound = self._for(ACTION_OF[name])
            if bound.gate is not None:  # before anything else: some write a file first
                with bound.reading():
                    pass
            return getattr(bound, name)(*args, **kw)

        return call

    def lent(self, action: Name) -> Store:
        """For a function of storage that takes a store: each of its transactions is checked for this action."""
        return self._for(ACTIONS[action])

    def allow(self, action: Name) -> None:
        """For what is done outside of the store.  Raises as a call."""
        with self.lent(action).reading():
            pass

    def may(self, action: Name) -> bool:
        """To draw only what can be done.  What is done is checked again."""
        try:
            self.allow(action)
        except NotAllowedError:
            return False
        return True

    def standing(self) -> bool:
        """False: the visitor has to sign in (again).  Raises StorageError."""
        return self.may("annotate")
