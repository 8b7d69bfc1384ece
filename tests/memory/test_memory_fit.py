"""The fit against formulas that the cells were drawn from."""

from __future__ import annotations

import msgspec
import pytest
from builders import (
    BUFFERS,
    KV_PER_TOKEN,
    WEIGHTS,
    decode_parts,
    make_cell,
    make_parts,
    make_peak,
    make_profile,
    prefill_parts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.memory.fit import fit_memory_model, without_lesser_moments
from gpufit.memory.predict import predict
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.cells import Cell, Failed, Measured, Skipped
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.peaks import ELSEWHERE, END_OF_PHASE, FIRST_STEP, Moment, Parts, Phase, PhasePeak

GRID = [make_cell(context, concurrency) for context in (128, 512, 1024) for concurrency in (1, 2, 4)]


def coefficients(model: MemoryModel, phase: Phase, part: str) -> dict[str, float]:
    (one,) = [one for one in model.phases if one.phase is phase]
    return {
        coefficient.term: coefficient.bytes_per_unit
        for moment in one.moments
        for found in moment.parts
        if found.part == part
        for coefficient in found.coefficients
    }


def fitted(cells: list[Cell], attention: str = "sdpa", window: int = 0) -> MemoryModel:
    model = fit_memory_model(cells, attention, Knees(window=window))
    assert model is not None
    return model


def cell_of(context: int, concurrency: int, *peaks: PhasePeak, new_tokens: int = 0) -> Cell:
    return Cell(
        context_tokens=context,
        new_tokens=new_tokens,
        concurrency=concurrency,
        outcome=Measured(phases=peaks, inputs_completed=concurrency, wall_seconds=1.0),
    )


def test_the_fit_recovers_the_formula_that_the_cells_came_from() -> None:
    model = fitted(GRID)
    for phase, activations, temporaries in (
        (Phase.PREFILL, {"per_token": 3_000}, {"constant": 1_000_000, "per_token": 2_000}),
        (Phase.DECODE, {"per_sequence": 5_000}, {"constant": 1_000_000, "per_token": 600}),
    ):
        for part, expected in (
            ("weights_bytes", {"constant": WEIGHTS}),
            ("buffers_bytes", {"constant": BUFFERS}),
            ("kv_cache_bytes", {"per_token": KV_PER_TOKEN}),
            ("inputs_bytes", {"per_token": 16}),
            ("outputs_bytes", {"per_sequence": 100_000}),
            ("activations_bytes", activations),
            ("temporaries_bytes", temporaries),
        ):
            found = coefficients(model, phase, part)
            # Terms beyond the formula's may be there at the rounding of floats: below a byte in every cell.
            units = {"constant": 1, "per_sequence": 4, "per_token": 4 * 1027}
            stray = {term: value * units[term] for term, value in found.items() if term not in expected}
            assert all(size < 0.5 for size in stray.values()), (phase, part, stray)
            assert {term: found[term] for term in expected} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [Shape(128, 4, 1), Shape(700, 4, 3), Shape(1024, 4, 4), Shape(8192, 4, 16)])
def test_its_prediction_is_the_formula_to_the_byte_inside_and_beyond_the_grid(shape: Shape) -> None:
    profile = make_profile(cells=tuple(GRID), memory_model=fitted(GRID))
    load, prefill, decode = predict(profile, shape)
    # A coefficient is a double: 16 digits, so 8192 x 16 x 25,016 bytes are exact to well below a byte.
    assert prefill.parts == prefill_parts(shape)
    assert decode.parts == decode_parts(shape)
    assert load.parts == profile.load.parts


def test_cells_that_were_held_out_are_met_and_the_model_says_how_many() -> None:
    for phase in fitted(GRID).phases:
        assert (phase.fitted_cells, phase.held_out_cells) == (7, 2)
        assert phase.worst_fitted_error == pytest.approx(0, abs=1e-9)
        assert phase.worst_held_out_error == pytest.approx(0, abs=1e-9)
        assert phase.worst_miss_bytes <= 1


def test_the_domain_is_what_was_measured() -> None:
    model = fitted(GRID)
    assert (model.max_cached_tokens, model.max_concurrency, model.max_total_tokens) == (1027, 4, 4 * 1027)


