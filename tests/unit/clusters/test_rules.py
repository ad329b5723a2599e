"""The rules of a group: each fault of a file is named by file, rule and key, and the first rule that fits counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from records.countries import mmdb

from warcmill.clusters.rules import HostRules, Judgement, countries, no_country, parse
from warcmill.errors import BadConfig

CLUSTERS = ("east", "west", "south")
RULES = """
default = "east"

[[rule]]
prefix = "http://(example,bad,"
forbid = true

[[rule]]
domain = "example.org"
network = "192.0.2.0/24"
cluster = "west"

[[rule]]
network = "2001:db8::/32"
cluster = "south"

[[rule]]
country = "et"
cluster = "south"
"""


def judged(rules: HostRules, host: str, *addresses: str, known: dict[str, str] | None = None, gone: str = "") -> str:
    def country(address: str) -> str:
        return "ET" if address.startswith("198.51.100.") else ""

    found = rules.judge(host, addresses, country=country, known=known or {}, gone=[gone] if gone else [])
    return f"{found.cluster}: {found.rule}"


def test_the_first_rule_whose_conditions_all_fit_counts_and_then_the_host_of_its_address() -> None:
    rules = parse(RULES, "rules.toml", CLUSTERS)
    assert judged(rules, "bad.example") == judged(rules, "x.bad.example") == ": rule 1 (prefix http://(example,bad,)"
    assert judged(rules, "notbad.example") == "east: default"
    assert judged(rules, "www.example.org", "192.0.2.7").startswith("west: rule 2 (domain example.org, network 192.0")
    assert judged(rules, "www.example.org", "192.0.3.7") == judged(rules, "www.example.org") == "east: default"
    assert judged(rules, "an-example.org", "192.0.2.7") == "east: default"
    assert judged(rules, "six.example", "192.0.3.1", "2001:db8::1") == "south: rule 3 (network 2001:db8::/32)"
    assert judged(rules, "addis.example", "198.51.100.9") == "south: rule 4 (country ET)"
    known = {"192.0.3.7": "west"}
    assert judged(rules, "shared.example", "192.0.3.7", known=known) == "west: another host of 192.0.3.7"
    assert judged(rules, "addis.example", "198.51.100.9", "192.0.3.7", known=known).startswith("south: rule 4")


def test_the_rules_of_a_retired_cluster_are_passed_over() -> None:
    rules = parse(RULES, "rules.toml", CLUSTERS)
    assert judged(rules, "six.example", "2001:db8::1", gone="south") == "east: default"
    assert judged(rules, "a.example", "192.0.3.7", known={"192.0.3.7": "west"}, gone="west") == "east: default"


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("default", "rules.toml", "it is not TOML"),
        ("", "rules.toml default", "is not one of the group's jobs: east, west, south"),
        ('default = "north"', "rules.toml default", "is not one of"),
        ('default = "east"\nrules = 1', "rules.toml rules", "is not known"),
        ('default = "east"\n[rule]\ncluster = "west"', "rules.toml rule", "write the two brackets"),
        ('default = "east"\nrule = [1]', "rules.toml rule 1", "is not a table"),
        ('default = "east"\n[[rule]]\ncluster = "west"', "rules.toml rule 1", "has no condition"),
        ('default = "east"\n[[rule]]\ndomain = "a.example"', "rules.toml rule 1", "has one of 'cluster' and 'forbid'"),
        ('default = "east"\n[[rule]]\ndomain = "a.example"\nforbid = false', "rules.toml rule 1 forbid", "is true"),
        ('default = "east"\n[[rule]]\ndomain = 7\nforbid = true', "rules.toml rule 1 domain", "is not a text"),
        ('default = "east"\n[[rule]]\ndomain = "a b"\nforbid = true', "rules.toml rule 1 domain", "is not a domain"),
        ('default = "east"\n[[rule]]\nnetwork = "1.2.3.4/8"\nforbid = true', "rules.toml rule 1 network", "host bits"),
        ('default = "east"\n[[rule]]\ncountry = "ETH"\nforbid = true', "rules.toml rule 1 country", "two letters"),
        ('default = "east"\n[[rule]]\ncountrry = "ET"\nforbid = true', "rules.toml rule 1 countrry", "is not known"),
        ('default = "east"\n[[rule]]\nprefix = "org.example"\nforbid = true', "rules.toml rule 1 prefix", "not a SURT"),
        (
            'default = "east"\n[[rule]]\nprefix = "http://(org,example,)/a/"\nforbid = true',
            "rules.toml rule 1 prefix",
            "of whole hosts",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_file_rule_and_key(text: str, what: str, why: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse(text, "rules.toml", CLUSTERS)
    assert caught.value.key == what
    assert why in caught.value.why


def test_the_country_of_an_address_is_that_of_the_operators_file(tmp_path: Path) -> None:
    path = tmp_path / "countries.mmdb"
    path.write_bytes(mmdb({"196.188.0.0/16": "ET", "193.0.0.0/21": "NL"}))
    country = countries(path)
    found = [country(one) for one in ("196.188.1.1", "193.0.6.139", "193.0.8.1", "2001:db8::1", "nonsense")]
    assert found == ["ET", "NL", "", "", ""]
    rules = parse(RULES, "rules.toml", CLUSTERS)
    assert rules.needs_countries
    one = rules.judge("a.example", ["196.188.9.9"], country=country, known={})
    assert one == Judgement("south", "rule 4 (country ET)")
    assert countries(None) is no_country
    path.write_bytes(b"nonsense")
    with pytest.raises(BadConfig, match="cannot be read"):
        countries(path)
    with pytest.raises(BadConfig, match="cannot be read"):
        countries(tmp_path / "none")
