"""Loads components that compute on a Ray cluster: reading, embedding, mention extraction and language models.

The pipeline and the store stay in this process (the driver), so each document is stored in one transaction and the
index equals that of a run without Ray. Ray starts an actor again after its process ended, and repeats its calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from polyad.config import EncoderSettings, LanguageModelSettings, ReadSettings
from polyad.engine import loaders
from polyad.engine.ray_tasks import Host, Loading, read_bytes
from polyad.errors import ConfigurationError, LanguageModelError, MissingExtraError, NoMoreRepliesError, PolyadError
from polyad.language_models.openai.chat import Bill, Chat
from polyad.language_models.openai.language_model import OpenAILanguageModel
from polyad.model import FloatArray, Mention
from polyad.openai_api.endpoint import EndpointError
from polyad.protocols.components import Embedder, LanguageModel, MentionExtractor, Reply, TextKind
from polyad.readers.format import Content, Format
from polyad.readers.pool.workers import ReadJob, WorkerPool

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
    from ray.util import ActorPool
except ImportError as error:
    raise MissingExtraError("ray", "ray") from error

_LOCAL_KINDS = ("openai", "llm", "given")
"""Embedders and mention extractors that stay in the driver: they send requests or read a file of this machine."""

_PARTS = 4
"""Parts for each actor into which a call is divided, so that a slow part delays the others little."""

_MAX_REPEATS = 20
"""Repetitions of a call, and restarts of an actor, after its process ended: machines may leave the cluster at any time.
Limited, so that a call that always ends its process fails instead of waiting forever."""

_ENVIRONMENT = ("OPENAI_", "POLYAD_", "HF_")
"""Beginning of the variables that the processes of the cluster receive."""


class RayCluster:
    """A connection to a Ray cluster that loads components (embedder, extractor, language model) on its machines.

    The packages of the driver must be installed on the machines of the cluster.

    Args:
        address: ``local`` to start Ray on this machine, ``auto`` for the cluster to which this machine belongs, or the
            address of a cluster, such as ``10.0.0.1:6379`` or ``ray://10.0.0.1:10001``.

    Raises:
        ConfigurationError: There is no cluster at the address.
    """

    def __init__(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report the use of its features
        options = {"include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", **options)
        except (ConnectionError, ValueError, RuntimeError, RayError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ConfigurationError(
                f"the address of the Ray cluster is {address!r}; expected local, auto or the address of a running "
                f"cluster: {reason}"
            ) from None
        resources = ray.cluster_resources()
        self._gpus = int(resources.get("GPU", 0))
        self._processors = max(1, int(resources.get("CPU", 1)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        ray.shutdown()

    def load_embedder(self, name: str, settings: EncoderSettings | None = None) -> Embedder:
        """Load an embedder (text to vectors) by name, as copies on the machines of the Ray cluster.

        See :func:`polyad.engine.loaders.load_embedder`. An embedder behind an endpoint stays in this process.
        """
        if _is_local(name):
            return loaders.load_embedder(name, settings)
        return _RayEmbedder(_Component(self._hosts, Loading(loaders.load_embedder, (name, settings))))

    def load_extractor(self, name: str, language_model: LanguageModel | None) -> MentionExtractor:
        """Load a mention extractor (it finds names in texts) as copies on the machines of the Ray cluster.

        See :func:`polyad.engine.loaders.load_extractor`. The extractors ``llm`` and ``given`` stay in this process.
        """
        if _is_local(name):
            return loaders.load_extractor(name, language_model)
        hosts = self._processor_hosts if name == loaders.DEFAULT_EXTRACTOR else self._hosts
        return _RayExtractor(_Component(hosts, Loading(loaders.load_extractor, (name, None))))

    def load_language_model(self, model: str | LanguageModelSettings) -> LanguageModel:
        """Load a language model; one Ray actor sends all its requests, so that the rate limits hold for the cluster."""
        settings = LanguageModelSettings(model=model) if isinstance(model, str) else model
        return _RayLanguageModel(settings)

    def open_reading_pool(self, settings: ReadSettings) -> WorkerPool:
        """Return a pool that reads documents from files on the Ray cluster."""
        return _RayReadingPool(settings, self._processors)

    @cached_property
    def _hosts(self) -> list[Any]:
        """Actors for components that may use a GPU: one for each GPU, or those of the processors if there is none.

        An actor has its GPU alone, so the components share the actors: a second group of actors would wait forever.
        """
        return _start_hosts(self._gpus, num_gpus=1) if self._gpus else self._processor_hosts

    @cached_property
    def _processor_hosts(self) -> list[Any]:
        """Actors for components that use no GPU, one for each processor."""
        return _start_hosts(self._processors)


def _is_local(name: str) -> bool:
    return name.partition(":")[0] in _LOCAL_KINDS


def _start_hosts(count: int, **options: Any) -> list[Any]:
    """Start Ray actors that hold components; ``options`` are the resources of each actor."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)}
    host = ray.remote(Host).options(max_restarts=_MAX_REPEATS, max_task_retries=_MAX_REPEATS, **options)
    return [host.remote(environment) for _ in range(count)]


