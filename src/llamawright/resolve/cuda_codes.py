"""Which device code is compiled: the user's words and the machine's cards to a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from llamawright.model.cuda import GpuCode, Gpus, Presence, parse_code
from llamawright.model.plan import Conflict
from llamawright.model.recipe import CudaRule

NATIVE, ALL_MAJOR, RELEASE = "native", "all-major", "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Device code as it is wanted, before a toolkit is chosen.

    ``codes`` must be compiled, whatever the toolkit; ``here`` are those of this machine's
    own cards. ``release`` and ``majors`` are added as far as the toolkit knows them.
    ``spelled``: the user said ``-real`` or PTX somewhere, so nothing is added.
    """

    codes: tuple[GpuCode, ...] = ()
    here: tuple[GpuCode, ...] = ()
    release: bool = False
    majors: bool = False
    spelled: bool = False
    warnings: tuple[str, ...] = ()


def wanted_codes(words: tuple[str, ...], gpus: Gpus) -> Wanted | Conflict:
    """Return what the words ask for; without any, this machine's cards or a release build.

    ``native`` without a card is a conflict, never a guess (case C3).
    """
    cards = tuple(dict.fromkeys(c.capability for c in gpus.cards if c.capability))
    here = tuple(GpuCode(number=n) for n in sorted(cards))
    if not words and not here:
        reason = gpus.reason or f"NVIDIA cards: {gpus.presence}"
        told = f"no card to build for was seen ({reason}): the recipe's release list is built"
        return Wanted(release=True, warnings=(told,))
    if NATIVE in words and not here:
        return no_card(gpus)
    named = [c for w in words if (c := parse_code(w))]
    native = here if NATIVE in words or not words else ()
    return Wanted(
        codes=tuple(sorted({*named, *native})),
        here=native,
        release=RELEASE in words,
        majors=ALL_MAJOR in words,
        spelled=any(w.endswith("-real") for w in words) or any(c.ptx for c in named),
    )


def no_card(gpus: Gpus) -> Conflict:
    """Return the refusal of ``native`` on a machine whose cards cannot be told."""
    there = gpus.presence in (Presence.BROKEN, Presence.PRESENT)
    cures = (gpus.cure,) if gpus.cure else ()
    return Conflict(
        what="native needs an NVIDIA card in this machine",
        why=gpus.reason or "no card was seen",
        cures=(*cures, "name what to build for: --arch sm_89, or --arch release"),
        kind="gpu-unreadable" if there else "no-gpu",
    )


def planned_codes(
    wanted: Wanted, rule: CudaRule, known: tuple[str, ...]
) -> tuple[tuple[GpuCode, ...], tuple[str, ...]]:
    """Return the codes that a toolkit is to compile, and what a reader should know.

    Named cards get machine code. PTX is only the way forward for cards that do not exist
    yet: of the highest code that was named, unless the words spell out what is compiled or
    all is for this machine.
    """
    numbers = {k for k in known if k.isdigit()}
    codes = set(wanted.codes)
    left_out: list[str] = []
    for word in rule.release if wanted.release else ():
        code = parse_code(word)
        if code is None:
            continue
        if str(code.number) in numbers:
            codes.add(code)
        else:
            left_out.append(code.name)
    if wanted.majors:
        majors = {int(n) for n in numbers if int(n) % 10 == 0}
        lowest = min(map(int, numbers), default=0)
        codes |= {GpuCode(number=n) for n in {*majors, lowest} if n}
    notes = [f"the toolkit does not know {', '.join(left_out)}"] if left_out else []
    exact = {_exact(c, rule) for c in codes}
    ready = wanted.spelled or any(c.ptx for c in exact)
    if not ready and exact - {_exact(c, rule) for c in wanted.here}:
        exact |= set(_forward(exact))
    return tuple(sorted(exact)), tuple(notes)


def _exact(code: GpuCode, rule: CudaRule) -> GpuCode:
    """Return the code as upstream compiles it: 120 becomes 120a, which runs on 12.0 only."""
    if code.number in rule.exact and not code.suffix:
        return replace(code, suffix="a")
    return code


def _forward(codes: Iterable[GpuCode]) -> tuple[GpuCode, ...]:
    """Return PTX of the highest code that later cards can take; none of exact ones."""
    plain = [c for c in codes if not c.suffix]
    return (replace(max(plain), ptx=True),) if plain else ()
