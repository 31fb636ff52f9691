"""The hub as a client of the provider: one module calls the SDK, so there is one place for keys, limits and errors."""
