"""Posting a message to an address that somebody typed in: to no private network unless the operator allows it.

The name is resolved once, each of its addresses is judged, and the connection goes to the one that was judged, so that a name
can't point elsewhere between the look and the call. Redirects are answers like any other and are not followed; no proxy of the
environment is used; an answer is read up to its status line and a little of its text.
"""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from memoryhub.common import clock

WAIT_SECONDS = 5.0  # for each step of the way
WHOLE_SECONDS = 15.0  # for all of them: who answers drop by drop is cut off
READ_BYTES = 300
DETAIL_CHARACTERS = 300
PROBLEMS = ("status", "private", "certificate", "timeout", "unreachable")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class PrivateAddress(Exception):
    """The name leads into a private network."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a message was received. `problem` is one of PROBLEMS or empty, `detail` what the network said of it."""

    status_code: int | None
    took_ms: float
    problem: str = ""
    detail: str = ""

    @property
    def delivered(self) -> bool:
        return not self.problem


def post(url: str, body: bytes, headers: dict[str, str]) -> Outcome:
    """Post a body and tell how that went; raises nothing that a network does."""
    started = clock.monotonic()
    status: int | None = None
    problem, detail = "", ""
    try:
        status, detail = _exchange(url, body, headers)
        problem = "" if _is_taken(status) else "status"
    except PrivateAddress as refused:
        problem, detail = "private", str(refused)
    except ssl.SSLCertVerificationError as refused:
        problem, detail = "certificate", refused.verify_message
    except TimeoutError:
        problem = "timeout"
    except (OSError, http.client.HTTPException, ValueError) as broken:
        problem, detail = "unreachable", str(broken) or type(broken).__name__
    took_ms = (clock.monotonic() - started) * 1000
    return Outcome(status, took_ms, problem, detail[:DETAIL_CHARACTERS] if problem else "")


def _exchange(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    parts = urlsplit(url)
    host = (parts.hostname or "").encode("idna").decode()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = http.client.HTTPConnection(host, port, timeout=WAIT_SECONDS)
    connection.default_port = 443 if parts.scheme == "https" else 80  # then the Host header leaves it out
    connection.sock = _connected(host, port, secure=parts.scheme == "https")
    over = threading.Event()
    watchdog = threading.Timer(WHOLE_SECONDS, _cut, (connection.sock, over))
    watchdog.daemon = True
    watchdog.start()
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body=body, headers=headers)
        answer = connection.getresponse()
        # Who takes a message may say what it likes; nobody reads that.
        text = "" if _is_taken(answer.status) else answer.read(READ_BYTES).decode("utf-8", "replace")
        if over.is_set():  # a cut looks like the end of the headers
            raise TimeoutError
        return answer.status, " ".join(text.split())
    except (OSError, http.client.HTTPException) as broken:
        if over.is_set():
            raise TimeoutError from broken
        raise
    finally:
        watchdog.cancel()
        connection.close()


def _is_taken(status: int) -> bool:
    return 200 <= status < 300


def _cut(connected: socket.socket, over: threading.Event) -> None:
    over.set()
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _connected(host: str, port: int, *, secure: bool) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    places = [place for *_, place in found]
    for place in places:
        if not settings.WEBHOOKS_PRIVATE and is_private(str(place[0])):
            raise PrivateAddress(str(place[0]))
    connected = socket.create_connection((str(places[0][0]), port), timeout=WAIT_SECONDS)
    if not secure:
        return connected
    try:
        return ssl.create_default_context().wrap_socket(connected, server_hostname=host)
    except BaseException:
        connected.close()
        raise


def is_private(address: str) -> bool:
    """Whether an address lies anywhere but in the public Internet, also when another one is packed into it."""
    found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        packed = found.ipv4_mapped or found.sixtofour
        if packed is None and found in _NAT64:
            packed = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = packed or found
    return not found.is_global or found.is_multicast