class _Component:
    """A component of which each of several Ray actors holds a copy.

    Args:
        hosts: The Ray actors, see :class:`Host`.
        loading: How an actor loads its copy.
    """

    def __init__(self, hosts: list[Any], loading: Loading) -> None:
        self.hosts = hosts
        self._loading = loading

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the component in the first Ray actor and return its result."""
        return _get_result(lambda: ray.get(self.hosts[0].call.remote(self._loading, method, *arguments)))

    def map(self, method: str, items: Sequence[str], *arguments: object) -> list[Any]:
        """Divide ``items`` among the Ray actors, call a method of the component, and return the results in order."""
        size = -(-len(items) // (_PARTS * len(self.hosts))) or 1
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        pool = ActorPool(self.hosts)
        results: list[Any] = _get_result(
            lambda: list(pool.map(lambda host, part: host.call.remote(self._loading, method, part, *arguments), parts))
        )
        return results


def _get_result(receive: Callable[[], Any]) -> Any:
    """Return the result of Ray calls; raise the component's own exception instead of Ray's wrapper.

    The message of Ray's error contains a traceback.
    """
    try:
        return receive()
    except RayTaskError as error:
        cause: object = error.cause
        if isinstance(cause, PolyadError):
            raise cause from None
        raise PolyadError(f"{type(cause).__name__}: {cause}") from None
    except RayError as error:  # the process of an actor or task ended too often
        raise PolyadError(f"the Ray cluster failed: {' '.join(str(error).split())[:200]}") from None


class _RayEmbedder:
    """An embedder whose batches are divided among the actors of a Ray cluster."""

    def __init__(self, copies: _Component) -> None:
        self._copies = copies
        self.parallelism = len(copies.hosts)
        self.name: str = copies.call("name")
        self.dimension: int = copies.call("dimension")

    def encode(self, texts: Sequence[str], kind: TextKind) -> FloatArray:
        """Return unit vectors of texts, float32 ``[texts, dimension]``."""
        parts = self._copies.map("encode", texts, kind)
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)


class _RayExtractor:
    """A mention extractor whose batches are divided among the actors of a Ray cluster."""

    def __init__(self, copies: _Component) -> None:
        self._copies = copies
        self.name: str = copies.call("name")

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Return the mentions (occurrences of entity names) in each text."""
        return [mentions for part in self._copies.map("extract", texts) for mentions in part]


class _RayLanguageModel(OpenAILanguageModel):
    """A language model behind an endpoint. One Ray actor sends all requests, so that rate limits hold."""

    def __init__(self, settings: LanguageModelSettings) -> None:
        super().__init__(settings)
        self._chat = _RayChat(settings)


class _RayChat(Chat):
    """A chat client whose requests one Ray actor sends, so that the rate limits hold for the cluster."""

    def __init__(self, settings: LanguageModelSettings) -> None:
        super().__init__(settings)
        hosts = _start_hosts(1, max_concurrency=settings.concurrency, num_cpus=0)
        self._sender = _Component(hosts, Loading(loaders.load_language_model, (settings,)))

    def ask(self, bill: Bill, stop: threading.Event | None = None) -> Reply:  # noqa: ARG002  # the actor has no event
        """Send the prompt of ``bill`` to the language model through the Ray actor and return the reply.

        The actor repeats failed requests itself, so the budget is checked before the first request only.
        """
        bill.check()
        (outcome,) = self._sender.call("complete", [bill.prompt])
        self.charge(outcome.usage)
        bill.total += outcome.usage
        if isinstance(outcome, LanguageModelError):
            raise EndpointError(str(outcome), concerns_all=isinstance(outcome, NoMoreRepliesError))
        reply: Reply = replace(outcome, usage=bill.total)
        return reply


class _RayReadJob(ReadJob):
    """A job that reads one document in a Ray task."""

    def __init__(self, content: ray.ObjectRef) -> None:
        super().__init__()
        self._content = content

    def wait(self, on_progress: Callable[[str], None]) -> Content:  # noqa: ARG002  # a task reports no progress
        """Wait for the Ray task that reads a document, and return the document's content.

        See :meth:`ReadJob.wait`.
        """
        content: Content = _get_result(lambda: ray.get(self._content))
        return content


class _RayReadingPool(WorkerPool):
    """Reads documents in Ray tasks, each in a process with limits on time and memory.

    The driver reads the bytes, so the machines of the cluster need not see the files. Files of records are read by the
    driver's machine, since they are streamed.
    """

    def __init__(self, settings: ReadSettings, count: int) -> None:
        super().__init__(settings)
        self.count = count
        self._read_remotely = ray.remote(read_bytes).options(max_retries=_MAX_REPEATS)

    def submit(self, path: Path, format: Format) -> ReadJob:
        """Start a Ray task that reads one file.

        See :meth:`WorkerPool.submit`.
        """
        if path.stat().st_size > self._settings.max_bytes:  # this process reports the failure without reading the file
            return super().submit(path, format)
        return _RayReadJob(self._read_remotely.remote(path.read_bytes(), path.suffix, format, self._settings))
