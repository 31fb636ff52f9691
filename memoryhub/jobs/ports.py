"""Who holds a TCP port of this machine."""

import errno
import os
import re
import socket
from pathlib import Path


def find_holder(host: str, port: int) -> str | None:
    """Return None when the port is free, else who holds it as far as this user may see."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return _process_at(port) or "another process"
            return f"nobody, but it can't be opened ({error.strerror})"
    return None


def _process_at(port: int) -> str | None:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            parts = line.split()
            if parts[3] == "0A" and int(parts[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{parts[9]}]")
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(entry) in inodes for entry in folder.iterdir()):
                name = re.sub(r"\s+", " ", (folder.parent / "cmdline").read_text().replace("\0", " ")).strip()
                return f"process {folder.parent.name} ({name[:60]})"
        except OSError:
            continue
    return None
