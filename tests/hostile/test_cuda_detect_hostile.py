"""Toolkits and drivers that answer with nonsense, without an end, or from another world."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_kit import around, stand_up_cuda
from llamawright.detect import cuda
from llamawright.detect.cuda_limits import host_limits
from llamawright.detect.gpus import see_gpus
from llamawright.detect.nvml import FIELDS, normal_pci, read_nvml, read_smi
from llamawright.model.cuda import Presence
from llamawright.model.inventory import Fault, Found, Rejected
from machine_kit import Machine, write_program

CARD = {"index": 0, "name": "A", "pci": "0:1:0.0", "capability": 80, "memory": 1}
NVCC = "usr/local/cuda-12.4/bin/nvcc"
INCLUDE = "usr/local/cuda-12.4/targets/x86_64-linux/include"


def survey(machine: Machine) -> Rejected | Found:
    (seen,) = cuda.survey(around(machine))
    return seen


@pytest.mark.parametrize(
    "body",
    [
        "printf '\\377\\376\\000'",
        "printf 'release 12.4, V12.4.'",
        "printf 'release 99999999999999999999.4, V99999999999999999999.4.1'",
        "printf '\\033]0;title\\007'; exit 3",
        ":",
        "while :; do printf '%01000d' 0; done",
        'exec "$0" "$@"x',
    ],
)
def test_an_nvcc_that_says_nonsense_is_refused(tmp_path: Path, body: str) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    machine = Machine(root=machine.root, env=machine.env, about={**machine.about, "limit_s": 1})
    write_program(tmp_path / NVCC, f"#!/bin/sh\n{body}\n")
    seen = survey(machine)
    assert isinstance(seen, Rejected)
    assert seen.fault in (Fault.FAILED, Fault.HUNG)
    assert "\033" not in seen.reason.replace("\033]0;title\007", "")


def test_an_nvcc_that_hangs_in_its_dry_run_only_is_refused(tmp_path: Path) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    machine = Machine(root=machine.root, env=machine.env, about={**machine.about, "limit_s": 1})
    text = (tmp_path / NVCC).read_text()
    write_program(
        tmp_path / NVCC, text.replace("*' --dryrun '*)", "*' --dryrun '*) exec /bin/sleep 600;")
    )
    seen = survey(machine)
    assert isinstance(seen, Rejected)
    assert seen.fault is Fault.HUNG
    assert "dry run" in seen.reason


@pytest.mark.parametrize(
    "top", ["/", "relative/..", "/gone/bin/..", "\\377\\376", "../../../../..", "/proc/self/fd"]
)
def test_a_strange_top_makes_no_root_elsewhere(tmp_path: Path, top: str) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    text = (tmp_path / NVCC).read_text()
    told = f"TOP={tmp_path}/usr/local/cuda-12.4/bin/.."
    assert told in text
    write_program(tmp_path / NVCC, text.replace(told, f"TOP={top}"))
    seen = survey(machine)
    assert isinstance(seen, Rejected) or seen.path == tmp_path / "usr/local/cuda-12.4"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cuda_runtime_api.h", b"#define CUDART_VERSION 99999999999999\n"),
        ("cuda_runtime_api.h", b"\xff\xfe\0"),
        ("cuda_runtime_api.h", b""),
        ("cublas_api.h", b"#define CUBLAS_VER_MAJOR 1e9\n"),
        ("crt/host_config.h", b"\0" * 4096),
    ],
)
def test_strange_headers_are_no_crash(tmp_path: Path, name: str, content: bytes) -> None:
    machine = stand_up_cuda("cuda124", tmp_path)
    (tmp_path / INCLUDE / name).write_bytes(content)
    seen = survey(machine)
    assert isinstance(seen, Found) is (name != "cuda_runtime_api.h")


def test_links_in_a_circle_are_no_root(tmp_path: Path) -> None:
    machine = stand_up_cuda("bare", tmp_path)
    (tmp_path / "usr/local/cuda").symlink_to("cuda-12.0")
    (tmp_path / "usr/local/cuda-12.0").symlink_to("cuda")
    seen = cuda.survey(around(machine))
    assert seen
    assert all(isinstance(s, Rejected) for s in seen)


def test_nvcc_may_be_a_folder_or_a_pipe(tmp_path: Path) -> None:
    machine = stand_up_cuda("bare", tmp_path)
    (tmp_path / "usr/bin/nvcc").mkdir()
    (tmp_path / "usr/local/cuda/bin/nvcc").mkdir(parents=True)
    seen = cuda.survey(around(machine))
    assert len(seen) == 2
    assert all(isinstance(s, Rejected) and s.fault is Fault.FAILED for s in seen)


def test_two_wrappers_that_name_each_other_end(tmp_path: Path) -> None:
    machine = stand_up_cuda("bare", tmp_path)
    a, b = tmp_path / "usr/bin/nvcc", tmp_path / "usr/local/bin/nvcc"
    for here, there in ((a, b), (b, a)):
        write_program(here, f"#!/bin/sh\n# {there}\nexit 1\n")
    seen = cuda.survey(around(machine, {"PATH": f"{a.parent}:{b.parent}"}))
    assert len(seen) == 2
    assert all(isinstance(s, Rejected) for s in seen)


@pytest.mark.parametrize(
    "record",
    [
        None, 7, [], "x", {}, {"error": 7}, {"error": {}}, {"error": {"code": "x", "text": ""}},
        {"driver": "1", "cuda": 1, "cards": 7, "lost": []},
        {"driver": "1", "cuda": 1, "cards": [7], "lost": []},
        {"driver": "1", "cuda": 1, "cards": [{**CARD, "capability": "8.0"}], "lost": []},
        {"driver": "1", "cuda": 1, "cards": [{**CARD, "index": None}], "lost": []},
        {"driver": "1", "cuda": 1, "cards": [], "lost": [7]},
        {"driver": "1", "cuda": 1, "cards": []},
    ],
)  # fmt: skip
def test_a_child_that_answers_with_the_wrong_shape_gives_no_answer(record: object) -> None:
    assert read_nvml(json.dumps(record)) is None


@pytest.mark.parametrize("text", ["", "{", "[" * 100000, "NaN", '{"error": {"code": NaN}}'])
def test_a_child_that_answers_with_no_json_gives_no_answer(text: str) -> None:
    assert read_nvml(text) is None


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_from_nvidia_smi_is_read_without_a_crash(text: str) -> None:
    answer = read_smi(text, FIELDS)
    assert all(0 <= c.capability < 1000 for c in answer.cards)


@given(st.lists(st.text(max_size=20), min_size=len(FIELDS), max_size=len(FIELDS)))
@settings(max_examples=200, deadline=None)
def test_any_row_of_the_right_width_is_a_card_or_odd(cells: list[str]) -> None:
    line = ",".join(c.replace(",", "").replace("\n", "") for c in cells)
    answer = read_smi(f"x{line}", FIELDS)
    assert len(answer.cards) + len(answer.odd) >= 1


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_pci_place_is_normal_or_empty(text: str) -> None:
    place = normal_pci(text)
    assert not place or normal_pci(place) == place


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_header_has_numbers_for_limits_or_none(text: str) -> None:
    assert all(v.lstrip("-").isdigit() for v in host_limits(text).values())


def test_thousands_of_cards_are_cut(tmp_path: Path) -> None:
    row = "0, A, 0:1:0.0, 8.0, 1, 580.1, Enabled, Disabled, Enabled, GPU-1\n"
    assert len(read_smi(row * 5000, FIELDS).cards) == 1024
    cards = [CARD] * 5000
    answer = read_nvml(json.dumps({"driver": "1.2", "cuda": 1, "cards": cards, "lost": []}))
    assert answer is not None
    assert len(answer.cards) == 1024


@pytest.mark.parametrize(
    "body", ["printf '\\377\\376\\000'", "while :; do printf '%01000d' 0; done", "exit 255"]
)
def test_an_nvidia_smi_that_answers_with_nonsense_is_broken(tmp_path: Path, body: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    write_program(tmp_path / "bin/nvidia-smi", f"#!/bin/sh\n{body}\n")
    env = {"PATH": f"{tmp_path}/bin"}
    seen = see_gpus(env, nvml=(), root=tmp_path, limit_s=2)
    assert seen.presence is Presence.BROKEN
    assert len(seen.reason) < 300


def test_proc_and_sys_may_hold_anything(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_bytes(b"\xff\xfe")
    (device / "class").mkdir()
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_bytes(b"\xff" * 100000)
    seen = see_gpus({"PATH": ""}, nvml=(), root=tmp_path, limit_s=2)
    assert (seen.presence, seen.driver) == (Presence.ABSENT, "")
