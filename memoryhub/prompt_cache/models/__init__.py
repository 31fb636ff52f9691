"""The room's rows, one file per noun."""

from memoryhub.prompt_cache.models.findings import DailyWaste, SessionPlan
from memoryhub.prompt_cache.models.ledger import DailyUsage, Dimension, LedgerState, RecordState, UsageRecord
from memoryhub.prompt_cache.models.prices import Price
from memoryhub.prompt_cache.models.requests import Diagnosis, RequestFingerprint
from memoryhub.prompt_cache.models.transcript_files import TranscriptFile

__all__ = [
    "DailyUsage",
    "DailyWaste",
    "Diagnosis",
    "Dimension",
    "LedgerState",
    "Price",
    "RecordState",
    "RequestFingerprint",
    "SessionPlan",
    "TranscriptFile",
    "UsageRecord",
]
