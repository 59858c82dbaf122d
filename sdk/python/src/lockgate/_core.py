"""Calls into the Rust core: waited for in a thread, or awaited in an event loop."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
from collections.abc import Callable
from typing import Any

from lockgate import _native
from lockgate._encode import to_json
from lockgate._units import Seconds, millis
from lockgate.errors import InvalidRequest, from_fault

# Before the interpreter takes its locks away from the core's threads.
atexit.register(_native.shut_down)

Done = Callable[[str | None, str | None], None]

DEFAULT_URL = "http://127.0.0.1:8080"


def answered(answer: str | None, fault: str | None) -> Any:
    """The answer of a call, or its error as an exception."""
    if fault is not None:
        raise from_fault(fault) from None
    return None if answer is None else json.loads(answer)


async def awaited(start: Callable[[Done], _native.Call]) -> Any:
    """Starts a call and awaits its answer. A cancelled caller gives the call up."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[str | None, str | None]] = loop.create_future()

    def settle(answer: str | None, fault: str | None) -> None:
        if not future.done():
            future.set_result((answer, fault))

    call = start(lambda answer, fault: post(loop, settle, answer, fault))
    try:
        answer, fault = await future
    except asyncio.CancelledError:
        call.cancel()
        raise
    return answered(answer, fault)


def post(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    """Calls back in an event loop, from any thread."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        # The loop was closed before the answer came; no task of it waits any more.
        if not loop.is_closed():
            raise


def request(args: dict[str, Any]) -> str:
    """The arguments of a call as JSON."""
    try:
        return to_json(args)
    except (TypeError, ValueError, RecursionError) as error:
        text = f"the request cannot be written as JSON: {error}"
        raise InvalidRequest(text, code="invalid_argument", next_step="correct the value") from error


def server_access(
    url: str | None,
    credential: str | None,
    tls_ca: str | os.PathLike[str] | None,
    tls_cert: str | os.PathLike[str] | None,
    tls_key: str | os.PathLike[str] | None,
    insecure_plaintext: bool,
) -> dict[str, Any]:
    """How the server is reached. The environment says what the arguments do not, as it does for the command line."""
    return {
        "url": url or os.environ.get("LOCKGATE_SERVER", DEFAULT_URL),
        "credential": credential or os.environ.get("LOCKGATE_API_KEY"),
        "tls_ca": _path(tls_ca),
        "tls_cert": _path(tls_cert),
        "tls_key": _path(tls_key),
        "insecure_plaintext": insecure_plaintext,
    }


def _path(file: str | os.PathLike[str] | None) -> str | None:
    return None if file is None else os.fspath(file)


def client_settings(
    access: dict[str, Any],
    tenant: str | None,
    actor: str | None,
    actor_type: str | None,
    call_timeout: Seconds | None,
) -> str:
    """What the core makes a client with."""
    return json.dumps(
        {
            "server": access,
            "tenant": tenant or os.environ.get("LOCKGATE_TENANT"),
            "actor": actor or os.environ.get("LOCKGATE_ACTOR"),
            "actor_type": actor_type or os.environ.get("LOCKGATE_ACTOR_TYPE"),
            "call_timeout_ms": None if call_timeout is None else millis(call_timeout, "call_timeout"),
        }
    )
