"""The frozen types that flow between the rooms. No I/O, nothing of ours imported."""
