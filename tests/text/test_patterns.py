"""Checks of regular expressions: published patterns pass, and those that search without end are named."""

import pytest

from bert_elmo_jax.text.patterns import check_pattern

ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
MIXED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
PUBLISHED = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]",
    "gpt4o": rf"[^\r\n\p{{L}}\p{{N}}]?{MIXED}*[\p{{Ll}}\p{{Lm}}]+{ENDINGS}?| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+",
    "llama3": ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "clip": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|\s*[\r\n]+",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}]?[\p{Lu}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{M}&&[^\p{Han}]]+(?i:'s|'t)?|\p{N}{1,3}",
    "thousands": r"\d{1,3}(?=(?:\d{3})*\b)|(?=(\d{3})+(?!\d))",
}
REFUSED = {
    "(.*)*(.*)*z": r"repeats '\(\.\*\)'", "(a+)+$": "in which", "((a*))+": "in which", "(?<n>a+)+": "in which",
    "(?i:(b|[a&&[^c]]+))*": "in which", "([ab]+[)])+": "in which", "(a|b+|c)*": "in which", "(a+)(?#c)*": "in which",
    "a{1,}+": "in which", "(a+|b){20}": "in which", "(a{2,40}){10}": "in which", "(a*){5}": "one after the other",
    "a+b+c+d+e+": "more than 4 repeats without end, one after the other", "a" * 10_001: "has 10,001 characters",
    r"\g<0>*": "is not supported", "(?ix)(a+) *": "is not supported", "(" * 60: "more than 50 groups",
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_patterns_pass(name):
    check_pattern(PUBLISHED[name])


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_patterns_that_search_without_end(pattern):
    with pytest.raises(ValueError, match=REFUSED[pattern]):
        check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["[[:punct:]]+", "[]a]+b", "(a+)?", r"(\d+)|(x*)", "(?:\\r?\\n)+", "(", "{1}", "\\"]
)
def test_patterns_that_end(pattern):
    check_pattern(pattern)
