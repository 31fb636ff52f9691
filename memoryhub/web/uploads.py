"""Files that a person uploaded and has not confirmed yet: kept for a day in the data folder, each tied to who brought it."""

import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from memoryhub.common import clock, errors
from memoryhub.workspaces.principals import Principal

KEPT_SECONDS = 24 * 3600
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


class UnknownUpload(errors.NotFound):
    slug = "unknown-upload"
    title = "This upload is not here any more"


def keep_upload(principal: Principal, chunks: Iterable[bytes]) -> str:
    """Store a file and return the token that finds it again."""
    folder = _folder()
    _sweep(folder)
    token = secrets.token_urlsafe(24)
    draft = folder / f".{token}"
    with draft.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
    draft.rename(_path(folder, principal, token))
    return token


def find_upload(principal: Principal, token: str) -> Path:
    """Return the file that this person uploaded under the token in this workspace."""
    if _TOKEN.fullmatch(token):
        path = _path(_folder(), principal, token)
        if path.is_file():
            return path
    raise UnknownUpload("Upload the file again; uploads that nobody confirms are kept for a day.")


def drop_upload(principal: Principal, token: str) -> None:
    """Remove a file that was dealt with."""
    find_upload(principal, token).unlink(missing_ok=True)


def _folder() -> Path:
    folder = Path(settings.DATA_DIR) / "uploads"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _path(folder: Path, principal: Principal, token: str) -> Path:
    return folder / f"{principal.workspace.pk}-{principal.id}-{token}"


def _sweep(folder: Path) -> None:
    oldest = clock.now().timestamp() - KEPT_SECONDS
    for path in folder.iterdir():
        try:
            if path.stat().st_mtime < oldest:
                path.unlink()
        except FileNotFoundError:  # another request swept it
            continue
