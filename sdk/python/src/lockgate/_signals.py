"""Ctrl-C and SIGTERM while a worker has the main thread to itself."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


def free_signals() -> list[signal.Signals]:
    """Those that the program has left as they were. A handler of its own stays, and so does every one outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [one for one, default in _DEFAULTS.items() if signal.getsignal(one) is default]


@contextmanager
def drain_on(signals: list[signal.Signals], drain: Callable[[], None]) -> Iterator[None]:
    """Each of the signals drains meanwhile. A second one does what it would have done without us."""
    loop = asyncio.get_running_loop()

    def told(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        drain()

    for number in signals:
        loop.add_signal_handler(number, told, number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
