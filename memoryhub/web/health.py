"""Whether the hub lives (healthz), whether it can work (readyz), and its figures for a collector (metrics)."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from memoryhub import __version__
from memoryhub.common import clock
from memoryhub.web import health_figures


@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer as soon as the process serves requests; asks nothing of the database."""
    return JsonResponse({"status": "ok", "version": __version__})


@require_GET
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "database out of reach"}, status=503)
    return JsonResponse({"status": "ready", "version": __version__})


@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the hub's figures in Prometheus' text format; they name no workspace and no content."""
    registry = CollectorRegistry()
    for name, text, value in health_figures.collect(clock.now()):
        Gauge(f"memoryhub_{name}", text, registry=registry).set(value)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
