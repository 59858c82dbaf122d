"""How the exception of a handler ends its attempt."""

from __future__ import annotations

import asyncio
import json
import traceback

from lockgate._encode import to_json
from lockgate.context import AttemptContext
from lockgate.outcomes import AttemptOutcome, Fatal

_TRACEBACK_MAX = 8_000
"""The server keeps 8 KiB of a line."""


def result_text(value: object) -> str:
    """The result of a handler as JSON. One that has no JSON form is fatal: another attempt would return the same."""
    try:
        return to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Fatal(f"the handler's result is not valid JSON: {error}") from error


def of_exception(error: BaseException, context: AttemptContext) -> str:
    """The outcome in the words of the Rust core. What the handler did not raise on purpose leaves its traceback in the job's log."""
    if isinstance(error, AttemptOutcome):
        try:
            return json.dumps(error.ending())
        except (TypeError, ValueError) as wrong:
            return of_exception(Fatal(f"{type(error).__name__}: {wrong}"), context)
    if isinstance(error, asyncio.CancelledError):
        # Of an attempt that no longer counts the core takes no outcome; any other cancel came from the handler itself.
        return json.dumps({"kind": "retryable", "message": "the handler was cancelled by its own program"})
    trace = "".join(traceback.format_exception(error))
    context.log(_sent(trace[-_TRACEBACK_MAX:]))
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return json.dumps({"kind": "retryable", "message": text})


def _sent(text: str) -> str:
    """Half of a surrogate pair cannot be sent."""
    return text.encode(errors="replace").decode()
