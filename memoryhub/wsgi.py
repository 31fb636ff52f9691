"""The WSGI application that granian serves: pages, API, MCP, proxy and streams."""

import os

from django.core.wsgi import get_wsgi_application

from memoryhub.common import stopping

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
application = get_wsgi_application()
stopping.watch(then=stopping.end_the_server)
