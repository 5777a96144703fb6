"""llamawright: build llama.cpp for the device in front of you, and prove it works there."""

__version__ = "0.1.0"
