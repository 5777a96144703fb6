"""A small whole recipe as text, so that each test changes one thing of it."""

from __future__ import annotations

from pathlib import Path

from llamawright.config import load_recipe
from llamawright.model.recipe import Recipe

SHA = "ab" * 32
COMMIT = "0123456789abcdef0123456789abcdef01234567"
RECIPE = f'''\
name = "tiny"
patches = "tiny"

[source]
upstream = "someone/tiny"
commit = "{COMMIT}"
build_number = 7
version = "1.0"
timestamp = 1700000000
tree = "{SHA}"
include = ["CMakeLists.txt", "src"]

[[source.index]]
project = "tiny"
version = "1.0"
filename = "tiny-1.0.tar.gz"
size = 1000
sha256 = "{SHA}"
subdir = "vendor/tiny"

[[source.archive]]
url = "https://example.invalid/tiny.tar.gz"
size = 5000

[[source.git]]
url = "https://example.invalid/tiny"
commit = "{COMMIT}"

[options]
GGML_NATIVE = {{ value = false, reason = "portable" }}
CMAKE_BUILD_TYPE = {{ value = "Release", reason = "shipped" }}

[contents]
programs = ["tiny-cli"]
libraries = ["tiny"]
licenses = ["LICENSE"]

[allowed_imports]
linux = ["libc.so.6"]
windows = ["KERNEL32.dll"]

[backends.cpu]
targets = ["ggml-cpu-*"]
modules = ["ggml-cpu-*"]

[backends.vulkan]
targets = ["ggml-vulkan"]
modules = ["ggml-vulkan"]
device_prefix = "Vulkan"
min_headers = 300
min_headers_patched = 239

[backends.vulkan.options]
GGML_VULKAN = {{ value = true, reason = "the backend" }}

[[backends.vulkan.capabilities]]
name = "cooperative_matrix"
define = "COOPMAT"
feature_test = "tests/coopmat.comp"
cost = "slower"

[verification]
context = 64
chunks = 1
probe_s = 10
load_s = 20
first_token_s = 5.5
total_s = 60
output_cap = 1000
text = """
One line = not a key.
"""

[verification.max_mean_kld]
value = 0.02
reason = "rounding"

[verification.min_top1]
value = 0.95
reason = "ties"

[[verification.prompts]]
text = "The capital of France is"
tokens = 8
expect = "Paris"

[[verification.prompts]]
text = "Once"
tokens = 4

[verification.model]
name = "Tiny"
member = "tiny/tiny.gguf"
size = 10
sha256 = "{SHA}"
layers = 2
license = "MIT"

[verification.model.origin]
project = "tiny-model"
version = "1"
filename = "tiny_model-1-py3-none-any.whl"
size = 20
sha256 = "{SHA}"
'''


def write_recipe(folder: Path, old: str = "", new: str = "") -> Path:
    """Write the recipe with ``old`` replaced once by ``new``."""
    if old and RECIPE.count(old) < 1:
        raise AssertionError(f"the recipe has no {old!r}")
    path = folder / "tiny.toml"
    path.write_text(RECIPE.replace(old, new, 1) if old else RECIPE, encoding="utf-8")
    return path


def tiny_recipe(folder: Path, old: str = "", new: str = "") -> Recipe:
    """Write and load the recipe."""
    return load_recipe(write_recipe(folder, old, new))


def line_of(path: Path, text: str) -> int:
    """Return the number of the first line that starts with ``text``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.startswith(text))
