"""The config room: recipe, toolchain and settings files, flags and environment -> Request."""

from llamawright.config.recipe_file import load_recipe, locate_recipe
from llamawright.config.request import build_proof, build_request
from llamawright.config.toolchain_file import load_toolchains

__all__ = ["build_proof", "build_request", "load_recipe", "load_toolchains", "locate_recipe"]
