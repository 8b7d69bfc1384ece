#!/usr/bin/env python3
"""Pictures of the interface on a web page, to be looked at: served, opened in headless Chromium, and keys pressed.

    python scripts/look_at_web.py OUT [KEYS] [PROFILE...]

KEYS are separated by commas, in Chromium's names (`7,s,ArrowDown,Enter`); a picture is taken before them and after.
Needs the extra `web` and a Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

PORT, DEBUG_PORT = 8613, 8614
SIZE = (1400, 900)
DRAWN_SECONDS = 20
"""Time that the first frame has; it is looked at until then."""


class Browser:
    """One page of a Chromium that is told what to do."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its result."""
        wanted = next(self._ids)
        await self._socket.send_json({"id": wanted, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=30)
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    async def holds(self, script: str) -> bool:
        """Whether an expression is true on the page."""
        found = await self.do("Runtime.evaluate", expression=script)
        return bool(found["result"].get("value"))

    async def press(self, key: str) -> None:
        """A key, as a person presses it."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}
        code = codes.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            await self.do("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)
        await asyncio.sleep(0.5)

    async def picture(self, path: Path) -> None:
        """What stands on the page now."""
        found = await self.do("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))
        print(path)


async def look(out: Path, keys: list[str], profiles: list[str]) -> None:
    """Serve, open, press, and end both programs."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("no Chromium is installed")
    words = [sys.executable, "-m", "gpufit", "tui", "--web", "--port", str(PORT), *profiles]
    server = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    with tempfile.TemporaryDirectory() as home:
        browser = await asyncio.create_subprocess_exec(
            chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}",
            f"--remote-debugging-port={DEBUG_PORT}", f"--window-size={SIZE[0]},{SIZE[1]}", "about:blank",
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            assert server.stderr is not None
            address = (await server.stderr.readline()).decode().split()[1]
            async with aiohttp.ClientSession() as session, session.ws_connect(await _page(session)) as socket:
                page = Browser(socket)
                await page.do("Page.navigate", url=address)
                for _ in range(DRAWN_SECONDS):
                    await asyncio.sleep(1)
                    if await page.holds("document.body.classList.contains('-first-byte')"):
                        break
                await asyncio.sleep(2)
                await page.picture(out / "web.png")
                await page.holds("document.querySelector('.xterm-helper-textarea').focus()")
                for key in keys:
                    await page.press(key)
                await asyncio.sleep(2)
                await page.picture(out / "web-keys.png")
        finally:
            for one in (server, browser):
                one.terminate()
                await one.wait()


async def _page(session: aiohttp.ClientSession) -> str:
    """The address by which the browser's first page is told what to do, once there is one."""
    for _ in range(60):
        try:
            async with session.get(f"http://127.0.0.1:{DEBUG_PORT}/json") as answer:
                pages = [one for one in await answer.json() if one["type"] == "page"]
                if pages:
                    return str(pages[0]["webSocketDebuggerUrl"])
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.5)
    raise SystemExit("Chromium did not start")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(look(target, sys.argv[2].split(",") if len(sys.argv) > 2 else [], sys.argv[3:]))
