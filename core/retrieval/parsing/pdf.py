"""The pages of a PDF as messages: {"page": n, "title": ..., "text": ..., "doubtful": whether its order is} or {"page": n, "damaged": why}; or
one {"error": why} or {"too_many": pages}."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from core.retrieval.parsing.columns import in_reading_order

PAGE_SECONDS = 20
MAX_PAGE_CHARS = 4_000_000


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def pages(path: str, max_pages: int, time_limit: Callable[[float], AbstractContextManager[None]]) -> Iterator[dict[str, Any]]:
    """`time_limit(seconds)` raises TimeoutError in its block after that time."""
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        with time_limit(PAGE_SECONDS):
            reader = PdfReader(path, strict=False)
            if reader.is_encrypted and not reader.decrypt(""):  # many files have only an owner password and open with ""
                yield {"error": "the PDF is protected by a password; save it without one, then upload it again"}
                return
            count = len(reader.pages)
    except (DependencyError, FileNotDecryptedError) as e:
        yield {"error": f"the PDF is encrypted in a way that cannot be read here ({reason(e)}); save it without encryption"}
        return
    except Exception as e:  # pypdf raises nearly anything on damaged files
        yield {"error": f"not a PDF that can be read ({reason(e)}); open it in a viewer and print it to a new PDF"}
        return
    if count > max_pages:
        yield {"too_many": count}
        return
    title = ""
    with suppress(Exception), time_limit(PAGE_SECONDS):  # a damaged title must not lose the pages
        title = str((reader.metadata.title if reader.metadata else "") or "")[:300]
    for number in range(1, count + 1):
        try:
            with time_limit(PAGE_SECONDS):
                page = reader.pages[number - 1]
                text = page.extract_text()[:MAX_PAGE_CHARS]
            layout, is_doubtful = "", False
            with suppress(Exception), time_limit(PAGE_SECONDS):  # a page that cannot be laid out keeps its order
                layout = page.extract_text(extraction_mode="layout", layout_mode_space_vertically=False)
                text, is_doubtful = in_reading_order(text, layout)
            message = {"page": number, "title": title, "text": text, "doubtful": is_doubtful}
        except Exception as e:
            message = {"page": number, "damaged": f"the page is damaged ({reason(e)})"}
        yield message
