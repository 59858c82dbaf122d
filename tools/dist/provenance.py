"""Writes where the artefacts come from: an in-toto statement with a SLSA provenance predicate.

usage: provenance.py FOLDER NAME, from the root of the repository
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement

LOCAL_BUILDER = "urn:lockgate:builder:local"


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def sha256(path: Path) -> dict[str, str]:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def builder() -> str:
    """The run of GitHub Actions, if this is one."""
    run = [os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    return "{}/{}/actions/runs/{}".format(*run) if all(run) else LOCAL_BUILDER


def provenance() -> Provenance:
    built = Provenance()
    definition = built.build_definition
    definition.build_type = "urn:lockgate:build:make-dist:1"
    definition.external_parameters.update({"command": "make dist"})
    # The commit alone says what was built only if nothing was changed since.
    definition.internal_parameters.update({"uncommitted_changes": bool(said("git", "status", "--porcelain"))})
    toolchain = said("rustc", "-vV").splitlines()
    sources = [
        ResourceDescriptor(name="source", digest={"gitCommit": said("git", "rev-parse", "HEAD")}),
        ResourceDescriptor(name="Cargo.lock", digest=sha256(Path("Cargo.lock"))),
        ResourceDescriptor(
            name=toolchain[0],
            uri="pkg:generic/rust@" + next(line.split()[1] for line in toolchain if line.startswith("release:")),
            annotations=dict(line.split(": ", 1) for line in toolchain[1:]),
        ),
    ]
    definition.resolved_dependencies.extend(source.pb for source in sources)
    built.run_details.builder.id = builder()
    built.run_details.metadata.finished_on.GetCurrentTime()
    return built


def main(folder: Path, name: str) -> None:
    files = sorted(path for path in folder.iterdir() if path.name != name and not path.name.startswith("SHA256SUMS"))
    subjects = [ResourceDescriptor(name=path.name, digest=sha256(path)).pb for path in files]
    predicate = json_format.MessageToDict(provenance())
    statement = Statement(subjects, "https://slsa.dev/provenance/v1", predicate)
    statement.validate()
    (folder / name).write_text(json_format.MessageToJson(statement.pb, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
