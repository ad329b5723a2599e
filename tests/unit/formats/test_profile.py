"""The shipped profile has all that the line needs; take any of it away and it is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warcmill.audit.health import Level, check_profile
from warcmill.errors import BadInput
from warcmill.formats.profile import faults

SHIPPED = (Path(__file__).parent.parent.parent.parent / "config" / "heritrix" / "profile.cxml").read_text("utf-8")
LAUNCH = "${launchId}"


def found(text: str) -> list[str]:
    return list(faults(text.encode(), "a profile"))


def test_the_shipped_profile_lacks_nothing() -> None:
    assert found(SHIPPED) == []


@pytest.mark.parametrize(
    ("setting", "other", "named"),
    [
        ("logExtraInfo=true", "logExtraInfo=false", "loggerModule.logExtraInfo"),
        ("loggerModule.logExtraInfo=true", "", "loggerModule.logExtraInfo"),
        ("loggerModule.logExtraInfo=true", "#loggerModule.logExtraInfo=true", "loggerModule.logExtraInfo"),
        ('name="sourceTagSeeds" value="true"', 'name="sourceTagSeeds" value="false"', "seeds.sourceTagSeeds"),
        ('<ref bean="annotateIp"/>', "", "annotates each URL with its ip: address"),
        ('"ip:"', '"address:"', "annotates each URL with its ip: address"),
        ("forgetAllButLatest=false", "forgetAllButLatest=true", "checkpointService.forgetAllButLatest"),
        ("checkpointService.forgetAllButLatest=false", "", "checkpointService.forgetAllButLatest"),
        ("IntervalMinutes=360", "IntervalMinutes=-1", "checkpointService.checkpointIntervalMinutes"),
        ("IntervalMinutes=360", "IntervalMinutes=361", "checkpointService.checkpointIntervalMinutes"),
        ("IntervalMinutes=360", "IntervalMinutes=0", "checkpointService.checkpointIntervalMinutes"),
        ('<ref bean="persistLoad"/>', "", "persistLoad before fetchHttp"),
        ('<ref bean="fetchHistory"/><ref bean="annotateIp"/>', '<ref bean="annotateIp"/>', "fetchHistory right after"),
        (
            '<ref bean="fetchHistory"/><ref bean="annotateIp"/>',
            '<ref bean="annotateIp"/><ref bean="fetchHistory"/>',
            "fetchHistory right after",
        ),
        ("recrawl.BdbContentDigestHistory", "recrawl.Other", "BdbContentDigestHistory"),
        ('<ref bean="contentDigestHistoryLoader"/>', "", "contentDigestHistoryLoader before warcWriter"),
        ('<ref bean="persistStore"/>', "", "persistStore after warcWriter"),
        ('<ref bean="contentDigestHistoryStorer"/>', "", "contentDigestHistoryStorer"),
        ('name="dir" value="state"', f'name="dir" value="{LAUNCH}/state"', "bdb.dir"),
        ('<ref bean="warcWriterViral"/>', "", "must have warcWriterViral"),
        (
            '<property name="enabled" value="false"/>\n  <property name="storePaths">',
            '<property name="storePaths">',
            "warcWriterViral.enabled",
        ),
        ("<value>viral</value>", "<value>other</value>", "a rule that applies it"),
        ('key="warcWriter.enabled" value="false"', 'key="warcWriter.enabled" value="true"', "a rule that applies it"),
        ("<value>@warcs@</value>", "<value>/data/warcs</value>", "warcWriter.storePaths"),
        ("<value>@viral@</value>", "<value>/data/viral</value>", "warcWriterViral.storePaths"),
        ('value="@logs@"', 'value="/data/logs"', "loggerModule.path"),
        ('value="@reports@"', 'value="/data/reports"', "statisticsTracker.reportsDir"),
        ('value="@contact@"', 'value=""', "metadata.operatorContactUrl"),
        (
            '<property name="storePaths"><list><value>@warcs@',
            '<property name="shouldProcessRule" ref="viral"/><property name="storePaths"><list><value>@warcs@',
            "warcWriter.shouldProcessRule",
        ),
    ],
)
def test_each_missing_setting_is_named(setting: str, other: str, named: str) -> None:
    assert SHIPPED.count(setting) == 1, setting
    (fault,) = found(SHIPPED.replace(setting, other))
    assert named in fault


def test_a_setting_may_be_in_the_bean_or_as_a_prop_and_an_override_wins() -> None:
    in_bean = SHIPPED.replace("loggerModule.logExtraInfo=true\n", "").replace(
        '<property name="path" value="@logs@"/>',
        '<property name="path" value="@logs@"/><property name="logExtraInfo"><value>true</value></property>',
    )
    assert found(in_bean) == []
    assert len(found(in_bean.replace("metadata.jobName=@job@", "loggerModule.logExtraInfo=false"))) == 1
    as_prop = re.sub(
        r"<value>\s*metadata.*?</value>",
        '<props><prop key="loggerModule.logExtraInfo">true</prop></props>',
        SHIPPED,
        flags=re.DOTALL,
    )
    assert not any("logExtraInfo" in fault for fault in found(as_prop))


def test_the_engine_s_own_folders_below_the_launch_are_as_good() -> None:
    text = SHIPPED.replace(' value="@logs@"', f' value="{LAUNCH}/logs"').replace(' value="@reports@"', ' value=""')
    assert found(text) == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is not XML"),
        (b"<beans", "is not XML"),
        (b'<!DOCTYPE beans [<!ENTITY a "b">]><beans/>', "DTD or an entity"),
        (b"<beans/>", "not a configuration of Heritrix"),
        (b"\xff\xfe\x00", "is not XML"),
    ],
)
def test_what_is_no_configuration_is_refused_by_name(data: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        list(faults(data, "jobs:daily/crawler-beans.cxml"))
    check = check_profile("job daily", data, "jobs:daily/crawler-beans.cxml")
    assert check.level is Level.FAIL
    assert why in check.text


RULE = """<bean {id} class="org.archive.modules.deciderules.surt.{kind}">{properties}</bean>"""
NO_SEEDS = '<property name="seedsAsSurtPrefixes" value="false"/>'


def inside(kind: str = "SurtPrefixedDecideRule", name: str = "", properties: str = "") -> list[str]:
    """What is found when such a rule lies inside the scope."""
    rule = RULE.format(id=name, kind=kind, properties=properties)
    return found(SHIPPED.replace('<ref bean="sites"/>', rule))


@pytest.mark.parametrize("name", ["", 'id="sites2"', 'name="sites2"'])
@pytest.mark.parametrize("kind", ["SurtPrefixedDecideRule", "OnDomainsDecideRule", "OnHostsDecideRule"])
def test_a_rule_by_seeds_that_no_checkpoint_would_hold_is_named(kind: str, name: str) -> None:
    (fault,) = inside(kind, name)
    assert fault.startswith(f"{kind} inside bean scope must be a bean of the top level")


def test_a_rule_that_reads_its_prefixes_anew_may_lie_anywhere() -> None:
    assert inside(properties=NO_SEEDS) == []


def test_a_rule_by_seeds_inside_a_bean_without_a_name_is_named() -> None:
    rules = (
        f'<bean class="a.B"><property name="rules">{RULE.format(id="", kind="SurtPrefixedDecideRule", properties="")}'
    )
    (fault,) = found(SHIPPED.replace("<!--@targets@-->", f"{rules}</property></bean>"))
    assert "inside a bean without an id" in fault
