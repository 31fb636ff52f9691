# One image for both processes: `web` serves, `worker` does jobs (compose.yaml), or `manage.py up` for both in one container.
FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 memoryhub && mkdir /data && chown memoryhub /data
WORKDIR /app
COPY requirements-uv.lock requirements.lock ./
RUN python -m venv .venv \
    && .venv/bin/python -m pip install --quiet --require-hashes -r requirements-uv.lock \
    && .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes --no-deps --compile-bytecode -r requirements.lock
COPY . .
RUN MEMORYHUB_DATA_DIR=/tmp/build .venv/bin/python manage.py collectstatic --noinput -v0 && mkdir -p build && chown -R memoryhub build
USER memoryhub
ENV MEMORYHUB_DATA_DIR=/data MEMORYHUB_HOST=0.0.0.0 MEMORYHUB_LOG_FORMAT=json
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s CMD [".venv/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD [".venv/bin/python", "manage.py", "up"]
