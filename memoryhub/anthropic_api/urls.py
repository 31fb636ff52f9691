"""Paths of this door."""

from django.urls import URLPattern, path

from memoryhub.anthropic_api import memory_stores as stores
from memoryhub.anthropic_api import messages as proxy

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
    path("v1/messages", proxy.messages, name="proxy-messages"),
    path("v1/messages/count_tokens", proxy.count_tokens, name="proxy-count-tokens"),
    path("v1/models", proxy.models, name="proxy-models"),
    path("v1/models/<str:model>", proxy.models, name="proxy-model"),
    # for clients that can't add a header
    path("k/<str:hub_key>/v1/messages", proxy.messages, name="proxy-messages-by-path"),
    path("k/<str:hub_key>/v1/messages/count_tokens", proxy.count_tokens, name="proxy-count-tokens-by-path"),
    path("k/<str:hub_key>/v1/models", proxy.models, name="proxy-models-by-path"),
    path("k/<str:hub_key>/v1/models/<str:model>", proxy.models, name="proxy-model-by-path"),
]
