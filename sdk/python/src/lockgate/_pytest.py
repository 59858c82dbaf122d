"""Fixtures for pytest. Everything of Lockgate is imported when a fixture is first used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lockgate import Client
    from lockgate.testing import TestServer


@pytest.fixture(scope="session")
def lockgate_server() -> Iterator[TestServer]:
    """A Lockgate server on a free port, for the whole session."""
    from lockgate.testing import TestServer

    with TestServer() as server:
        yield server


@pytest.fixture
def lockgate_client(lockgate_server: TestServer) -> Client:
    """A client of `lockgate_server`."""
    return lockgate_server.client()
