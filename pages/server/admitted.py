"""Sessions that the sign-in has let in, shared by the request guard and the pages; imports nothing, since the server is there before them."""

from __future__ import annotations

# session -> True: it came in while people signed in; False: while nobody had an account (pages.server.admission)
ADMITTED: dict[str, bool] = {}
