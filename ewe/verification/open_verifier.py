"""Verifiers by name."""

from ewe.config import VerificationConfig
from ewe.config.registry import EXTRACTORS, VERIFIERS
from ewe.config.setting_names import BUILTIN_JUDGE, READER, WRITER
from ewe.errors import ConfigError
from ewe.types.protocols import ClaimExtractor, Retriever, Verifier
from ewe.verification.claim_reading import ClaimReader
from ewe.verification.claim_verifier import EVIDENCE_TOP_K, ClaimVerifier
from ewe.verification.decision import rule_for, rule_of
from ewe.verification.endpoint import is_endpoint, open_endpoint
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.load import check_judge, load_configured_judge, load_judge
from ewe.verification.judges.protocol import Judge
from ewe.verification.window_reader import WindowReader


def open_verifier(
    name: str,
    retriever: Retriever | None,
    settings: VerificationConfig | None = None,
    *,
    device: str = "auto",
    veracity_weighting: bool = False,
    assume_complete: bool = False,
    judge: Judge | None = None,
) -> Verifier:
    """The verifier of this name; the rest is what its factory may ask for. device: for judges that are models.

    judge: in place of the one that the settings name.

    Raises ConfigError for an unknown name or no retriever, JudgeError for a judge that cannot be had.
    """
    _check_name(name, retriever is not None)
    verifier: Verifier = VERIFIERS.make(
        name,
        retriever=retriever,
        settings=settings or VerificationConfig(),
        device=device,
        veracity_weighting=veracity_weighting,
        assume_complete=assume_complete,
        judge=judge,
    )
    return verifier


def make_claim_verifier(
    retriever: Retriever,
    settings: VerificationConfig,
    device: str,
    veracity_weighting: bool,
    assume_complete: bool,
    judge: Judge | None,
) -> ClaimVerifier:
    """The verifier "claims": finds claims and asks a judge, as the settings say."""
    judge = judge or load_configured_judge(settings, device)
    name = str(getattr(judge, "name", settings.judge))
    return ClaimVerifier(
        retriever,
        open_extractor(settings.extractor),
        judge,
        rule_for(judge, name),
        first=_copy_reader(device, veracity_weighting) if name in (READER, WRITER) else None,
        evidence_top_k=settings.evidence_top_k or EVIDENCE_TOP_K,
        veracity_weighting=veracity_weighting,
        assume_complete=assume_complete,
    )


def _copy_reader(device: str, veracity_weighting: bool) -> ClaimReader:
    """What reads before a judge that reads like a person: it decides on copies better, in a hundredth of the time."""
    judge = CachedJudge(load_judge(BUILTIN_JUDGE, device=device))
    return WindowReader(judge, rule_of(BUILTIN_JUDGE), veracity_weighting)


def check_verifier(name: str, has_datastore: bool, settings: VerificationConfig, device: str) -> None:
    """Refuses, before a datastore is opened for it, a verifier that `open_verifier` would refuse; raises as it does."""
    _check_name(name, has_datastore)
    if name == "claims":
        open_extractor(settings.extractor)
        check_judge(settings.judge, device=device, labels=settings.judge_labels)


def _check_name(name: str, has_datastore: bool) -> None:
    VERIFIERS.get(name)
    if not has_datastore:
        raise ConfigError(f"verifier {name!r} looks for evidence in a datastore: set one, or verifier to none")


def open_extractor(name: str) -> ClaimExtractor:
    """What finds claims: an extractor by name, or the model of "openai:MODEL@URL". Raises ConfigError for another."""
    if is_endpoint(name):
        from ewe.verification.extraction.model_claims import ModelClaims

        return ModelClaims(open_endpoint(name))
    extractor: ClaimExtractor = EXTRACTORS.make(name)
    return extractor
