"""One full commit of a git repository, in a scratch folder, untouched by anyone's settings."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from llamawright.errors import DownloadError, ToolMissingError
from llamawright.model.ports import Reporter
from llamawright.model.recipe import GitOrigin
from llamawright.process import Command, Limits, Result, base_environment, run
from llamawright.transfer.request import Failure, Fault, redact
from llamawright.transfer.retry import Clock, Exhausted, try_in_turn

# How the network is reached and trusted is the user's; everything else of git's is ours.
_KEPT = (
    "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "ALL_PROXY", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "CURL_CA_BUNDLE", "SSH_AUTH_SOCK",
)  # fmt: skip
_LIMITS = Limits(total_s=3600.0, stall_s=300.0)
_PASSING = re.compile(
    r"could not resolve|couldn.t (resolve|connect)|failed to connect|timed? ?out"
    r"|connection (reset|refused|closed)|early eof|rpc failed"
    r"|the requested url returned error: (5\d\d|429)|unexpected disconnect|hung up",
    re.IGNORECASE,
)
_NO_SINGLE = re.compile(r"unadvertised object|not our ref|couldn't find remote ref", re.IGNORECASE)
_ABSENT = re.compile(r"not found|does not exist|does not appear to be a git", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Checkout:
    """The work on one commit; ``once`` is a single try."""

    origin: GitOrigin
    program: str
    scratch: Path

    @property
    def tree(self) -> Path:
        return self.scratch / "tree"

    def once(self, url: str) -> Path | Failure:
        """Fetch the commit, alone when the server allows that, and check it out."""
        commit = self.origin.commit
        fetched = self.git("fetch", "--quiet", "--no-tags", "--depth=1", "--", url, commit)
        if not fetched.ok and _NO_SINGLE.search(fetched.output):
            everything = ("+refs/heads/*:refs/remotes/o/*", "+refs/tags/*:refs/tags/*")
            fetched = self.git("fetch", "--quiet", "--", url, *everything)
        if not fetched.ok:
            return _failure(url, fetched)
        if not self.git("cat-file", "-e", f"{commit}^{{commit}}").ok:
            return Failure(fault=Fault.ABSENT, url=url, why=f"it has no commit {commit}")
        checked_out = self.git("checkout", "--quiet", "--detach", "--force", commit)
        head = self.git("rev-parse", "HEAD")
        if not checked_out.ok or head.stdout.strip() != commit:
            why = f"checkout failed: {_last(checked_out)}"
            return Failure(fault=Fault.REFUSED, url=url, why=why)
        return self.tree

    def git(self, *arguments: str) -> Result:
        """Run git on the scratch repository, with nobody's configuration or hooks."""
        settings = {
            "core.autocrlf": "false", "core.hooksPath": os.devnull, "protocol.version": "2",
            "core.symlinks": "true", "gc.auto": "0", "credential.helper": "",
            "advice.detachedHead": "false",
        }  # fmt: skip
        options = [part for k, v in settings.items() for part in ("-c", f"{k}={v}")]
        command = Command(
            argv=(self.program, *options, *arguments), cwd=self.tree, env=_environment(self.scratch)
        )
        return run(command, limits=_LIMITS)


def check_out(
    origin: GitOrigin, scratch: Path, *, reporter: Reporter, clock: Clock | None = None
) -> Path:
    """Return a folder with the files of the commit.

    Only a full commit is taken, so the repository cannot give another one. Raises
    ``DownloadError``, or ``ToolMissingError`` without git.
    """
    program = shutil.which("git")
    if program is None:
        raise ToolMissingError(
            "git is not installed, and the source is a git repository",
            why=f"no git on PATH, needed for {redact(origin.url)}",
            hint="install git, or use --source index or archive",
            kind="git-missing",
        )
    _allow(origin)
    work = _Checkout(origin, program, scratch)
    work.tree.mkdir()
    started = work.git("init", "--quiet", "--template=")
    if not started.ok:
        raise _gave_up(origin, (_failure(origin.url, started),))
    reporter.info(f"fetching commit {origin.commit[:9]} of {redact(origin.url)}")
    outcome = try_in_turn((origin.url,), work.once, clock=clock or Clock(), tell=reporter.info)
    if isinstance(outcome, Exhausted):
        raise _gave_up(origin, outcome.failures)
    return outcome


def tagged_commit(origin: GitOrigin, tag: str) -> str:
    """Return the full commit that a tag of the repository names; raises ``DownloadError``."""
    program = shutil.which("git") or "git"
    _allow(origin)
    ref = f"refs/tags/{tag}"
    with tempfile.TemporaryDirectory(prefix="llamawright-") as folder:
        command = Command(
            argv=(program, "ls-remote", "--", origin.url, ref, f"{ref}^{{}}"),
            cwd=Path(folder),
            env=_environment(Path(folder)),
        )
        result = run(command, limits=_LIMITS)
    commits = re.findall(r"^[0-9a-f]{40}\b", result.stdout, re.MULTILINE)
    if not result.ok or not commits:
        raise DownloadError(
            f"the repository does not tell the commit of the tag {tag}",
            why=_last(result) if not result.ok else f"{redact(origin.url)} has no such tag",
            hint="name the full commit instead",
            kind="absent" if result.ok else "network",
        )
    # An annotated tag names itself first and its commit, marked ^{}, after that.
    return str(commits[-1])


def commit_date(tree: Path) -> int:
    """Return the date of what ``check_out`` placed, in seconds since 1970; 0 if git is silent."""
    program = shutil.which("git") or "git"
    argv = (program, "show", "--no-patch", "--format=%ct", "HEAD")
    result = run(Command(argv=argv, cwd=tree, env=_environment(tree.parent)), limits=_LIMITS)
    text = result.stdout.strip()
    return int(text) if result.ok and text.isdecimal() else 0


def _allow(origin: GitOrigin) -> None:
    """Refuse addresses that git would take for an option or run as a command."""
    if origin.url.startswith("-") or "::" in origin.url:
        raise _gave_up(
            origin, (Failure(fault=Fault.REFUSED, url="", why="not an address of a repository"),)
        )


def _environment(scratch: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return base_environment(
        {
            **kept,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
            # Never a repository above: only the one in the scratch folder counts.
            "GIT_CEILING_DIRECTORIES": str(scratch),
        }
    )


def _failure(url: str, result: Result) -> Failure:
    text = result.output
    if _PASSING.search(text):
        return Failure(fault=Fault.NETWORK, url=url, why=_last(result), again=True)
    fault = Fault.ABSENT if _ABSENT.search(text) else Fault.REFUSED
    return Failure(fault=fault, url=url, why=_last(result))


def _last(result: Result) -> str:
    """Return git's last words, without the user names and passwords of addresses."""
    lines = [line for line in result.tail if line.strip()]
    if not lines:
        return f"git ended with {result.returncode} ({result.ending})"
    return re.sub(r"//[^/@\s]+@", "//", lines[-1])


def _gave_up(origin: GitOrigin, failures: tuple[Failure, ...]) -> DownloadError:
    return DownloadError(
        f"commit {origin.commit} could not be fetched",
        why="\n".join(f.told for f in failures),
        hint="check the address and that it has this commit, or use --source index or archive",
        kind=failures[-1].fault.value,
    )
