"""Loaded as a plugin before the settings: every test run has a throw-away data folder and no outside services."""

import atexit
import os
import shutil
import tempfile

if not os.environ.get("PYTEST_XDIST_WORKER"):
    _folder = tempfile.mkdtemp(prefix="memoryhub-tests-")
    os.environ["MEMORYHUB_DATA_DIR"] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
for _name in [name for name in os.environ if name.startswith("MEMORYHUB_")]:
    if _name not in ("MEMORYHUB_DATA_DIR", "MEMORYHUB_TEST_DB_SUFFIX", "MEMORYHUB_TEST_POSTGRES"):
        del os.environ[_name]
os.environ["MEMORYHUB_EMBEDDER"] = "none"  # a test that is about vectors asks for its embedder
