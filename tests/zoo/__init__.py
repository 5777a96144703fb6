"""The mutant zoo: artifacts and machines that lie, and the tool that must call each by name."""
