"""Read the result file of a build: an artifact must be there, and proved on a device."""
# ruff: noqa: INP001, T201 - a script, and what it finds belongs on stdout

from __future__ import annotations

import json
import sys
from pathlib import Path

GOOD = ("verified", "verified-software")


def problems(result: dict[str, object], folder: Path) -> list[str]:
    """Return what a result lacks; nothing when the artifact is there and was proved."""
    artifact, verdict = result.get("artifact"), result.get("verdict")
    if not isinstance(artifact, dict) or not isinstance(verdict, dict):
        return [f"no artifact or no verdict: {result.get('error') or result.get('class')}"]
    found = []
    if verdict.get("state") not in GOOD:
        found.append(f"the verdict is {verdict.get('state')}: {verdict.get('why')}")
    if not (folder / Path(str(artifact["path"])).name).is_file():
        found.append(f"{artifact['path']} is not in {folder}")
    failed = [c["name"] for c in verdict.get("checks", []) if c.get("outcome") == "fail"]
    if failed:
        found.append(f"failed checks: {', '.join(failed)}")
    return found


def main(folder: Path) -> int:
    """Check every result file of a folder; there must be one."""
    results = sorted(folder.glob("*.result.json"))
    if not results:
        print(f"no result file in {folder}")
        return 1
    bad = 0
    for path in results:
        result = json.loads(path.read_text(encoding="utf-8"))
        wrong = problems(result, folder)
        bad += bool(wrong)
        state = (result.get("verdict") or {}).get("state")
        print(f"{path.name}: {'; '.join(wrong) if wrong else state}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
