"""Writes what is in the binary as CycloneDX: every crate that is linked into it, the standard library of Rust, and the C library.

usage: sbom.py TRIPLE FILE, from the root of the repository
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot5
from packageurl import PackageURL

PROGRAM = "lockgate"


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(resolve: dict, first: str) -> dict[str, list[str]]:
    """What each package links, of everything that can be reached from the first. Tests and build scripts are not shipped."""
    nodes = {node["id"]: node for node in resolve["nodes"]}
    found: dict[str, list[str]] = {}
    to_visit = [first]
    while to_visit:
        package = to_visit.pop()
        if package in found:
            continue
        normal = (d for d in nodes[package]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"]))
        found[package] = [d["pkg"] for d in normal]
        to_visit.extend(found[package])
    return found


def checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads(Path("Cargo.lock").read_text())
    return {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}


def component(package: dict, sums: dict[tuple[str, str], str]) -> Component:
    name, version = package["name"], package["version"]
    checksum = sums.get((name, version))
    # Older crates have a slash where SPDX has OR.
    licence = (package.get("license") or "").replace("/", " OR ")
    purl = PackageURL("cargo", None, name, version) if checksum else None
    return Component(
        type=ComponentType.APPLICATION if name == PROGRAM else ComponentType.LIBRARY,
        name=name,
        version=version,
        bom_ref=f"{name}@{version}",
        purl=purl,
        licenses=[LicenseFactory().make_from_string(licence)] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
    )


def runtime() -> list[Component]:
    """What the compiler links beside the crates."""
    release = next(line.split()[1] for line in said("rustc", "-vV").splitlines() if line.startswith("release:"))
    libc, version = said("getconf", "GNU_LIBC_VERSION").split()
    licences = LicenseFactory()
    rust = Component(name="rust-std", version=release, licenses=[licences.make_from_string("MIT OR Apache-2.0")])
    c = Component(name=libc, version=version, licenses=[licences.make_from_string("LGPL-2.1-or-later")])
    return [rust, c]


def main(triple: str, file: Path) -> None:
    metadata = json.loads(said("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", triple))
    packages = {package["id"]: package for package in metadata["packages"]}
    program = next(id for id, package in packages.items() if package["name"] == PROGRAM)
    graph = linked(metadata["resolve"], program)
    sums = checksums()
    parts = {id: component(packages[id], sums) for id in graph}
    bom = Bom()
    bom.metadata.component = parts[program]
    bom.components.update(part for id, part in parts.items() if id != program)
    for id, needs in graph.items():
        bom.register_dependency(parts[id], [parts[need] for need in needs])
    for part in runtime():
        bom.components.add(part)
        bom.register_dependency(parts[program], [part])
    file.write_text(JsonV1Dot5(bom).output_as_string(indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
