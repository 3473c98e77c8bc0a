"""The store as a session sees it: each call is checked against `storage.access.permissions`, before it and in each of its transactions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from core.errors import NotAllowedError
from storage.access.permissions import ACTION_OF, ACTIONS, Action, Name
from storage.access.visitors import Visitor, check_visitor
from storage.schema.engine import Part
from storage.store import Store

if TYPE_CHECKING:
    _Parts = Store  # those methods that some action names; another one is refused
else:
    _Parts = object


class Door(_Parts):
    """The parts of a `Store` for the visitor that `who` names at each call (None: nobody is signed in).

    A call raises SignedOutError where the visitor does not stand any more, NotAllowedError where the role is a lesser one than the
    action's, the method is for the local operator, or it would act under another name; else it is the store's.
    """

    def __init__(self, store: Store, who: Callable[[], Visitor | None]) -> None:
        self._store, self._who = store, who

    def __getattr__(self, part: str) -> Any:
        if part.startswith("_") or not isinstance(getattr(self._store, part, None), Part):
            raise AttributeError(f"the store has no part {part!r}")
        return _Guarded(self._store, part, self._for)

    def _for(self, action: Action) -> Store:
        if action.role is None:
            return self._store
        return self._store.gated(partial(check_visitor, visitor=self._who(), needed=action.role))

    def store_for(self, action: Name) -> Store:
        """For a function of storage that takes a store: each of its transactions is checked for this action."""
        return self._for(ACTIONS[action])

    def allow(self, action: Name) -> None:
        """For what is done outside of the store.  Raises as a call."""
        with self.store_for(action).database.reading():
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


class _Guarded:
    """One part of the store behind the door.  `store_for`: the store for an action."""

    def __init__(self, store: Store, part: str, store_for: Callable[[Action], Store]) -> None:
        self._store, self._part, self._store_for = store, part, store_for

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(getattr(self._store, self._part), name)
        if name not in ACTION_OF:
            raise NotAllowedError(f"'{self._part}.{name}' is for the local operator (python -m storage), not for a session")

        @wraps(method)
        def call(*args: Any, **kw: Any) -> Any:
            bound = self._store_for(ACTION_OF[name])
            if bound.database.gate is not None:  # before anything else: some write a file first
                with bound.database.reading():
                    pass
            return getattr(getattr(bound, self._part), name)(*args, **kw)

        return call
