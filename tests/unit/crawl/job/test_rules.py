"""The rules that leave addresses out: as a person writes them, as crawl.toml has them, and what each leaves out."""

from __future__ import annotations

import pytest

from warcmill.crawl.job import file, rules
from warcmill.crawl.job.rules import LeavingRules
from warcmill.errors import BadInput


@pytest.mark.parametrize(
    ("written", "expression"),
    [
        ("calendar", r"(?i).*\Qcalendar\E.*"),
        ("/a?b=[", r"(?i).*\Q/a?b=[\E.*"),
        ("http*://a.example/*.ics", r"(?i)\Qhttp\E.*\Q://a.example/\E.*\Q.ics\E"),
        ("*a", r"(?i).*\Qa\E"),
        ("*", r"(?i).*"),
        ("re: .*x.*", ".*x.*"),
        ("re: (a+)+$", "(a+)+$"),
        (r"re: (?i)\Qa\E\Qb\E", r"(?i)\Qa\E\Qb\E"),
        (r"re: (?i)\Qa*b\E", r"(?i)\Qa*b\E"),
        (r"re: (?i).*\Qa", r"(?i).*\Qa"),
    ],
)
def test_a_rule_is_an_expression_and_back(written: str, expression: str) -> None:
    assert rules.expression_of(written) == expression
    assert rules.rule_of(expression) == written


def test_wildcards_around_a_word_are_the_word() -> None:
    assert rules.rule_of(rules.expression_of("*print*")) == "print"


def test_a_list_has_expressions_and_prefixes_each_once() -> None:
    found = rules.read("a\n\n http://(org,example,)/x \na\nre: b\nhttp://(org,example,)/x\n")
    assert found == LeavingRules((r"(?i).*\Qa\E.*", "b"), ("http://(org,example,)/x",))


@pytest.mark.parametrize(
    "text", ["re: (\n", "x\nre: a{9999}\n", "re: (?=x)\n", "\\d\n", "".join(f"{n}\n" for n in range(2_001))]
)
def test_a_rule_that_is_none_is_named(text: str) -> None:
    with pytest.raises(BadInput):
        rules.read(text)


JOB = file.described(
    {
        "crawl.toml": b"patterns = ['(?i).*\\Qcalendar\\E.*', '(a+)+$']\nextensions = ['zip']\n[traps]\ndepth = 4\n",
        "seeds.txt": b"http://a.example/x/\n", "surts.txt": b"+http://(example,a,)/x/\n",
        "exclude.txt": b"http://(example,a,)/x/old/\n",
    },
    "a",
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("http://a.example/x/", ""),
        ("http://a.example/x/page", ""),
        ("http://a.example/x/Calendar/3", "calendar"),
        ("http://a.example/x/old/1", "http://(example,a,)/x/old/"),
        ("http://a.example/y", "what to keep"),
        ("http://a.example/x/b.ZIP", ".zip"),
        ("http://a.example/x/1/2/3/4/5", "[traps] depth 4"),
        (f"http://a.example/x/{'a' * 1_900}!", ""),
        ("javascript:alert(1)", "no address"),
        ("http://[", "no address"),
    ],
)
def test_an_address_is_in_or_out_by_one_rule(address: str, rule: str) -> None:
    (found,) = rules.judged(JOB, f"\n{address}\n")
    assert (found.line, found.rule) == (2, rule)


def test_so_many_addresses_are_judged_together() -> None:
    assert len(rules.judged(JOB, "http://a.example/x/\n" * 1_000)) == 1_000
    with pytest.raises(BadInput, match="1,000 addresses are looked at together"):
        rules.judged(JOB, "http://a.example/x/\n" * 1_001)


def test_a_page_that_is_linked_from_a_single_page_belongs_to_it() -> None:
    job = file.described(
        {"crawl.toml": b"[pages]\n'http://a.example/x/' = 'plus1'\n", "seeds.txt": b"http://a.example/x/\n"}, "a"
    )
    assert [one.rule for one in rules.judged(job, "http://b.example/\n")] == [""]


@pytest.mark.parametrize(
    ("typed", "is_rule", "rule", "address"),
    [
        ("A.example/x", False, "http://(example,a,)/x", "https://a.example/x/1"),
        ("calendar", True, "calendar", "http://a.example/x?Calendar=1"),
        (" *calendar* ", True, "calendar", "http://a.example/calendar"),
        ("http*/print/*", True, "http*/print/*", "http://a.example/print/1"),
        ("re: .*/print/[0-9]", True, "re: .*/print/[0-9]", "http://a.example/print/1"),
        ("https://(example,a,)/x", True, "http://(example,a,)/x", "http://a.example/x/1"),
    ],
)
def test_one_rule_is_named_and_hits_what_it_leaves_out(typed: str, is_rule: bool, rule: str, address: str) -> None:
    assert rules.named(typed, is_rule=is_rule) == rule
    assert rules.hits(rule)(address)
    assert not rules.hits(rule)("http://b.example/")


@pytest.mark.parametrize(("typed", "is_rule"), [("x y", False), ("a\nb", True), ("", True), ("re: (?=a)", True)])
def test_what_is_no_rule_is_refused(typed: str, is_rule: bool) -> None:
    with pytest.raises(BadInput):
        rules.named(typed, is_rule=is_rule)


def test_a_rule_that_is_catastrophic_elsewhere_is_linear() -> None:
    fits = rules.hits(rules.named("re: .*((a+)+)+[^a]b$", is_rule=True))
    assert not fits(f"http://a.example/{'a' * 2_000}")
