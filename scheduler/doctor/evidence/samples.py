"""Metrics of the running scheduler, read from /metrics."""

from collections.abc import Iterator, Mapping

from scheduler.framework.errors import ClusterError

NAMES = (
    "kubernetes_build_info",
    "leader_election_master_status",
    "loadmaster_certificate_expiration_timestamp_seconds",
    "loadmaster_config_is_current",
    "loadmaster_plugin_data_faults_total",
    "loadmaster_plugin_faults_total",
    "loadmaster_plugins_paused",
    "loadmaster_resync_repairs_total",
    "loadmaster_watch_errors_total",
    "scheduler_cache_size",
)
"""All that are looked at: parsing the others would take longer than everything else."""


class Samples:
    def __init__(self, text: str) -> None:
        """Raises ClusterError for what are no metrics."""
        from prometheus_client.parser import text_string_to_metric_families

        lines = [line for line in text.splitlines() if line.startswith(NAMES)]
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        try:
            for family in text_string_to_metric_families("\n".join(lines) + "\n"):
                for sample in family.samples:
                    self._samples.setdefault(sample.name, []).append((sample.labels, float(sample.value)))
        except (ValueError, IndexError, KeyError) as error:
            raise ClusterError(f"the scheduler's metrics cannot be read: {error}") from error
        if "kubernetes_build_info" not in self._samples:
            raise ClusterError("what answers for the scheduler shows no metrics of a scheduler")

    def of(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """Labels and value of each."""
        return iter(self._samples.get(name, ()))

    def total(self, name: str, **labels: str) -> float | None:
        """The sum of those with these labels; None if there are none."""
        found = [value for its, value in self.of(name) if labels.items() <= its.items()]
        return sum(found) if found else None

    def by(self, label: str, name: str) -> dict[str, float]:
        """The sums for each value of a label, ordered by it, without those that are 0."""
        sums: dict[str, float] = {}
        for labels, value in self.of(name):
            sums[labels.get(label, "")] = sums.get(labels.get(label, ""), 0.0) + value
        return {each: total for each, total in sorted(sums.items()) if total}

    @property
    def leads(self) -> bool:
        """Whether the replica that shows them works."""
        return self.total("leader_election_master_status") != 0.0

    @property
    def build(self) -> Mapping[str, str]:
        """The labels of `kubernetes_build_info`."""
        return next(self.of("kubernetes_build_info"))[0]
