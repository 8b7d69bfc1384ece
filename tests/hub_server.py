"""A small hub on this machine: the parts of its protocol that a download uses, for the real client to talk to.

What the hub serves: https://huggingface.co/docs/hub/api, and the headers that huggingface_hub reads
(https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/file_download.py).
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"

_FILE = re.compile(r"/(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")
_MODEL = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")


@dataclass
class Repository:
    """Files by name, and who may read them."""

    files: dict[str, bytes]
    gated: bool = False
    token: str | None = None
    """The one token that is let in; None lets everyone in."""


@dataclass
class Hub:
    """What the server serves, and what it was asked for."""

    repositories: dict[str, Repository]
    ranges: bool = True
    """Whether ranges are honoured; a server may send the whole file instead."""
    url: str = ""
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and range of every request."""
    sent: dict[str, int] = field(default_factory=dict)
    """Bytes of content that left, by file."""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at `hub.url` while the block runs."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def log_message(self, *arguments: Any) -> None:
            """Nothing on stderr."""

        def answer(self) -> None:
            path = self.path.partition("?")[0]
            hub.requests.append((self.command, path, self.headers.get("range")))
            found = _FILE.fullmatch(path) or _MODEL.fullmatch(path)
            repository = hub.repositories.get(found["id"]) if found else None
            if found is None or repository is None:
                self.reply(404 if found is None else 401, {"X-Error-Code": "RepoNotFound"})
                return
            asked = self.headers.get("authorization")
            if repository.token is not None and asked != f"Bearer {repository.token}":
                if asked is not None:
                    self.reply(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
                elif repository.gated:
                    self.reply(401, {"X-Error-Code": "GatedRepo"})
                else:
                    self.reply(401, {"X-Error-Code": "RepoNotFound"})
                return
            if found["revision"] not in (None, "main", COMMIT):
                self.reply(404, {"X-Error-Code": "RevisionNotFound"})
            elif "name" in found.groupdict():
                self.file(repository, found["name"])
            else:
                siblings = [{"rfilename": name, "size": len(body)} for name, body in repository.files.items()]
                self.reply(200, {}, json.dumps({"id": found["id"], "sha": COMMIT, "siblings": siblings}).encode())

        def file(self, repository: Repository, name: str) -> None:
            body = repository.files.get(name)
            if body is None:
                self.reply(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
                return
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(body).hexdigest()}"', "Accept-Ranges": "bytes"}
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or "")
            if asked is None or not hub.ranges:
                self.reply(200, headers, body, name)
                return
            begin, end = int(asked[1]), min(int(asked[2]) + 1, len(body))
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
            self.reply(206, headers, body[begin:end], name)

        def reply(self, status: int, headers: dict[str, str], body: bytes = b"", name: str = "") -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            try:
                for begin in range(0, len(body), 65536):
                    self.wfile.write(body[begin : begin + 65536])
                    hub.sent[name] = hub.sent.get(name, 0) + len(body[begin : begin + 65536])
            except (BrokenPipeError, ConnectionResetError):
                # The client has read what it wants.
                self.close_connection = True

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            """A client that hangs up when it has read enough is no error."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
