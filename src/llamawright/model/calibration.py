"""How far an honest device's figures spread, and how far the recipe's limits are from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from llamawright.model.verdict import Device


class Figure(StrEnum):
    """What was measured: divergence in nats, or the share of equal likeliest tokens."""

    MEAN_KLD = "mean KLD"
    TOP1 = "top-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One figure of one type at one batch size over all runs, in their order.

    ``type`` is empty for the model as it is. A divergence must stay below its ``limit``, an
    agreement above it.
    """

    type: str
    batch: int
    figure: Figure
    limit: float
    values: tuple[float, ...]

    @property
    def low(self) -> float:
        """Return the least value."""
        return min(self.values)

    @property
    def middle(self) -> float:
        """Return the median."""
        return median(self.values)

    @property
    def high(self) -> float:
        """Return the greatest value."""
        return max(self.values)

    @property
    def margin(self) -> float:
        """Return the distance of the worst value from the limit; below zero it is broken."""
        if self.figure is Figure.TOP1:
            return self.low - self.limit
        return self.limit - self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All spreads of one artifact on one device.

    ``seeds`` made the tiny model of each run; the first run is the proof's own, and each
    further one also begins the text elsewhere.
    """

    artifact: str
    artifact_sha256: str
    device: Device
    runs: int
    seeds: tuple[int, ...]
    spreads: tuple[Spread, ...]
    date: str
    host: tuple[tuple[str, str], ...]
    seconds: float
