#!/usr/bin/env bash
# Format, lint, types, import contracts, Django's own checks, migrations.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MEMORYHUB_DATA_DIR=$folder
echo "== format and lint"
$bin/ruff format --check .
$bin/ruff check .
echo "== import contracts"
$bin/lint-imports
echo "== migrations and deployment checks"
$bin/python manage.py makemigrations --check --dry-run
MEMORYHUB_HTTPS=1 MEMORYHUB_SECRET_KEY=$(head -c 48 /dev/urandom | base64 -w0) MEMORYHUB_ALLOWED_HOSTS=hub.example.org \
    $bin/python manage.py check --deploy --fail-level WARNING
echo "== types"
$bin/mypy
