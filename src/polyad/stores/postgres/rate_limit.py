"""Limits on the requests to a language model that all workers of an index share."""

from __future__ import annotations

import time
from collections import deque
from functools import partial

from polyad.openai_api.rate_limit import RateLimiter, Reservation, Sleep
from polyad.stores.postgres.database import PostgresDatabase

_WINDOW = 60


class SharedRateLimiter(RateLimiter):
    """A limit on a model's requests and tokens per minute, shared by all processes and machines.

    Args:
        database: The database, whose clock counts.
        model: Name of the model.
        requests_per_minute: Maximum number of requests; 0 for no limit.
        tokens_per_minute: Maximum number of prompt and completion tokens; 0 for no limit.
    """

    def __init__(
        self, database: PostgresDatabase, model: str, requests_per_minute: int = 0, tokens_per_minute: int = 0
    ) -> None:
        super().__init__(requests_per_minute, tokens_per_minute)
        self._database = database
        self._model = model

    def acquire(self, tokens: int, sleep: Sleep = time.sleep) -> Reservation:
        """Wait until a request of ``tokens`` tokens is within the limits, and return its :class:`Reservation`.

        See :meth:`RateLimiter.acquire`.
        """
        if not (self._requests or self._tokens):
            return super().acquire(tokens, sleep)
        with self._turnstile:
            while isinstance(reservation := self._database.retry(partial(self._reserve, tokens)), float):
                sleep(reservation)
            return reservation

    def _reserve(self, tokens: int) -> Reservation | float:
        """Record a request of ``tokens`` tokens and return its reservation, or return the seconds to wait."""
        with self._database.updating() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", [self._model])
            connection.execute(f"DELETE FROM request WHERE sent < clock_timestamp() - interval '{_WINDOW}s'")
            query = (
                "SELECT EXTRACT(epoch FROM clock_timestamp() - sent)::float8, tokens FROM request "
                "WHERE model = ? ORDER BY sent"
            )
            now = self._clock()
            rows = connection.execute(query, [self._model]).fetchall()
            self._window = deque(Reservation(now - age, count) for age, count in rows)
            seconds = self._wait(tokens)
            if seconds > 0:
                return seconds
            query = "INSERT INTO request (model, sent, tokens) VALUES (?, clock_timestamp(), ?) RETURNING number"
            [(number,)] = connection.execute(query, [self._model, tokens]).fetchall()
        return _SharedReservation(self._database, number, now, tokens)


class _SharedReservation(Reservation):
    """The tokens reserved for one request, which are recorded in the database for all processes."""

    __slots__ = ("_database", "_number")

    def __init__(self, database: PostgresDatabase, number: int, at: float, tokens: int) -> None:
        super().__init__(at, tokens)
        self._database = database
        self._number = number

    def settle(self, tokens: int) -> None:
        """Replace the estimated tokens of the request by the actual number ``tokens``."""
        super().settle(tokens)
        query, parameters = "UPDATE request SET tokens = ? WHERE number = ?", [tokens, self._number]
        self._database.retry(lambda: self._database.run_autocommit(lambda c: c.execute(query, parameters)))
