"""A small packed file with its verdict and statements, each test changing one thing."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import cli_kit
import verify_kit
import wheel_kit
from llamawright import codec
from llamawright.attest import (
    Demand,
    Finding,
    Invocation,
    Part,
    Standing,
    Trust,
    VerdictRule,
    attestation,
    check,
    conclude,
    dsse,
    open_subject,
    read_claim,
    statement,
    write,
)
from llamawright.attest.keys import PrivateKey, PublicKey, generate, load_private
from llamawright.digest import Plain, plain, sha256_file
from llamawright.errors import LlamawrightError
from llamawright.model.artifact import BinaryFacts, Manifest, ToolEntry
from llamawright.model.built import Effective
from llamawright.model.plan import KeyPart, PlannedPatch
from llamawright.model.verdict import Check, Limit, Outcome, State, Verdict

COMMIT = "0123456789" * 4
SOURCE_DATE = 1_700_000_000  # 2023-11-14
PROVED = "2026-03-01T12:00:00+00:00"
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
BSD = "Some Library\nCopyright (c) somebody\n\nBSD 2-Clause License (https://example.com)\n"
VULKAN_SET = "vulkan-debian13 1.4.309 set " + "5" * 64
Json = dict[str, Plain]


def facts(name: str) -> BinaryFacts:
    """Return what was read from a library that needs the C library."""
    return BinaryFacts(
        path=name, format="elf", machine="x86_64", imports=("libc.so.6",), runpath=("$ORIGIN",),
        glibc="2.34", glibcxx="",
    )  # fmt: skip


def told(root: Path, **changes: object) -> Manifest:
    """Return the manifest of the files below ``root``: one patch, two tools, one tool set."""
    words: dict[str, object] = {
        "commit": COMMIT,
        "timestamp": SOURCE_DATE,
        "generator": "llamawright 0.1.0",
        "glibc": "2.34",
        "programs": ("llama-cli",),
        "system_libraries": ("libc.so.6",),
        "binaries": (facts("bin/libggml.so"), facts("bin/llama-cli")),
        "patches": (
            PlannedPatch(name="0001-fix", sha256="a" * 64, type="bugfix", reason="it crashes"),
        ),
        "tools": (
            ToolEntry(role="c++ compiler", name="gcc", version="12", sha256="c" * 64, where="PATH"),
            ToolEntry(role="cmake", name="cmake", version="4", sha256="d" * 64, where="tools"),
        ),
        "inputs": (KeyPart(name="vulkan", value=VULKAN_SET), KeyPart(name="tree", value="t")),
        "options": (Effective(name="GGML_VULKAN", value="ON"),),
        **changes,
    }
    return verify_kit.manifest(root, **words)  # type: ignore[arg-type]


def tree(root: Path) -> Path:
    """Write a program, a library and two licences."""
    content = {
        "bin/llama-cli": b"program" * 40,
        "bin/libggml.so": b"library" * 40,
        "licenses/LICENSE": b"MIT License\n\nCopyright (c) somebody\n",
        "licenses/vendor-x-LICENSE": BSD.encode(),
        "licenses/AUTHORS": b"somebody\n",
    }
    for name, data in content.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    (root / "bin" / "llama-cli").chmod(0o755)
    return root


def packed(folder: Path, **changes: object) -> Path:
    """Write a packed archive into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    root = tree(folder / "tree")
    return verify_kit.pack(root, folder, told(root, **changes))


def wheel(folder: Path) -> Path:
    """Write a runtime wheel into ``folder``."""
    root = tree(folder / "tree")
    shutil.move(root / "licenses", folder / "licenses")
    texts = {
        f"{wheel_kit.DIST_INFO}/licenses/{p.name}": p.read_bytes()
        for p in (folder / "licenses").iterdir()
    }
    scratch = folder / "s"
    return wheel_kit.write_wheel(folder, root, told(root), scratch=scratch, edits=texts)