def test_parts_that_no_cell_has_are_not_modelled() -> None:
    for phase in fitted(GRID).phases:
        for moment in phase.moments:
            assert {one.part for one in moment.parts}.isdisjoint({"rounding_bytes", "unexplained_bytes"})


@pytest.mark.parametrize(
    "shapes",
    [
        [],
        [(128, 1)],
        [(128, 1), (512, 1), (512, 2)],  # three cells
        [(128, 1), (256, 1), (512, 1), (1024, 1), (2048, 1)],  # one concurrency
        [(128, 1), (128, 2), (128, 4), (128, 8)],  # one context
    ],
)
def test_cells_too_few_or_too_alike_to_tell_terms_apart_make_no_model(shapes: list[tuple[int, int]]) -> None:
    assert fit_memory_model([make_cell(*shape) for shape in shapes], "sdpa", Knees()) is None


def test_cells_that_did_not_run_to_their_end_do_not_count() -> None:
    ran = [make_cell(128, 1), make_cell(512, 1), make_cell(128, 2)]
    others = [
        Cell(context_tokens=512, new_tokens=4, concurrency=2, outcome=Failed(error="no")),
        Cell(context_tokens=1024, new_tokens=4, concurrency=4, outcome=Skipped(why="no")),
    ]
    assert fit_memory_model(ran + others, "sdpa", Knees()) is None
    assert fitted([*ran, make_cell(512, 2), *others]).max_concurrency == 2


def test_four_cells_are_all_fitted_and_none_is_held_out() -> None:
    for phase in fitted([make_cell(*shape) for shape in ((128, 1), (128, 2), (512, 1), (512, 2))]).phases:
        assert (phase.fitted_cells, phase.held_out_cells) == (4, 0)
        assert phase.worst_held_out_error is None


def test_the_only_cell_that_tells_sequences_from_constants_is_never_held_out() -> None:
    # By tokens in all 128 x 4 comes fourth of six: the middle. Without it every cell has one sequence, and bytes a
    # sequence could not be told from constant bytes.
    shapes = [(128, 1), (256, 1), (512, 1), (128, 4), (1024, 1), (2048, 1)]
    model = fitted([make_cell(*shape) for shape in shapes])
    assert coefficients(model, Phase.DECODE, "outputs_bytes")["per_sequence"] == pytest.approx(100_000, rel=1e-6)
    assert coefficients(model, Phase.DECODE, "temporaries_bytes")["constant"] == pytest.approx(1_000_000, rel=1e-6)


def test_cells_without_phases_make_no_model() -> None:
    cells = [cell_of(context, concurrency) for context in (128, 512) for concurrency in (1, 2)]
    assert fit_memory_model(cells, "sdpa", Knees()) is None


def test_an_encoder_gets_a_forward_phase_alone() -> None:
    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(Phase.FORWARD, make_parts(activations_bytes=7_000 * context * concurrency)),
        )
        for context in (64, 128, 256)
        for concurrency in (1, 8)
    ]
    model = fitted(cells)
    assert [one.phase for one in model.phases] == [Phase.FORWARD]
    assert coefficients(model, Phase.FORWARD, "activations_bytes")["per_token"] == pytest.approx(7_000, rel=1e-6)
    assert model.max_cached_tokens == 256


def test_a_sliding_window_shows_as_its_own_slope_below_the_knee() -> None:
    # Half the layers slide over 256 tokens: 1,000 bytes a token everywhere, 3,000 more inside the window.
    window = 256
    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(
                Phase.PREFILL,
                make_parts(kv_cache_bytes=concurrency * (1_000 * context + 3_000 * min(context, window))),
            ),
        )
        for context in (64, 128, 512, 1024)
        for concurrency in (1, 2)
    ]
    model = fitted(cells, window=window)
    found = coefficients(model, Phase.PREFILL, "kv_cache_bytes")
    assert found["per_token"] == pytest.approx(1_000, rel=1e-6)
    assert found["per_token_in_window"] == pytest.approx(3_000, rel=1e-6)
    profile = make_profile(
        cells=tuple(cells),
        memory_model=model,
        model=msgspec.structs.replace(make_profile().model, sliding_window=window),
    )
    # 100,000 tokens: 100,000 x 1,000 + 256 x 3,000 = 100,768,000.
    assert predict(profile, Shape(100_000, 0, 1))[1].parts.kv_cache_bytes == 100_768_000


