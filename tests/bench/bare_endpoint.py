"""The least that an API of this kind can be: one django-ninja operation without authentication, database or middleware."""

from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    INSTALLED_APPS=["django.contrib.contenttypes", "ninja"],
    MIDDLEWARE=[],
    ROOT_URLCONF=__name__,
    SECRET_KEY="nothing is signed here",
    USE_TZ=True,
)

import django  # noqa: E402

django.setup()
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpRequest  # noqa: E402
from django.urls import path  # noqa: E402
from ninja import NinjaAPI  # noqa: E402

api = NinjaAPI(docs_url=None, openapi_url=None)


@api.get("/answer")
def answer(request: HttpRequest) -> dict[str, int]:
    return {"answer": 42}


urlpatterns = [path("", api.urls)]
application = get_wsgi_application()
