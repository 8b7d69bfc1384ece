"""Where in a recording each pass through the layers comes to the repetitions that stand for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch.nn.modules.module as torch_module

from gpufit.sources.measure.recording import Recorder
from gpufit.sources.simulate.stream import Pass


@dataclass
class PassWatch:
    """Marks where two repetitions of layers begin and end, pass by pass.

    The second ends where the next module is called: what the loop over the layers drops in between belongs to it, as
    what it drops between the two belongs to the first.
    """

    first: Any
    second: Any
    last: Any
    recorder: Recorder | None = None
    _marks: list[list[int]] = field(default_factory=list)
    _waiting: bool = False

    def taking(self, recorder: Recorder) -> Recorder:
        """The recorder that marks go to."""
        self.recorder = recorder
        return recorder

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Mark while the block runs."""
        hooks = [
            torch_module.register_module_forward_pre_hook(self._called),
            torch_module.register_module_forward_hook(self._returned),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def passes(self, positions: list[int]) -> list[Pass]:
        """The passes that were gone through whole, `positions` being the recording's."""
        return [Pass(*(positions[mark] for mark in marks)) for marks in self._marks if len(marks) == 3]

    def _called(self, module: Any, args: Any) -> None:
        assert self.recorder is not None
        if self._waiting:
            self._waiting = False
            self._marks[-1].append(self.recorder.mark())
        if module is self.first:
            self._marks.append([self.recorder.mark()])
        elif module is self.second:
            self._marks[-1].append(self.recorder.mark())

    def _returned(self, module: Any, args: Any, output: Any) -> None:
        self._waiting = self._waiting or module is self.last