def test_eager_scores_show_as_tokens_squared() -> None:
    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(Phase.PREFILL, make_parts(temporaries_bytes=concurrency * (36 * context**2 + 500 * context))),
        )
        for context in (128, 512, 2048)
        for concurrency in (1, 2, 4)
    ]
    found = coefficients(fitted(cells, attention="eager"), Phase.PREFILL, "temporaries_bytes")
    assert found["per_token_squared"] == pytest.approx(36, rel=1e-6)
    assert found["per_token"] == pytest.approx(500, rel=1e-6)


def at_two_places(context: int, concurrency: int) -> Cell:
    """Logits of 2,000,000 B a sequence, and an MLP of 4,000 B a token: the higher from 500 tokens on."""
    found = {
        "lm_head": make_parts(outputs_bytes=2_000_000 * concurrency),
        "layers.0-1.mlp": make_parts(activations_bytes=4_000 * context * concurrency),
        "norm": make_parts(activations_bytes=10 * context * concurrency),
        END_OF_PHASE: make_parts(kv_cache_bytes=100 * context * concurrency),
    }
    site = max(found, key=lambda name: found[name].total_bytes)
    peak = msgspec.structs.replace(
        make_peak(Phase.PREFILL, found[site], context),
        site=site,
        moments=tuple(Moment(site=name, parts=parts) for name, parts in found.items()),
    )
    return cell_of(context, concurrency, peak, new_tokens=1)


TWO_PLACES = [at_two_places(context, concurrency) for context in (256, 512, 1024) for concurrency in (1, 2, 4)]


@pytest.mark.parametrize(("context", "concurrency"), [(64, 3), (499, 16), (501, 1), (100_000, 8)])
def test_a_peak_that_moves_from_place_to_place_is_met_at_each_of_them(context: int, concurrency: int) -> None:
    # Below the shortest prompt that was seen the upper bound is that of the shortest.
    profile = make_profile(cells=tuple(TWO_PLACES), memory_model=fitted(TWO_PLACES))
    predicted = predict(profile, Shape(context, 1, concurrency))[1]
    expected = at_two_places(context, concurrency).outcome
    assert isinstance(expected, Measured)
    assert predicted.parts == expected.phases[0].parts
    assert predicted.site == expected.phases[0].site


def test_places_that_are_never_the_highest_are_dropped_and_change_no_answer() -> None:
    model = fitted(TWO_PLACES)
    assert [one.site for one in model.phases[0].moments] == ["lm_head", "layers.0-1.mlp", END_OF_PHASE]
    kept = without_lesser_moments(TWO_PLACES, model)
    for cell in kept:
        assert isinstance(cell.outcome, Measured)
        assert [one.site for one in cell.outcome.phases[0].moments] == ["lm_head", "layers.0-1.mlp", END_OF_PHASE]
    assert fitted(list(kept)) == model


def test_places_that_some_cells_lack_are_taken_together() -> None:
    # Beyond 600 tokens the work is done in pieces, at a place that shorter prompts do not have.
    cells = []
    for cell in TWO_PLACES:
        assert isinstance(cell.outcome, Measured)
        (peak,) = cell.outcome.phases
        other = "layers.0-1.pieces" if cell.context_tokens > 600 else "layers.0-1.whole"
        moments = tuple(
            msgspec.structs.replace(one, site=other if one.site == "layers.0-1.mlp" else one.site)
            for one in peak.moments
        )
        site = other if peak.site == "layers.0-1.mlp" else peak.site
        cells.append(cell_of(*cell.key[::2], msgspec.structs.replace(peak, site=site, moments=moments), new_tokens=1))
    model = fitted(cells)
    assert ELSEWHERE in {one.site for one in model.phases[0].moments}
    assert model.phases[0].worst_miss_bytes <= 1


