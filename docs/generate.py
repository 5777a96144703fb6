"""Write the generated parts of the pages anew, and check every link.

A page holds its tables between ``<!-- generated: NAME -->`` and ``<!-- end -->``; what
stands between is made here from the code and the data files, so that it cannot drift.
``--check`` writes nothing and fails when a page would change.
"""
# ruff: noqa: INP001 - a script

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

import tables  # noqa: E402 - found beside this file

BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Regenerate or check; print what changed or is wrong, and return the exit code."""
    parser = argparse.ArgumentParser(prog="generate.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    flags = parser.parse_args(arguments)
    drifted = [page for page in pages(ROOT) if refresh(page, tables.BLOCKS, write=not flags.check)]
    for page in drifted:
        verb = "would change" if flags.check else "written"
        tell(f"{page.relative_to(ROOT)}: {verb}")
    wrong = [*unused(pages(ROOT), tables.BLOCKS), *broken_links(ROOT)]
    for line in wrong:
        tell(line)
    if flags.check and drifted:
        tell("hint: nox -s docs writes them")
    if not wrong and not drifted:
        tell("the pages agree with the code, and every link leads somewhere")
    return 1 if wrong or (flags.check and drifted) else 0


def pages(root: Path) -> list[Path]:
    """Return every page of the project, the README first."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def refresh(page: Path, blocks: dict[str, Callable[[], Iterable[str]]], *, write: bool) -> bool:
    """Fill the blocks of a page; return whether it changed. Unknown names are errors."""
    text = page.read_text(encoding="utf-8")

    def fill(match: re.Match[str]) -> str:
        head, name, _old, end = match.groups()
        if name not in blocks:
            raise SystemExit(f"{page}: no generated block is called {name}")
        return f"{head}{''.join(line + chr(10) for line in blocks[name]())}{end}"

    new = BLOCK.sub(fill, text)
    if new != text and write:
        page.write_text(new, encoding="utf-8")
    return new != text


def unused(texts: Iterable[Path], blocks: Iterable[str]) -> Iterator[str]:
    """Yield the blocks that stand on no page: a table nobody reads is a mistake."""
    used = {m.group(2) for p in texts for m in BLOCK.finditer(p.read_text(encoding="utf-8"))}
    yield from (f"no page holds the block {name}" for name in blocks if name not in used)


def broken_links(root: Path) -> Iterator[str]:
    """Yield every relative link whose file or heading is not there."""
    for page in pages(root):
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists():
                yield f"{page.relative_to(root)}: {target} leads nowhere"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{page.relative_to(root)}: {target} has no such heading"


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings get."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"[`*_]", "", h).lower() for h in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", h).strip().replace(" ", "-") for h in plain}


def tell(text: str) -> None:
    """Print one line."""
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
