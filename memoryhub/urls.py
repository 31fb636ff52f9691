"""The hub's doors and where they stand."""

from django.urls import include, path, re_path

from memoryhub.api.app import api, not_found
from memoryhub.web import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", api.urls),
    re_path(r"^api/", not_found, name="api-not-found"),
    path("anthropic/", include("memoryhub.anthropic_api.urls")),
    path("mcp", include("memoryhub.mcp_server.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("memoryhub.web.urls")),
]
handler400 = "memoryhub.web.problems.bad_request"
handler404 = "memoryhub.web.problems.not_found"
handler403 = "memoryhub.web.problems.forbidden"
handler500 = "memoryhub.web.problems.server_error"