def test_cells_whose_moments_nobody_looked_at_are_fitted_by_their_peaks() -> None:
    bare = [
        cell_of(*cell.key[::2], make_peak(Phase.PREFILL, prefill_parts(Shape(*cell.key)), cell.key[0]), new_tokens=4)
        for cell in GRID
    ]
    (phase,) = fitted(bare).phases
    assert [one.site for one in phase.moments] == [""]
    assert phase.worst_miss_bytes <= 1


def test_scratch_of_a_bounded_tile_is_not_taken_for_a_slope() -> None:
    # torch's CPU attention with 2 threads and heads of 16 in bfloat16: a tile of rows x columns in float32 and in
    # bfloat16, two more rows and one of the head in float32: 2 x (6 x tile + 4 x (2 + 16) x rows).
    def scratch(context: int) -> int:
        rows = 256 if context >= 768 else 64
        return 2 * (6 * rows * min(context, 512) + 4 * 18 * rows)

    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(
                Phase.PREFILL,
                make_parts(temporaries_bytes=scratch(context) + 272 * context * concurrency + 8 * context),
            ),
        )
        for context in (256, 512, 1024, 1536)
        for concurrency in (1, 2, 4)
    ]
    model = fit_memory_model(cells, "sdpa", Knees(tiled_on_cpu=True))
    assert model is not None
    profile = make_profile(cells=tuple(cells), memory_model=model)
    for context in (700, 2048, 100_000):
        expected = scratch(context) + 272 * context * 3 + 8 * context
        assert predict(profile, Shape(context, 0, 3))[1].parts.temporaries_bytes == pytest.approx(expected, rel=1e-6)


def test_a_mask_that_is_made_only_when_the_window_is_full_is_found_as_such() -> None:
    def temporaries(context: int, concurrency: int) -> int:
        return concurrency * (500 * context + (3 * context**2 if context >= 512 else 0))

    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(Phase.PREFILL, make_parts(temporaries_bytes=temporaries(context, concurrency))),
        )
        for context in (256, 512, 1024, 1536)
        for concurrency in (1, 2, 4)
    ]
    found = coefficients(fitted(cells, window=512), Phase.PREFILL, "temporaries_bytes")
    assert found["per_token_squared_beyond_window"] == pytest.approx(3, rel=1e-6)
    assert found["per_token"] == pytest.approx(500, rel=1e-6)


def test_two_contexts_leave_a_curve_as_an_alternative_that_raises_the_upper_bound() -> None:
    # 100 B a token and 1 B a square of it at 256 and 512 tokens: a straight line meets both.
    cells = [
        cell_of(
            context,
            concurrency,
            make_peak(Phase.PREFILL, make_parts(temporaries_bytes=concurrency * (100 * context + context**2))),
        )
        for context in (256, 512)
        for concurrency in (1, 2)
    ]
    profile = make_profile(
        cells=tuple(cells),
        memory_model=fitted(cells),
        model=msgspec.structs.replace(make_profile().model, generates=False),
    )
    far = predict(profile, Shape(65_536, 0, 1))[1]
    truth = make_parts(temporaries_bytes=100 * 65_536 + 65_536**2).total_bytes
    assert far.allocated_bytes < truth <= far.upper_bytes


sizes = st.integers(0, 10**12)


@settings(max_examples=60)
@given(st.lists(st.tuples(sizes, sizes, sizes), min_size=6, max_size=6), st.sampled_from(["sdpa", "eager"]))
def test_whatever_was_measured_no_coefficient_is_negative_and_every_error_is_a_number(
    drawn: list[tuple[int, int, int]], attention: str
) -> None:
    shapes = [(context, concurrency) for context in (128, 512, 4096) for concurrency in (1, 4)]
    cells = [
        cell_of(
            *shape,
            make_peak(Phase.PREFILL, make_parts(kv_cache_bytes=kv, temporaries_bytes=scratch, rounding_bytes=rounding)),
        )
        for shape, (kv, scratch, rounding) in zip(shapes, drawn, strict=True)
    ]
    (phase,) = fitted(cells, attention, 256).phases
    parts = [part for moment in phase.moments for part in moment.parts]
    assert all(one.bytes_per_unit >= 0 for part in parts for one in part.coefficients)
    assert {part.part for part in parts} <= set(Parts.NAMES)
    assert 0 <= phase.worst_fitted_error < float("inf")
    assert phase.worst_miss_bytes >= 0


