"""The API object and its table of routers. A new noun is one module and one line here."""

from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI

from memoryhub import __version__
from memoryhub.api import (
    changes,
    errors,
    extraction,
    invalidations,
    jobs,
    memories,
    memory_care,
    memory_files,
    memory_search,
    openapi,
    prompt_cache,
    prompt_cache_rules,
    review,
    sessions,
    tags,
    tool_policies,
    tool_results,
    transcript_imports,
)
from memoryhub.api.parser import StrictParser

ROUTERS = [
    sessions.router,
    tool_results.router,
    tool_policies.router,
    invalidations.router,
    jobs.router,
    memory_files.router,  # before memories: its paths would pass for ids there
    memory_search.router,
    memory_care.router,
    memories.router,
    tags.router,
    review.router,
    changes.router,
    extraction.router,
    prompt_cache.router,
    prompt_cache_rules.router,
    transcript_imports.router,
]


class HubApi(NinjaAPI):
    """NinjaAPI with our parser and a document that names every status."""

    def get_openapi_schema(self, *args: Any, **kwargs: Any) -> Any:
        return openapi.complete(super().get_openapi_schema(*args, **kwargs), self)

    def get_root_path(self, path_params: Any) -> str:
        return "/api/v1/"


api = HubApi(
    title="MemoryHub",
    version=__version__,
    description=(
        "What agents remember, over three layers: the prompt cache's ledger, the session cache, long-term memory. "
        "Errors are problem+json; lists are cut by cursor; POST takes an Idempotency-Key."
    ),
    parser=StrictParser(),
    urls_namespace="api",
    docs_url="/docs",
    openapi_url="/openapi.json",
    servers=[{"url": "/"}],
)
errors.install(api)
for router in ROUTERS:
    api.add_router("", router)


def not_found(request: HttpRequest) -> Any:
    """Answer an address of the API that does not exist with a problem body, not with a page."""
    return errors.problem_response(request, errors.errors.NotFound("The API has nothing at this address."))
