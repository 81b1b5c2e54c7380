"""Metrics of the server in the format of Prometheus: ``/metrics``."""

from __future__ import annotations

from collections import Counter as CountBy
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from polyad.model import Evidence, Usage
from polyad_server.workspaces import Workspaces

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """The Prometheus metrics of a server.

    Args:
        workspaces: The workspaces, whose jobs are counted when the metrics are read.
    """

    def __init__(self, workspaces: Workspaces) -> None:
        self._registry = registry = CollectorRegistry()
        self._search = Histogram(
            "polyad_search_seconds",
            "Time of a search by retriever and stage (encode, retrieve, total).",
            ("retriever", "stage"),
            registry=registry,
            buckets=_SECONDS,
        )
        self._requests = Histogram(
            "polyad_request_seconds",
            "Time of a request until its response begins, by route and status.",
            ("route", "status"),
            registry=registry,
            buckets=_SECONDS,
        )
        self._tokens = Counter(
            "polyad_tokens", "Tokens of the language model by kind (prompt, completion).", ("kind",), registry=registry
        )
        self._cost = Counter("polyad_cost_dollars", "Cost of the language model in US dollars.", registry=registry)
        registry.register(_JobCollector(workspaces))

    def count_search(self, evidence: Evidence) -> None:
        """Record the duration of a search in the retriever's Prometheus histogram."""
        timings = evidence.timings
        stages = (("encode", timings.encode), ("retrieve", timings.retrieve), ("total", timings.total))
        for stage, milliseconds in stages:
            self._search.labels(evidence.retriever, stage).observe(milliseconds / 1000)

    def count_usage(self, usage: Usage) -> None:
        """Add tokens and cost of the language model to the Prometheus counters."""
        self._tokens.labels("prompt").inc(usage.prompt_tokens)
        self._tokens.labels("completion").inc(usage.completion_tokens)
        self._cost.inc(usage.cost)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Record the duration of an HTTP request in the Prometheus histogram of its route and status."""
        self._requests.labels(route, str(status)).observe(seconds)

    def format(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _JobCollector(Collector):
    """A Prometheus collector that counts the indexing jobs of all workspaces by state.

    Args:
        workspaces: The workspaces.
    """

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield one Prometheus metric: the number of jobs by state."""
        counts = self._workspaces.map_all(lambda workspace: workspace.jobs.count_states())
        states = sum(counts.values(), CountBy())
        gauge = GaugeMetricFamily("polyad_jobs", "Jobs by state.", labels=["state"])
        for state, count in sorted(states.items()):
            gauge.add_metric([state], count)
        yield gauge

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return an empty list, so that Prometheus does not collect metrics at registration.

        Without this method, Prometheus calls :meth:`collect`, which reads indexes, at registration.
        """
        return ()
