"""A run in a process of its own: the request from standard input, events to standard output, then it ends.

It lives as long as its standard input is open: whoever started it stops it by closing that, and takes it along however
he ends himself, killed as he may be. Finished cells are on disk by then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import BinaryIO

from gpufit.errors import GpufitError, OutputExistsError, UnreadableInputError, UsageError
from gpufit.files import check_writable, exists
from gpufit.profile.store import save_profile
from gpufit.profile.workload import Workload
from gpufit.sources.measure.campaign import Campaign
from gpufit.sources.measure.events import (
    CellBegan,
    CellDone,
    Finished,
    Interrupted,
    Now,
    Refused,
    RoundBegan,
    RunEvent,
    RunRequest,
    Started,
    decode_request,
    encode,
)
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest

MODULE = "gpufit.sources.measure.campaign_process"

LEAVE_SECONDS = 8
"""How long it may take to end after it was stopped: a worker has five seconds of them; a download that does not listen
has no more than these."""

_INTERRUPTED = 130


class Events:
    """The way back. Where nobody listens any more, standard input ends as well, and that ends the run."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, event: RunEvent) -> None:
        """One event, one line, at once."""
        with contextlib.suppress(BrokenPipeError):
            self._stream.write(encode(event))
            self._stream.flush()


def main() -> int:
    """Do what standard input asks for; the exit status is the command's."""
    events = Events(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what a library prints is no event
    # A shell may have told its children to ignore this one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return _run(decode_request(_request_line()), events)
    except GpufitError as error:
        code = 2 if isinstance(error, UsageError) else 3 if isinstance(error, UnreadableInputError) else 4
        there = error.path if isinstance(error, OutputExistsError) else ""
        events.send(Refused(reason=str(error), exit_code=code, there=there))
        return code
    except KeyboardInterrupt:
        events.send(Interrupted())
        return _INTERRUPTED


def _request_line() -> bytes:
    """The first line of standard input; from then on its end stops this process."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(0, 65536)):
        line += piece
    threading.Thread(target=_stop_at_the_end, daemon=True).start()
    return line


def _stop_at_the_end() -> None:
    """Interrupt the main thread, which waits for its worker, when standard input ends."""
    while os.read(0, 4096):
        pass
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)
    time.sleep(LEAVE_SECONDS)
    os._exit(_INTERRUPTED)


def _run(request: RunRequest, events: Events) -> int:
    output = _estimate(request, events) if request.profile is None else _measure(request.profile, events)
    events.send(Finished(output=str(output)))
    return 0


def _measure(request: ProfileRequest, events: Events) -> Path:
    def started(workload: Workload, done: int, total: int) -> None:
        profile = campaign.profile
        assert profile is not None, "it is told once the model is loaded"
        events.send(
            Started(
                output=str(campaign.output),
                model=profile.model.name,
                device=profile.environment.device.name,
                evidence=profile.evidence,
                workload=workload,
                load=profile.load,
                cells=profile.cells,
                done=done,
                total=total,
            )
        )

    listener = Listener(
        started=started,
        round=lambda purpose, total: events.send(RoundBegan(purpose=purpose, total=total)),
        progress=lambda text: events.send(Now(text=text)),
        cell_began=lambda key: events.send(CellBegan(key=key)),
        cell=lambda cell: events.send(CellDone(cell=cell)),
    )
    campaign = Campaign(request, listener)
    campaign.run()
    return campaign.output


def _estimate(request: RunRequest, events: Events) -> Path:
    """Compute a profile and write it."""
    from gpufit.sources.estimate.profile import estimate

    if request.estimate is None:
        raise ValueError("a request asks for a run or an estimate")
    events.send(Now(text="reading the model's config and file headers"))
    profile = estimate(request.estimate)
    output = request.estimate_output or Path("profiles") / f"{profile.model.name.replace('/', '--')}.json"
    if exists(output) and not request.estimate_force:
        raise OutputExistsError(output, "replace it, or name another file")
    check_writable(output)
    save_profile(profile, output)
    return output


if __name__ == "__main__":
    raise SystemExit(main())
