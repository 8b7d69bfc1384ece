"""Counts as users type them and as gpufit prints them; sizes as it prints them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.errors import UsageError
from gpufit.units import (
    GIB,
    KIB,
    LARGEST_COUNT,
    LARGEST_SIZE,
    MIB,
    TIB,
    counted,
    format_figure,
    format_mib,
    format_size,
    format_tokens,
    parse_amount,
    parse_count,
    parse_counts,
    parse_pixels,
    parse_seconds,
    parse_seed,
    parse_size,
    parse_whole,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("8192", 8192),
        ("8k", 8 * 1024),
        ("8K", 8 * 1024),
        ("128k", 131_072),
        ("1m", 1024 * 1024),
        ("1M", 1024 * 1024),
        ("1.5k", 1536),
        ("0.5k", 512),
        ("2.0", 2),
        (" 4 k ", 4096),
        ("131,072", 131_072),
        ("131_072", 131_072),
        ("1,048,576", 1_048_576),
        ("007", 7),
    ],
)
def test_a_count_is_read_with_binary_k_and_m(text: str, expected: int) -> None:
    assert parse_count(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0",
        "0k",
        "0.0",
        "-1",
        "+1",
        "1.5",
        "0.1k",
        "1e3",
        "k",
        "8kb",
        "8 192",
        "abc",
        "1k4k",
        "nan",
        "inf",
        "1.",
    ],
)
def test_what_is_not_a_whole_number_of_at_least_one_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--context must be a whole number") as refused:
        parse_count(text, "--context")
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("text", ["512,1024", "1,2", "1,4k", "1,", ",1", "12,34,567", "1_0"])
def test_a_list_given_for_one_count_is_not_read_as_thousands(text: str) -> None:
    with pytest.raises(UsageError):
        parse_count(text)


@pytest.mark.parametrize("text", ["9" * 19, "9" * 20, "9" * 400, "9" * 5000, "1048577m", str(LARGEST_COUNT + 1)])
def test_a_count_too_large_for_any_question_is_refused_without_a_crash(text: str) -> None:
    with pytest.raises(UsageError):
        parse_count(text)


def test_the_largest_count_is_read_exactly() -> None:
    assert parse_count("1099511627775") == 2**40 - 1
    assert parse_count("1048576m") == 2**40


def test_decimals_are_taken_exactly_not_as_a_float() -> None:
    with pytest.raises(UsageError):
        parse_count("1.0000000000000000001k")


@given(st.integers(1, LARGEST_COUNT) | st.integers(1, 2**30).map(lambda n: n * KIB))
def test_a_count_that_was_printed_reads_back_as_itself(count: int) -> None:
    assert parse_count(format_tokens(count)) == count


@given(st.integers(1, LARGEST_COUNT))
def test_thousands_set_apart_change_nothing(count: int) -> None:
    assert parse_count(f"{count:,}") == parse_count(f"{count:_}") == count


@given(st.text(max_size=12) | st.text("0123456789.,_km ", max_size=8))
def test_any_text_is_a_count_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert 1 <= parse_count(text) <= LARGEST_COUNT


@pytest.mark.parametrize(
    ("text", "expected"),
    [("100k", 100_000), ("10M", 10_000_000), ("1.5k", 1500), ("0.001k", 1), ("8192", 8192), ("1,000k", 1_000_000)],
)
def test_an_amount_of_work_is_read_with_decimal_k_and_m(text: str, expected: int) -> None:
    assert parse_amount(text) == expected


@pytest.mark.parametrize("text", ["", "0", "1.5", "0.0001k", "8kb", "1e3"])
def test_an_amount_that_is_none_is_refused_with_an_example_of_its_own(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--inputs must be .* \(8000, or 8k = 8000\)"):
        parse_amount(text, "--inputs")


@pytest.mark.parametrize(
    ("value", "nearest", "up"),
    [
        (0.0048225, "0.00482", "0.00483"),
        (0.000433494, "0.000433", "0.000434"),
        (0.9645, "0.965", "0.965"),
        (0.2167, "0.217", "0.217"),
        (2.4113, "2.41", "2.42"),
        (23.04, "23.0", "23.1"),
        (1234.5, "1,234", "1,235"),
        (9.999, "10.00", "10.00"),
        (4.0, "4.00", "4.00"),
        (0.0, "0", "0"),
    ],
)
def test_a_rate_is_told_in_significant_digits(value: float, nearest: str, up: str) -> None:
    assert (format_figure(value), format_figure(value, up=True)) == (nearest, up)


@given(st.floats(1e-12, 1e12))
def test_a_figure_rounded_up_is_enough_and_by_little(value: float) -> None:
    told = float(format_figure(value, up=True).replace(",", ""))
    assert value <= told <= value * 1.0101


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_what_is_no_rate_is_not_told(value: float) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        format_figure(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128", (128,)),
        ("1k,4k,8k", (1024, 4096, 8192)),
        ("8k,1k", (1024, 8192)),
        ("1024,1k", (1024,)),
        (" 1 , 2 ", (1, 2)),
        ("1,2,4", (1, 2, 4)),
        ("512,1024", (512, 1024)),
    ],
)
def test_a_list_of_counts_comes_out_ascending_and_distinct(text: str, expected: tuple[int, ...]) -> None:
    assert parse_counts(text) == expected


@pytest.mark.parametrize("text", ["", ",", "1,", ",1", "1,,2", "1,x", "1,0", "1;2"])
def test_a_list_with_a_bad_member_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--concurrency must be"):
        parse_counts(text, "--concurrency")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (104_856, "104,856 B"),
        (104_857, "0.1 MiB"),
        (MIB, "1.0 MiB"),
        (107_374_181, "102.4 MiB"),
        (107_374_182, "102.4 MiB"),
        (GIB, "1.00 GiB"),
        (80 * 10**9, "74.51 GiB"),  # 80e9 / 2**30 = 74.505...
        (-GIB // 2, "-512.0 MiB"),
        (-1, "-1 B"),
        (2**60, "1073741824.00 GiB"),
    ],
)
def test_a_size_is_printed_in_the_unit_that_shows_it(size: int, expected: str) -> None:
    assert format_size(size) == expected


@given(st.integers(-(2**60), 2**60).filter(bool))
def test_a_size_that_is_not_zero_never_reads_as_zero(size: int) -> None:
    for text in (format_size(size), format_mib(size)):
        number, unit = text.replace(",", "").split()
        assert float(number) != 0
        factor = {"B": 1, "MiB": MIB, "GiB": GIB}[unit]
        # Half a unit of the last digit printed: 0.005 GiB, 0.05 MiB.
        assert abs(Fraction(number) * factor - size) <= {"B": 0, "MiB": 0.05 * MIB, "GiB": 0.005 * GIB}[unit] * 1.0001


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "1"), (1000, "1000"), (1023, "1023"), (1024, "1k"), (1025, "1025"), (8192, "8k"), (131_072, "128k"), (0, "0")],
)
def test_tokens_take_a_k_only_where_it_is_exact(count: int, expected: str) -> None:
    assert format_tokens(count) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6GiB", 6 * GIB),
        ("6g", 6 * GIB),
        ("6 G", 6 * GIB),
        ("512MiB", 512 * MIB),
        ("512m", 512 * MIB),
        ("1.5gib", 3 * 512 * MIB),
        ("0.1k", 102),
        ("100KiB", 100 * KIB),
        ("2t", 2 * TIB),
        ("24GB", 24_000_000_000),
        ("1.5kb", 1500),
        (" 1TB ", 10**12),
    ],
)
def test_a_size_is_read_with_binary_letters_and_decimal_bytes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    "text", ["", "6", "0g", "0.0001k", "-1g", "g", "6 gigs", "6GiBs", "1e3m", "1.g", f"{LARGEST_SIZE // TIB + 1}t"]
)
def test_what_is_no_size_with_a_unit_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="--memory-limit must be a size with its unit"):
        parse_size(text, "--memory-limit")


@given(st.integers(1, 10**6), st.sampled_from([("k", KIB), ("MiB", MIB), ("g", GIB), ("GB", 10**9)]))
def test_a_whole_size_is_exact(value: int, unit: tuple[str, int]) -> None:
    assert parse_size(f"{value}{unit[0]}") == value * unit[1]


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_seconds, "1", 1),
        (parse_seconds, str(366 * 24 * 3600), 31_622_400),
        (parse_whole, "0", 0),
        (parse_whole, "999999", 999_999),
        (parse_seed, str(2**63 - 1), 2**63 - 1),
        (parse_pixels, "448x320", (448, 320)),
        (parse_pixels, "448", (448, 448)),
    ],
)
def test_what_else_is_typed_is_read(parse: Callable[[str, str], object], text: str, expected: object) -> None:
    assert parse(text, "--x") == expected


@pytest.mark.parametrize(
    ("parse", "texts"),
    [
        (parse_seconds, ("", "0", "1.5", "-1", "31622401", "9" * 5000)),
        (parse_whole, ("", "-1", "1000000", "9" * 5000)),
        (parse_seed, ("", "-1", str(2**63), "9" * 5000)),
        (parse_pixels, ("", "0", "1x2x3", "x", "100000", "448 x 448")),
    ],
)
def test_and_refused_in_a_line_that_names_it(parse: Callable[[str, str], object], texts: tuple[str, ...]) -> None:
    for text in texts:
        with pytest.raises(UsageError, match=r"^--x must be "):
            parse(text, "--x")


@pytest.mark.parametrize(("count", "said"), [(0, "0 inputs"), (1, "1 input"), (2, "2 inputs"), (1024, "1,024 inputs")])
def test_one_is_one(count: int, said: str) -> None:
    assert counted(count, "input") == said
