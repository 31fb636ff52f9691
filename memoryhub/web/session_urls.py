"""The addresses of the pages of the session cache. A session's id is the caller's own and may hold slashes."""

from django.urls import path

from memoryhub.web import invalidate, session, sessions, tool_cache, tool_policy

urlpatterns = [
    path("sessions", sessions.sessions, name="sessions"),
    path("sessions/<path:sid>/rewind", session.rewind, name="rewind_session"),
    path("sessions/<path:sid>/extract", session.extract, name="extract_session"),
    path("sessions/<path:sid>/fork", session.fork, name="fork_session"),
    path("sessions/<path:sid>", session.session, name="session"),
    path("tool-cache", tool_cache.tool_cache, name="tool_cache"),
    path("tool-cache/policy", tool_policy.tool_policy, name="tool_policy"),
    path("invalidate", invalidate.invalidate, name="invalidate"),
    path("invalidate/run", invalidate.run, name="run_invalidation"),
]
