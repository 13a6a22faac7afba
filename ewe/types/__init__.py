"""Plain data that every layer may hold: passages, claims, sentences, generations."""

from ewe.types.generations import FinishReason, Generation, GenerationStats, Sentence, ToolCall, TraceEvent
from ewe.types.passages import Lane, Passage, Query, ScoredPassage
from ewe.types.sampling_params import MemoryOptions
from ewe.types.verdicts import Claim, Evidence, SentenceClaims, Verdict, VerificationRequest, VerificationResult

__all__ = [
    "Claim",
    "Evidence",
    "FinishReason",
    "Generation",
    "GenerationStats",
    "Lane",
    "MemoryOptions",
    "Passage",
    "Query",
    "ScoredPassage",
    "Sentence",
    "SentenceClaims",
    "ToolCall",
    "TraceEvent",
    "Verdict",
    "VerificationRequest",
    "VerificationResult",
]
