"""The release room: every target once, one gate, one folder that appears by one rename."""
