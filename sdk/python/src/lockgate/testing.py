"""For tests of programs that use Lockgate: a server of its own, and a worker beside the test.

The pytest fixtures `lockgate_server` and `lockgate_client` are there as soon as this package is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType

from lockgate import _native
from lockgate.client import Client
from lockgate.errors import from_fault
from lockgate.worker import Worker


def server_binary() -> str:
    """The program `lockgate`: what `LOCKGATE_BIN` names, else the one beside this Python, else the first on the PATH."""
    beside = Path(sys.executable).parent / "lockgate"
    return os.environ.get("LOCKGATE_BIN") or (str(beside) if beside.is_file() else shutil.which("lockgate") or "lockgate")


class TestServer:
    """A Lockgate server on a free loopback port, with its data in a temporary folder.

    It ends with `stop`, with its `with` block, or when it is no longer used. `arguments` are further ones for `lockgate serve`.
    """

    # Not a class of tests, whatever pytest thinks of its name.
    __test__ = False

    def __init__(self, *, policy: str | None = None, arguments: Sequence[str] = (), binary: str | None = None) -> None:
        said = {"binary": binary or server_binary(), "arguments": list(arguments), "policy": policy}
        server = _native.TestServer(json.dumps(said))
        if server.error is not None:
            raise from_fault(server.error)
        self.url = server.url
        self.data = Path(server.data)
        self._finalizer = weakref.finalize(self, server.stop)

    def client(self, *, actor: str | None = None, tenant: str | None = None, credential: str | None = None) -> Client:
        """A client of this server."""
        return Client(self.url, actor=actor, tenant=tenant, credential=credential)

    def stop(self) -> None:
        """Ends the server at once and removes its data."""
        self._finalizer()

    def __enter__(self) -> TestServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


@asynccontextmanager
async def serving(worker: Worker) -> AsyncIterator[Worker]:
    """The worker works in this event loop for as long as the block lasts, then drains."""
    task = asyncio.get_running_loop().create_task(worker.serve())
    try:
        yield worker
    finally:
        worker.drain()
        await task


@contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    """The worker works in a thread of its own for as long as the block lasts, then drains."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            worker.run()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="lockgate-worker")
    thread.start()
    try:
        yield worker
    finally:
        worker.drain()
        thread.join()
        # Of a worker that was refused the test knows only that its jobs did not run.
        if failures:
            raise failures[0]
