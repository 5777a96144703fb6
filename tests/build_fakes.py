"""A fake cmake that answers the File API from data, and a fake ninja that makes the files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import package_kit
from llamawright.build.fileapi import CLIENT
from llamawright.model.inventory import Found, Role
from llamawright.model.plan import PatchedTree, Plan
from llamawright.model.platform import Backend
from llamawright.model.recipe import BackendRule
from llamawright.store import Store

CMAKE_SAYS = "-- Including CPU backend\n-- Including Vulkan backend\n-- Configuring done"
TARGETS = {
    "tiny-cli": "EXECUTABLE",
    "ggml-base": "SHARED_LIBRARY",
    "tiny": "SHARED_LIBRARY",
    "ggml-cpu-x64": "MODULE_LIBRARY",
    "ggml-cpu-haswell": "MODULE_LIBRARY",
    "ggml-vulkan": "MODULE_LIBRARY",
    "ggml-metal": "MODULE_LIBRARY",
}
KEEP = """#!{python} -S
import json, os, pathlib, sys
here = pathlib.Path({folder!r})
state = json.loads((here / "state.json").read_text())
def note(name, value):
    with (here / name).open("a") as stream:
        stream.write(json.dumps(value) + "\\n")
if "-t" not in sys.argv:
    note("environments", dict(os.environ))
"""
CMAKE = """
build = pathlib.Path(sys.argv[sys.argv.index("-B") + 1])
print(state["says"])
if state["code"]:
    sys.exit(state["code"])
given = [a[2:] for a in sys.argv if a.startswith("-D")]
entries = [{"name": g.partition(":")[0], "value": g.partition("=")[2]} for g in given]
entries.append({"name": "GGML_AVAILABLE_BACKENDS", "value": "ggml-cpu-x64;ggml-cpu-haswell"})
reply = build / ".cmake" / "api" / "v1" / "reply"
reply.mkdir(parents=True, exist_ok=True)
def put(name, value):
    (reply / name).write_text(json.dumps(value))
    return name
def target(name, kind):
    defines = [{"define": d} for d in state["defines"]] if name == "ggml-vulkan" else []
    groups = [{"language": "CXX", "defines": defines}]
    return put("target-" + name, {"name": name, "type": kind, "compileGroups": groups})
targets = [{"jsonFile": target(n, k)} for n, k in state["targets"].items()]
answers = {
    "codemodel": {"configurations": [{"targets": targets}]},
    "cache": {"entries": entries},
    "toolchains": {"toolchains": [
        {"language": "CXX", "compiler": {"path": state["cxx"], "id": "GNU", "version": "12"}}]},
    "cmakeFiles": {"inputs": [{"path": "CMakeLists.txt"}]},
}
responses = [{"kind": k, "jsonFile": put(k + ".json", v)} for k, v in answers.items()]
put("index-1.json", {"reply": {state["client"]: {"query.json": {"responses": responses}}}})
(build / "CMakeCache.txt").write_text("x")
(build / "build.ninja").write_text("x")
"""
NINJA = """
build = pathlib.Path(sys.argv[sys.argv.index("-C") + 1])
if "-t" in sys.argv:
    print("g++ -o x/a.cpp.o -c a.cpp\\ng++ -o bin/tiny-cli x/a.cpp.o")
    sys.exit(0)
note("ninja-runs", sys.argv)
(build / "bin").mkdir(exist_ok=True)
for name in state["files"]:
    (build / "bin" / name).write_text(name)
log = "# ninja log v7\\n0\\t7000\\t1\\tx/a.cpp.o\\tff\\n"
(build / ".ninja_log").write_text(log)
print("[1/2] Building CXX object x/a.cpp.o\\n[2/2] Linking CXX executable bin/tiny-cli")
"""


@dataclass
class Machine:
    """A store, a source and fake tools; what the fake cmake says can be changed."""

    root: Path
    says: str = CMAKE_SAYS
    code: int = 0
    defines: tuple[str, ...] = ("COOPMAT",)

    def __post_init__(self) -> None:
        self.store = Store(self.root / "store")
        (self.root / "src").mkdir()
        self.source: PatchedTree = package_kit.source(self.root / "src")

    def plan(self, *, rule: BackendRule | None = None, tools: tuple[Found, ...] = ()) -> Plan:
        """Return a plan with the fake tools; ``rule`` replaces the Vulkan backend's."""
        self._write_state()
        base = package_kit.plan()
        cpu = base.recipe.rule(Backend.CPU)
        vulkan = rule or base.recipe.rule(Backend.VULKAN)
        recipe = replace(base.recipe, backends=tuple(r for r in (cpu, vulkan) if r))
        own = (
            self._tool(Role.CMAKE, "cmake", CMAKE),
            self._tool(Role.NINJA, "ninja", NINJA),
            Found(
                role=Role.CXX, name="gcc", path=Path("/usr/bin/g++"), version="12", where="PATH",
                sha256="0" * 64, facts=(("c_compiler", "/usr/bin/gcc"),),
            ),
        )  # fmt: skip
        return replace(base, recipe=recipe, tools=(*own, *tools))

    def ninja_runs(self) -> list[list[str]]:
        """Return ninja's command lines so far, dry runs left out."""
        path = self.root / "ninja-runs"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def environments(self) -> list[dict[str, str]]:
        """Return the environment of every run of a fake."""
        lines = (self.root / "environments").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def _write_state(self) -> None:
        state = {
            "says": self.says,
            "code": self.code,
            "defines": self.defines,
            "targets": TARGETS,
            "cxx": "/usr/bin/g++",
            "client": CLIENT,
            "files": [
                "tiny-cli", "libtiny.so", "libggml-base.so", "libggml-cpu-x64.so",
                "libggml-vulkan.so", "libggml-metal.so",
            ],
        }  # fmt: skip
        (self.root / "state.json").write_text(json.dumps(state))

    def _tool(self, role: Role, name: str, body: str) -> Found:
        program = self.root / name
        head = KEEP.format(python=sys.executable, folder=str(self.root))
        text = body
        program.write_text(head + text)
        program.chmod(0o755)
        return Found(role=role, name=name, path=program, version="1", where="PATH", sha256="0" * 64)
