"""What is looked at before a text becomes a memory: secrets, planted instructions, text that came from a recall.

A memory is read back into an agent's context, so whoever can write one can try to steer the agent. Nothing here
blocks a write silently: secrets are redacted and counted, suspicious texts wait for a person, recalled text is skipped.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

REDACTED = "[redacted {}]"
MAX_CONTENT_BYTES = 102_400  # 100 KiB: what the file doors accept as well

# (kind, substrings one of which a match must hold, pattern): the substrings spare nearly all texts the patterns.
_SECRETS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "private key",
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.S
        ),
    ),
    ("hub key", ("mh_",), re.compile(r"\bmh_[A-Za-z0-9]{8}_[A-Za-z0-9_-]{43}")),
    ("provider key", ("sk-",), re.compile(r"\bsk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{20,}")),
    (
        "provider key",
        ("aiza", "gsk_", "hf_", "pa-", "xai-"),
        re.compile(
            r"\b(?:AIza[0-9A-Za-z_-]{35}|gsk_[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{30,}|pa-[A-Za-z0-9_-]{40,}|xai-[A-Za-z0-9]{40,})"
        ),
    ),
    (
        "access token",
        ("gh", "glpat-", "npm_", "pypi-"),
        re.compile(
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,}|glpat-[A-Za-z0-9_-]{20,}"
            r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})"
        ),
    ),
    ("access token", ("xox",), re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("cloud key", ("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("payment key", ("sk_", "rk_", "whsec_"), re.compile(r"\b(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{24,}")),
    ("token", ("eyj",), re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("bearer token", ("bearer ",), re.compile(r"(?i)\b(?<=bearer )[A-Za-z0-9._~+/-]{24,}=*")),
    ("password", ("://",), re.compile(r"(?i)(?<=[a-z0-9]://)[^\s/:@]{1,80}:[^\s/@]{3,200}(?=@)")),
    (
        "secret",
        ("=", ": "),
        re.compile(
            r"(?i)(?:(?<=password=)|(?<=password: )|(?<=passwd=)|(?<=secret=)|(?<=api_key=)|(?<=apikey=)|(?<=token=)"
            r"|(?<=api_key: )|(?<=secret_key=)|(?<=aws_secret_access_key=)|(?<=aws_secret_access_key = ))"
            r"""["']?[^\s"'\[\]]{8,}["']?"""
        ),
    ),
)

_INSTRUCTION_PATTERNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ignore", "disregard", "forget", "override", "bypass"),
        (
            r"(?<!n't )(?<!not )(?<!never )\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}"
            r"\b(?:previous|prior|above|earlier|all|any|your|the|system)\b.{0,30}"
            r"\b(?:instructions?|prompts?|rules?|guidelines?|polic(?:y|ies)|messages?|directives?)\b"
        ),
    ),
    (
        ("instruction", "prompt", "directive"),
        r"\b(?:new|updated|revised|real|actual)\s+(?:system\s+)?(?:instructions?|prompt|directives?)\s*:",
    ),
    (
        ("system", "developer"),
        r"(?:^|\n)\s*(?:#+\s*)?\[?(?:system|developer)\]?\s+(?:prompt|message|instructions?)\s*:\s*\S",
    ),
    (
        ("system", "assistant", "developer"),
        r"(?:^|\n)\s*(?:#+\s*|\[)(?:system|assistant|developer)\b\]?\s*:?\s*(?:you|always|never|do|ignore)\b",
    ),
    (
        ("system", "developer"),
        r"(?:^|\n)\s*(?:system|developer)\s*:\s*(?:you|always|never|do\s+not|ignore|from\s+now\s+on)\b",
    ),
    (
        ("<",),
        r"<\s*/?\s*(?:system|assistant|instructions?|im_start|im_end|tool_use|tool_result|function_calls?)\b[^>]{0,80}>",
    ),
    (("<|",), r"<\|(?:im_start|im_end|system|endoftext)\|>"),
    (
        ("you ",),
        r"\byou\s+(?:are\s+now|must\s+now|will\s+now)\b.{0,60}\b(?:mode|jailbroken|unrestricted|dan|an?\s+ai|admin|root)\b",
    ),
    (
        ("do not", "don't", "never"),
        (
            r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention|reveal|show|alert)\b.{0,40}"
            r"\b(?:user|human|operator|anyone|developer)\b"
        ),
    ),
    (
        ("send", "post", "upload", "exfiltrate", "forward", "email", "leak"),
        (
            r"\b(?:send|post|upload|exfiltrate|forward|email|leak)\b.{0,80}"
            r"\b(?:api[ _-]?keys?|credentials?|passwords?|secrets?|tokens?|conversation|system prompt)\b.{0,80}"
            r"(?:\bto\b|https?://|@)"
        ),
    ),
    (
        ("transfer", "wire", "exfiltrate", "curl", "wget", "promote", "recommend"),
        (
            r"\b(?:when(?:ever)?|if|every time|each time)\b.{0,80}\b(?:asks?|asked|mentions?|says?|requests?)\b.{0,120}"
            r"\b(?:always|instead|must|secretly)\b.{0,80}\b(?:transfer|wire|exfiltrate|curl|wget|promote|recommend\s+only)\b"
        ),
    ),
    (
        ("curl", "wget", "rm -rf", "bash", "powershell", "`", "$("),
        (
            r"\b(?:run|execute)\b.{0,30}(?:`|\$\(|\bcurl\b|\bwget\b|\brm\s+-rf\b|\bbash\b|\bpowershell\b).{0,120}"
            r"(?:\|\s*(?:ba)?sh\b|-rf\s+[/~])"
        ),
    ),
    (
        ("prompt", "instruction"),
        (
            r"\b(?:reveal|print|repeat|output|show)\b.{0,30}"
            r"\b(?:your|the)\s+(?:system\s+prompt|hidden\s+instructions?|initial\s+instructions?)"
        ),
    ),
    (
        ("忽略", "无视", "忘记", "忘掉", "不要遵守", "绕过"),
        (
            r"(?:忽略|无视|忘记|忘掉|不要遵守|绕过).{0,20}(?:之前|以前|上述|以上|先前|前面|所有|系统|原有).{0,12}"
            r"(?:指令|指示|提示|规则|说明|设定|要求)"
        ),
    ),
    (
        ("告诉", "告知", "透露", "提醒"),
        r"(?:不要|别|切勿|禁止).{0,6}(?:告诉|告知|透露给|提醒).{0,8}(?:用户|任何人|开发者|操作员)",
    ),
    (
        ("密钥", "密码", "凭证", "令牌", "系统提示"),
        r"(?:把|将).{0,30}(?:密钥|密码|凭证|令牌|系统提示).{0,20}(?:发送|上传|转发|泄露).{0,10}(?:到|给|至)",
    ),
    (("你现在",), r"你现在(?:是|必须).{0,30}(?:不受限制|无限制|越狱|管理员模式|开发者模式)"),
)
_INSTRUCTIONS = tuple(
    (hints, re.compile(pattern, re.IGNORECASE | re.DOTALL)) for hints, pattern in _INSTRUCTION_PATTERNS
)

_RECALL_MARK = re.compile(r"<(?:memory\s+id=|recalled_memories\b|/recalled_memories>)", re.I)


@dataclass(frozen=True)
class GuardReport:
    """What the guards found; `content` is what may be stored."""

    content: str
    flags: tuple[str, ...] = ()
    redactions: int = 0
    suspicious: bool = False
    recalled: bool = False


def _holds_any(text: str, hints: tuple[str, ...]) -> bool:
    for hint in hints:  # noqa: SIM110 - a plain loop is several times faster than any() over a generator here
        if hint in text:
            return True
    return False


def redact_secrets(content: str) -> tuple[str, int]:
    """The text with each secret replaced by a word that names its kind, and how many there were."""
    count = 0
    lower = content.lower()
    for name, hints, pattern in _SECRETS:
        if _holds_any(lower, hints):
            content, found = pattern.subn(_replacement(name), content)
            count += found
    return content, count


def _replacement(name: str) -> Callable[[re.Match[str]], str]:
    return lambda match: REDACTED.format(name)


def is_instruction_like(content: str) -> bool:
    """Whether a text speaks to the model rather than about the world."""
    sample = content.replace("\u200b", "").replace("\u2060", "").replace("\ufeff", "")
    lower = sample.lower()
    return any(pattern.search(sample) for hints, pattern in _INSTRUCTIONS if _holds_any(lower, hints))


def is_recalled_text(content: str) -> bool:
    """Whether a text carries the marks of a recall: it is a memory already."""
    return bool(_RECALL_MARK.search(content))


def inspect(content: str, *, redact: bool = True, quarantine_instructions: bool = True) -> GuardReport:
    """Run all text guards over a write."""
    if is_recalled_text(content):
        return GuardReport(content, ("recalled",), recalled=True)
    cleaned, redactions = redact_secrets(content)
    suspicious = is_instruction_like(cleaned)
    flags = [
        *(["secrets_redacted"] if redactions and redact else []),
        *(["instruction_like"] if suspicious else []),
    ]
    return GuardReport(cleaned if redact else content, tuple(flags), redactions, suspicious and quarantine_instructions)
