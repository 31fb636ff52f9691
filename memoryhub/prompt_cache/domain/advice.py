"""One sentence per cause: what to change so that the next request hits. Plain English, said to the person who builds the agent."""

_BY_CAUSE = {
    "none": "",
    "workspace_changed": "Send both requests from one workspace: caches are not shared between workspaces.",
    "model_changed": "Stay on one model within a conversation; each model has a cache of its own.",
    "speed_changed": "Keep `speed` the same within a conversation; fast and standard have separate caches.",
    "tools_changed": "Send the same tools, byte for byte, with every request of the conversation.",
    "web_tools_changed": "Decide once per conversation whether web search and web fetch are on: the switch edits the system part.",
    "citations_changed": "Switch citations on or off for the whole conversation: the switch edits the system part.",
    "system_changed": "Keep the system prompt fixed and put what varies behind the last marker.",
    "thinking_changed": "Keep `thinking` and its budget the same within a conversation.",
    "effort_changed": "Keep `output_config.effort` the same within a conversation, or set it per message.",
    "tool_choice_changed": "Keep `tool_choice` the same within a conversation; ask in the last message instead.",
    "image_toggled": "Send an image from the first request on, or describe it in text: the first image re-renders all messages.",
    "thinking_stripped": "This model drops earlier thinking when a new user message comes; put a marker before the thinking turn.",
    "messages_changed": "Only append to the conversation; never edit, drop or reorder what was sent.",
    "below_minimum": "The prefix is shorter than the model caches; move the marker further down or leave it out.",
    "no_marker": "Put `cache_control` on the last block that stays the same, or switch automatic caching on.",
    "varying_tail": "Move the marker to the block before the one that varies; written there, it is never read again.",
    "lookback_exceeded": "Add a second marker within 20 positions of the last write, so that the next request finds it.",
    "ttl_expired": "The pause was longer than the entry lives: use `ttl: 1h`, or keep it alive with `max_tokens: 0` requests.",
    "concurrent_start": "Send one request first and wait for its first byte, then fan out: an entry is readable only after that.",
    "unknown": "Prefix, markers and time were right; the provider may have evicted the entry. Nothing to change unless it repeats.",
}
_BY_KIND = {
    "timestamp": "Move the clock behind the last marker, or round it to the day.",
    "uuid": "Move the id behind the last marker, or keep it the same for the whole conversation.",
    "path": "Move the path behind the last marker, or use one that does not change between requests.",
    "counter": "Move the counter behind the last marker.",
    "number": "Move the number behind the last marker.",
}
_BY_DETAIL = {
    ("tools_changed", "reordered"): "Sort the tools before sending, so that they always come in the same order.",
    ("tools_changed", "key_order"): "Serialise tool schemas with a fixed key order: the bytes are what is cached.",
    ("tools_changed", "added"): "Declare all tools from the first request on, or add late ones with `defer_loading`.",
    ("tools_changed", "removed"): "Keep declaring the tool and forbid its use in the prompt or by `tool_choice`.",
    (
        "system_changed",
        "key_order",
    ): "Serialise the system blocks with a fixed key order: the bytes are what is cached.",
    ("system_changed", "reordered"): "Send the system blocks always in the same order.",
    (
        "messages_changed",
        "key_order",
    ): "Replay `tool_use.input` exactly as it was received: key order is part of the bytes.",
    (
        "messages_changed",
        "removed",
    ): "Drop or clear earlier turns rarely and in large batches: each time everything behind them is written again.",
}


def fix_for(cause: str, detail: str | None, kind: str | None, path: str | None) -> str:
    """Return the sentence that says what to change."""
    if cause in ("system_changed", "tools_changed", "messages_changed") and detail == "edited" and kind in _BY_KIND:
        return _BY_KIND[kind]
    if path == "context_management":
        return "Clear tool results rarely and in large batches: each clearing re-writes everything behind the cleared point."
    if cause == "unknown" and path:
        return f"`{path}` changed between the two requests; keep it the same within a conversation."
    return _BY_DETAIL.get((cause, detail or ""), _BY_CAUSE.get(cause, ""))
