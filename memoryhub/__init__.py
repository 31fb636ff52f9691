"""MemoryHub: see, steer and pay less for what your AI agents remember."""

__version__ = "0.1.0"
