"""Patterns: the one way to write a group, and to read it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import PatternError
from equipoise.lattice import Group, format_pattern, format_value, parse_pattern
from equipoise.values import ANY, MISSING
from strategies import NASTY, selectors, texts, values

patterns = st.dictionaries(texts(), selectors(), max_size=4)


@given(patterns)
def test_parsing_undoes_formatting(pattern):
    assert parse_pattern(format_pattern(pattern)) == pattern


@given(patterns)
def test_a_formatted_pattern_is_one_line_without_control_characters(pattern):
    text = format_pattern(pattern)
    assert len(text.splitlines()) == 1
    assert not [c for c in text if unicodedata.category(c) == "Cc"]


@given(patterns, st.sampled_from(["", " ", "  ", "\t"]))
def test_space_around_the_parts_means_nothing(pattern, space):
    parts = [format_pattern({name: value}) for name, value in pattern.items()]
    text = f"{space},{space}".join(f"{space}{part}{space}" for part in parts)
    assert parse_pattern(text or "*") == pattern


@given(st.dictionaries(texts(), selectors(), min_size=1, max_size=4))
def test_groups_are_equal_by_what_they_fix_in_any_order(pattern):
    group = Group(pattern)
    backwards = Group(dict(reversed(pattern.items())))
    assert group == backwards
    assert hash(group) == hash(backwards)
    assert Group.parse(str(group)) == group
    assert ANY not in group.values()
    assert dict(group) == {k: v for k, v in pattern.items() if v is not ANY}


@given(st.lists(values(), min_size=2, max_size=2, unique=True))
def test_different_values_are_written_differently(two):
    assert format_value(two[0]) != format_value(two[1])


@pytest.mark.parametrize("text", NASTY)
def test_no_text_is_taken_for_any_or_missing(text):
    assert parse_pattern(f"a={format_value(text)}") == {"a": text}
    assert type(parse_pattern(f"a={format_value(text)}")["a"]) is str


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*", {}),
        (" * ", {}),
        ("sex=*", {"sex": ANY}),
        ("sex=<missing>", {"sex": MISSING}),
        ("sex='*'", {"sex": "*"}),
        ("sex='<missing>'", {"sex": "<missing>"}),
        ("sex=''", {"sex": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("'a=b'=c", {"a=b": "c"}),
        ("a=>50K, b=<=50K", {"a": ">50K", "b": "<=50K"}),
        ("town='Bath, UK'", {"town": "Bath, UK"}),
        (r"a='it\'s'", {"a": "it's"}),
        (r"a='\u0041\n\\'", {"a": "A\n\\"}),
        (r"a=C:\temp", {"a": r"C:\temp"}),
        ('a="quoted"', {"a": '"quoted"'}),
        ("a='\"'", {"a": '"'}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=1,", {"a": "1"}),
        ("a=** , b=* *", {"a": "**", "b": "* *"}),
    ],
)
def test_patterns_as_people_write_them(text, expected):
    assert parse_pattern(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "sex", "=x", "sex=", ",", "sex=a,,b=c", "sex='a", "sex='a'b", "'sex=a",
        "a=1, a=2", "a=1, a=*", r"a='\x'", r"a='\u12'", "a,b=c", "sex='a' 'b'", "**", "sex=a, race",
    ],
)  # fmt: skip
def test_what_is_no_pattern(text):
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    message = str(caught.value)
    assert message.isprintable()
    assert message.endswith(".")


@pytest.mark.slow
@given(st.text(max_size=20) | st.lists(st.sampled_from("a=,'* \\\"<>\n"), max_size=12).map("".join))
def test_any_text_is_a_pattern_or_a_pattern_error(text):
    try:
        pattern = parse_pattern(text)
    except PatternError:
        return
    assert parse_pattern(format_pattern(pattern)) == pattern


@given(patterns, patterns)
def test_a_group_matches_the_groups_inside_it(first, second):
    outer, inner = Group(first), Group({**second, **first})
    assert outer.matches(inner)
    assert Group().matches(inner)
    for name, value in outer.items():
        other = "x" if value != "x" else "y"
        assert not outer.matches(Group({**first, name: other}))
        without = Group({k: v for k, v in first.items() if k != name})
        assert not outer.matches(without)
