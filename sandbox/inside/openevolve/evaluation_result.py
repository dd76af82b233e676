"""``EvaluationResult`` with the interface that OpenEvolve 0.4 gives it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class EvaluationResult:
    """metrics: numbers by name. artifacts: texts or bytes by name."""

    metrics: dict[str, float]
    artifacts: dict[str, str | bytes] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, float]) -> EvaluationResult:
        """Wrap a plain dictionary of metrics."""
        return cls(metrics=metrics)

    def to_dict(self) -> dict[str, float]:
        """The metrics alone."""
        return self.metrics

    def has_artifacts(self) -> bool:
        """Whether there is any artifact."""
        return bool(self.artifacts)

    def get_artifact_keys(self) -> list[str]:
        """The artifacts' names."""
        return list(self.artifacts)

    def get_artifact_size(self, key: str) -> int:
        """The size of one artifact in bytes; 0 if there is none of that name."""
        value = self.artifacts.get(key, b"")
        return len(value.encode("utf-8") if isinstance(value, str) else value)

    def get_total_artifact_size(self) -> int:
        """The size of all artifacts in bytes."""
        return sum(self.get_artifact_size(key) for key in self.artifacts)
