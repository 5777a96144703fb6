"""A release on GitHub: draft, uploads, comparison, publication; nobody sees half of one.

Every change is made after looking whether an earlier try has made it: a connection that is
lost after the server did its work is the common case, not a rare one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from llamawright.digest import sha256_file
from llamawright.errors import PublishError
from llamawright.model.ports import Reporter
from llamawright.release import github_api as api
from llamawright.release.github_api import Answer, Asset, GitHubApi, RemoteRelease
from llamawright.transfer import Clock
from llamawright.transfer.request import Failure, Fault
from llamawright.transfer.retry import Exhausted, try_in_turn

T = TypeVar("T")
UPLOADED = "uploaded"
BETWEEN_CHANGES_S = 1.0
# "Each file included in a release must be under 2 GiB": docs.github.com, About releases.
LARGEST = 2 << 30
MARK = "<!-- made by llamawright release -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file to publish; ``size`` in bytes."""

    path: Path
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Return the name that it gets on the server."""
        return self.path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is to be seen in the end; ``commitish``: where the tag goes if there is none."""

    tag: str
    title: str
    notes: str
    files: tuple[LocalFile, ...]
    commitish: str = ""
    prerelease: bool = False

    @property
    def body(self) -> str:
        """Return the notes with the mark by which a draft is known as ours."""
        return f"{self.notes.rstrip()}\n\n{MARK}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Publishes to one place; ``clock`` is how it waits."""

    server: GitHubApi
    reporter: Reporter
    clock: Clock = field(default_factory=Clock)

    def publish(self, wanted: Publication) -> str:
        """Publish, or go on with what an earlier run began; return the page's address.

        A published release with the very same files is a success; with others it is
        refused. Raises ``PublishError``; then there is at most a draft, which nobody sees.
        """
        require_sendable(wanted.files)
        known = self._patient(lambda: self._published(wanted.tag), "look for the release")
        if known is not None:
            return self._already(known, wanted)
        draft = self._patient(lambda: self._draft(wanted), "make the draft")
        for file in wanted.files:
            self._patient(partial(self._uploaded, draft, file), f"upload {file.name}")
        self._patient(lambda: self._cleared(draft, wanted), "remove what an earlier run left")
        self._require_same(draft, wanted)
        return self._patient(lambda: self._made_public(draft, wanted), "publish")

    def _patient(self, attempt: Callable[[], T | Failure], what: str) -> T:
        """Try until it is done or patience ends; all attempts look before they act."""
        outcome = try_in_turn(
            (what,), lambda _: attempt(), clock=self.clock, tell=self.reporter.info
        )
        if isinstance(outcome, Exhausted):
            raise given_up(self.server.place, what, outcome.failures)
        return outcome

    def _published(self, tag: str) -> RemoteRelease | Failure | None:
        url = f"{self.server.place.releases}/tags/{quote(tag, safe='')}"
        answer = self.server.ask("GET", url)
        if isinstance(answer, Failure):
            return answer
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        return self._read(RemoteRelease, answer, url)

    def _already(self, known: RemoteRelease, wanted: Publication) -> str:
        assets = self._patient(lambda: self._assets(known), "read its files")
        if differences(wanted.files, assets):
            raise PublishError(
                f"{wanted.tag} is published already, with other files",
                why="\n".join(differences(wanted.files, assets)),
                hint="a published release is never changed: take a new tag (--tag)",
                kind="already-published",
            )
        self.reporter.info(f"{wanted.tag} is published already, with these very files")
        return known.html_url

    def _draft(self, wanted: Publication) -> RemoteRelease | Failure:
        """Return our draft of an earlier run, or of an earlier try, or a new one."""
        found = self._drafts(wanted.tag)
        if isinstance(found, Failure):
            return found
        ours = [d for d in found if MARK in (d.body or "")]
        if len(ours) != len(found) or len(ours) > 1:
            raise PublishError(
                f"there is a draft of {wanted.tag} that this run must not touch",
                why=", ".join(d.html_url for d in found),
                hint="publish or delete it on its page, then run the same command",
                kind="foreign-draft",
            )
        if ours:
            self.reporter.info(f"going on with the draft {ours[0].html_url}")
            return ours[0]
        return self._new_draft(wanted)

    def _drafts(self, tag: str) -> list[RemoteRelease] | Failure:
        found: list[RemoteRelease] = []
        page = 1
        while True:
            url = f"{self.server.place.releases}?per_page={api.PAGE}&page={page}"
            answer = self.server.ask("GET", url)
            if isinstance(answer, Failure):
                return answer
            listed = self._read(tuple[RemoteRelease, ...], answer, url)
            found += [r for r in listed if r.draft and r.tag_name == tag]
            if len(listed) < api.PAGE:
                return found
            page += 1

    def _new_draft(self, wanted: Publication) -> RemoteRelease | Failure:
        commitish = {"target_commitish": wanted.commitish} if wanted.commitish else {}
        body = {
            "tag_name": wanted.tag,
            "name": wanted.title,
            "body": wanted.body,
            "draft": True,
            "prerelease": wanted.prerelease,
            **commitish,
        }
        url = self.server.place.releases
        answer = self.server.ask("POST", url, body=body)
        return answer if isinstance(answer, Failure) else self._read(RemoteRelease, answer, url)

    def _uploaded(self, draft: RemoteRelease, file: LocalFile) -> Asset | Failure:
        """Return the asset when the server has the whole file; a torn one goes first."""
        assets = self._assets(draft)
        if isinstance(assets, Failure):
            return assets
        for asset in (a for a in assets if a.name == file.name):
            if not fault_of(asset, file):
                return asset
            removed = self._remove(asset)
            if isinstance(removed, Failure):
                return removed
        url = api.upload_address(draft, file.name)
        self.reporter.info(f"uploading {file.name}")
        # GitHub asks for a second between changes.
        self.clock.sleep(BETWEEN_CHANGES_S)
        answer = self.server.ask("POST", url, file=file.path)
        if isinstance(answer, Failure):
            return answer
        if answer.status != HTTPStatus.CREATED:
            # 422 already_exists: an earlier try got through after all; the next one looks.
            why = f"HTTP {answer.status}: {_said(answer)}"
            return Failure(fault=Fault.REFUSED, url=url, why=why, again=True)
        made = self._read(Asset, answer, url)
        if made.name != file.name:
            self._remove(made)
            raise renamed(file.name, made.name)
        fault = fault_of(made, file)
        return Failure(fault=Fault.SIZE_MISMATCH, url=url, why=fault, again=True) if fault else made

    def _remove(self, asset: Asset) -> Failure | None:
        url = f"{self.server.place.releases}/assets/{asset.id}"
        answer = self.server.ask("DELETE", url)
        return answer if isinstance(answer, Failure) else None

    def _cleared(self, draft: RemoteRelease, wanted: Publication) -> bool | Failure:
        """Remove files that an earlier run with other bytes left in our draft."""
        assets = self._assets(draft)
        if isinstance(assets, Failure):
            return assets
        names = {f.name for f in wanted.files}
        for asset in (a for a in assets if a.name not in names):
            removed = self._remove(asset)
            if isinstance(removed, Failure):
                return removed
        return True

    def _assets(self, release: RemoteRelease) -> list[Asset] | Failure:
        found: list[Asset] = []
        page = 1
        while True:
            place = f"{self.server.place.releases}/{release.id}/assets"
            url = f"{place}?per_page={api.PAGE}&page={page}"
            answer = self.server.ask("GET", url)
            if isinstance(answer, Failure):
                return answer
            listed = self._read(tuple[Asset, ...], answer, url)
            found += listed
            if len(listed) < api.PAGE:
                return found
            page += 1

    def _require_same(self, draft: RemoteRelease, wanted: Publication) -> None:
        assets = self._patient(lambda: self._digested(draft), "compare")
        wrong = differences(wanted.files, assets)
        if wrong:
            raise PublishError(
                f"the draft of {wanted.tag} does not hold this release: it stays a draft",
                why="\n".join(wrong),
                hint="run the same command: what is wrong is sent again",
                kind="draft-differs",
            )

    def _digested(self, draft: RemoteRelease) -> list[Asset] | Failure:
        """Return the files when the server has told the digest of each."""
        assets = self._assets(draft)
        if isinstance(assets, Failure):
            return assets
        open_ = [a.name for a in assets if a.digest is None]
        why = f"no digest yet of {', '.join(open_[:3])}"
        url = self.server.place.releases
        return Failure(fault=Fault.ABSENT, url=url, why=why, again=True) if open_ else assets

    def _made_public(self, draft: RemoteRelease, wanted: Publication) -> str | Failure:
        url = f"{self.server.place.releases}/{draft.id}"
        seen = self.server.ask("GET", url)
        if isinstance(seen, Failure):
            return seen
        now = self._read(RemoteRelease, seen, url)
        if now.draft:
            body = {"draft": False, "name": wanted.title, "body": wanted.body}
            answer = self.server.ask("PATCH", url, body=body)
            if isinstance(answer, Failure):
                return answer
            now = self._read(RemoteRelease, answer, url)
        if now.draft:
            return Failure(fault=Fault.REFUSED, url=url, why="it is still a draft", again=True)
        return now.html_url

    def _read(self, kind: type[T], answer: Answer, url: str) -> T:
        if answer.status == HTTPStatus.NOT_FOUND:
            raise api.no_repository(self.server.place)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise PublishError(
                f"GitHub refuses: HTTP {answer.status}",
                why=f"{url}: {_said(answer)}",
                hint="correct what it names, then run the same command",
                kind="refused",
            )
        return api.read(kind, answer.data, url)


