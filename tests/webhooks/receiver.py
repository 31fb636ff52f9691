"""An address that hears: a small server which answers as it is told and keeps what it got."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    url: str = ""
    status: int = 200
    answer: bytes = b"thanks"
    drips: bool = False
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.status)
            if receiver.status in (301, 302, 307):
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Content-Length", str(len(receiver.answer)))
            if receiver.drips:
                self.flush_headers()
                for _ in range(20):
                    self.wfile.write(b"X-Drop: 1\r\n")
                    time.sleep(0.1)
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
