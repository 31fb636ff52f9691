"""Pure rules: what an entry depends on, what a change touches, and what a verdict says."""
