"""The process that parses documents: `python -m core.retrieval.parsing.worker`, started by core/retrieval/readers/sandbox.py.

A line of JSON on stdin asks for a document: {"kind": "pdf", "path": ..., "max_pages": n}, {"kind": "docx", "path": ...}, or
{"kind": "md", "mdx", "rst" or "html", "text": ..., "title": of the document if it is known}.  The answer is lines of JSON on stdout: those of
pdf.py, or {"title": ...} and for each section {"headings": [...], "blocks": [[kind, [line, ...]], ...]}; then {"done": true}.  {"error": why} is an
answer too.  {"kind": "file", ...} asks for the documents of a whole file (core/retrieval/readers/__init__.py: `messages`).  Memory and processor time are
limited, because a document can require any amount.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

MEMORY_BYTES = 2 * 1024**3
TOTAL_SECONDS = 900  # of the processor, for a document
MARKUP_SECONDS = 60


def limit(name: str, value: float) -> None:
    """Limits memory or processor time if the system supports it (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    kind = getattr(resource, name)
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard), hard))


def too_slow(signum: int, frame: Any) -> None:
    raise TimeoutError("reading it took too much time")


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in its block after that time, if the system supports it (not on Windows)."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def markup(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from core.retrieval.parsing import languages, sections

    try:
        with time_limit(MARKUP_SECONDS):
            notes = languages.WORD_NOTES if request["kind"] == "docx" else ""
            document = sections.of_html(languages.html(request), request.get("title", ""), notes)
    except languages.DocumentRefusedError as e:
        yield {"error": str(e)}
        return
    except MemoryError:
        raise  # ends the process: the memory may not come back
    except Exception as e:  # parsers raise nearly anything on damaged files
        problem = " ".join(f"{type(e).__name__}: {e}".split())[:200]
        yield {"error": f"it cannot be read ({problem}); check the file, or save it again"}
        return
    yield {"title": document.title}
    for section in document.sections:
        yield {"headings": section.headings, "blocks": section.blocks}


def answer(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if request["kind"] == "file":
        from core.retrieval.readers import messages, sandbox

        sandbox.here = answer  # this is the process that its documents are parsed in
        return messages(request)
    if request["kind"] == "pdf":
        from core.retrieval.parsing import pdf

        return pdf.pages(request["path"], request["max_pages"], time_limit)
    return markup(request)


def main() -> None:
    limit("RLIMIT_AS", MEMORY_BYTES)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, too_slow)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the app ends it
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    for line in sys.stdin.buffer:
        with contextlib.redirect_stdout(sys.stderr):  # what a library prints is no answer
            used_seconds = sum(os.times()[:2])
            request = json.loads(line)
            limit("RLIMIT_CPU", used_seconds + min(TOTAL_SECONDS, request.get("seconds", TOTAL_SECONDS)))
            for message in answer(request):
                replies.write(json.dumps(message) + "\n")
                replies.flush()
        replies.write('{"done": true}\n')
        replies.flush()


if __name__ == "__main__":
    main()
