"""What handlers write with `logging` goes to the log of their job."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.context import current


class _ToJobLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        context = current.get(None)
        if context is None:
            return
        try:
            context.log(self.format(record).encode(errors="replace").decode())
        except Exception:
            self.handleError(record)


@contextmanager
def bridged(level: int | None) -> Iterator[None]:
    """Records of at least this level go to job logs meanwhile, beside where they go anyway. None: not at all."""
    if level is None:
        yield
        return
    bridge = _ToJobLog(level)
    bridge.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(bridge)
    try:
        yield
    finally:
        root.removeHandler(bridge)