@settings(max_examples=60)
@given(st.lists(st.floats(-0.3, 0.3), min_size=9, max_size=9))
def test_the_interval_of_a_noisy_fit_holds_every_cell_held_out_ones_included(noise: list[float]) -> None:
    cells = []
    for clean, off in zip(GRID, noise, strict=True):
        shape = Shape(clean.context_tokens, 4, clean.concurrency)
        parts = prefill_parts(shape)
        noisy = msgspec.structs.replace(parts, kv_cache_bytes=round(parts.kv_cache_bytes * (1 + off)))
        cells.append(cell_of(*clean.key[::2], make_peak(Phase.PREFILL, noisy), new_tokens=4))
    profile = make_profile(
        cells=tuple(cells),
        memory_model=fitted(cells),
        model=msgspec.structs.replace(make_profile().model, generates=False),
    )
    for cell in cells:
        assert isinstance(cell.outcome, Measured)
        truth = cell.outcome.phases[0].allocated_bytes
        _, predicted = predict(profile, Shape(*cell.key))
        assert predicted.lower_bytes <= truth <= predicted.upper_bytes


@pytest.mark.parametrize(
    ("contexts", "assumed"), [((128, 256, 512), True), ((256, 512, 1024), True), ((512, 1024, 2048), False)]
)
def test_a_window_that_no_two_contexts_fill_raises_the_upper_bound_by_a_mask(
    contexts: tuple[int, ...], assumed: bool
) -> None:
    cells = [
        cell_of(
            context, concurrency, make_peak(Phase.PREFILL, make_parts(temporaries_bytes=500 * context * concurrency))
        )
        for context in contexts
        for concurrency in (1, 2, 4)
    ]
    profile = make_profile(
        cells=tuple(cells),
        memory_model=fitted(cells, window=1024),
        model=msgspec.structs.replace(make_profile().model, generates=False, sliding_window=1024),
    )
    far = predict(profile, Shape(32_768, 0, 2))[1]
    straight = make_parts(temporaries_bytes=500 * 32_768 * 2).total_bytes
    assert far.allocated_bytes == straight
    # One byte of a mask and two of its copy, for each of two sequences.
    assert (far.upper_bytes >= straight + 3 * 32_768**2 * 2) is assumed


def test_a_curve_that_two_contexts_leave_room_for_is_kept_though_a_line_with_an_intercept_meets_them_too() -> None:
    # A workspace of 8.5 MB and a mask of 3 B a square at 256 and 512 tokens: a line from 8.1 MB meets both.
    def growth(context: int) -> int:
        return 8_500_000 + 3 * context**2

    cells = [
        cell_of(context, concurrency, make_peak(Phase.PREFILL, make_parts(temporaries_bytes=growth(context))))
        for context in (256, 512)
        for concurrency in (1, 2)
    ]
    for attention in ("sdpa", "eager"):
        profile = make_profile(
            cells=tuple(cells),
            memory_model=fitted(cells, attention),
            model=msgspec.structs.replace(make_profile().model, generates=False),
        )
        for context in (8192, 32_768):
            assert predict(profile, Shape(context, 0, 1))[1].upper_bytes >= WEIGHTS + BUFFERS + growth(context)


def test_the_cell_that_alone_tells_a_curve_from_a_line_is_never_held_out() -> None:
    cells = [
        cell_of(
            context, concurrency, make_peak(Phase.PREFILL, make_parts(temporaries_bytes=3_000_000 + 2 * context**2))
        )
        for context, concurrency in ((256, 1), (256, 4), (512, 2), (1024, 1), (1024, 2), (1024, 4))
    ]
    assert coefficients(fitted(cells), Phase.PREFILL, "temporaries_bytes")["mask"] == pytest.approx(2, rel=1e-6)


