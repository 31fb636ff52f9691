"""Where two requests part: the first block, the JSON path inside it, the character, and what kind of text it is."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import Block, Json, Params, Prompt, canonical_digest, dump, prompt_part
from memoryhub.prompt_cache.domain.volatile import classify_change, excerpt, first_difference

_REALIGN_LIMIT = 64  # blocks that may have been put in or taken out in one place and still be told from an edit


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between two requests that the cache feels."""

    cause: str
    path: str
    detail: str = "edited"  # added, removed, reordered, edited or key_order
    kind: str | None = None  # timestamp, uuid, path, counter, number, order, key_order or text
    offset: int | None = None
    before: str | None = None
    after: str | None = None
    block: int = 0  # index of the first block of the earlier request that is lost with it


def find_divergences(previous: Prompt, current: Prompt) -> list[Divergence]:
    """Return every difference that the cache feels, in the order in which it reads a prompt."""
    old, new = previous.params, current.params
    system_start = _section_start(previous, "system")
    messages_start = _section_start(previous, "messages")
    found: list[Divergence] = []
    if (old.model, old.region) != (new.model, new.region) and old.model and new.model:
        found.append(_param("model_changed", "model", old.model, new.model, 0))
    found += _compare_tools(previous, current)
    found += _compare_web_tools(old, new, system_start)
    if bool(old.citations_path) != bool(new.citations_path):
        path = new.citations_path or old.citations_path
        found.append(
            Divergence(
                "citations_changed",
                f"{path}.citations",
                "added" if new.citations_path else "removed",
                block=system_start,
            )
        )
    if old.speed != new.speed:
        found.append(_param("speed_changed", "speed", old.speed, new.speed, 0))
    found += _compare_sequence(
        "system_changed", _section(previous, "system"), _section(current, "system"), system_start, appendable=False
    )
    if not _same_thinking(old, new):
        found.append(_param("thinking_changed", "thinking", old.thinking, new.thinking, 0))
    if old.effort != new.effort:
        found.append(_param("effort_changed", "output_config.effort", old.effort, new.effort, messages_start))
    if old.tool_choice != new.tool_choice:
        found.append(_param("tool_choice_changed", "tool_choice", old.tool_choice, new.tool_choice, messages_start))
    elif old.disable_parallel != new.disable_parallel:
        path = "tool_choice.disable_parallel_tool_use"
        found.append(
            _param(
                "tool_choice_changed",
                path,
                str(old.disable_parallel).lower(),
                str(new.disable_parallel).lower(),
                messages_start,
            )
        )
    if bool(old.image_path) != bool(new.image_path):
        detail = "added" if new.image_path else "removed"
        found.append(Divergence("image_toggled", new.image_path or old.image_path, detail, block=messages_start))
    if old.task_budget != new.task_budget:
        found.append(
            _param("messages_changed", "output_config.task_budget", old.task_budget, new.task_budget, messages_start)
        )
    return found + _compare_messages(previous, current, messages_start)