def fault_of(asset: Asset, file: LocalFile) -> str:
    """Return what is wrong with an asset, empty when it is the file as far as is told."""
    if asset.state != UPLOADED:
        return f"{asset.name}: its upload did not end (state {asset.state})"
    if asset.size != file.size:
        return f"{asset.name}: {asset.size} bytes instead of {file.size}"
    if asset.digest not in {None, f"{api.DIGEST}{file.sha256}"}:
        return f"{asset.name}: the server has {asset.digest}, not {api.DIGEST}{file.sha256}"
    return ""


def differences(files: Iterable[LocalFile], assets: Iterable[Asset]) -> list[str]:
    """Return how the files of a release on the server differ from ours, one line each."""
    there = {a.name: a for a in assets}
    ours = {f.name: f for f in files}
    found = [f"{n}: not on the server" for n in ours if n not in there]
    found += [f"{n}: only on the server" for n in there if n not in ours]
    return found + [
        fault for n, f in ours.items() if n in there and (fault := fault_of(there[n], f))
    ]


def local_file(path: Path) -> LocalFile:
    """Return a file with its size and digest."""
    return LocalFile(path=path, size=path.stat().st_size, sha256=sha256_file(path))


def require_sendable(files: Iterable[LocalFile]) -> None:
    """Refuse, before anything is sent, what GitHub will not take."""
    large = [f"{f.name}: {f.size} bytes" for f in files if f.size >= LARGEST]
    if large:
        raise PublishError(
            "a file is too large for a GitHub release",
            why="\n".join(large),
            hint="each must be under 2 GiB: fewer archs in a target make its file smaller",
            kind="too-large",
        )


def renamed(name: str, seen: str) -> PublishError:
    """Return the error of a file that the server will not keep under its name."""
    return PublishError(
        f"GitHub calls {name} {seen}",
        why="it changes names with special characters; SHA256SUMS and the index would be wrong",
        hint="give the target or recipe a name of letters, digits, . _ + and -",
        kind="renamed",
    )


def given_up(place: api.Place, what: str, failures: tuple[Failure, ...]) -> PublishError:
    """Return the error of a server that did not answer in the end."""
    last = failures[-1]
    return PublishError(
        f"could not {what} on {place.repo}: nothing is public",
        why=last.told,
        hint="run the same command later: it goes on with the draft, and sends only what lacks",
        kind=last.fault.value,
    )


def _said(answer: Answer) -> str:
    data = answer.data if isinstance(answer.data, dict) else {}
    said, errors = data.get("message"), data.get("errors")
    details = [str(e.get("code") or e.get("message")) for e in errors or () if isinstance(e, dict)]
    return ", ".join([str(said or "no reason"), *details])
