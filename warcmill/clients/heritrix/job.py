"""The files of a Heritrix job, made from the targets of a feed (`formats/targets`). Pure.

    crawler-beans.cxml   the profile, filled in; its sheets define the crawl of each target
    seeds.txt            the URLs to begin with
    surts.txt            prefixes of the sites
    exclude.txt          prefixes that are never crawled

Only canonical URLs of the feed get into the XML, never a title or an id.

The crawl of each target is defined by Spring beans of Heritrix: sheets, and their associations with URLs. A sheet
overrides settings of the profile's beans for some URLs only. If several apply to one URL, the last wins: a longer
prefix comes after a shorter one, and an association by seed after one by prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar
from xml.sax.saxutils import escape

from warcmill.errors import BadConfig
from warcmill.formats.feed import Depth
from warcmill.formats.targets import PART, Caps, PageCrawl, Plan, Policy

CONFIGURATION: Final = "crawler-beans.cxml"
TARGETS_HERE: Final = "<!--@targets@-->"


def files(plan: Plan, profile: str, values: Mapping[str, str], caps: Caps) -> dict[str, bytes]:
    """All files of the job: name -> bytes. `values` replace the profile's `@name@`.

    BadConfig for a profile that cannot be used.
    """
    beans = sheet_beans(plan.sites, plan.pages, caps)
    values = {**values, "capped_kb": str(caps.capped // 1024)}
    return {CONFIGURATION: filled(profile, values, beans).encode(), **plan.lists()}


def filled(profile: str, values: Mapping[str, str], beans: str) -> str:
    """The profile with each `@name@` replaced by its escaped value, and with the targets' beans inserted.

    BadConfig unless it has exactly one place for them.
    """
    if profile.count(TARGETS_HERE) != 1:
        raise BadConfig("[feed] profile", f"must have {TARGETS_HERE} once, where the targets' sheets go")
    for name, value in values.items():
        profile = profile.replace(f"@{name}@", xml(value))
    return profile.replace(TARGETS_HERE, beans)


Kind = TypeVar("Kind", Policy, PageCrawl)


def sheet_beans(sites: Mapping[str, Policy], pages: Mapping[str, PageCrawl], caps: Caps) -> str:
    """All beans as XML: the sheets, then one association for each group of sites, or pages, crawled alike.

    `sites` maps SURT prefixes, `pages` maps seeds.
    """
    kib = {Depth.CAPPED: caps.capped // 1024, Depth.CAPPED_LARGE: caps.capped_large // 1024, Depth.DEEP: -1}
    sheets = {f"depth-{depth}": {"quotaEnforcer.hostMaxAllKb": str(kib[depth])} for depth in Depth}
    sheets |= {f"robots-{policy}": {"metadata.robotsPolicyName": policy} for policy in ("obey", "ignore")}
    # A page has its parts over more hops than other pages have theirs, and no sitemap: the rule of plus1 expresses it.
    page = {"plus1.enabled": "true", "plus1.regex": PART, "transclusions.enabled": "false"}
    sheets |= {"scope-resource": page, "scope-refresh": page, "scope-plus1": {"plus1.enabled": "true"}}
    parts = [_sheet(name, settings) for name, settings in sheets.items()]
    parts += [_site_bean(f"sites-{number}", policy, members) for number, (policy, members) in _groups(sites)]
    parts += [_page_bean(f"pages-{number}", page, members) for number, (page, members) in _groups(pages)]
    return "\n".join(parts)


def _of(policy: Policy) -> tuple[str, str]:
    """The sheets that apply a policy: always both, as a site within a site may override the outer one's."""
    return f"depth-{policy.depth}", f"robots-{'ignore' if policy.ignore_robots else 'obey'}"


def xml(text: str) -> str:
    """Escape text for an element or an attribute; BadConfig if Spring would evaluate it (`#{`)."""
    if "#{" in text or not text.isprintable():
        raise BadConfig("[feed] profile", f"{text[:80]!r} may not go into the engine's configuration")
    return escape(text, {'"': "&quot;"})


def _groups(members: Mapping[str, Kind]) -> Iterator[tuple[int, tuple[Kind, list[str]]]]:
    groups: dict[Kind, list[str]] = {}
    for member in sorted(members):
        groups.setdefault(members[member], []).append(member)
    return enumerate(sorted(groups.items()), 1)


def _sheet(name: str, settings: Mapping[str, str]) -> str:
    entries = "".join(f'<entry key="{key}" value="{value}"/>' for key, value in settings.items())
    return f"""\
 <bean id="{name}" class="org.archive.spring.Sheet">
  <property name="map"><map>{entries}</map></property>
 </bean>"""


def _site_bean(name: str, policy: Policy, prefixes: list[str]) -> str:
    return f"""\
 <bean id="{name}" class="org.archive.crawler.spring.SurtPrefixesSheetAssociation">
  <property name="surtPrefixes"><list>
{_values(prefixes)}
  </list></property>
  <property name="targetSheetNames"><list>
{_values(_of(policy))}
  </list></property>
 </bean>"""


def _page_bean(name: str, page: PageCrawl, seeds: list[str]) -> str:
    """`insideSites` rejects: the site, not the page, decides how a URL within a site is crawled."""
    return f"""\
 <bean id="{name}" class="org.archive.crawler.spring.DecideRuledSheetAssociation">
  <property name="rules"><bean class="org.archive.modules.deciderules.DecideRuleSequence">
   <property name="rules"><list>
    <bean class="org.archive.modules.deciderules.SourceSeedDecideRule"><property name="sourceSeeds"><set>
{_values(seeds)}
    </set></property></bean>
    <ref bean="insideSites"/>
   </list></property>
  </bean></property>
  <property name="targetSheetNames"><list>
{_values((f"scope-{page.reach}", *_of(page.policy)))}
  </list></property>
 </bean>"""


def _values(values: Iterable[str]) -> str:
    return "\n".join(f"   <value>{xml(value)}</value>" for value in values)
