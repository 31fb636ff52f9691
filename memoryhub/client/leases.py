"""Keeping leases alive while a slow tool runs, so that nobody starts it a second time; a dead process keeps none."""

import threading
from collections.abc import Callable

LEASE_SECONDS = 15.0
RENEW_EVERY_SECONDS = 5.0


class LeaseKeeper:
    """Renews every lease that is held, from one thread that runs only while there are any."""

    def __init__(self, renew: Callable[[str, dict[str, object]], None]) -> None:
        self._renew = renew
        self._held: dict[str, dict[str, object]] = {}
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._running = False

    def hold(self, token: str, call: dict[str, object]) -> None:
        """Renew this lease until it is let go."""
        with self._lock:
            self._held[token] = call
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="memoryhub-leases", daemon=True).start()

    def let_go(self, token: str) -> None:
        """Stop renewing."""
        with self._lock:
            self._held.pop(token, None)

    def _run(self) -> None:
        while True:
            self._changed.wait(RENEW_EVERY_SECONDS)
            with self._lock:
                held = dict(self._held)
                if not held:
                    self._running = False
                    return
            for token, call in held.items():
                self._renew(token, call)
