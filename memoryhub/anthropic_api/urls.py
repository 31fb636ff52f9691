"""Paths of this door."""

from django.urls import URLPattern, path

from memoryhub.anthropic_api import memory_stores as stores

_STORE = "v1/memory_stores/<str:store_id>"

urlpatterns: list[URLPattern] = [
    path("v1/memory_stores", stores.stores, name="memory-stores"),
    path(_STORE, stores.store, name="memory-store"),
    path(f"{_STORE}/archive", stores.archive, name="memory-store-archive"),
    path(f"{_STORE}/memories", stores.memories, name="memory-store-memories"),
    path(f"{_STORE}/memories/<str:memory_id>", stores.memory, name="memory-store-memory"),
    path(f"{_STORE}/memory_versions", stores.versions, name="memory-store-versions"),
    path(f"{_STORE}/memory_versions/<str:version_id>", stores.version, name="memory-store-version"),
    path(f"{_STORE}/memory_versions/<str:version_id>/redact", stores.redact, name="memory-store-redact"),
]
