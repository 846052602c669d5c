"""Text from outside is made safe, and guards against formulas can be undone."""

import random
from xml.dom.minidom import parseString

import pytest

from mrshc.shell.text_cleaning import clean_text, guard_formula, unguard_formula

UNSAFE = ["\x00", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u202e", "\u2066", "\u200f", "\ufffe"]


@pytest.mark.parametrize("character", UNSAFE)
def test_no_control_or_direction_mark_is_left(character):
    cleaned = clean_text(f"gene{character}7")
    assert character not in cleaned
    assert cleaned in ("gene 7", "gene7")
    assert cleaned.isprintable()


def test_bytes_that_are_not_text_can_be_written_afterwards():
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert clean_text(broken).encode("utf-8") == "caf\N{REPLACEMENT CHARACTER}".encode()


def test_any_cleaned_text_is_valid_xml():
    rng = random.Random(0)
    everything = "".join(chr(rng.randrange(0x110000)) for _ in range(20_000))
    cleaned = clean_text(everything + "".join(map(chr, range(0x300))))
    for special in "&<>":
        cleaned = cleaned.replace(special, "")
    assert parseString(f"<a>{cleaned}</a>").documentElement.firstChild is not None


@pytest.mark.parametrize(
    "text", ["TP53", "β-catenin", "日本", "a b", "naïve", "\N{DNA DOUBLE HELIX}"]
)
def test_other_text_is_unchanged(text):
    assert clean_text(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+cmd|x", "-cmd|x", "@SUM(A1)", "'=1", "''@a", "=" * 9])
def test_formulas_are_guarded_and_the_guard_is_undone(text):
    guarded = guard_formula(text)
    assert guarded == "'" + text
    assert unguard_formula(guarded) == text


@pytest.mark.parametrize("text", ["", "-", "+", "-1.5", "+2e3", "'", "'a", "'-1.5'", "a=b", "it's"])
def test_numbers_signs_and_other_texts_survive_the_round_trip(text):
    assert unguard_formula(guard_formula(text)) == text


def test_guarded_texts_differ_where_texts_differ():
    alphabet, rng = "'=+-@1.a", random.Random(1)
    texts = {"".join(rng.choices(alphabet, k=rng.randrange(6))) for _ in range(5000)}
    assert len({guard_formula(text) for text in texts}) == len(texts)
    assert all(unguard_formula(guard_formula(text)) == text for text in texts)
