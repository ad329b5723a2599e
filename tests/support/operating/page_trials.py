"""A trial of a job's pages that has ended: its report, with texts that no page may show as they are, and a picture."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

from warcmill.reports import page_trial
from warcmill.reports.page_trial import AnsweredPage, FailedPage, PageTrial, RuleOut
from warcmill.reports.rule_trial import RuleHits
from warcmill.stores import LocalStore
from warcmill.web.handover import files

ID = "20161019234428-0123456789ab"
MARKUP = "<script>alert(1)</script>"
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def leave(state: LocalStore, job: str) -> Path:
    """Leave it in the state; return its folder."""
    folder = files.folder_of(state, ID)
    folder.mkdir(parents=True)
    page = AnsweredPage(f"http://a.example/{MARKUP}", 200, MARKUP, 9, f"{MARKUP}\u202e{'W' * 900}", 1)
    found = PageTrial(
        job, 50, "2016-10-19T23:44:28Z", "it had its pages", [page], [RuleOut(1, [MARKUP], MARKUP)],
        RuleHits(1, [MARKUP]), [FailedPage(MARKUP, MARKUP)], RuleHits(70, [MARKUP] * 70),
    )  # fmt: skip
    (folder / page_trial.REPORT).write_text(json.dumps(found.json()))
    page_trial.picture_of(folder, 1).write_bytes(PNG)
    return folder
