"""Rules of long-term memory: plain Python and numpy, no Django, no clock, no I/O. `now` is always passed in."""
