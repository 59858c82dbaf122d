"""The process around the package: forks, signals, panics, the start and the end."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import lockgate
from lockgate import AsyncClient, Client, InternalError, _calls
from lockgate.testing import TestServer, server_binary

from .conftest import PATIENCE


def script(text: str, server: TestServer) -> subprocess.Popen[str]:
    """A program of its own. `SERVER` in its text is the server's address."""
    program = textwrap.dedent(text).replace("SERVER", repr(server.url))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_runtime_starts_with_the_first_call_and_not_before(server: TestServer) -> None:
    text = """
        import os
        threads = lambda: len(os.listdir("/proc/self/task"))
        from lockgate import Client, Worker
        client, worker = Client(SERVER), Worker(SERVER)
        before = threads()
        client.submit("job.echo").result(timeout=30)
        print(before, threads() > before)
    """
    assert ended(script(text, server)) == (0, "1 True\n", "")


def test_use_after_a_fork_is_an_error_with_advice(server: TestServer) -> None:
    text = """
        import os, sys, warnings
        from lockgate import Client, ForkError, Worker
        warnings.simplefilter("ignore")
        client = Client(SERVER)
        watch = client.submit("job.echo").watch()
        pid = os.fork()
        if pid == 0:
            for use in (lambda: client.get("x"), lambda: Client(SERVER).get("x"), lambda: next(watch)):
                try:
                    use()
                except ForkError as error:
                    print("refused", "spawn" in error.next_step)
            sys.exit(0)
        _, status = os.waitpid(pid, 0)
        print(status, client.submit("job.echo", 1).result(timeout=30))
    """
    code, out, err = ended(script(text, server))
    assert (code, out.splitlines(), err) == (0, ["refused True"] * 3 + ["0 1"], "")


def test_a_fork_before_the_first_call_may_use_it(server: TestServer) -> None:
    text = """
        import os, sys
        from lockgate import Client
        client = Client(SERVER)
        pid = os.fork()
        name = client.submit("job.echo", "child" if pid == 0 else "parent").result(timeout=30)
        os.write(1, (name + "\\n").encode())
        if pid:
            os.waitpid(pid, 0)
    """
    code, out, err = ended(script(text, server))
    assert (code, sorted(out.split()), err) == (0, ["child", "parent"], "")


def test_signal_handlers_of_the_program_stay(server: TestServer) -> None:
    text = """
        import asyncio, signal
        from lockgate import Client, Worker
        own = lambda *_: print("mine")
        signal.signal(signal.SIGTERM, own)
        Client(SERVER).submit("job.echo").result(timeout=30)
        worker = Worker(SERVER)
        worker.handler("sig.own")(lambda: signal.raise_signal(signal.SIGUSR1))
        signal.signal(signal.SIGUSR1, lambda *_: worker.drain())
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        Client(SERVER).submit("sig.own")
        worker.run()
        print(signal.getsignal(signal.SIGTERM) is own, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    """
    assert ended(script(text, server)) == (0, "True\nTrue True\n", "")


WORKER = """
    import time
    from lockgate import Context, Worker
    worker = Worker(SERVER, drain_timeout=30)
    @worker.handler("sig.drain")
    async def drain(ctx: Context) -> str:
        import asyncio
        print("begun", flush=True)
        while not stop:
            await asyncio.sleep(0.01)
        return "finished"
    stop = []
    import threading, sys
    threading.Thread(target=lambda: stop.append(sys.stdin.readline()), daemon=True).start()
    worker.run()
    print("left", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_drains_on_a_signal(server: TestServer, number: signal.Signals) -> None:
    program = textwrap.dedent(WORKER).replace("SERVER", repr(server.url))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    job = Client(server.url).submit("sig.drain")
    assert said(process) == "begun"
    process.send_signal(number)
    out, err = process.communicate("go on\n", timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "left\n", "")
    assert job.result(timeout=PATIENCE) == "finished"


def test_ctrl_c_interrupts_a_wait(server: TestServer) -> None:
    text = """
        from lockgate import Client
        job = Client(SERVER).submit("job.echo", delay=3600)
        try:
            print("waiting", flush=True)
            job.result()
        except KeyboardInterrupt:
            print("interrupted", job.cancel())
    """
    process = script(text, server)
    assert said(process) == "waiting"
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "interrupted CANCELLED\n", "")


def test_a_program_that_ends_in_the_middle_ends_cleanly(server: TestServer) -> None:
    text = """
        import asyncio, threading
        from lockgate import AsyncClient, Worker
        worker = Worker(SERVER)
        worker.handler("end.middle")(lambda: None)
        threading.Thread(target=worker.run, daemon=True).start()
        async def main():
            job = await AsyncClient(SERVER).submit("job.echo", delay=3600)
            asyncio.ensure_future(job.result())
            await asyncio.sleep(0)
            await job.cancel()
        asyncio.run(main())
    """
    assert ended(script(text, server)) == (0, "", "")


async def test_a_cancelled_caller_gives_its_call_up(client: AsyncClient) -> None:
    job = await client.submit("job.echo", delay=3600)
    waiting = asyncio.ensure_future(job.result())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await job.cancel()


async def test_a_panic_of_the_core_is_an_exception(client: AsyncClient, capfd: pytest.CaptureFixture[str]) -> None:
    panic = _calls.Operation("panic", {}, lambda answer: answer)
    with pytest.raises(InternalError, match="asked for by a test"):
        await client._call(panic)
    assert "asked for by a test" in capfd.readouterr().err


def test_clients_can_be_shared_by_threads(server: TestServer) -> None:
    client = Client(server.url)
    results: list[int] = []

    def ask(n: int) -> None:
        results.append(client.submit("job.echo", n).result(timeout=PATIENCE))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(8))


def test_the_server_of_a_test_ends_with_it() -> None:
    with TestServer() as server:
        assert server.client().submit("job.echo", 1).result(timeout=PATIENCE) == 1
        folder = server.data.parent
        assert folder.is_dir()
    assert not folder.exists()


def test_a_missing_binary_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate import SetupError

    monkeypatch.setenv("LOCKGATE_BIN", os.devnull + "-not")
    with pytest.raises(SetupError, match="LOCKGATE_BIN"):
        TestServer()


def test_the_package_has_the_version_of_the_server() -> None:
    told = subprocess.run([server_binary(), "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert told.stdout.split()[-1] == lockgate.__version__ == importlib.metadata.version("lockgate")


def test_fixtures_come_with_the_package(lockgate_server: TestServer, lockgate_client: Client) -> None:
    assert lockgate_client.submit("job.echo", 2).result(timeout=PATIENCE) == 2
    assert lockgate_server.url.startswith("http://127.0.0.1:")
