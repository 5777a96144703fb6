"""This machine's own toolkits and cards, whatever it has: the answers must fit its tools' own."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest

from llamawright.detect import cuda, cuda_notes, detect_platform, see_gpus, survey
from llamawright.detect.surroundings import own_surroundings
from llamawright.model.cuda import Presence
from llamawright.model.inventory import Found, Rejected, Role
from llamawright.model.platform import Backend
from llamawright.model.toolchain import Fact
from llamawright.process import ask
from machine_kit import NO_TOOLCHAINS
from resolve_kit import request

NVCC = shutil.which("nvcc")
SMI = shutil.which("nvidia-smi")
AROUND = own_surroundings(detect_platform(), NO_TOOLCHAINS, dict(os.environ))
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc on PATH")


@needs_nvcc
def test_the_nvcc_on_path_is_seen_as_its_root_with_its_own_version() -> None:
    assert NVCC is not None
    told = re.search(r"V(\d+\.\d+\.\d+)", ask((NVCC, "--version")).stdout)
    assert told is not None
    seen = [s for s in cuda.survey(AROUND) if s.where in ("PATH", "CUDA_HOME", "CUDA_PATH")]
    versions = [s.version if isinstance(s, Found) else s.reason for s in seen]
    assert any(told[1] in v for v in versions)
    assert all(s.path and (s.path / "bin").is_dir() for s in seen if isinstance(s, Found))


@needs_nvcc
def test_a_real_root_is_whole_or_refused_for_what_it_really_lacks() -> None:
    for seen in cuda.survey(AROUND):
        root = seen.path
        assert root is not None
        libraries = [*root.glob("lib*/libcublas.so"), *root.glob("targets/*/lib/libcublas.so")]
        if isinstance(seen, Found):
            assert Path(seen.fact(Fact.CUBLAS)).is_file()
            assert Path(seen.fact(Fact.INCLUDE_DIR), "cublas_v2.h").is_file()
        elif root.name.startswith("cuda-") and not libraries:
            assert "libcublas.so" in seen.reason or "nvcc" in seen.reason
            assert seen.cure


@needs_nvcc
def test_the_limits_of_a_real_header_are_read() -> None:
    for header in Path("/usr/local").glob("cuda-*/include/crt/host_config.h"):
        from llamawright.detect.cuda_limits import host_limits

        text = header.read_text(errors="replace")
        limits = host_limits(text)
        assert set(limits) == {Fact.GCC_MAX, Fact.CLANG_MAX, Fact.MSC_MIN, Fact.MSC_MAX}
        assert f"gcc versions later than {limits[Fact.GCC_MAX]} are not supported" in text
        assert f"must be less than {int(limits[Fact.CLANG_MAX]) + 1} and" in text


def test_looking_for_toolkits_is_fast_and_gives_the_same_twice() -> None:
    start = time.monotonic()
    first = cuda.survey(AROUND)
    assert time.monotonic() - start < 10
    assert cuda.survey(AROUND) == first
    assert all(isinstance(s, Found | Rejected) and s.role is Role.CUDA for s in first)


def test_the_cards_are_those_that_nvidia_smi_lists_or_none_is_present() -> None:
    seen = see_gpus(os.environ)
    if SMI is None:
        assert seen.presence is not Presence.PRESENT or seen.source == "NVML"
        assert seen.cards or seen.reason
        return
    listed = ask((SMI, "-L")).stdout
    assert len(seen.cards) == len(re.findall(r"^GPU \d+:", listed, re.MULTILINE))
    assert all(c.uuid in listed for c in seen.cards)


@pytest.mark.skipif(SMI is None, reason="no nvidia-smi")
def test_both_sources_tell_the_same_cards() -> None:
    by_nvml, by_smi = see_gpus(os.environ), see_gpus(os.environ, nvml=())
    assert by_smi.source in ("nvidia-smi", "")
    if by_nvml.source == "NVML" and by_nvml.presence is Presence.PRESENT:
        assert by_nvml.driver == by_smi.driver
        same = [(c.index, c.name, c.pci, c.capability, c.uuid, c.mig, c.ecc) for c in by_nvml.cards]
        assert same == [
            (c.index, c.name, c.pci, c.capability, c.uuid, c.mig, c.ecc) for c in by_smi.cards
        ]


def test_the_whole_inventory_and_its_notes_come_out(tmp_path: Path) -> None:
    wanted = request(backend=Backend.CUDA)
    seen = survey.survey(wanted, AROUND, store_tools=tmp_path)
    assert seen.having(Role.CUDA) or seen.without(Role.CUDA)
    assert seen.gpus.presence is see_gpus(os.environ).presence
    assert all("\n" not in n for n in cuda_notes(os.environ, seen))
