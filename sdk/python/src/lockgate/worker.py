"""A worker: functions by topic, and the server it takes jobs from."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lockgate import _core, _handlers, _joblogs, _native, _signals
from lockgate._running import Attempts
from lockgate._units import Seconds, millis
from lockgate.errors import SetupError, from_fault

F = TypeVar("F", bound=Callable[..., Any])

SLOTS_DEFAULT = 64


class Worker:
    """Runs jobs with the functions registered by `handler`, until it is told to stop.

    `url` and `credential` come from `LOCKGATE_SERVER` and `LOCKGATE_API_KEY` unless given.

    - `name`: what operators see; made up unless said. `pool`: the pool to serve, `default` unless said.
    - `slots`: how many jobs run at once. `prefetch`: how many more wait here, at most 4.
    - `capabilities`, `labels`, `region`: what jobs may ask for.
    - `drain_timeout`: how long running jobs may go on after the signal to end, 30 s unless said.
    - `journal`: a file that keeps results until the server has them, over a crash of the worker.
    - `job_logs`: records of `logging` of at least this level go to the log of the job whose handler wrote them; None turns it off.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        credential: str | None = None,
        name: str | None = None,
        pool: str | None = None,
        slots: int = SLOTS_DEFAULT,
        prefetch: int = 0,
        capabilities: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        region: str | None = None,
        drain_timeout: Seconds | None = None,
        journal: str | os.PathLike[str] | None = None,
        job_logs: int | None = logging.INFO,
        tls_ca: str | os.PathLike[str] | None = None,
        tls_cert: str | os.PathLike[str] | None = None,
        tls_key: str | os.PathLike[str] | None = None,
        insecure_plaintext: bool = False,
    ) -> None:
        self._settings: dict[str, Any] = {
            "server": _core.server_access(url, credential, tls_ca, tls_cert, tls_key, insecure_plaintext),
            "worker_id": name,
            "pool": pool,
            "region": region,
            "slots": slots,
            "prefetch": prefetch,
            "capabilities": list(capabilities),
            "labels": dict(labels or {}),
            "drain_timeout_ms": None if drain_timeout is None else millis(drain_timeout, "drain_timeout"),
            "journal": None if journal is None else os.fspath(journal),
            "stop_on_lease_loss": [],
        }
        self._slots = slots
        self._job_logs = job_logs
        self._routes: dict[str, _handlers.Route] = {}
        self._working: _native.Worker | None = None
        self._told_to_drain = False

    def handler(
        self,
        topic: str,
        *,
        run_in: _handlers.RunIn | None = None,
        on_lease_loss: _handlers.OnLeaseLoss = "continue",
        unknown_fields: _handlers.UnknownFields = "refuse",
    ) -> Callable[[F], F]:
        """Registers the function below as the handler of a topic. A trailing `*` serves every topic with that beginning.

        The function takes `(ctx, payload)`, `(payload)`, `(ctx)` or nothing, and returns the job's result. A payload is checked
        against its type hint; one that does not fit is a fatal error that names the field.

        - `run_in`: `async def` runs in the event loop. A plain function runs in a thread, or with `"process"` in another process.
        - `on_lease_loss`: whether an attempt goes on while the server is away for so long that another worker may get the job.
        - `unknown_fields`: whether a field that a dataclass does not have is an error.
        """

        # For a handler and a type of its payload that are both inside of a function, such as a test.
        names = sys._getframe(1).f_locals

        def register(function: F) -> F:
            if topic in self._routes:
                raise SetupError(
                    f"topic {topic!r} has a handler already: {self._routes[topic].function.__qualname__}",
                    code="setup",
                    next_step="register each topic once",
                )
            self._routes[topic] = _handlers.route(topic, function, run_in, unknown_fields, names)
            if on_lease_loss == "stop":
                self._settings["stop_on_lease_loss"].append(topic)
            return function

        return register

    def run(self) -> None:
        """Works until Ctrl-C, SIGTERM or `drain`, or until an operator drains it. Running jobs may finish first.

        Signals are left alone where the program has handlers of its own, and outside of the main thread.
        """
        signals = _signals.free_signals()

        async def work() -> None:
            with _signals.drain_on(signals, self.drain):
                await self.serve()

        asyncio.run(work())

    async def serve(self) -> None:
        """Works in the running event loop until `drain`, or until an operator drains it. No signal is touched.

        A cancelled task drains before it ends.
        """
        if self._working is not None:
            raise SetupError("the worker runs already", code="setup", next_step="make another worker")
        loop = asyncio.get_running_loop()
        routes = list(self._routes.values())
        attempts = Attempts(loop, routes, self._slots)
        ended: asyncio.Future[str | None] = loop.create_future()

        def end(fault: str | None) -> None:
            if not ended.done():
                ended.set_result(fault)

        self._working = working = _native.Worker(json.dumps(self._settings))
        if self._told_to_drain:
            working.drain()
        try:
            with _joblogs.bridged(self._job_logs):
                topics = [route.topic for route in routes]
                working.start(topics, attempts.dispatch, attempts.stop, lambda fault: _core.post(loop, end, fault))
                try:
                    fault = await asyncio.shield(ended)
                except asyncio.CancelledError:
                    working.drain()
                    await ended
                    raise
        finally:
            attempts.close()
            self._working, self._told_to_drain = None, False
        if fault is not None:
            raise from_fault(fault)

    def drain(self) -> None:
        """Takes no more jobs, and ends when those that run have ended. Can be called from any thread."""
        # Remembered, for a thread that has not come as far as `serve` yet.
        self._told_to_drain = True
        if self._working is not None:
            self._working.drain()