def test_a_place_that_is_not_the_highest_yet_is_tested_all_the_same() -> None:
    # Logits are the highest everywhere here; what attention does from 1,200 tokens on is missed by a line through less.
    def attention(context: int) -> int:
        return 1_000 * context * (6 if context >= 1200 else 1)

    cells = []
    for context, concurrency in ((256, 1), (256, 4), (512, 1), (512, 4), (768, 2), (1024, 1), (1024, 4), (1536, 4)):
        found = {
            "lm_head": make_parts(outputs_bytes=50_000_000 * concurrency),
            "attention": make_parts(temporaries_bytes=attention(context) * concurrency),
        }
        peak = msgspec.structs.replace(
            make_peak(Phase.PREFILL, found["lm_head"], context),
            site="lm_head",
            moments=tuple(Moment(site=site, parts=parts) for site, parts in found.items()),
        )
        cells.append(cell_of(context, concurrency, peak, new_tokens=1))
    (phase,) = fitted(cells).phases
    assert phase.worst_held_out_error == 0
    # 1,536,000 by the line of what was fitted, 9,216,000 in truth.
    assert phase.worst_held_out_growth_error == pytest.approx(1 - 1 / 6, abs=1e-3)


def test_a_finished_profile_that_is_gone_on_with_is_fitted_as_if_nothing_had_been_dropped() -> None:
    kept = without_lesser_moments(TWO_PLACES, fitted(TWO_PLACES))
    more = [at_two_places(2048, concurrency) for concurrency in (1, 2, 4, 8, 16)]
    assert fitted([*kept, *more]) == fitted([*TWO_PLACES, *more])


def test_a_place_seen_in_too_few_cells_is_never_foretold_less_than_was_seen_of_it() -> None:
    cells = [at_two_places(context, concurrency) for context in (256, 512, 1024) for concurrency in (1, 2)]
    extra = at_two_places(2048, 1)
    assert isinstance(extra.outcome, Measured)
    parts = make_parts(temporaries_bytes=60_000_000)
    peak = msgspec.structs.replace(
        make_peak(Phase.PREFILL, parts, 2048),
        site="fallback",
        moments=(*extra.outcome.phases[0].moments, Moment(site="fallback", parts=parts)),
    )
    more = [cell_of(2048, 1, peak, new_tokens=1), at_two_places(2048, 2), at_two_places(3072, 4)]
    profile = make_profile(cells=(*cells, *more), memory_model=fitted([*cells, *more]))
    assert predict(profile, Shape(4096, 1, 2))[1].upper_bytes >= parts.total_bytes


def decode_with_a_window(context: int, concurrency: int, new_tokens: int) -> Cell:
    """A cache that slides over 128 tokens, 100 B each: only the first step still holds the whole prompt."""
    shape = Shape(context, new_tokens, concurrency)
    found = {
        f"{FIRST_STEP}cache update": make_parts(kv_cache_bytes=100 * (context + 1) * concurrency),
        "cache update": make_parts(kv_cache_bytes=100 * min(shape.cached_tokens, 128) * concurrency),
        END_OF_PHASE: make_parts(kv_cache_bytes=100 * min(shape.cached_tokens, 128) * concurrency),
    }
    site = max(found, key=lambda name: found[name].total_bytes)
    peak = msgspec.structs.replace(
        make_peak(Phase.DECODE, found[site], shape.cached_tokens),
        site=site,
        moments=tuple(Moment(site=name, parts=parts) for name, parts in found.items()),
    )
    return cell_of(context, concurrency, peak, new_tokens=new_tokens)


def test_what_only_the_first_step_holds_does_not_grow_with_the_tokens_that_follow() -> None:
    cells = [decode_with_a_window(context, many, 4) for context in (64, 256, 512, 1024) for many in (1, 2, 4)]
    model = fitted(cells, window=128)
    profile = make_profile(
        cells=tuple(cells),
        memory_model=model,
        model=msgspec.structs.replace(make_profile().model, generates=False, sliding_window=128),
    )
    for new_tokens in (4, 500):
        expected = decode_with_a_window(256, 3, new_tokens).outcome
        assert isinstance(expected, Measured)
        decode = predict(profile, Shape(256, new_tokens, 3))[1]
        assert decode.parts == expected.phases[0].parts
        # More new tokens than were seen are beyond what was measured.
        assert decode.evidence is (Evidence.MEASURED if new_tokens == 4 else Evidence.SCALED)
