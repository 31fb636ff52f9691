"""One hub, one key, and the session an agent is in."""

import os

from memoryhub.client.context import Context
from memoryhub.client.http import DEFAULT_TIMEOUT_SECONDS, Connection
from memoryhub.client.memory import LongTermMemory
from memoryhub.client.prompt_cache import PromptCache
from memoryhub.client.spool import UsageSender
from memoryhub.client.tools import Tools


class MemoryHub:
    """The way into a hub: `.tools`, `.context`, `.memory` and `.prompt_cache`. Safe to share between threads.

    `root` is the folder that tools' paths belong to (the current one, if left out). `spool_dir` keeps usage that could
    not be sent; `~/.memoryhub/spool`, or MEMORYHUB_SPOOL_DIR.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        session: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        root: str | os.PathLike[str] | None = None,
        spool_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.session = session
        self.connection = Connection(base_url, api_key, timeout_seconds=timeout_seconds)
        self._sender = UsageSender(self.connection, base_url=base_url, spool_dir=spool_dir)
        self.tools = Tools(self.connection, session=session, root=root)
        self.context = Context(self.connection, session=session)
        self.memory = LongTermMemory(self.connection, session=session)
        self.prompt_cache = PromptCache(self.connection, self._sender, session=session)

    def close(self) -> None:
        """Send or spool what waits, and stop listening."""
        self._sender.flush()
        self.tools.close()
        self.connection.close()
