"""Calls to the Docker daemon. docker-py blocks, so each call runs on one of a few threads, with an end.

Owns the only docker-py client. Must never be given content or scripts to pass, and never `exec`s.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import docker
import docker.errors
import requests.exceptions

from sandboxes.errors import NoRuntime

THREADS = 8
HTTP_TIMEOUT_S = 60

T = TypeVar("T")

NotFound = docker.errors.NotFound
Refused = docker.errors.APIError


class Unreachable(NoRuntime):
    """The daemon does not answer."""


class Daemon:
    def __init__(self, docker_host: str) -> None:
        self.docker_host = docker_host
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")

    @functools.cached_property
    def _client(self) -> docker.DockerClient:
        client = docker.DockerClient(base_url=self.docker_host, timeout=HTTP_TIMEOUT_S, max_pool_size=THREADS)
        client.api.trust_env = False  # a proxy or a CA bundle of the environment is not meant for this
        return client

    async def call(self, work: Callable[[docker.DockerClient], T], *, timeout_s: float = HTTP_TIMEOUT_S) -> T:
        """`work` on a thread. Given up after `timeout_s`; the thread itself ends with the HTTP timeout."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                return await loop.run_in_executor(self._threads, self._work, work)
        except TimeoutError as error:
            raise Unreachable(f"Docker at {self.docker_host} did not answer within {timeout_s:g} s.") from error

    def _work(self, work: Callable[[docker.DockerClient], T]) -> T:
        try:
            return work(self._client)
        except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
            raise self._unreachable(error) from error
        except docker.errors.APIError:
            raise
        except docker.errors.DockerException as error:  # the constructor asks for the version
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"Docker does not answer at {self.docker_host}: {error}. Start it, or run bin/up.")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if "_client" in self.__dict__:
            self._client.close()
