"""Findings of schemathesis that are accepted, each with its reason. Loaded by tools/fuzz-api through SCHEMATHESIS_HOOKS.

A check of schemathesis that fails is asked about here: a response that an entry of accepted.json fits is let through and counted, any other
one stays a finding. Entries look at single responses, so one of them hides no other finding of the same operation.
"""

import atexit
import json
import os
import re
import threading
from pathlib import Path

import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.core.failures import Failure, FailureGroup

ENTRIES = json.loads((Path(__file__).parent / "accepted.json").read_text(encoding="utf-8"))
OWN = os.environ["FUZZ_OWN_CREDENTIAL"]
USED = Path(os.environ["FUZZ_USED"])

lock = threading.Lock()
counts = [0] * len(ENTRIES)


def fields_of(response):
    """Each refused field with what is said about it, or the whole answer if it names none."""
    try:
        problem = response.json()
    except ValueError:
        return [("", "")]
    errors = problem.get("errors") if isinstance(problem, dict) else None
    return [(error["field"], error["message"]) for error in errors or []] or [("", json.dumps(problem))]


def entry_for(check, case, response, field, message, finding):
    for number, entry in enumerate(ENTRIES):
        if (
            entry["check"] == check
            and re.fullmatch(entry.get("operation", ".*"), case.operation.label)
            and response.status_code in entry.get("status", [response.status_code])
            and re.fullmatch(entry.get("field", ".*"), field)
            and re.search(entry.get("message", ""), message)
            and re.search(entry.get("finding", ""), finding)
        ):
            return number
    return None


def is_accepted(check, case, response, failure):
    findings = [each.message for each in getattr(failure, "exceptions", [failure])]
    errors = fields_of(response)
    numbers = {entry_for(check, case, response, *error, finding) for error in errors for finding in findings}
    if None in numbers:
        return False
    with lock:
        for number in numbers:
            counts[number] += 1
    return True


def listening(check):
    """The check, with accepted answers let through. It keeps its name, by which schemathesis knows it."""

    def checked(ctx, response, case):
        try:
            return check(ctx, response, case)
        except (Failure, FailureGroup) as failure:
            if is_accepted(check.__name__, case, response, failure):
                return None
            raise

    checked.__name__ = check.__name__
    return checked


for name in {entry["check"] for entry in ENTRIES}:
    CHECKS.register(listening(CHECKS.get_one(name)))


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """The credential of the run itself is not ended: everything after that would only be told 401."""
    if OWN and case.path_parameters and case.path_parameters.get("id") == OWN:
        case.path_parameters["id"] = "nobody"


@atexit.register
def tell():
    USED.write_text(json.dumps(counts), encoding="utf-8")
