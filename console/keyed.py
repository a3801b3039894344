"""Django for calls by key: its requests, its routes and its views, and nothing of what it does for people.

Owns what stands between the doorman and a view of /v1. Must never wait for a thread of its own: what such a view needs
of the database goes through `console.workspaces.db`, whose threads keep their handles themselves, so the signals that
would tidy up Django's after each request have nothing to do here, and would cost each call two trips to a thread.
"""

import asyncio
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.exception import convert_exception_to_response
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix


class KeyDjango(ASGIHandler):
    """Without MIDDLEWARE, which is for people (session, CSRF, messages), costs two hops to a thread each, and one that
    is synchronous only would hold one of the few threads until the call ends."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = convert_exception_to_response(self._whole)

    async def _whole(self, request: Any) -> HttpResponseBase:
        response: Any = await self._get_response_async(request)  # type: ignore[attr-defined]
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            set_script_prefix(get_script_prefix(scope))
            request, refusal = self.create_request(scope, body)
            if request is None:
                assert refusal
                return await self.send_response(refusal, send)
            response = await self._answered(request, receive, send)
            if response is not None and response.streaming:
                await sync_to_async(response.close)()  # what it was read from
            request.close()

    async def _answered(self, request: Any, receive: Any, send: Any) -> Any:
        """None: the client left, which cancels its view; this waits until the view has taken note of it."""
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        answering = asyncio.ensure_future(self._answer(request, send))
        try:
            await asyncio.wait([leaving, answering], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (leaving, answering):
                task.cancel()  # nothing, to one that is done
            await asyncio.wait([leaving, answering])
        if not leaving.cancelled() and not isinstance(error := leaving.exception(), RequestAborted):
            raise error or RuntimeError("a body after its end")
        return None if answering.cancelled() else answering.result()

    async def _answer(self, request: Any, send: Any) -> HttpResponseBase:
        response: HttpResponseBase = await self.run_get_response(request)
        with suppress(asyncio.CancelledError):  # the client left meanwhile
            await self.send_response(response, send)
        return response
