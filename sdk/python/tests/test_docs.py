"""What the documentation and the examples show is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockgate.testing import TestServer, server_binary

from .conftest import PATIENCE

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()
README = (ROOT / "sdk" / "python" / "README.md").read_text()
EXAMPLE = ROOT / "examples" / "python"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def shown_after(page: str, command: str) -> str:
    """What a page shows as the output of a command."""
    (block,) = [block for block in blocks(page, "console") if command in block]
    return block.split(command, 1)[1].lstrip("\n")


def environment(server: TestServer) -> dict[str, str]:
    return {**os.environ, "LOCKGATE_SERVER": server.url, "LOCKGATE_BIN": server_binary()}


def run(program: Path, server: TestServer) -> str:
    ended = subprocess.run(
        [sys.executable, str(program)],
        env=environment(server),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=program.parent,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def beside(program: Path, server: TestServer) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, str(program)], env=environment(server), cwd=program.parent)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_the_first_governed_job_of_the_page(tmp_path: Path) -> None:
    (policy,) = blocks(PAGE, "yaml")
    worker, first = blocks(PAGE, "python")[:2]
    (tmp_path / "worker.py").write_text(worker)
    (tmp_path / "first.py").write_text(first)
    assert len([line for line in worker.splitlines() if line]) == 10, "it is the ten-line worker"
    with TestServer(policy=policy) as server, beside(tmp_path / "worker.py", server):
        assert run(tmp_path / "first.py", server) == shown_after(PAGE, "$ python first.py")


def test_the_client_of_the_page(server: TestServer, tmp_path: Path) -> None:
    client = blocks(PAGE, "python")[2]
    (tmp_path / "client.py").write_text(client)
    lines = run(tmp_path / "client.py", server).splitlines()
    assert lines[:3] == ["{'n': 1}", "100", "submitted"] and lines[-1] == "succeeded"


def test_the_test_of_the_page(server: TestServer, tmp_path: Path) -> None:
    (tmp_path / "test_mail.py").write_text(blocks(PAGE, "python")[3])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, env=environment(server), capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path)
    assert ended.returncode == 0 and "1 passed" in ended.stdout, ended.stdout


def test_the_worker_of_the_readme(server: TestServer, tmp_path: Path) -> None:
    worker, client = blocks(README, "python")
    (tmp_path / "worker.py").write_text(worker.replace('"http://127.0.0.1:8080"', repr(server.url)))
    (tmp_path / "client.py").write_text(client)
    with beside(tmp_path / "worker.py", server):
        assert run(tmp_path / "client.py", server) == "hello ann\n"


def test_the_example_with_an_agent_and_a_person() -> None:
    policy = (EXAMPLE / "policy.yaml").read_text()
    with TestServer(policy=policy) as server, beside(EXAMPLE / "agent.py", server):
        assert run(EXAMPLE / "desk.py", server) == shown_after((EXAMPLE / "README.md").read_text(), "$ python desk.py")


@pytest.mark.parametrize("name", re.findall(r"`(?:client|job|run)\.(\w+)\(", PAGE))
def test_the_calls_that_the_page_names_are_there(name: str) -> None:
    import lockgate

    both = ("Client", "AsyncClient"), ("JobHandle", "AsyncJobHandle"), ("RunHandle", "AsyncRunHandle")
    assert any(all(hasattr(getattr(lockgate, kind), name) for kind in kinds) for kinds in both), name
