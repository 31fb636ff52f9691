"""Static files served straight out of installed wheels, so that none is copied into the repository.

The version of plotly.js always matches plotly.py, and Bulma's compiled stylesheet comes as its wheel ships it.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

WHEEL_FILES = {
    "vendor/bulma.min.css": ("bulma", "static/bulma/css/style.min.css"),
    "vendor/plotly.min.js": ("plotly", "package_data/plotly.min.js"),
}


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LookupError(f"The package {package} is not installed; run `make setup`.")
    return Path(next(iter(spec.submodule_search_locations)))


class _OneFileStorage(FileSystemStorage):
    """Shows a single file of a wheel under our name for it."""

    def __init__(self, name: str, source: Path) -> None:
        super().__init__(location=str(source.parent))
        self._name, self._source = name, source

    def path(self, name: str) -> str:
        return str(self._source)


class WheelFilesFinder(BaseFinder):
    """Finds the files of WHEEL_FILES."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sources = {name: _folder_of(package) / inner for name, (package, inner) in WHEEL_FILES.items()}

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        source = self._sources.get(path)
        if find_all:
            return [str(source)] if source else []
        return str(source) if source else None

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        for name, source in self._sources.items():
            yield name, _OneFileStorage(name, source)
