"""One hub, one key, and the session an agent is in."""

from memoryhub.client.http import DEFAULT_TIMEOUT_SECONDS, Connection


class MemoryHub:
    """The way into a hub. Safe to share between threads."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        session: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self.session = session
        self.connection = Connection(base_url, api_key, timeout_seconds=timeout_seconds)
