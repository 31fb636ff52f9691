"""Idempotency-Key on POST: the same request again gets the same answer, for a day."""

from collections.abc import Callable

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from memoryhub.api.auth import identify
from memoryhub.api.errors import as_hub_error, problem_response
from memoryhub.audit import services
from memoryhub.common import errors
from memoryhub.middleware import body_limit_bytes
from memoryhub.workspaces.principals import Principal

MAX_REPLY_BYTES = 4 * 1024 * 1024
MAX_HASHED_BYTES = 64 * 1024 * 1024
NOT_KEPT = frozenset({401, 403, 408, 409, 425, 429})


class IdempotencyMiddleware:
    """Replays the first answer to a repeated POST below /api/v1/; answers of 500 and above are not kept."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        key = request.META.get("HTTP_IDEMPOTENCY_KEY")
        if key is None or request.method != "POST" or not request.path_info.startswith("/api/v1/"):
            return self.get_response(request)
        try:
            principal = identify(request)
            if principal is None:
                return self.get_response(request)
            if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
                raise errors.Invalid("An Idempotency-Key is 1 to 255 printable ASCII characters.")
            return self._answer_once(request, principal, key)
        except (errors.HubError, DatabaseError) as error:
            return problem_response(request, as_hub_error(error) or errors.HubError())

    def _answer_once(self, request: HttpRequest, principal: Principal, key: str) -> HttpResponseBase:
        workspace, owner = principal.workspace, f"{principal.kind}:{principal.id}"
        kept = services.claim_idempotency_key(
            workspace=workspace,
            owner=owner,
            key=key,
            method="POST",
            path=request.get_full_path(),
            body=_what_is_hashed(request),
        )
        if kept is not None:
            response = HttpResponse(kept.body, status=kept.status, content_type=kept.content_type)
            response["Idempotent-Replayed"] = "true"
            return response
        try:
            answer = self.get_response(request)
        except BaseException:
            services.release_idempotency_key(workspace=workspace, owner=owner, key=key)
            raise
        if isinstance(answer, HttpResponse) and _is_kept(answer):
            reply = services.Reply(answer.status_code, answer["Content-Type"], answer.content)
            services.keep_reply(workspace=workspace, owner=owner, key=key, reply=reply)
        else:
            services.release_idempotency_key(workspace=workspace, owner=owner, key=key)
        return answer


def _what_is_hashed(request: HttpRequest) -> bytes:
    """Return the body, or for uploads that are streamed to disk its length only."""
    if body_limit_bytes(request.path_info) > MAX_HASHED_BYTES:
        return request.META.get("CONTENT_LENGTH", "").encode()
    return request.body


def _is_kept(answer: HttpResponse) -> bool:
    return answer.status_code < 500 and answer.status_code not in NOT_KEPT and len(answer.content) <= MAX_REPLY_BYTES
