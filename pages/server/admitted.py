"""Sessions that have passed the sign-in, shared by the request guard and the pages; imports nothing, since the server starts before them."""

from __future__ import annotations

# session -> whether it signed in with an account; False: admitted while nobody had one (pages.server.admission)
ADMITTED: dict[str, bool] = {}
