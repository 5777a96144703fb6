"""A verdict in the making: what is known before the first run and does not change."""

from __future__ import annotations

import datetime as dt
import platform as host_platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llamawright import __version__
from llamawright.model.recipe import ModelType, TypeSource, Verification
from llamawright.model.verdict import (
    Check,
    Device,
    Limit,
    Numbers,
    RunRecord,
    Speed,
    Verdict,
)
from llamawright.verify.install import driver_choice
from llamawright.verify.judge import Ruling

CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The artifact, the model and the clock of one proof.

    ``variables`` are names of the user's variables that the runs get beside the usual ones.
    """

    artifact: str
    artifact_sha256: str
    model: str
    model_sha256: str
    limits: tuple[Limit, ...]
    began: float
    variables: tuple[str, ...] = ()

    def verdict(
        self,
        ruling: Ruling,
        *,
        device: Device | None = None,
        devices: Sequence[Device] = (),
        checks: Sequence[Check] = (),
        runs: Sequence[RunRecord] = (),
        speed: Speed | None = None,
        numbers: Sequence[Numbers] = (),
        token_s: Sequence[float] = (),
        reference: str = "",
        patterns: int = 0,
    ) -> Verdict:
        """Return the verdict of a ruling with its evidence."""
        now = dt.datetime.now(tz=dt.UTC)
        return Verdict(
            state=ruling.state,
            failure=ruling.failure,
            why=ruling.why,
            hint=ruling.hint,
            artifact=self.artifact,
            artifact_sha256=self.artifact_sha256,
            model=self.model,
            model_sha256=self.model_sha256,
            device=device,
            devices=tuple(devices),
            checks=tuple(checks),
            runs=tuple(runs),
            speed=speed or Speed(),
            kld_per_chunk=numbers[0].per_chunk if numbers else (),
            date=now.isoformat(timespec="seconds"),
            host=host_facts(self.variables),
            seconds=round(time.monotonic() - self.began, 2),
            numbers=tuple(numbers),
            token_s=tuple(round(t, 4) for t in token_s),
            limits=self.limits,
            reference=reference,
            patterns=patterns,
        )


def limits_of(verification: Verification) -> tuple[Limit, ...]:
    """Return the numeric limits with their reasons, for the report."""
    types = verification.types
    pairs = (
        ("mean KL divergence at most", verification.max_mean_kld),
        ("top-1 agreement at least", verification.min_top1),
        *((f"mean KL divergence of {label_of(t)} at most", t.max_mean_kld) for t in types),
        ("difference of the same run at most", verification.max_repeat),
    )
    return tuple(Limit(name=n, value=t.value, reason=t.reason) for n, t in pairs if t)


def label_of(kind: ModelType) -> str:
    """Return a type's name, with the model that it is made from when that is our own."""
    return kind.name if kind.source is TypeSource.PINNED else f"{kind.source} {kind.name}"


def cpu_name(info: Path = CPU_INFO) -> str:
    """Return the processor's name as the system gives it."""
    try:
        match = re.search(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE)
    except OSError:
        match = None
    name = match[1] if match else host_platform.processor()
    return name.strip() or host_platform.machine()


def host_facts(variables: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return what may explain a verdict later: system, processor, the driver that was chosen.

    ``variables`` are names of the user's variables that are told where they are set.
    """
    return (
        ("system", f"{host_platform.system()} {host_platform.release()}"),
        ("machine", host_platform.machine()),
        ("cpu", cpu_name()),
        ("llamawright", __version__),
        *driver_choice(variables),
    )
