"""A function that `hub.tools.cached` decorated: what happens around one call of it."""

import asyncio
import functools
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Hashable
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
        tools, options, function, front = self._tools, self._options, self._function, self._tools.front

        def call(*args: Any, **kwargs: Any) -> Any:
            front_key = self._front_key(args, kwargs)
            if front_key is not None:
                entry = front.get(front_key)
                if entry is not None:
                    tools.note_front_hit(options.tool)
                    return loads(entry.text)
            arguments = self._arguments(args, kwargs)
            deadline = time.monotonic() + MAX_WAIT_SECONDS
            step: Hit | Wait | Run = Wait(0)
            while isinstance(step, Wait) and time.monotonic() < deadline:
                step = tools.begin(self._shape, options, front_key, arguments, wait_seconds=WAIT_SECONDS)
            if isinstance(step, Hit):
                return step.value
            run = step if isinstance(step, Run) else Run(None)
            try:
                run.started = time.perf_counter()
                value = function(*args, **kwargs)
            except BaseException as error:
                tools.fail(run, options, error)
                raise
            tools.finish(run, options, value)
            return value

        return call

    def _async_wrapper(self) -> Callable[..., Awaitable[Any]]:
        tools, options, function, front = self._tools, self._options, self._function, self._tools.front

        async def call(*args: Any, **kwargs: Any) -> Any:
            front_key = self._front_key(args, kwargs)
            if front_key is not None:
                entry = front.get(front_key)
                if entry is not None:
                    tools.note_front_hit(options.tool)
                    return loads(entry.text)
            arguments = self._arguments(args, kwargs)
            deadline = time.monotonic() + MAX_WAIT_SECONDS
            step: Hit | Wait | Run = Wait(0)
            while isinstance(step, Wait) and time.monotonic() < deadline:
                await asyncio.sleep(step.seconds)  # never a long poll: it would hold one of the loop's few threads
                step = await asyncio.to_thread(
                    tools.begin, self._shape, options, front_key, arguments, wait_seconds=0.0
                )
            if isinstance(step, Hit):
                return step.value
            run = step if isinstance(step, Run) else Run(None)
            try:
                run.started = time.perf_counter()
                value = await function(*args, **kwargs)
            except BaseException as error:
                await asyncio.to_thread(tools.fail, run, options, error)
                raise
            await asyncio.to_thread(tools.finish, run, options, value)
            return value

        return call

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._shape.arguments(args, kwargs, is_method=self._is_method)
        except TypeError:
            self._function(*args, **kwargs)  # raises the function's own TypeError
            raise
