"""What code may ask of a fake tensor, and what only a real one can answer."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)

from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.simulate.values import MOST_VALUES, asking_for_values

pytestmark = pytest.mark.model


def test_what_follows_from_the_callers_inputs_is_known() -> None:
    with FakeTensorMode(), asking_for_values():
        mask = torch.ones(2, 5, dtype=torch.int64)
        assert isinstance(mask, FakeTensor)
        assert bool(mask.all())
        mask[1, 3:] = 0
        assert mask.sum(-1).tolist() == [5, 3]
        assert mask.cumsum(-1)[1].max().item() == 3
        assert torch.tensor([mask.sum(), 7 * mask[0, 0]]).tolist() == [8, 7]


def test_an_operation_shaped_by_known_values_gives_a_fake_tensor_of_that_shape() -> None:
    with FakeTensorMode(), asking_for_values():
        found = torch.tensor([0, 3, 0, 4]).nonzero()
        assert isinstance(found, FakeTensor)
        assert found.tolist() == [[1], [3]]
        kept = torch.unique_consecutive(torch.tensor([1, 1, 1, 2]))
        assert (kept.shape, kept.untyped_storage().nbytes()) == ((2,), 4 * 8), "in the room that it was given"


def test_what_follows_from_a_weight_is_not_known_and_the_operation_is_named() -> None:
    with FakeTensorMode():
        weight = torch.zeros(3)
        with asking_for_values():
            with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
                weight.sum().item()
            with pytest.raises(DynamicOutputShapeException, match="nonzero"):
                weight.nonzero()


def test_what_an_unknown_was_written_into_is_known_no_more_nor_is_its_other_view() -> None:
    with FakeTensorMode():
        weight = torch.zeros(3)
        with asking_for_values():
            known = torch.arange(6.0)
            view = known[2:]
            assert view[0].item() == 2
            known[:3] = weight
            for changed in (known, view):
                with pytest.raises(DataDependentOutputException):
                    changed[0].item()


def test_large_tensors_are_not_worked_out() -> None:
    with FakeTensorMode(), asking_for_values():
        large = torch.ones(MOST_VALUES + 1, dtype=torch.int8)
        with pytest.raises(DataDependentOutputException):
            bool(large.all())


def test_values_take_no_memory_of_the_run() -> None:
    with FakeTensorMode(), asking_for_values():
        recorder = DispatchRecorder()
        recorder.start()
        kept = [torch.ones(2, 5, dtype=torch.int64)]
        bool(kept[0].all())
        recording = recorder.stop()
    # 80 bytes of the mask; its truth, made and dropped.
    assert [event.size_bytes for event in recording.events] == [80, 1, 0]


def test_transformers_is_told_the_truth_again_afterwards() -> None:
    from transformers.utils import import_utils

    with FakeTensorMode():
        fake = torch.zeros(2)
        with asking_for_values():
            assert not import_utils.is_tracing(fake)
        assert import_utils.is_tracing(fake)
