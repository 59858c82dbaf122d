"""Checks that an SBOM is valid CycloneDX and names every crate that is linked into the binary.

usage: check_sbom.py FILE, from the root of the repository
"""

import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def linked() -> set[str]:
    tree = ["cargo", "tree", "-p", "lockgate", "-e", "normal", "--prefix", "none", "--no-dedupe", "--format", "{p}"]
    lines = subprocess.run(tree, check=True, capture_output=True, text=True).stdout.splitlines()
    return {" ".join(line.split()[:2]).replace(" v", "@") for line in lines}


def main(file: Path) -> None:
    text = file.read_text()
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if error is not None:
        sys.exit(f"error: {file} is not valid CycloneDX 1.5: {error}")
    bom = json.loads(text)
    own = bom["metadata"]["component"]
    named = {f"{part['name']}@{part['version']}" for part in [own, *bom["components"]]}
    missing = sorted(linked() - named)
    if missing:
        sys.exit(f"error: {file} does not name {', '.join(missing)}")
    print(f"SBOM: {len(named)} components, valid CycloneDX {bom['specVersion']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
