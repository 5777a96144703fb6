"""Whether a device's memory rose, from whoever can tell on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from llamawright.model.platform import Backend
from llamawright.model.verdict import Device
from llamawright.verify.nvidia import Monitor, find_smi, monitoring
from llamawright.verify.sampling import PROC, ProcSampler, vram_used

CUDA = str(Backend.CUDA)


@dataclass(slots=True)
class MemoryWatch:
    """The readings of one series of runs on one device, and of the reference's runs."""

    device: Device
    sampler: ProcSampler = field(default_factory=ProcSampler)
    reference: ProcSampler = field(default_factory=ProcSampler)
    monitor: Monitor = field(default_factory=Monitor)
    vram_before: dict[str, int] = field(default_factory=dict)

    def rise(self, *, repacked: int = 0) -> tuple[int | None, str]:
        """Return by how many bytes the device's memory rose and who says so.

        ``None`` comes with the reason. A software device's memory is the process's own, so
        it is compared with the reference's: there the model is mapped from its file, but for
        the ``repacked`` bytes that it says it copied.
        """
        if self.device.software:
            if self.sampler.private and self.reference.private:
                plain = self.reference.private - repacked
                return self.sampler.private - plain, "/proc/PID/status, above the reference's"
            return None, "this system does not show a process's memory"
        return self._on_card(self.place)

    @property
    def place(self) -> str:
        """Return the card's PCI place; empty where nobody can tell."""
        return self.device.pci or self._only_card()

    def _on_card(self, pci: str) -> tuple[int | None, str]:
        own = self.monitor.used_by(self.sampler.pids, pci)
        if own is not None and self.device.backend == CUDA:
            return own, "nvidia-smi, this process"
        if pci in self.monitor.before:
            return self.monitor.peak[pci] - self.monitor.before[pci], "nvidia-smi"
        if pci in self.sampler.drm:
            return self.sampler.drm[pci], "/proc/PID/fdinfo"
        if pci in self.vram_before:
            peak = self.sampler.vram.get(pci, 0)
            return peak - self.vram_before[pci], "sysfs mem_info_vram_used"
        return None, "neither nvidia-smi nor the kernel shows this device's memory"

    def _only_card(self) -> str:
        cards = list(self.monitor.before)
        return cards[0] if len(cards) == 1 and "nvidia" in self.device.name.casefold() else ""


@contextlib.contextmanager
def watching(device: Device, *, cpu: bool) -> Iterator[MemoryWatch]:
    """Watch a device's memory while the block runs on it."""
    watch = MemoryWatch(device=device, vram_before=vram_used())
    smi = None if cpu or device.software else find_smi()
    with monitoring(smi, processes=device.backend == CUDA) as monitor:
        watch.monitor = monitor
        yield watch


def maps_readable() -> bool:
    """Whether this system shows what a process maps."""
    return (PROC / "self" / "maps").is_file()
