"""The WSGI application that granian serves: pages, API, MCP, proxy and streams."""

import os

from django.core.wsgi import get_wsgi_application

from memoryhub.common import stopping
from memoryhub.common.collecting import settle

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
_django = get_wsgi_application()
# After Django is set up: models are behind these. What an earlier process noted and did not record is recorded now.
from memoryhub.api.fast_lane import with_fast_lane  # noqa: E402
from memoryhub.prompt_cache.services.spool import get_spool  # noqa: E402

application = with_fast_lane(_django)
get_spool()
stopping.watch(then=stopping.end_the_server)
settle()
