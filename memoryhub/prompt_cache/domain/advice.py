"""One sentence per cause: what to change so that the next request hits. Plain English, said to the person who builds the agent."""


def _(sentence: str) -> str:
    """Mark a sentence for translation; the pages translate it where it is shown."""
    return sentence


_BY_CAUSE = {
    "none": "",
    "workspace_changed": _("Send both requests from one workspace: caches are not shared between workspaces."),
    "model_changed": _("Stay on one model within a conversation; each model has a cache of its own."),
    "speed_changed": _("Keep `speed` the same within a conversation; fast and standard have separate caches."),
    "tools_changed": _("Send the same tools, byte for byte, with every request of the conversation."),
    "web_tools_changed": _(
        "Decide once per conversation whether web search and web fetch are on: the switch edits the system part."
    ),
    "citations_changed": _("Switch citations on or off for the whole conversation: the switch edits the system part."),
    "system_changed": _("Keep the system prompt fixed and put what varies behind the last marker."),
    "thinking_changed": _("Keep `thinking` and its budget the same within a conversation."),
    "effort_changed": _("Keep `output_config.effort` the same within a conversation, or set it per message."),
    "tool_choice_changed": _("Keep `tool_choice` the same within a conversation; ask in the last message instead."),
    "image_toggled": _(
        "Send an image from the first request on, or describe it in text: the first image re-renders all messages."
    ),
    "thinking_stripped": _(
        "This model drops earlier thinking when a new user message comes; put a marker before the thinking turn."
    ),
    "messages_changed": _("Only append to the conversation; never edit, drop or reorder what was sent."),
    "below_minimum": _("The prefix is shorter than the model caches; move the marker further down or leave it out."),
    "no_marker": _("Put `cache_control` on the last block that stays the same, or switch automatic caching on."),
    "varying_tail": _(
        "Move the marker to the block before the one that varies; written there, it is never read again."
    ),
    "lookback_exceeded": _(
        "Add a second marker within 20 positions of the last write, so that the next request finds it."
    ),
    "ttl_expired": _(
        "The pause was longer than the entry lives: use `ttl: 1h`, or keep it alive with `max_tokens: 0` requests."
    ),
    "concurrent_start": _(
        "Send one request first and wait for its first byte, then fan out: an entry is readable only after that."
    ),
    "unknown": _(
        "Prefix, markers and time were right; the provider may have evicted the entry. Nothing to change unless it repeats."
    ),
}
_BY_KIND = {
    "timestamp": _("Move the clock behind the last marker, or round it to the day."),
    "uuid": _("Move the id behind the last marker, or keep it the same for the whole conversation."),
    "path": _("Move the path behind the last marker, or use one that does not change between requests."),
    "counter": _("Move the counter behind the last marker."),
    "number": _("Move the number behind the last marker."),
}
_BY_DETAIL = {
    ("tools_changed", "reordered"): _("Sort the tools before sending, so that they always come in the same order."),
    ("tools_changed", "key_order"): _("Serialise tool schemas with a fixed key order: the bytes are what is cached."),
    ("tools_changed", "added"): _(
        "Declare all tools from the first request on, or add late ones with `defer_loading`."
    ),
    ("tools_changed", "removed"): _("Keep declaring the tool and forbid its use in the prompt or by `tool_choice`."),
    (
        "system_changed",
        "key_order",
    ): _("Serialise the system blocks with a fixed key order: the bytes are what is cached."),
    ("system_changed", "reordered"): _("Send the system blocks always in the same order."),
    (
        "messages_changed",
        "key_order",
    ): _("Replay `tool_use.input` exactly as it was received: key order is part of the bytes."),
    (
        "messages_changed",
        "removed",
    ): _("Drop or clear earlier turns rarely and in large batches: each time everything behind them is written again."),
}


_CLEARING = _("Clear tool results rarely and in large batches: each time everything behind them is written again.")
_UNNAMED_PARAMETER = _("This parameter changed between the two requests; keep it the same within a conversation.")


def fix_for(cause: str, detail: str | None, kind: str | None, path: str | None) -> str:
    """Return the sentence that says what to change."""
    if cause in ("system_changed", "tools_changed", "messages_changed") and detail == "edited" and kind in _BY_KIND:
        return _BY_KIND[kind]
    if path == "context_management":
        return _CLEARING
    if cause == "unknown" and path:
        return _UNNAMED_PARAMETER
    return _BY_DETAIL.get((cause, detail or ""), _BY_CAUSE.get(cause, ""))