def verdict(sha256: str, **changes: object) -> Verdict:
    """Return what a good proof on hardware says of a file."""
    good = Check(name="tokens", outcome=Outcome.PASS, expected="a", seen="a", source="log")
    base = cli_kit.verdict(
        State.VERIFIED,
        artifact_sha256=sha256,
        date=PROVED,
        checks=(good,),
        kld_per_chunk=(0.00473, 0.0057700001),
        limits=(Limit(name="mean KLD", value=0.02, reason="rounding"),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def on_software(sha256: str, **changes: object) -> Verdict:
    """Return what a good proof in software says."""
    device = replace(cli_kit.DEVICE, software=True, name="llvmpipe")
    words: dict[str, object] = {"state": State.VERIFIED_SOFTWARE, "device": device, **changes}
    return verdict(sha256, **words)


def key(folder: Path) -> PrivateKey:
    """Return a new key; its files are in ``folder``."""
    return load_private(generate(folder, None)[0], None)


@dataclass
class Shelf:
    """A file with everything said about it, beside it."""

    path: Path
    keys: tuple[PrivateKey, ...] = ()
    run: Invocation = field(default_factory=Invocation)

    @property
    def sbom(self) -> Path:
        return self.path.with_name(f"{self.path.name}.cdx.json")

    @property
    def statements(self) -> Path:
        return self.path.with_name(f"{self.path.name}.intoto.jsonl")

    @property
    def bundles(self) -> Path:
        return self.path.with_name(f"{self.path.name}.sigstore.jsonl")

    @property
    def sha256(self) -> str:
        return sha256_file(self.path)

    def attest(self, proof: Verdict | None = None, *, prove: bool = True) -> Shelf:
        """Write the statements; with the good verdict when none is given."""
        subject = open_subject(self.path)
        claim = None
        if prove:
            text = codec.encode(proof or verdict(subject.sha256))
            claim = read_claim(text.encode(), subject, what="v.json")
        made = attestation(subject, claim, self.run)
        write(self.path, made, signers=self.keys, keyless=None)
        return self

    def trust(self) -> Trust:
        """Return the trust of somebody who knows every key that signed."""
        return Trust(keys=tuple(replace_name(k) for k in self.keys))

    def check(self, trust: Trust | None = None, **rule: object) -> tuple[Finding, ...]:
        """Check it as somebody who trusts the keys, three days after the proof."""
        words: dict[str, object] = {"now": NOW, **rule}
        made = VerdictRule(**words)  # type: ignore[arg-type]
        return check(self.path, trust=self.trust() if trust is None else trust, rule=made)

    def judged(self, trust: Trust | None = None, **rule: object) -> LlamawrightError | None:
        """Return why the file is refused, ``None`` when it is accepted."""
        wanted = self.trust() if trust is None else trust
        return conclude(self.path.name, self.check(wanted, **rule), Demand(trust=wanted.named))

    def kind(self, trust: Trust | None = None, **rule: object) -> str:
        """Return the class word of the refusal, empty when the file is accepted."""
        error = self.judged(trust, **rule)
        assert error is None or error.hint
        return "" if error is None else f"{int(error.code)} {error.kind}"

    def lines(self) -> list[Json]:
        """Return the envelopes."""
        return [json.loads(line) for line in self.statements.read_bytes().splitlines()]

    def rewrite(self, lines: Iterable[Json]) -> None:
        """Write envelopes back, as somebody with an editor would."""
        text = "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in lines)
        self.statements.write_text(text, encoding="utf-8")

    def resign(
        self, change: Callable[[Json], None], *, kind: str, by: PrivateKey | None = None
    ) -> None:
        """Change one statement and sign it anew: the signer himself tells something else."""
        lines = self.lines()
        for number, line in enumerate(lines):
            said = payload(line)
            if said["predicateType"] == kind:
                change(said)
                signers = (by,) if by else self.keys
                lines[number] = json.loads(
                    dsse.encode(dsse.seal(json.dumps(said).encode(), signers))
                )
        self.rewrite(lines)


def replace_name(private: PrivateKey) -> PublicKey:
    """Return the public half."""
    return private.public


def payload(line: Json) -> Json:
    """Return the statement inside an envelope."""
    return cast("Json", json.loads(base64.b64decode(str(line["payload"]))))


def standing(found: tuple[Finding, ...], part: Part, *, signature: bool = False) -> Standing:
    """Return how the first finding about a part stands."""
    return next(f.standing for f in found if f.part is part and f.signature is signature)


def seen(found: tuple[Finding, ...], part: Part) -> str:
    """Return the words of the first finding about a part."""
    return next(f.seen for f in found if f.part is part and not f.signature)


def statement_bytes(kind: str, sha256: str, predicate: object) -> bytes:
    """Return a statement's payload about any file."""
    value = cast("Json", plain(predicate))
    made = statement.Statement(predicate_type=kind, name="x", sha256=sha256, predicate=value)
    return statement.encode(made)
