"""The interface on a web page: who is let in, and a page that a real app draws."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from builders import make_profile
from model_files import REPOSITORY

from gpufit.cli.commands import tui
from gpufit.cli.main import main
from gpufit.errors import UsageError
from gpufit.profile.store import save_profile

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")

from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from gpufit.tui.web import KEY, WebServer, check_host, serve


class TestAddress:
    @pytest.mark.parametrize(
        ("host", "address"),
        [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1"), ("127.8.8.8", "127.8.8.8")],
    )
    def test_this_machine_alone_needs_no_flag(self, host: str, address: str) -> None:
        assert check_host(host, open_to_network=False) == address

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "8.8.8.8", "fe80::1"])
    def test_any_other_needs_the_flag_that_says_what_it_means(self, host: str) -> None:
        with pytest.raises(UsageError, match="works as you, with your files: add --open-to-network"):
            check_host(host, open_to_network=False)
        assert check_host(host, open_to_network=True) == host

    @pytest.mark.parametrize("host", ["example.com", "", "127.0.0.1:80"])
    def test_what_is_no_address_is_refused_with_and_without_it(self, host: str) -> None:
        for flag in (False, True):
            with pytest.raises(UsageError, match="is no IP address"):
                check_host(host, open_to_network=flag)

    def test_a_port_in_use_is_one_line(self) -> None:
        import socket

        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(UsageError, match=f"127.0.0.1 port {port} cannot be used .*; choose another --port"):
                serve("true", "127.0.0.1", port, lambda line: None)


class TestCommandLine:
    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (("--host", "127.0.0.1"), "--host is for a web page: add --web"),
            (("--open-to-network",), "--open-to-network is for a web page: add --web"),
            (("--web", "--host", "0.0.0.0"), "add --open-to-network if that is what you want"),
            (("--web", "--port", "0"), "--port must be a whole number from 1 to 65535"),
            (("--web", "--offers", "acme"), "no offer book 'acme'"),
        ],
    )
    def test_what_would_not_do_is_one_line(
        self, argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["tui", *argv]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1

    def test_without_the_extra_it_says_how_to_get_it(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.delitem(sys.modules, "gpufit.tui.web")
        monkeypatch.delattr("gpufit.tui.web")
        monkeypatch.setitem(sys.modules, "textual_serve.server", None)
        assert main(["tui", "--web"]) == 2
        assert "pip install 'gpufit[web]'" in capsys.readouterr().err

    def test_each_page_runs_the_same_interface_whatever_the_files_are_called(self) -> None:
        parser = argparse.ArgumentParser()
        tui.prepare_parser(parser)
        given = ["--web", "--offers", "a b.toml", "--catalog", "my cards", "x; rm y.json", "$(z).json", "--", "-v.json"]
        words = shlex.split(tui._command(parser.parse_args(given)))
        assert words[:4] == [sys.executable, "-m", "gpufit", "tui"]
        again = parser.parse_args(words[4:])
        assert [str(one) for one in again.profiles] == ["x; rm y.json", "$(z).json", "-v.json"]
        assert (again.offers, again.catalog, again.web) == (["a b.toml"], Path("my cards"), False)


class Page(NamedTuple):
    """A server that is asked, and the key to it."""

    client: TestClient[web.Request, web.Application]
    key: str

    async def get(self, path: str, **headers: str) -> ClientResponse:
        return await self.client.get(path, headers=headers, allow_redirects=False)


@pytest.fixture
async def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Page]:
    save_profile(make_profile(), tmp_path / "p.json")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    command = shlex.join([sys.executable, "-m", "gpufit", "tui", "--", str(tmp_path / "p.json")])
    server = WebServer(command, "127.0.0.1", 8000, lambda line: None)
    async with TestClient(TestServer(await server._make_app())) as client:
        yield Page(client, server.address.partition(f"{KEY}=")[2])


class TestPage:
    async def test_nobody_without_the_key(self, page: Page) -> None:
        for path in ("/", f"/?{KEY}=wrong", f"/?{KEY}=", "/ws", "/download/x", "/static/js/textual.js"):
            answer = await page.get(path)
            assert answer.status == 403
            assert "open the address that gpufit printed" in await answer.text()

    async def test_the_key_leaves_the_address_and_stays_with_the_browser(self, page: Page) -> None:
        answer = await page.get(f"/?{KEY}={page.key}")
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        shown = await page.get("/")
        assert shown.status == 200
        assert f"ws://127.0.0.1:{page.client.port}/ws" in await shown.text()
        assert "default-src 'self'" in shown.headers["Content-Security-Policy"]
        assert (await page.get("/static/js/textual.js")).status == 200

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "10.0.0.1:8000"])
    async def test_another_name_for_this_address_is_refused(self, page: Page, host: str) -> None:
        answer = await page.get(f"/?{KEY}={page.key}", Host=host)
        assert answer.status == 403
        assert "is not an address of this machine alone" in await answer.text()

    async def test_another_sites_page_is_refused_even_with_the_key(self, page: Page) -> None:
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{page.client.port}"):
            answer = await page.get(f"/ws?{KEY}={page.key}", Origin=origin)
            assert answer.status == 403
            assert "another site" in await answer.text()

    async def test_a_page_shows_the_profile_and_q_ends_it(self, page: Page) -> None:
        await page.get(f"/?{KEY}={page.key}")
        shown = b""
        async with asyncio.timeout(90), page.client.ws_connect("/ws?width=120&height=40") as socket:
            async for message in socket:
                shown += message.data if isinstance(message.data, bytes) else b""
                if b"tiny-llama" in shown:
                    await socket.send_json(["stdin", "q"])
                    break
            async for _ in socket:  # until the app has ended
                pass
        assert b"Cards" in shown
        await asyncio.sleep(0.5)  # its process has ended, too, and the loop has heard of it
