#!/usr/bin/env bash
# Make .venv from the hash-pinned lock. Needs Python >= 3.11 with venv; says in one line what is missing.
set -euo pipefail
python=${1:-python3}
command -v "$python" >/dev/null || { echo "Python is missing: install python3 (3.11 or newer)." >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $("$python" --version) is too old. Name another one: make run PYTHON=python3.12" >&2; exit 1; }
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv is missing: install python3-venv." >&2; exit 1; }
if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    rm -rf .venv
    "$python" -m venv .venv
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
.venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --no-deps --compile-bytecode -r requirements.lock
touch .venv/.installed
