"""The interface on a web page: who may reach it, and a process of its own for every page that is opened.

The page works as the user who serves it: it reads and writes files. So it is served on a loopback address unless told
otherwise, only to who has the key that is in the printed address, and never to a page of another site.
"""

from __future__ import annotations

import copy
import hmac
import ipaddress
import logging
import secrets
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

from gpufit.errors import UsageError

KEY = "key"
"""The parameter of the address that lets a browser in."""
_POLICY = {
    # Only what this server sends is loaded: the page calls nobody else.
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' "
    "'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def check_host(host: str, open_to_network: bool) -> str:
    """The address to serve on. Raises UsageError for what is no address, and for one that other machines reach where
    that was not asked for."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise UsageError(f"--host {host} is no IP address; use one of this machine's, or leave it out") from None
    if not address.is_loopback and not open_to_network:
        raise UsageError(
            f"--host {host} can be reached from other machines, and whoever opens the page works as you, with your "
            "files: add --open-to-network if that is what you want, or leave --host out"
        )
    return str(address)


class WebServer(Server):
    """textual-serve's, for those who have the key alone."""

    def __init__(self, command: str, host: str, port: int, say: Callable[[str], None]) -> None:
        super().__init__(command, host=host, port=port, title="gpufit")
        self._say = say
        self._key = secrets.token_urlsafe(24)
        self._cookie = f"gpufit-{port}"
        self._loopback = ipaddress.ip_address(host).is_loopback

    @property
    def address(self) -> str:
        """What to open."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?{KEY}={self._key}"

    def initialize_logging(self) -> None:
        """Standard output stays empty; what goes wrong is on standard error."""
        logging.basicConfig(level=logging.WARNING, format="gpufit: %(message)s")

    async def on_startup(self, app: web.Application) -> None:
        """Say where it is."""
        self._say(f"open {self.address}")
        if not self._loopback:
            self._say("anybody who has this address works as you, with your files; what is sent is not encrypted")
        self._say("ctrl+c ends it")

    async def _make_app(self) -> web.Application:
        app: web.Application = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page, which calls back by the name that it was opened by."""
        page = copy.copy(self)
        page.public_url = f"http://{request.host}"
        answer: web.StreamResponse = await Server.handle_index(page, request)
        return answer

    @property
    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            answer = self._refuse(request) or self._let_in(request) or await handler(request)
            if not answer.prepared:
                answer.headers.update(_POLICY)
            return answer

        return guard

    def _refuse(self, request: web.Request) -> web.Response | None:
        """No other site's page, whatever name it found for this address; nobody without the key."""
        host = request.host.rpartition(":")[0].strip("[]") or request.host
        if self._loopback and not _is_loopback(host):
            return web.Response(status=403, text=f"{host} is not an address of this machine alone\n")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return web.Response(status=403, text="asked for by a page of another site\n")
        given = request.query.get(KEY) or request.cookies.get(self._cookie, "")
        if not hmac.compare_digest(given.encode(), self._key.encode()):
            return web.Response(status=403, text="open the address that gpufit printed: it has the key\n")
        return None

    def _let_in(self, request: web.Request) -> web.Response | None:
        """Take the key out of the address, and leave it with the browser."""
        if KEY not in request.query:
            return None
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="Strict")
        return answer


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(command: str, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted: `command` is what a shell runs for each page. Raises UsageError for an address that
    cannot be had."""
    try:
        WebServer(command, host, port, say).serve()
    except OSError as error:
        raise UsageError(f"{host} port {port} cannot be used ({error.strerror}); choose another --port") from error