def common_prefix_length(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Return how many leading items are equal."""
    limit = min(len(old), len(new))
    return next((index for index in range(limit) if old[index] != new[index]), limit)


def _param(cause: str, path: str, before: str, after: str, block: int) -> Divergence:
    return Divergence(cause, path, before=before, after=after, block=block)


def _same_thinking(old: Params, new: Params) -> bool:
    if old.thinking == new.thinking:
        return True
    facts = rulebook.model_facts(new.model)
    defaults = facts.thinking_defaults if facts else frozenset({"disabled"})
    spelled = {f'{{"type": "{default}"}}' for default in defaults}
    return (not old.thinking and new.thinking in spelled) or (not new.thinking and old.thinking in spelled)


def _section(prompt: Prompt, name: str) -> list[Block]:
    return [block for block in prompt.blocks if block.section == name]


def _section_start(prompt: Prompt, name: str) -> int:
    order = ("tools", "system", "messages")
    return next(
        (index for index, block in enumerate(prompt.blocks) if order.index(block.section) >= order.index(name)),
        len(prompt.blocks),
    )


def _compare_web_tools(old: Params, new: Params, block: int) -> list[Divergence]:
    before = {name: digest for name, _, digest in old.web_tools}
    for name, path, digest in new.web_tools:
        if before.get(name) != digest:
            return [Divergence("web_tools_changed", path, "edited" if name in before else "added", block=block)]
    after = {name for name, _, _ in new.web_tools}
    return [
        Divergence("web_tools_changed", path, "removed", block=block)
        for name, path, _ in old.web_tools
        if name not in after
    ][:1]


def _compare_tools(previous: Prompt, current: Prompt) -> list[Divergence]:
    old, new = _section(previous, "tools"), _section(current, "tools")
    names_known = all(isinstance(block.source, dict) and block.source.get("name") for block in (*old, *new))
    if not names_known:
        return _compare_sequence("tools_changed", old, new, 0, appendable=False)
    index = common_prefix_length([block.digest for block in old], [block.digest for block in new])
    if index == len(old) == len(new):
        return []
    old_names, new_names = [block.source["name"] for block in old], [block.source["name"] for block in new]
    if index < len(new) and new_names[index] not in old_names:
        renamed = index < len(old) and old_names[index] not in new_names and len(old) == len(new)
        detail = "edited" if renamed else "added"
    elif index < len(old) and old_names[index] not in new_names:
        detail = "removed"
    elif index < len(old) and index < len(new) and old_names[index] == new_names[index]:
        detail = "edited"
    else:
        detail = "reordered" if sorted(map(str, old_names)) == sorted(map(str, new_names)) else "edited"
    return [_describe("tools_changed", detail, old, new, index, index)]


def _compare_messages(previous: Prompt, current: Prompt, start: int) -> list[Divergence]:
    old, new = _section(previous, "messages"), _section(current, "messages")
    index = common_prefix_length([block.digest for block in old], [block.digest for block in new])
    if (
        index < len(old)
        and old[index].is_thinking
        and _drops_thinking(current.params.model)
        and old[index].path not in {block.path for block in new}
    ):
        return [Divergence("thinking_stripped", old[index].path, "removed", block=start + index)]
    return _compare_sequence("messages_changed", old, new, start, appendable=True)


def _drops_thinking(model: str) -> bool:
    facts = rulebook.model_facts(model)
    return facts is not None and not facts.keeps_thinking


def _compare_sequence(
    cause: str, old: list[Block], new: list[Block], start: int, *, appendable: bool
) -> list[Divergence]:
    before, after = [block.digest for block in old], [block.digest for block in new]
    index = common_prefix_length(before, after)
    if index == len(before) and (appendable or index == len(after)):
        return []
    detail = _classify(before, after, index, appendable)
    return [_describe(cause, detail, old, new, index, start + index)]


def _classify(before: list[bytes], after: list[bytes], index: int, appendable: bool) -> str:
    """Return in which way the two sequences part at `index`."""
    if index >= len(after):
        return "removed"
    if index >= len(before):
        return "added"
    length = len(before)
    if before[index + 1 :] == after[index + 1 : length] and (appendable or len(after) == length) and index + 1 < length:
        return "edited"
    compared = after[:length] if appendable else after
    if Counter(before) == Counter(compared):
        return "reordered"
    for shift in range(1, _REALIGN_LIMIT):
        rest = before[index + shift :]
        if rest and rest == after[index : index + len(rest)] and (appendable or index + len(rest) == len(after)):
            return "removed"
        if before[index:] == after[index + shift : index + shift + length - index] and (
            appendable or shift == len(after) - length
        ):
            return "added"
    return "edited"


def _describe(cause: str, detail: str, old: list[Block], new: list[Block], index: int, block: int) -> Divergence:
    if detail == "removed":
        return Divergence(
            cause, old[index].path, detail, _structure_kind(old[index]), block=block, before=_block_excerpt(old[index])
        )
    if detail == "added":
        return Divergence(
            cause, new[index].path, detail, _structure_kind(new[index]), block=block, after=_block_excerpt(new[index])
        )
    if detail == "reordered":
        return Divergence(
            cause,
            new[index].path,
            detail,
            "order",
            block=block,
            before=_block_excerpt(old[index]),
            after=_block_excerpt(new[index]),
        )
    if index >= len(old) or index >= len(new):
        side = new[index] if index < len(new) else old[index]
        return Divergence(cause, side.path, detail, "text", block=block)
    return _describe_edit(cause, old[index], new[index], block)


def _structure_kind(block: Block) -> str | None:
    return "text" if block.source is not None else None


def _block_excerpt(block: Block) -> str | None:
    if block.source is None:
        return None
    text = block.source if isinstance(block.source, str) else dump(block.source).decode()
    return excerpt(text, 0)


def _describe_edit(cause: str, old: Block, new: Block, block: int) -> Divergence:
    key_order = canonical_digest(old) == canonical_digest(new)
    detail = "key_order" if key_order else "edited"
    if old.source is None or new.source is None:  # only hashes are left of one side
        return Divergence(cause, new.path, detail, "key_order" if key_order else None, block=block)
    before, after, path = _comparable(old), _comparable(new), new.path
    if isinstance(new.source, str) and isinstance(old.source, str):
        before, after = old.source, new.source
    if old.role != new.role and before == after:
        before, after, path = old.role, new.role, f"{path.split('.')[0]}.role"
    path, before, after = _descend(before, after, path)
    if isinstance(before, str) and isinstance(after, str):
        offset = first_difference(before, after)
        kind = "key_order" if key_order else classify_change(before, after, offset)
        return Divergence(cause, path, detail, kind, offset, excerpt(before, offset), excerpt(after, offset), block)
    old_text, new_text = _as_text(before), _as_text(after)
    offset = first_difference(old_text, new_text)
    kind = "key_order" if key_order else classify_change(old_text, new_text, offset)
    return Divergence(cause, path, detail, kind, offset, excerpt(old_text, offset), excerpt(new_text, offset), block)


def _comparable(block: Block) -> Json:
    if isinstance(block.source, str):
        return {"type": "text", "text": block.source}
    if block.section == "tools":
        return {key: value for key, value in block.source.items() if key != "cache_control"}
    return prompt_part(block.source)


def _as_text(value: Json) -> str:
    return "" if value is _MISSING else dump(value).decode()


_MISSING = object()


def _descend(before: Json, after: Json, path: str) -> tuple[str, Json, Json]:
    """Follow the first difference, in the later request's own order, down to the smallest value that holds it."""
    while True:
        step = _first_differing_child(before, after)
        if step is None:
            return path, before, after
        suffix, old, new = step
        path, before, after = path + suffix, old, new


def _first_differing_child(before: Json, after: Json) -> tuple[str, Json, Json] | None:
    if isinstance(before, dict) and isinstance(after, dict):
        if list(before) != list(after) and set(before) == set(after):
            changed = [key for key in after if not _equal(before[key], after[key])]
            if not changed:
                return None  # the order of this object's keys is the difference
        for key in after:
            if key not in before:
                return f".{key}", _MISSING, after[key]
            if not _equal(before[key], after[key]):
                return f".{key}", before[key], after[key]
        gone = next((key for key in before if key not in after), None)
        return None if gone is None else (f".{gone}", before[gone], _MISSING)
    if isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            old = before[index] if index < len(before) else _MISSING
            new = after[index] if index < len(after) else _MISSING
            if old is _MISSING or new is _MISSING or not _equal(old, new):
                return f"[{index}]", old, new
    return None


def _equal(before: Json, after: Json) -> bool:
    if isinstance(before, str) and isinstance(after, str):
        return before == after
    return dump(before) == dump(after)
