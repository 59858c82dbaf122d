"""The functions that run jobs: what they take, and where they run."""

from __future__ import annotations

import inspect
import json
import pickle
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lockgate import _decode
from lockgate.context import AttemptContext
from lockgate.errors import SetupError
from lockgate.outcomes import Fatal

RunIn = Literal["loop", "thread", "process"]
OnLeaseLoss = Literal["continue", "stop"]
UnknownFields = Literal["refuse", "ignore"]


@dataclass(frozen=True)
class Route:
    """One registered handler."""

    topic: str
    function: Callable[..., Any]
    run_in: RunIn
    takes_context: bool
    takes_payload: bool
    read_payload: _decode.Reader

    def payload(self, text: str) -> Any:
        """The payload as the type that the function names. What does not fit is fatal: another attempt would read the same."""
        try:
            return self.read_payload(json.loads(text), "")
        except _decode.Misfit as misfit:
            raise Fatal(f"bad payload: {misfit}") from None

    def arguments(self, context: AttemptContext | None, payload: str) -> tuple[Any, ...]:
        """What the function is called with."""
        value = self.payload(payload)
        return (context,) * self.takes_context + (value,) * self.takes_payload


def route(
    topic: str,
    function: Callable[..., Any],
    run_in: RunIn | None,
    unknown_fields: UnknownFields,
    names: dict[str, Any],
) -> Route:
    """Looks at a function, and refuses at once what could not be called later. `names` are those that its type hints may use beside
    the names of its module."""
    name = getattr(function, "__qualname__", repr(function))
    is_async = inspect.iscoroutinefunction(function)
    where: RunIn = run_in or ("loop" if is_async else "thread")
    if is_async != (where == "loop"):
        kind = "an async function runs in the event loop" if is_async else "a plain function runs in a thread or a process"
        raise _refused(name, f"{kind}; leave out run_in={run_in!r}")
    try:
        hints = typing.get_type_hints(function, localns=names)
    except NameError as error:
        raise _refused(name, f"its type hints cannot be read: {error}; define the types at the top of the module") from error
    parameters = [one for one in inspect.signature(function).parameters.values() if one.default is inspect.Parameter.empty]
    takes_context = bool(parameters) and _is_context(parameters[0], hints)
    rest = parameters[1:] if takes_context else parameters
    if len(rest) > 1 or any(one.kind in (one.KEYWORD_ONLY, one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in parameters):
        raise _refused(name, "it must take (ctx, payload), (payload), (ctx) or nothing")
    if where == "process":
        _check_process(name, function, takes_context)
    hint = hints.get(rest[0].name, Any) if rest else Any
    reader = _decode.reader(hint, ignore_unknown=unknown_fields == "ignore")
    return Route(topic, function, where, takes_context, bool(rest), reader)


def _is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    hint = hints.get(parameter.name)
    if hint is None:
        return parameter.name in ("ctx", "context")
    return isinstance(hint, type) and issubclass(hint, AttemptContext)


def _check_process(name: str, function: Callable[..., Any], takes_context: bool) -> None:
    if takes_context:
        raise _refused(name, "a handler in another process has no context; let it take the payload alone")
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _refused(name, f"another process cannot import it ({error}); define it at the top of a module") from error


def _refused(name: str, why: str) -> SetupError:
    return SetupError(f"handler {name}: {why}", code="setup", next_step="correct the handler")
