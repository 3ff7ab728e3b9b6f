"""Reading another table's words: the right map when it is certain, and never a wrong one."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.matching.values.concepts import (
    is_code,
    is_missing,
    known_words,
    synonyms,
    tells_meaning,
)
from equipoise.lake.matching.values.spelling import compact, normalise
from equipoise.lake.matching.values.vocabulary import ValueMap, match_values
from strategies import NASTY


def match(base: str, source: str, **options) -> ValueMap:
    """Match ``"a | b"`` with ``"c | d"``; every value has another number of rows."""
    sides = [
        {value: 10 + 3 * i for i, value in enumerate(side.split(" | "))} for side in (base, source)
    ]
    return match_values(*sides, **options)


# Base values and source values in the same order: each source value means the one above it.
ORDINARY = [
    ("exact", "Male | Female", "Male | Female"),
    ("exact", "M | F", "M | F"),
    ("exact", "Yes | No", "Yes | No"),
    ("exact", "Y | N", "Y | N"),
    ("exact", "NY | CA", "NY | CA"),
    ("exact", "25-34 | 35-44 | 65+", "25-34 | 35-44 | 65+"),
    ("exact", "Private | State-gov | ?", "Private | State-gov | ?"),
    ("exact", "(17, 30] | (30, 90]", "(17, 30] | (30, 90]"),
    ("exact", "Grade 1 | Grade 2", "Grade 1 | Grade 2"),
    ("normalised", "Male | Female", " MALE | female "),
    ("normalised", "<=50K | >50K", "<=50K. | >50K."),
    ("normalised", "<=50K | >50K", "50K or less | more than 50K"),
    ("normalised", "<=50K | >50K", "up to 50k | 50k+"),
    ("normalised", "<=50K | >50K", "under 50k | over 50k"),
    ("normalised", "<=50K | >50K", "<= 50,000 | > 50,000"),
    ("normalised", "<=50K | >50K", "≤$50K | >50000"),
    ("normalised", "<=50K | >50K", "le50k | gt 50k"),
    ("normalised", "<25 | >=25", "under 25 | 25 and over"),
    ("normalised", "<25 | >=25", "age < 25 | age ≥ 25"),
    ("normalised", "18-24 | 25-34 | 65+", "18 to 24 | 25 – 34 | 65 and over"),
    ("normalised", "Male | Female", "1 - Male | 2 - Female"),
    ("normalised", "African-American | Other", "african_american | OTHER"),
    ("normalised", "AfricanAmerican | Other", "African American | other"),
    ("normalised", "célibataire | marié", "Celibataire | MARIE"),
    ("normalised", "no default | default", "No-Default | DEFAULT"),
    ("synonyms", "Male | Female", "M | F"),
    ("synonyms", "M | F", "men | women"),
    ("synonyms", "Male | Female", "männlich | weiblich"),
    ("synonyms", "Male | Female", "M | W"),
    ("synonyms", "Male | Female", "男 | 女"),
    ("synonyms", "Male | Female | Non-binary", "Man | Woman | nonbinary"),
    ("synonyms", "True | False", "wahr | falsch"),
    ("synonyms", "Yes | No", "ja | nein"),
    ("synonyms", "African-American | Caucasian | Hispanic", "Black | White | Latino"),
    (
        "synonyms",
        "White | Black | Hispanic | Other",
        "White, non-Hispanic | Black (non-Hispanic) | Hispanic or Latino | Other race",
    ),
    ("synonyms", "White | Non-White", "Caucasian | nonwhite"),
    ("synonyms", "Hispanic | Not Hispanic", "Hispanic or Latino | Non-Hispanic"),
    ("synonyms", "Married | Single | Divorced | Widowed", "M | S | D | W"),
    ("synonyms", "Married | Never-married | Divorced", "married | Single | DIVORCED"),
    ("synonyms", "Married | Single", "married | not married"),
    (
        "synonyms",
        "HS-grad | Some-college | Bachelors | Masters | Doctorate | 11th",
        "High school | Some college, no degree | Bachelor's degree | Master's | PhD | 11th grade",
    ),
    ("synonyms", "Employed | Unemployed", "working | not working"),
    ("synonyms", "Full-time | Part-time", "FT | PT"),
    ("synonyms", "approved | denied", "Accepted | Rejected"),
    ("synonyms", "Approved | Denied", "A | D"),
    ("synonyms", "default | no default", "Defaulted | Non-default"),
    ("synonyms", "recidivist | non-recidivist", "Reoffended | Did not reoffend"),
    ("synonyms", "Felony | Misdemeanor", "F | M"),
    ("synonyms", "pass | fail", "Passed | Failed"),
    ("synonyms", "High | Medium | Low", "H | M | L"),
    ("synonyms", "own | rent | for free", "Owner | Renter | rent-free"),
    ("synonyms", "Citizen | Non-citizen", "US citizen | not a citizen"),
    ("synonyms", "United-States | Mexico", "USA | MEX"),
    ("synonyms", "Red | Male | Female", "red | man | woman"),
    ("prefix", "Exec-managerial | Tech-support | Sales", "Exec | Tech | Sales"),
    ("prefix", "Engineering | Marketing", "Eng | Mark"),
    ("prefix", "Clerks | Potter", "Clerk | Potters"),
    ("prefix", "Clerk | Diplomat", "Clerk status | Diplomat"),
    ("fuzzy", "Engineer | Lawyer", "Engneer | Lawyer"),
    ("fuzzy", "Manufacturing | Farming-fishing", "Manufacturng | Farming-fishing"),
]


@pytest.mark.parametrize(("step", "base", "source"), ORDINARY)
def test_ordinary_vocabularies_are_read_and_rightly(step, base, source):
    found = match(base, source)
    assert found.values == dict(zip(source.split(" | "), base.split(" | "), strict=True))
    assert (found.step, found.certain) == (step, True)
    assert (found.unmapped, found.missing, found.proposals) == ((), (), {})


TRAPS = [
    ("0 | 1", "0 | 1"),
    ("1 | 2", "2 | 1"),
    ("A | B", "A | B"),
    ("X1 | X2", "X1 | X2"),
    ("group A | group B", "group A | group B"),
    ("I | II | III", "I | II | III"),
    ("+ | -", "+ | -"),
    ("-1 | 1", "-1 | 1"),
    ("A | D", "A | D"),
    ("Male | Female", "0 | 1"),
    ("Male | Female", "H | M"),
    ("Male | Female", "T | F"),
    ("Male | Female", "Mr | Mrs"),
    ("Yes | No", "TRUE | FALSE"),  # of a statement that may be the negation
    ("T | F", "Y | N"),
    ("White | Black | Asian-Pac-Islander | Amer-Indian-Eskimo | Other", "W | B | A | I | O"),
    ("Asian | White", "Asia | Caucasian"),
    ("Yes | No", "1 | 0"),
    ("good | bad", "1 | 2"),
    ("Asian | Black", "A | B"),
    ("Married | Separated", "M | S"),
    ("Married | Separated | Divorced", "M | S | D"),
    ("Married | Single | Separated | Divorced", "M | S | D"),
    ("White | Black | Asian | American Indian", "W | B | A"),
    ("Married | Never-married | Divorced", "Married | Single"),
    ("default | no default", "yes | no"),
    ("good | bad", "yes | no"),
    ("positive | negative", "yes | no"),
    ("<=50K | >50K", "low | high"),
    ("<=50K | >50K", "<50K | >=50K"),
    ("<=50K | >50K", "<=60K | >60K"),
    ("<25 | >=25", "<=25 | >25"),
    (">65 | <=65", "65+ | under 65"),
    ("[18, 25) | [25, 90)", "(18, 25] | (25, 90]"),
    ("Married | Divorced", "Not married | Divorced"),
    ("white | other", "non-white | other"),
    ("employed | retired", "unemployed | retired"),
    ("symptomatic | in hospital", "asymptomatic | in hospital"),
    ("typical case | in hospital", "atypical case | in hospital"),
    ("Grade 1 | Grade 2", "Grade 1 | Grade 3"),
    ("Diploma course 1 | Diploma course 2", "Diploma course 1 | Diploma course 3"),
    ("Married-civ-spouse | Divorced", "Married | Divorced"),
    ("White Hispanic | Black", "White | Black"),
    ("White | Black", "White Hispanic | Black"),
    ("White | Black", "Non-Hispanic White | Non-Hispanic Black"),
    ("Black | Asian | Pacific Islander", "Black | Asian/Pacific Islander"),
    ("Employed part-time | Unemployed", "Employed | Unemployed"),
    ("High risk | Low risk", "High income | Low income"),
    ("Single | Separated", "S | Separated"),
    ("Carpentry | Carting", "Car | Carting"),
    ("Carpentry | Pottery", "Ca | Pottery"),
    ("county | state", "country | state"),
    ("Austria | Germany", "Australia | Germany"),
    ("interstate commerce | fishing", "intrastate commerce | fishing"),
    ("candidat | juriste", "candidate | juriste"),
    ("candidate | juriste", "candidat | juriste"),
    ("Lehrerin | Arzt", "Lehrer | Arzt"),
    ("x = 5 | y = 5", "x != 5 | y = 5"),
    ("1 - child | 3 - children", "0 - children | 1 - child"),
    ("Male | Female", "Male | Female | Martian"),
    ("Male | Female", "Male | male | Female"),
    ("Black | White", "Black | African American | White"),
    ("Black | African American | White", "Afro-American | White"),
    ("Yes | No", "Yes"),
    ("yes | no", "TRUE"),
    ("M | F", "F"),
    ("Other | Artist", "Other"),
    ("Exec-managerial | Sales", "Exec"),
    ("Male | Female", "Blue | Green"),
]


@pytest.mark.parametrize(("base", "source"), TRAPS)
def test_what_is_not_certain_stays_open(base, source):
    found = match(base, source)
    assert (found.values, found.step, found.certain) == ({}, None, False)
    assert found.unmapped == tuple(source.split(" | "))
    assert found.why
    assert set(found.proposals) <= set(found.unmapped)
    assert {p.value for p in found.proposals.values()} <= set(base.split(" | "))


def test_the_evidence_is_a_sentence():
    assert match("Male | Female", "M | F").why == "all 2 values are known words for sex"
    assert "'A', 'B'" not in match("A | B", "A | B").why
    assert "codes A, B mean nothing" in match("A | B", "A | B").why
    assert "'Martian'" in match("Male | Female", "Male | Female | Martian").why


def test_one_telling_word_is_enough_for_a_table_of_one_group():
    assert match("Male | Female", "Women").values == {"Women": "Female"}
    assert match("Male | Female", "Female").step == "exact"


# --- missing values, codes, telling words ---------------------------------------------------------


def test_texts_for_missing_do_not_spoil_the_map_and_map_to_nothing():
    found = match("Male | Female", "M | F |  | ? | N/A | Unknown | prefer not to say")
    assert found.values == {"M": "Male", "F": "Female"}
    assert found.missing == ("", "?", "N/A", "Unknown", "prefer not to say")


def test_a_letter_for_unknown_is_missing_among_letters_for_sex():
    found = match("Male | Female", "M | F | U")
    assert (found.values, found.missing) == ({"M": "Male", "F": "Female"}, ("U",))


def test_a_text_for_missing_that_the_base_has_is_a_value():
    found = match("Male | Female | Unknown", "male | unknown | ?")
    assert found.values == {"male": "Male", "unknown": "Unknown"}
    assert found.missing == ("?",)


def test_a_source_without_any_value_is_open():
    found = match_values({"a": 1}, {"": 3, "NA": 2})
    assert (found.certain, found.missing, found.unmapped) == (False, ("", "NA"), ())


@pytest.mark.parametrize(
    "text", ["", " ", "?", "NA", "n/a", "NaN", "null", "None", "-", ".", "unbekannt", r"\N"]
)
def test_what_is_missing(text):
    assert is_missing(text)


@pytest.mark.parametrize("text", ["no", "0", "N", "other", "+", "nothing special", "refused"])
def test_what_is_not_missing(text):
    assert not is_missing(text)


@pytest.mark.parametrize(
    "text", ["0", "-1", "1.0", "A", "M", "X1", "a-12", "zz", "QRS", "IV", "*", "class 2", "10%"]
)
def test_what_is_a_code(text):
    assert is_code(text)


@pytest.mark.parametrize(
    "text", ["no", "HS", "Low", "25-34", "<5", "65+", ">50K", "11th", "女", "Grade 1", "covid19"]
)
def test_what_is_not_a_code(text):
    assert not is_code(text)


@pytest.mark.parametrize("values", ["Male | Female", "M | F", "yes | no | separated", ">50K"])
def test_vocabularies_that_tell_their_column(values):
    assert tells_meaning(values.split(" | "))


@pytest.mark.parametrize(
    "values", ["yes | no", "T | F", "0 | 1", "A | B", "High | Low", "?", "1. yes | 2. no"]
)
def test_vocabularies_that_do_not(values):
    assert not tells_meaning(values.split(" | "))


# --- what the user says -----------------------------------------------------------------------


def test_the_users_word_makes_equal_codes_certain_and_no_others():
    assert match("1 | 2", "2.0 | 1", same_codes=True).values == {"2.0": "2", "1": "1"}
    assert match("1 | 2", "1", same_codes=True).step == "exact"
    assert not match("1 | 2", "1 | 3", same_codes=True).certain
    assert not match("Male | Female", "1 | 2", same_codes=True).certain


def test_a_codebook_is_taken_as_it_is():
    found = match("Male | Female", "1 | 2 | 9", codebook={"1": "Female", "2": "Male", "7": "Male"})
    assert found.values == {"1": "Female", "2": "Male"}
    assert (found.step, found.certain, found.unmapped) == ("codebook", True, ("9",))


def test_a_codebook_may_join_values_and_overrule_words():
    book = {"Male": "Female", "F": "Female", "?": "Male"}
    found = match("Male | Female", "Male | F | ?", codebook=book)
    assert (found.values, found.missing, found.unmapped) == (book, (), ())


def test_a_codebook_for_other_tables_changes_nothing():
    assert match("Male | Female", "M | F", codebook={"1": "Male"}).step == "synonyms"


def test_a_codebook_must_name_values_of_the_base():
    with pytest.raises(InputError, match=r"'Mael'.*its values are: Female, Male"):
        match("Male | Female", "1 | 2", codebook={"1": "Mael", "2": "Female"})


# --- proposals --------------------------------------------------------------------------------


def test_proposals_carry_their_evidence_and_their_doubt():
    found = match("default | no default", "yes | no")
    assert found.proposals["yes"].value == "default"
    assert "depends on the column's meaning" in found.proposals["yes"].why
    found = match("<=50K | >50K", "low | high")
    assert found.proposals["high"].value == ">50K"
    assert "threshold" in found.proposals["high"].why


def test_equal_codes_are_proposed_with_a_warning_and_strange_codes_not_at_all():
    found = match("1 | 2", "1 | 3")
    assert set(found.proposals) == {"1"}
    assert "may mean something else" in found.proposals["1"].why
    assert "%" not in found.proposals["1"].why
    assert match("Male | Female", "1 | 2").proposals == {}


def test_letters_are_proposed_only_where_the_whole_set_is_there():
    assert match("Male | Female", "T | F").proposals == {}
    assert match("Male | Female", "M | F | Martian").proposals["F"].value == "Female"


def test_no_proposal_crosses_a_negation_or_a_number():
    assert "Not married" not in match("Married | Divorced", "Not married | Divorced").proposals
    assert "Grade 3" not in match("Grade 1 | Grade 2", "Grade 1 | Grade 3").proposals


# --- properties -------------------------------------------------------------------------------

ALL = sorted({v for _, *sides in ORDINARY for side in sides for v in side.split(" | ")})
VALUES = st.sampled_from([*ALL, *NASTY, "0", "1", "Unknown", "yes", "not married", "nonwhite"])
VOCABULARIES = st.dictionaries(VALUES, st.integers(1, 1000), min_size=1, max_size=6)
WORDS = st.text(string.ascii_lowercase, min_size=5, max_size=9).filter(
    lambda w: not is_code(w) and not is_missing(w) and w not in known_words()
)


@given(VOCABULARIES, VOCABULARIES, st.booleans())
@example({"M": 1, "F": 1}, {"M": 1, "F": 2}, False)
def test_a_map_is_whole_and_one_to_one_or_there_is_none(base, source, same_codes):
    found = match_values(base, source, same_codes=same_codes)
    assert set(found.values) | set(found.missing) | set(found.unmapped) == set(source)
    assert len(found.values) + len(found.missing) + len(found.unmapped) == len(source)
    assert set(found.values.values()) <= set(base)
    assert len(set(found.values.values())) == len(found.values)
    assert found.certain == bool(found.values) == (found.step is not None)
    if found.certain:
        assert found.unmapped == ()


@given(VOCABULARIES, VOCABULARIES)
def test_what_is_certain_does_not_depend_on_proposals(base, source):
    found, bare = match_values(base, source), match_values(base, source, propose=False)
    assert (bare.values, bare.certain, bare.missing) == (found.values, found.certain, found.missing)
    assert bare.proposals == {}


@given(st.sampled_from(ORDINARY), st.data())
def test_order_and_numbers_of_rows_decide_nothing(case, data):
    sides = [side.split(" | ") for side in case[1:]]
    first = match_values(*(dict.fromkeys(side, 1) for side in sides))
    shuffled = [data.draw(st.permutations(side)) for side in sides]
    rows = [{v: data.draw(st.integers(0, 10**6)) for v in side} for side in shuffled]
    again = match_values(*rows)
    assert (again.values, again.certain, again.step) == (first.values, True, first.step)


@given(VOCABULARIES, VOCABULARIES, st.randoms(use_true_random=False))
def test_order_and_numbers_of_rows_decide_nothing_about_odd_vocabularies(base, source, random):
    sides = []
    for side in (base, source):
        items = list(side)
        random.shuffle(items)
        sides.append({v: random.randrange(1000) for v in items})
    one, other = match_values(base, source), match_values(*sides)
    assert (one.values, one.certain) == (other.values, other.certain)
    assert {s: p.value for s, p in one.proposals.items()} == {
        s: p.value for s, p in other.proposals.items()
    }


@given(st.lists(WORDS, min_size=2, max_size=6, unique=True))
def test_words_that_are_the_same_on_both_sides_are_mapped_to_themselves(words):
    found = match_values(dict.fromkeys(words, 1), dict.fromkeys(reversed(words), 2))
    assert (found.values, found.step) == ({w: w for w in words}, "exact")


@given(st.lists(WORDS, min_size=4, max_size=10, unique_by=lambda w: w[0]))
def test_unrelated_words_are_never_mapped(words):
    half = len(words) // 2
    base, source = words[:half], words[half:]
    found = match_values(dict.fromkeys(base, 1), dict.fromkeys(source, 1))
    assert (found.certain, found.proposals) == (False, {})


@given(st.sampled_from(ORDINARY), WORDS)
def test_one_unrelated_word_more_opens_the_map(case, word):
    sides = [dict.fromkeys(side.split(" | "), 5) for side in case[1:]]
    assume(not any(normalise(b)[:1] == word[0] for b in sides[0]))
    found = match_values(sides[0], sides[1] | {word: 1})
    assert (found.certain, found.values) == (False, {})


CODES = st.one_of(
    st.integers(-9, 99).map(str),
    st.sampled_from([f"{a}{i}" for a in "ABX" for i in range(4)]),
    st.sampled_from("ABCEGKQZ"),
)


@given(st.lists(CODES, min_size=2, max_size=5, unique=True), st.data())
def test_codes_are_never_mapped_without_a_word_of_the_user(codes, data):
    rows = dict.fromkeys(codes, 3)
    other = dict.fromkeys(data.draw(st.permutations(codes)), 3)
    assert not match_values(rows, other).certain
    assert not match_values({"Male": 3, "Female": 4, "yes": 1, "no": 2}, other).certain
    assert match_values(rows, other, same_codes=True).values == {c: c for c in codes}


@given(st.text(max_size=12) | st.text("012 k.-,#<>=!%aBto…", max_size=12))
@example("0#k")
@example("1#-2")
@example("18-24")
def test_normalised_text_is_normal(text):
    assert normalise(normalise(text)) == normalise(text)


@given(st.integers(0, 10**6), st.sampled_from(["<", "<=", ">", ">=", "!=", "-"]))
def test_signs_survive(number, sign):
    assert normalise(f"{sign} {number}") != normalise(f"{number}") or sign == "-"
    assert normalise(f"{sign}{number}") != normalise(f"{number}")


# --- the stored words -------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(synonyms()["concepts"]))
def test_a_stored_concept_says_one_thing_for_each_spelling(name):
    stored = synonyms()["concepts"][name]
    spelled = [
        (compact(spelling), meaning)
        for meaning, spellings in stored["words"].items()
        for spelling in spellings
    ]
    assert len(dict(spelled)) == len(set(spelled))
    meanings = {*stored["words"], "missing"}
    for letters in stored.get("letters", ()):
        assert set(letters["needs"]) <= set(letters["codes"])
        assert set(letters["codes"].values()) <= meanings
    for spelling, condition in stored.get("only", {}).items():
        assert compact(spelling) in dict(spelled)
        assert {m for listed in condition.values() for m in listed} <= meanings


# --- size -------------------------------------------------------------------------------------


def test_large_vocabularies_are_left_open_at_once():
    names = {f"customer {i} of the bank": 1 for i in range(50_000)}
    start = time.perf_counter()
    found = match_values({"Male": 1, "Female": 1}, names)
    assert "50,000 values" in found.why
    assert (found.certain, found.proposals, len(found.unmapped)) == (False, {}, 50_000)
    assert not match_values(names, {"Male": 1}).certain
    assert time.perf_counter() - start < 1


def test_the_largest_vocabulary_is_still_quick():
    base = {f"{a}{b}lastingly occupied": 1 for a in "bcdfghklmn" for b in string.ascii_lowercase}
    base = dict(list(base.items())[:200])
    source = {value.replace("ting", "tin"): 1 for value in base}
    start = time.perf_counter()
    assert match_values(base, source).step == "fuzzy"
    assert time.perf_counter() - start < 5
