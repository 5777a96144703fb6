"""The command line: verbs, flags and their help. No imports of the rooms, so it is fast."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from llamawright import __version__

BACKENDS = ("cpu", "vulkan", "cuda")
EPILOG = "exit codes: docs/reference/exit-codes.md; every failure ends with its code and class"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="llamawright",
        description="Build llama.cpp for the device in front of you, and prove it works there.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"llamawright {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _build(verbs)
    _verify(verbs)
    _compare(verbs)
    _calibrate(verbs)
    _wheel(verbs)
    _look(verbs)
    _patch(verbs)
    _keep(verbs)
    _release(verbs)
    _repro(verbs)
    _attest(verbs)
    _check(verbs)
    _bump(verbs)
    return parser


# argparse gives its sub-parsers no public name.
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001


def _verb(verbs: Verbs, name: str, text: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=text, epilog=EPILOG)
    verb.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    verb.add_argument("--quiet", action="store_true", help="warnings, errors and summary only")
    verb.add_argument(
        "--offline", action="store_true", default=None, help="use only what the store holds"
    )
    verb.add_argument(
        "--store", type=Path, metavar="DIR", help="the store (default: the user's cache folder)"
    )
    return verb


def _tool_flags(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument
    add("--recipe", metavar="NAME|FILE", help="recipe to build (default: llama.cpp)")
    add("--source", metavar="ORIGIN", help="auto, index, archive, git, path:DIR or git+URL@COMMIT")
    add("--vulkan", metavar="FROM", help="auto, sdk, system or provided")
    toolkit = "auto, system, provided, a version such as 12.4, or the toolkit's folder"
    add("--cuda-toolkit", metavar="FROM", help=toolkit)
    add("--compiler", metavar="CXX", help="auto, gcc, clang or the path of a C++ compiler")
    add("--cmake", metavar="FILE", help="cmake to use (default: the tool environment's own)")
    add("--ninja", metavar="FILE", help="ninja to use (default: the tool environment's own)")
    add("--cache", metavar="NAME", help="compiler cache: auto, off, ccache or sccache")
    add("--jobs", metavar="N", help="compile jobs (default: by cores and memory)")


def _plan_flags(verb: argparse.ArgumentParser) -> None:
    _tool_flags(verb)
    add = verb.add_argument
    arch = "CUDA device code: sm_61, 8.9, 90-virtual, native, all-major or release; repeatable"
    add("--arch", dest="archs", action="append", metavar="ARCH", help=arch)
    native = "tune for this machine's CPU only; not for shipping"
    add("--native", action="store_true", default=None, help=native)
    tests = "also pack the -tests archive with test-backend-ops"
    add("--with-tests", action="store_true", default=None, help=tests)


def _floor_flag(verb: argparse.ArgumentParser) -> None:
    floor = "also run on systems as old as this tag, such as manylinux_2_28; not with CUDA"
    verb.add_argument("--floor", metavar="TAG", help=floor)


def _verify_flags(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument
    add("--device", metavar="NAME", help="device name, ggml id (Vulkan0) or PCI id (0000:01:00.0)")
    add("--model", type=Path, metavar="GGUF", help="your own model (default: SmolLM2-135M)")
    hardware = "a software device is not enough: without hardware the run fails"
    add("--require-hardware", action="store_true", default=None, help=hardware)
    frozen = "prove again what froze the machine in an earlier proof"
    add("--clear-quarantine", action="store_true", help=frozen)


def _build(verbs: Verbs) -> None:
    verb = _verb(verbs, "build", "resolve, fetch, patch, build, package and verify an artifact")
    verb.add_argument("backend", choices=BACKENDS, help="the device API of the module")
    _plan_flags(verb)
    _floor_flag(verb)
    _verify_flags(verb)
    add = verb.add_argument
    add("--dist", type=Path, metavar="DIR", help="where the artifact goes (default: dist)")
    add("--plan-only", action="store_true", help="print the plan and stop")
    add("--no-verify", action="store_true", help="do not run the artifact; it stays UNVERIFIED")
    add("--force", action="store_true", help="verify again although nothing changed")


def _verify(verbs: Verbs) -> None:
    verb = _verb(verbs, "verify", "prove a packed artifact by inference on a device")
    verb.add_argument("artifact", type=Path, help="the archive or wheel, as it would be shipped")
    verb.add_argument("--recipe", metavar="NAME|FILE", help="recipe with the proof's limits")
    _verify_flags(verb)
    add = verb.add_argument
    links = "folder with wheels that a wheel depends on, besides its own folder; repeatable"
    add("--find-links", action="append", metavar="DIR", help=links)
    on = "prove it on another machine: ssh://[user@]host[:port]; its verdict is brought here"
    add("--on", metavar="ADDRESS", help=on)
    soak = "then run again and again for so long (20m, 72h); started again, it goes on"
    add("--soak", metavar="TIME", help=soak)
    _investigate_flags(verb)
    reference = "also measure its speed against this artifact's, or folder's of binaries"
    add("--against", type=Path, metavar="REF", help=reference)
    least = "fail as too slow below this share of REF's speed (default: 0.95)"
    add("--min-ratio", type=float, metavar="R", help=least)
    add("--rounds", type=int, metavar="N", help="rounds of that measurement")


def _investigate_flags(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument
    look = "look into a failed proof: where, why, the smallest case; an attachment for a bug report"
    add("--investigate", action="store_true", help=look)
    limit = "the longest that may take (10m, 90s; default: 5m)"
    add("--investigate-limit", metavar="TIME", help=limit)


def _compare(verbs: Verbs) -> None:
    verb = _verb(verbs, "compare", "measure two builds against each other on one device")
    add = verb.add_argument
    add("a", type=Path, help="the artifact that ratios are relative to")
    add("b", type=Path, nargs="?", help="the artifact that is judged")
    folder = "judge a folder of upstream's own binaries instead of an artifact"
    add("--against-folder", type=Path, metavar="DIR", help=folder)
    add("--rounds", type=int, metavar="N", help="rounds (default: 7, in software 5)")
    length = "prompt length in tokens for the time to first token; repeatable"
    add("--context", dest="contexts", type=int, action="append", metavar="N", help=length)
    add("--recipe", metavar="NAME|FILE", help="recipe with the model and the limits")
    add("--dist", type=Path, metavar="DIR", help="where the page goes (default: beside A)")
    _verify_flags(verb)


def _wheel(verbs: Verbs) -> None:
    text = "make an artifact's runtime wheel, or measure a wheel against its own tag"
    verb = _verb(verbs, "wheel", text)
    add = verb.add_argument
    add("file", type=Path, help="the archive, or a .whl that is only to be measured")
    add("--dist", type=Path, metavar="DIR", help="where the wheel goes (default: beside FILE)")


def _calibrate(verbs: Verbs) -> None:
    text = "measure the spread of an honest device's figures, beside the recipe's limits"
    verb = _verb(verbs, "calibrate", text)
    add = verb.add_argument
    add("artifact", type=Path, help="the archive; its proof is the first run")
    runs = "how often, each time with another tiny model and another beginning of the text"
    add("--runs", type=int, default=10, metavar="N", help=f"{runs} (default: 10)")
    add("--recipe", metavar="NAME|FILE", help="recipe with the model and the limits")
    _verify_flags(verb)


def _look(verbs: Verbs) -> None:
    doctor = _verb(verbs, "doctor", "show what was found, what was rejected and why")
    _plan_flags(doctor)
    plan = _verb(verbs, "plan", "print the full plan, or every conflict with its cures")
    plan.add_argument("backend", choices=BACKENDS)
    _plan_flags(plan)
    _floor_flag(plan)
    explain = _verb(verbs, "explain", "print how the keys of two artifacts or plans differ")
    explain.add_argument("a", help="an artifact, a manifest.json or a plan's JSON")
    explain.add_argument("b", help="the other one")


def _patch(verbs: Verbs) -> None:
    text = "list, check, refresh or add patches of the series"
    patch = verbs.add_parser("patch", help=text, description=text, epilog=EPILOG)
    actions = patch.add_subparsers(dest="action", required=True, metavar="ACTION")
    _action(actions, "list", "the series with type, reason and condition")
    _action(actions, "check", "try each patch against the source: applied, retired, failed")
    _action(actions, "refresh", "rewrite the patches' offsets and digests for the source")
    new = _action(actions, "new", "make a patch from an edited copy of the source")
    new.add_argument("name", help="e.g. vulkan-old-headers")
    new.add_argument("--from", dest="edited", type=Path, required=True, metavar="DIR")
    new.add_argument("--type", required=True, help="portability, bugfix, performance or feature")
    new.add_argument("--reason", required=True, help="one sentence")
    new.add_argument("--upstream", default="", help="link to the report or change upstream")


def _action(actions: Verbs, name: str, text: str) -> argparse.ArgumentParser:
    action = _verb(actions, name, text)
    action.add_argument("--recipe", metavar="NAME|FILE", help="recipe (default: llama.cpp)")
    action.add_argument("--source", metavar="ORIGIN", help="source to check against")
    return action


def _keep(verbs: Verbs) -> None:
    fetch = _verb(verbs, "fetch", "fill the store for a later offline build and verification")
    fetch.add_argument("backend", choices=BACKENDS)
    _plan_flags(fetch)
    _floor_flag(fetch)
    gc = _verb(verbs, "gc", "remove from the store what was not used for some days")
    gc.add_argument("--keep-days", type=float, default=30.0, metavar="N", help="default: 30")
    gc.add_argument("--dry-run", action="store_true", help="only tell what would go")


def _release(verbs: Verbs) -> None:
    verb = _verb(verbs, "release", "make every target of the recipe, or nothing; then publish it")
    _tool_flags(verb)
    add = verb.add_argument
    add("--dist", type=Path, metavar="DIR", help="where the release's folder goes (default: dist)")
    add("--tag", metavar="TAG", help="the release's tag (default: the recipe and the commit)")
    add("--plan-only", action="store_true", help="list every file that would be made, and stop")
    made = "folder with artifacts and verdicts of other machines; repeatable"
    add("--from", dest="made", type=Path, action="append", metavar="DIR", help=made)
    links = "folder with the wheels that a wheel depends on, for its proof; repeatable"
    add("--find-links", action="append", metavar="DIR", help=links)
    variants = "also make wheel variants (PEP 825, a draft)"
    add("--variants", action="store_true", help=variants)
    add("--files-at", metavar="URL", help="address of the wheels (default: beside the index)")
    add("--github", metavar="OWNER/NAME", help="publish there; the token is in GITHUB_TOKEN")
    add("--github-api", metavar="URL", help="address of the REST API (default: GitHub's own)")
    add("--commitish", metavar="REF", help="where the tag goes if there is none yet")
    add("--prerelease", action="store_true", help="mark it as a pre-release on GitHub")


def _repro(verbs: Verbs) -> None:
    text = "build twice on two made-up machines, or take two files, and compare byte for byte"
    verb = _verb(verbs, "repro", text)
    backends = "build this twice, in fresh stores, with another user, date, umask, locale and host"
    verb.add_argument("backend", nargs="?", choices=BACKENDS, help=backends)
    _plan_flags(verb)
    _floor_flag(verb)
    add = verb.add_argument
    files = "compare these two archives, wheels or single files; nothing is built"
    add("--files", nargs=2, type=Path, metavar="FILE", help=files)
    strip = "what strip removes may differ (always so with CUDA)"
    add("--after-strip", action="store_true", help=strip)
    work = "where both sides are made and kept (default: in the store, removed when identical)"
    add("--work", type=Path, metavar="DIR", help=work)
    add("--no-wheel", action="store_true", help="compare the archives only")


def _attest(verbs: Verbs) -> None:
    phrase = "file with the key's passphrase (default: $LLAMAWRIGHT_KEY_PASSPHRASE)"
    keygen = _verb(verbs, "keygen", "make a pair of keys to sign with; never overwrites one")
    keygen.add_argument("folder", type=Path, metavar="DIR", help="where the two files go")
    keygen.add_argument("--passphrase-file", type=Path, metavar="FILE", help=phrase)
    text = "write and sign SBOM, provenance and verdict of an archive or wheel"
    verb = _verb(verbs, "attest", text)
    add = verb.add_argument
    add("file", type=Path, help="the archive or wheel, as it will be shipped")
    add("--verdict", type=Path, metavar="FILE", help="its verdict (default: the one beside it)")
    key = "private key to sign with (Ed25519, PEM); repeatable"
    add("--key", type=Path, action="append", metavar="FILE", help=key)
    add("--passphrase-file", type=Path, metavar="FILE", help=phrase)
    add("--sigstore", action="store_true", help="sign with the identity of a hosted CI's job")
    add("--unsigned", action="store_true", help="sign nothing: proves nothing to anybody else")
    add("--builder", metavar="URI", help="who built it (default: somebody's own machine)")
    add("--invocation", metavar="ID", help="the job that built it, such as its address")
    add("--started", metavar="TIME", help="when the build began, as 2026-10-01T12:00:00Z")
    add("--finished", metavar="TIME", help="when it ended")


def _check(verbs: Verbs) -> None:
    text = "check an archive or wheel and all that is said about it, offline"
    verb = _verb(verbs, "check", text)
    add = verb.add_argument
    add("file", type=Path, help="the archive or wheel; its statements lie beside it")
    trust = "public key of somebody you trust; every statement must be signed then; repeatable"
    add("--trust", type=Path, action="append", metavar="KEY.pub", help=trust)
    add("--identity", metavar="NAME", help="trust this identity in Sigstore's bundles")
    add("--issuer", metavar="URL", help="who vouches for that identity")
    root = "file with Sigstore's own keys (default: those in the library)"
    add("--sigstore-root", type=Path, metavar="FILE", help=root)
    parts = ("sha256", "sbom", "provenance")
    need = "what must be there besides the verdict; repeatable"
    add("--require", choices=parts, action="append", help=need)
    add("--require-hardware", action="store_true", help="a software device is not enough")
    add("--max-age", type=float, metavar="DAYS", help="refuse an older verdict")


def _bump(verbs: Verbs) -> None:
    text = "measure a new upstream release, and tell how it differs from the pinned one"
    verb = _verb(verbs, "bump", text)
    add = verb.add_argument
    add(
        "version", help="a version of the index, or a tag (b11312) or full commit of the git origin"
    )
    _plan_flags(verb)
    build = "then build and prove that backend from the new release"
    add("--build", dest="backend", choices=BACKENDS, metavar="BACKEND", help=build)
    add("--dist", type=Path, metavar="DIR", help="where what is made goes (default: dist)")
    add("--young", action="store_true", help="take a release younger than min_age_days")
    commit = "upstream's full commit, where the release does not tell it"
    add("--commit", metavar="HEX", help=commit)
    add("--build-number", type=int, default=0, metavar="N", help="upstream's, as in its tag b11312")
    add("--write", action="store_true", help="write the new pin into the recipe, if nothing blocks")
