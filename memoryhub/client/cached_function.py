"""A function that `hub.tools.cached` decorated: what happens around one call of it."""

import asyncio
import functools
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any

from memoryhub.client.calls import CacheOptions, CallShape, quick_key
from memoryhub.client.encoding import loads
from memoryhub.client.outcomes import Hit, Run, Wait

if TYPE_CHECKING:
    from memoryhub.client.tools import Tools

WAIT_SECONDS = 10.0  # of one long poll for a value that somebody else computes
MAX_WAIT_SECONDS = 300.0  # then the tool runs here, whoever else may still be at it
_numbers = itertools.count()


class CachedFunction:
    """A function with its cache in front."""

    def __init__(self, tools: "Tools", function: Callable[..., Any], options: CacheOptions) -> None:
        self._tools = tools
        self._function = function
        self._options = options
        self._shape = CallShape(function, options)
        self._number = next(_numbers)  # a function's own space in the front cache
        parameters = list(inspect.signature(function).parameters)
        qualified = "." in function.__qualname__.rsplit("<locals>.", 1)[-1]
        self._is_method = qualified and bool(parameters) and parameters[0] in ("self", "cls")

    def as_function(self) -> Callable[..., Any]:
        """Return a plain or async function that looks like the original (methods bind as usual)."""
        wrapper = self._async_wrapper() if inspect.iscoroutinefunction(self._function) else self._plain_wrapper()
        return functools.wraps(self._function)(wrapper)

    def _front_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable | None:
        given = args[1:] if self._is_method else args
        if self._is_method and hasattr(args[0], "memoryhub_key"):
            return None
        quick = quick_key(given, kwargs, with_folder=self._shape.has_paths)
        return None if quick is None else (self._number, quick)

    def _plain_wrapper(self) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            front_key = self._front_key(args, kwargs)
            text = self._in_front(front_key)
            return loads(text) if text is not None else _driven(self._asked(front_key, args, kwargs, _Plain()))

        return call

    def _async_wrapper(self) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            front_key = self._front_key(args, kwargs)
            text = self._in_front(front_key)
            return loads(text) if text is not None else await self._asked(front_key, args, kwargs, _OnLoop())

        return call

    def _in_front(self, front_key: Hashable | None) -> str | None:
        """Return what the front cache holds, as JSON, without a round trip."""
        entry = None if front_key is None else self._tools.front.get(front_key)
        if entry is None:
            return None
        self._tools.note_front_hit(self._options.tool)
        return entry.text

    async def _asked(
        self, front_key: Hashable | None, args: tuple[Any, ...], kwargs: dict[str, Any], manner: "_Plain | _OnLoop"
    ) -> Any:
        """Ask the hub; wait for whoever is at it, but not for ever; else run the function and tell the hub.

        The same steps for plain and async functions: the manner says how a step is waited for.
        """
        tools, options = self._tools, self._options
        arguments = self._arguments(args, kwargs)
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        step: Hit | Wait | Run = Wait(0)
        while isinstance(step, Wait) and time.monotonic() < deadline:
            await manner.rest(step)
            ask = functools.partial(tools.begin, wait_seconds=manner.poll_seconds)
            step = await manner.do(ask, self._shape, options, front_key, arguments)
        if isinstance(step, Hit):
            return step.value
        run = step if isinstance(step, Run) else Run(None)
        try:
            run.started = time.perf_counter()
            value = await manner.call(self._function, args, kwargs)
        except BaseException as error:
            await manner.do(tools.fail, run, options, error)
            raise
        await manner.do(tools.finish, run, options, value)
        return value

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._shape.arguments(args, kwargs, is_method=self._is_method)
        except TypeError:
            self._function(*args, **kwargs)  # raises the function's own TypeError
            raise


class _Plain:
    """Steps that are done at once, on the caller's thread: none of these coroutines is ever suspended."""

    poll_seconds = WAIT_SECONDS

    async def rest(self, step: Wait) -> None:
        """The hub has waited already, by a long poll."""

    async def do(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    async def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)


class _OnLoop:
    """Steps of an event loop: the hub is asked on a thread, and never by a long poll, for the loop has few threads."""

    poll_seconds = 0.0

    async def rest(self, step: Wait) -> None:
        await asyncio.sleep(step.seconds)

    async def do(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(work, *args)

    async def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await function(*args, **kwargs)


def _driven(steps: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that is never suspended to its end, without an event loop."""
    try:
        steps.send(None)
    except StopIteration as done:
        return done.value
    except RuntimeError as error:
        if isinstance(error.__cause__, StopIteration) and str(error) == "coroutine raised StopIteration":
            raise error.__cause__ from None  # the function's own: a coroutine may not raise it, a function may
        raise
    steps.close()
    raise RuntimeError("a plain call has no event loop to wait on")
