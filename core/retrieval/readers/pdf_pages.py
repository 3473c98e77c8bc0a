"""The pages of a PDF as JSON lines on stdout: `python core/retrieval/readers/pdf_pages.py FILE MAX_PAGES`.  Run as a separate process by read_pdf.

Lines: {"page": n, "title": ..., "text": ...}, {"page": n, "damaged": why}, then {"done": pages}; or one {"error": why} or
{"too_many": pages}.  Memory, time per page and total time are limited, because a PDF can require any amount.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

MEMORY_BYTES = 2 * 1024**3
PAGE_SECONDS = 20
TOTAL_SECONDS = 900
MAX_PAGE_CHARS = 4_000_000


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def bound() -> None:
    """Bounds memory and processor time where the system can (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    for what, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, TOTAL_SECONDS)):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def too_slow(signum: int, frame: Any) -> None:
    raise TimeoutError(f"reading it took more than {PAGE_SECONDS} seconds")


def timer(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def main(path: str, max_pages: int) -> None:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        timer(PAGE_SECONDS)
        reader = PdfReader(path, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):  # many files have only an owner password and open with ""
            return say(error="the PDF is protected by a password; save it without one, then upload it again")
        pages = len(reader.pages)
        if pages > max_pages:
            return say(too_many=pages)
    except (DependencyError, FileNotDecryptedError) as e:
        return say(error=f"the PDF is encrypted in a way that cannot be read here ({reason(e)}); save it without encryption")
    except Exception as e:  # pypdf raises nearly anything on damaged files
        return say(error=f"not a PDF that can be read ({reason(e)}); open it in a viewer and print it to a new PDF")
    finally:
        timer(0)
    title = ""
    try:
        timer(PAGE_SECONDS)
        title = str((reader.metadata.title if reader.metadata else "") or "")[:300]
    except Exception:  # a damaged title must not lose the pages
        title = ""
    finally:
        timer(0)
    for number in range(1, pages + 1):
        try:
            timer(PAGE_SECONDS)
            text = reader.pages[number - 1].extract_text()[:MAX_PAGE_CHARS]
            timer(0)
            say(page=number, title=title, text=text)
        except Exception as e:
            timer(0)
            say(page=number, damaged=f"the page is damaged ({reason(e)})")
    say(done=pages)


if __name__ == "__main__":
    bound()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, too_slow)
    main(sys.argv[1], int(sys.argv[2]))
