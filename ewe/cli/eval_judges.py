"""Who grades and compares in `ewe eval factuality`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ewe.errors import ConfigError

if TYPE_CHECKING:
    from ewe.config import Config
    from ewe.eval.graders import Grader
    from ewe.verification.endpoint.protocol import Completer


@dataclass(slots=True)
class Judges:
    """The options by name; empty where nothing was named. same: whether a judge may grade that checked the writing."""

    judge: str
    claims: str | None
    evidence: str
    compare: str | None
    same: bool

    def check(self, configs: Iterable[Config]) -> None:
        """Refuses, before anything is written, judges that are missing, cannot be had, or check what they grade.

        configs: those of all systems. `same` is afterwards whether the judge really is the same. Raises ConfigError and
        JudgeError.
        """
        from ewe.components import writing_judge
        from ewe.verification.endpoint import open_endpoint
        from ewe.verification.open import check_verifier

        if not self.judge:
            raise ConfigError("name who grades the answers with --judge: base, a model's folder, or openai:MODEL@URL")
        if not self.evidence:
            raise ConfigError("the judge needs evidence: give --evidence or --datastore")
        check_verifier("claims", True, self._settings().verification, "auto")
        if self.compare is not None:
            open_endpoint(self.compare)
        writing = {writing_judge(config) for config in configs}
        both = sorted({self.judge, self.compare or self.judge} & writing)
        if both and not self.same:
            raise ConfigError(
                f"{both[0]} also checks sentences while they are written, so its grades would flatter those systems: "
                "choose another --judge (or verification.judge), or say --same-judge"
            )
        self.same = bool(both)

    def as_settings(self) -> dict[str, Any]:
        """What grades depend on."""
        from ewe.cli.findings_file import content_digest

        return {
            "judge": self.judge,
            "claims": self._settings().verification.extractor,
            "evidence": self.evidence,
            "evidence_content": content_digest(self.evidence),
            "compare": self.compare,
            "same": self.same,
        }

    def open_grader(self, config: Config) -> Grader:
        """The judge over its evidence, searched as the engine's settings say."""
        from ewe.components import open_checker, open_datastore
        from ewe.eval.graders import JudgeGrader

        retriever, _ = open_datastore(self.evidence, config.retrieval)
        assert retriever is not None
        return JudgeGrader(open_checker(self._settings(), retriever))

    def open_comparer(self) -> Completer | None:
        """What says which answer is better."""
        from ewe.verification.endpoint import open_endpoint

        return None if self.compare is None else open_endpoint(self.compare)

    def _settings(self) -> Config:
        from ewe.config import Config
        from ewe.verification.endpoint import is_endpoint

        extractor = self.claims or (self.judge if is_endpoint(self.judge) else "sentences")
        return Config.from_mapping({"verification": {"judge": self.judge, "extractor": extractor}})
