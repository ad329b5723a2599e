"""A line of scope.log: what the policies decided about a link, in the columns of Heritrix's `DecideRuleSequence`.

    TIME NUMBER POLICY DECISION URI {"hopPath": ..., "via": ..., "seed": ..., "why": ...}

NUMBER is the place of the policy in the order in which they are asked, from 0; -1 for `nofollow`, which is asked
before. DECISION is REJECT, or DEFER, with `until`. Heritrix's log has accepted URIs too; here crawl.log has those.
"""

from __future__ import annotations

import json

from warcmill.crawl import log_line
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri


def line(seconds: float, number: int, found: Decision, uri: Uri) -> str:
    """Return the line of a decision, without its end."""
    policy, text = log_line.column(found.policy), log_line.column(uri.uri)
    about = {"hopPath": uri.hops, "via": uri.via, "seed": uri.source, "why": found.why}
    until = {"until": log_line.moment(found.until)} if found.verdict is Verdict.DEFER else {}
    decision = found.verdict.upper()
    return f"{log_line.moment(seconds)} {number} {policy} {decision} {text} {json.dumps({**about, **until})}"
