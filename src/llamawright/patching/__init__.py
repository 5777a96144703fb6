"""The patching room: a source tree to a private tree with the whole series applied."""

from llamawright.patching.maintain import PatchReport, check_series, new_patch, refresh_series
from llamawright.patching.series import Series, load_series, planned
from llamawright.patching.trees import patch_tree

__all__ = [
    "PatchReport",
    "Series",
    "check_series",
    "load_series",
    "new_patch",
    "patch_tree",
    "planned",
    "refresh_series",
]
