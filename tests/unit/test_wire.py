"""Texts that are wire: those of claims, reports, notices and `--json`. They keep their bytes.

A claim reports what a step found, and two honest runs of a step must write the same one. When a text of a claim
changes, an old and a new version of Warcmill write different claims of the same work, and meet in a Conflict; so
does a step that is redone after an upgrade. Reports, notices and `--json` are read by other people's programs.

`tests/data/wire/` has one sorted list for each kind. It names no module, so a text may move: only the line of its
module below follows. Docstrings, comments, log lines, `--help`, tables on a terminal, and messages of errors that no
claim takes up may be changed freely.

Where a test fails: if you reworded a text that is listed, restore it. If you added one, add the line that the
test prints. To remove or change one on purpose is a change of the format: see docs/markers.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from operating.wire import ROOT, Place, checks, classes, makes_wire, overlooked, texts

from tasks.config.services import SERVICES
from warcmill import chain
from warcmill.audit import gaps

DATA = ROOT / "tests" / "data" / "wire"
CLAIMS = (
    Place(
        "warcmill/model.py",
        but=("Json", "parse_number", "parse_checkpoint", "parse_reason"),
        fields=("Item", "FileRef"),
    ),
    Place(
        "warcmill/layout.py", but=("OutputLayout", "check_sentinel", "_named", "_AND", "_DUMP_FILE", "parse_dump_path")
    ),
    Place("warcmill/base/clock.py"),  # times, and the months and days in the paths of markers and reports
    Place("warcmill/errors.py", only=("BadInput", "Mismatch")),  # faults of a feed in 00.feed; `verify --json`
    Place("warcmill/markers/claim.py", raised=True),
    Place("warcmill/markers/attempts.py"),
    # The keys of facts, read and written; and what is wrong with a value, which is the `why` of a broken marker.
    Place("warcmill/markers/facts/__init__.py"),
    Place("warcmill/markers/facts/readers.py", raised=True),
    Place("warcmill/markers/facts/operator.py", raised=True),
    Place("warcmill/markers/facts/state.py", raised=True),
    Place("warcmill/markers/facts/pulse.py", raised=True),
    Place("warcmill/markers/facts/pypi.py", raised=True),
    Place("warcmill/markers/facts/output.py", raised=True),
    Place("warcmill/markers/facts/files.py", raised=True),
    Place("warcmill/markers/facts/package.py", raised=True),
    Place("warcmill/markers/facts/index.py", raised=True),
    Place("warcmill/markers/facts/reports.py", raised=True),
    Place("warcmill/markers/facts/documents.py", raised=True),
    Place("warcmill/documents/extract.py"),
    Place(
        "warcmill/documents/verify.py",
        only=(
            "verify",
            "REVISIT",
            "HTML",
            "GZIP",
            "OTHER",
            "EMPTY",
            "REFUSED",
            "VIRAL",
            "ELSEWHERE",
            "UNNAMED",
            "BAD",
            "UNREADABLE",
        ),
    ),
    # Why captures are in no extract of documents.
    Place("warcmill/extracts/harvest.py", only=("NOT_FETCHED", "EMPTY", "NEITHER", "UNREAD_PAGE")),
    Place("warcmill/pypi/process.py"),
    Place("warcmill/pypi/dump.py", but=("asked_by", "_is_empty", "_DumpFiles._there", "_DumpFiles.of")),
    Place("warcmill/pypi/full_dump.py", only=("decide", "dump_full")),
    Place(
        "warcmill/pypi/window_rows.py",
        but=("WindowRows._keyed", "WindowRows.hear", "WindowRows._ask", "_answer", "_project_of", "_by_key"),
    ),
    Place("warcmill/pypi/verify_dump.py", only=("verify", "read_back", "_rows")),
    Place("warcmill/markers/decisions.py", only=("RecordedDecision.encode",)),
    Place("warcmill/markers/editions.py", only=("Edition.encode",)),
    Place("warcmill/formats/logs/crawlreport.py"),
    Place("warcmill/formats/logs/unrendered.py", but=("Unrendered.text",)),
    Place("warcmill/launches/stored_logs.py", only=("in_order",)),
    Place("warcmill/reports/crawl.py"),
    Place("warcmill/reports/seeds.py"),
    Place("warcmill/reports/engine_counts.py"),
    Place("warcmill/reports/seed_fates.py"),
    Place("warcmill/reports/seed_lines.py"),
    # What refuses a file reports why in its item: the gate, and the stores, for names that they cannot take.
    Place("warcmill/formats/warc/reader.py"),
    Place("warcmill/formats/warc/http.py", raised=True),
    Place("warcmill/formats/warc/checks.py"),
    Place("warcmill/formats/warc/gate.py"),
    Place("warcmill/formats/warc/rest.py", only=("FOUND_AGAIN", "NO_NEXT", "NOT_READ")),
    Place("warcmill/formats/warc/gzip.py"),
    Place("warcmill/formats/warc/header.py"),
    Place("warcmill/stores/file.py", only=("FileStore._inside", "FileStore.server_digest")),
    Place("warcmill/stores/remote_files.py", only=("check_path",)),
    Place("warcmill/stores/s3/store.py", only=("S3Store.server_digest", "S3Store._key")),
    Place("warcmill/stores/sftp/store.py", only=("SftpStore.server_digest",)),
    Place("warcmill/stores/webhdfs/hdfscli.py", only=("HdfsCli.read",)),
    Place("warcmill/stores/webhdfs/store.py", only=("WebHdfsStore._real", "WebHdfsStore.server_digest")),
    Place("warcmill/formats/hdfs_checksum.py", only=("Hasher.result",)),
    Place("warcmill/formats/logs/crawlcounts.py", only=("OTHERS", "_time")),
    Place("warcmill/formats/feed.py"),
    Place("warcmill/formats/surt.py", raised=True),  # what is wrong with a URL of a feed
    Place("warcmill/base/schedule.py", raised=True),
    Place(
        "warcmill/formats/logs/logzip.py", but=("_pack", "_path", "write", "_LOCAL", "_MEMBER", "_END", "_ENCODINGS")
    ),
    # The files that a feed's targets make for the engine are in 01.started by their digests.
    Place("warcmill/formats/targets.py"),
    Place("warcmill/clients/heritrix/job.py"),
    # The steps.
    Place("warcmill/launches/listing.py"),
    Place("warcmill/launches/view.py", but=("of_checkpoint", "Vitals", "span")),
    Place("warcmill/output/gather.py", but=("pick_rendered", "refuse_clashes")),
    Place("warcmill/output/assemble.py"),
    Place("warcmill/output/pack_logs.py", but=("_ready",)),
    Place("warcmill/output/process.py"),
    Place("warcmill/output/stop.py", raised=True),  # `why` says it of a launch that runs
    Place("warcmill/files/checksum.py"),
    Place("warcmill/files/copy.py"),
    Place("warcmill/files/read_back.py"),
    Place("warcmill/files/retire.py"),
    Place("warcmill/files/transfer.py", but=("as_announced", "present", "store_file")),
    Place("warcmill/files/verify.py"),
    Place("warcmill/pulse/control.py", but=("_refuse_other_due", "_refuse_unknown")),
    Place("warcmill/pypi/feed.py", only=("again", "prepare", "serials", "claim_of", "_counts")),
    Place("warcmill/pypi/survey/listing.py", only=("_facts", "_swept")),
    Place("warcmill/pulse/feed.py", only=("Recipe", "HeritrixRecipe", "_refuse_faults", "OwnRecipe"), documents=True),
    Place(
        "warcmill/decisions/folder_layouts.py",
        only=("BareFolder", "TASK", "_sort_in", "why_not_read", "names", "paper_names"),
    ),
    Place("warcmill/decisions/wacz_source.py", only=("WaczFiles", "_compared")),
    Place(
        "warcmill/formats/foreign_wacz.py", but=("_Guarded", "_FAULTS", "_begins_as_json", "_ALGORITHMS", "_words_of")
    ),
    Place("warcmill/decisions/folder_import.py", only=("Taking._sort_in", "claim_of", "_counts", "_item")),
    Place("warcmill/decisions/redo.py", only=("_move",)),
    Place("warcmill/decisions/statements.py", only=("_sources",), documents=True),
    Place("warcmill/backup/backup.py", but=("has_any", "_is_backup")),
    Place("warcmill/backup/restore.py", only=("Backup.files", "_is_sound")),
    Place("warcmill/files/virus_scan.py"),
    Place("warcmill/extracts/stage_extracts.py", but=("unread",)),
    Place("warcmill/index/cdx.py"),
    Place("warcmill/index/verify_cdx.py", only=("verify", "_Verifying.item")),
    Place("warcmill/index/text.py"),
    Place("warcmill/index/verify_text.py", only=("verify", "_Verifying.item")),
    Place("warcmill/index/columns.py", only=("claim",)),
    # The keys of index.text: kinds of documents, and why other captures are not documents.
    Place("warcmill/formats/text/document.py", only=("Kind",)),
    Place("warcmill/formats/index/cdxj.py", only=("IMPOSSIBLE",)),
    Place("warcmill/formats/text/captures.py", only=("REVISIT", "NOT_FETCHED", "OTHER_TYPE")),
    Place("warcmill/package/verify.py", only=("VERIFY", "verify")),
    Place("warcmill/package/build.py"),
    Place("warcmill/package/identifiers.py"),
    Place("warcmill/package/submit.py", only=("SUBMIT", "submit", "key_of")),
    Place("warcmill/package/index_sip.py"),
)
REPORTS = (
    Place("warcmill/audit/gaps.py", but=("Gap.json",), fields=("Gap",)),
    Place("warcmill/versions/revisits.py", only=("Searched.unknown",)),
    Place("warcmill/formats/logs/bounds.py"),
    Place("warcmill/audit/findings.py"),
    Place("warcmill/audit/accepted_seeds.py", only=("facts", "KIND")),
    Place("warcmill/audit/due_crawls.py", but=("in_groups", "look_at"), fields=("JobGap",)),
    Place("warcmill/audit/remedies.py"),
    Place("warcmill/audit/omissions.py"),
    Place("warcmill/audit/reconciliation.py", but=("heads",)),
    Place("warcmill/audit/survey.py", but=("did_you_mean_launch", "refuse_unknown")),
    Place("warcmill/audit/progress_grid.py", but=("STYLES",)),
    Place("warcmill/audit/inventory.py"),
    Place("warcmill/audit/day_summary.py"),
    Place("warcmill/audit/fixity_audit.py", raised=True),
    Place("warcmill/markers/facts/reading.py", raised=True),  # the `why` of a marker whose facts do not fit
    Place("warcmill/markers/state.py", only=("_refuse_foreign",), raised=True),
    Place("warcmill/launches/view.py", only=("Vitals", "span", "vitals", "_last_time", "_TIME")),
    Place("warcmill/launches/discovery.py", but=("Whole",)),  # `odd`, `bare` of `reconcile --json`, as the next two
    Place("warcmill/launches/empty_roots.py"),
    Place("warcmill/stores/engine_folder.py", only=("LinkRules",)),
    Place("warcmill/output/stage_report.py"),  # info.json and package.json
)
NOTICES = (
    Place(
        "warcmill/clients/notice.py",
        only=("subject", "text", "_lines", "document", "send_webhook"),
        fields=("Trouble", "Notice"),
    ),
    Place("warcmill/audit/health.py", only=("_TEST", "_check", "check_channels")),
    Place("tasks/summary.py", but=("ScanEnding.report",)),
    Place("tasks/step.py", only=("LaunchScan.find", "_note", "_report_bare")),
    Place("tasks/files.py", only=("StoreScan.find",)),
    Place("tasks/output.py", only=("_silence",)),
    Place("tasks/pulse.py", only=("_note", "ScanForLaunches._watched")),
    Place("warcmill/scripts/answers.py", only=("troubles", "_record")),
    Place("warcmill/scripts/watch.py", but=("T",)),
)
JSON = (
    Place("warcmill/reports/missed.py", only=("COLUMNS",)),
    Place("warcmill/reports/comparison.py", only=("LaunchComparison.json",)),
    Place("warcmill/reports/figures.py", documents=True),
    Place("commands/report.py", only=("_write_csv",)),
    Place("commands/pages.py", only=("_COLUMNS", "_SITE", "_print_json")),
    Place(
        "warcmill/reports/pages.py",
        only=("CHANGES", "REDIRECTED", "ListedUrl.json", "ListedSite.json", "ChangedUrl.json", "ListSums.json"),
    ),
    Place("commands/console/quality.py", only=("_answer",)),
    Place("warcmill/quality/__init__.py", only=("MARKS",)),
    Place("warcmill/quality/judgement.py", only=("KINDS", "STATES"), fields=("CheckedPage", "MissingPart")),
    Place("warcmill/quality/reports.py", only=("QualityReport.json", "_facts", "marked"), fields=("QualityReport",)),
    Place("warcmill/audit/answers/health.py", only=("_HANGS",), documents=True),
    Place("warcmill/audit/answers/tally.py"),
    Place("warcmill/audit/answers/jobs.py", documents=True),
    Place("warcmill/audit/answers/job_list.py", documents=True),
    Place("commands/catalogue.py", documents=True),
    Place(
        "commands/check.py",
        only=("OK", "NOTHING_WRONG", "Difference", "differences", "_unseen", "_uncounted"),
        but=("Difference.__str__",),
        fields=("Difference",),
        documents=True,
    ),
    Place(
        "warcmill/formats/bagit/containers.py",
        only=(
            "FROM_INSIDE",
            "Tar",
            "Zip",
            "_KINDS",
            "_Gunzipped",
            "_damage",
            "irregular",
            "not_a_file",
            "BaseFolder",
            "unsafe",
        ),
    ),
    Place("warcmill/formats/bagit/bag.py"),
    Place("warcmill/formats/bagit/findings.py", fields=("BagFinding", "FetchLine")),
    Place("warcmill/formats/bagit/tag_files.py"),
    Place("warcmill/formats/warc/second_opinion.py", fields=("Problem",)),
    Place("commands/depends.py", documents=True),
    Place("warcmill/versions/revisits.py", only=("Revisit", "Where"), fields=("Revisit",)),
    Place("commands/doctor.py", but=("STYLES",), documents=True),
    Place("warcmill/audit/health.py", only=("Level",)),
    Place("commands/feed.py", only=("counted",), documents=True),
    Place("warcmill/audit/answers/files.py", only=("answer", "_file")),
    Place("warcmill/audit/answers/register.py", only=("document", "_StageState")),
    Place("commands/plan.py", documents=True),
    Place("commands/import.py", documents=True),
    Place("warcmill/pulse/reported_jobs.py", documents=True),
    Place("warcmill/clients/engine.py", only=("CrawlProgress",), fields=("CrawlProgress",)),
    Place("warcmill/audit/gaps.py", only=("Gap.json",)),
    Place("warcmill/audit/answers/comparison.py", documents=True),
    Place("commands/console/show.py", only=("days_json",)),
    Place("commands/search.py", documents=True),
    Place("commands/documents.py", but=("ACTIONS",), documents=True),
    Place("warcmill/documents/looking.py", only=("DeskPage.json", "DocumentReport.json")),
    Place("warcmill/documents/desk.py", only=("DeskDocument.json",)),
    Place("warcmill/documents/exchange.py", only=("COLUMNS", "HandedIn.json", "_elements", "dublin_core", "_found")),
    Place("warcmill/documents/decided.py", only=("STATUSES", "DocumentDecision.json", "WRITTEN")),
    Place("warcmill/versions/documents/entries.py", fields=("Candidate", "DocumentCapture"), only=("FIELDS",)),
    Place("warcmill/versions/search.py", only=("MARKS",), fields=("FoundDocument",)),
    Place("warcmill/web/app.py", only=("_json_refusal",)),
    Place("warcmill/web/views/search.py", only=("_no_words", "_answer", "_row", "health")),
    Place("commands/console/serving.py", only=("_answer",)),
    Place("warcmill/audit/answers/status.py", documents=True),
    Place("commands/verify.py", only=("_sums",), documents=True),
    Place("commands/console/outside.py", only=("_json",), documents=True),
    Place("commands/versions.py", documents=True),
    Place("warcmill/pypi/answers.py", documents=True),
    Place("commands/console/imported.py", only=("answer",), documents=True),
    Place("warcmill/pypi/providers.py", but=("Provider.rank", "_rows", "_is_stub"), documents=True),
    Place("commands/console/scripts.py", only=("_check", "_step", "_Heard")),
    Place("commands/console/script_jobs.py", only=("_tasks", "_try")),
    Place("warcmill/scripts/answers.py", only=("listed",)),
    Place("warcmill/audit/answers/dues.py", only=("of_days", "_decisions", "as_list"), documents=True),
    Place("warcmill/audit/answers/explanation.py", only=("_waiting",), documents=True),
    Place("commands/why.py", only=("_engine_says",)),
    Place("commands/group.py", documents=True),
    Place("commands/uri.py", documents=True),
    Place("warcmill/clusters/group.py", documents=True),
    Place("warcmill/clusters/lists.py", documents=True),
    Place("warcmill/clusters/looking.py", documents=True),
    Place("warcmill/clusters/orders.py", documents=True),
    Place("warcmill/clusters/owning.py", documents=True),
    # What a crawl's control socket takes and answers; `job --json` prints it.
    Place("warcmill/crawl/control/messages.py", only=("FIELDS", "_TARGET"), documents=True),
    Place("warcmill/requests/serving/service.py", only=("RequestService", "_OF_CRAWL"), documents=True),
    Place("warcmill/crawl/control/frontier.py", only=("_MAY", "as_json", "_loaded"), documents=True),
    Place("warcmill/crawl/launch/reachability.py", only=("FirstLook.json", "looks_in_json")),
    Place("warcmill/crawl/job/form.py", only=("JobForm",), fields=("JobForm",)),
    Place("warcmill/markers/job_edits.py", only=("SavedPapers.json", "history", "undone")),
    Place("warcmill/reports/rule_trial.py", only=("RuleHits.json", "RuleTrial.json")),
    Place(
        "warcmill/reports/page_trial.py",
        only=("ENDS", "AnsweredPage", "RuleOut", "FailedPage", "PageTrial"),
        but=("PageTrial.words",),
        fields=("AnsweredPage", "RuleOut", "FailedPage", "PageTrial"),
    ),
    Place("commands/console/frontiers.py", only=("_dump", "_load", "_rebuild", "_answer"), documents=True),
)
KINDS = {"claims": CLAIMS, "reports": REPORTS, "notices": NOTICES, "json": JSON}
# Make wire of texts that are listed elsewhere, or JSON that stays in the machine.
NONE_OF_ITS_OWN = {
    # It prints the answers of warcmill/pypi/answers.py and providers.py.
    "commands/pypi.py",
    "warcmill/markers/outside_copies.py",
    "warcmill/stores/sentinel.py",
    "warcmill/decisions/workspace.py",
    "commands/accept.py",
    "commands/job.py",
    "commands/console/scanner.py",
    # Their answers are those of warcmill/markers/job_edits.py, warcmill/reports/rule_trial.py, page_trial.py and
    # reachability.py.
    "commands/console/crawl.py",
    "commands/console/feed_targets.py",
    "commands/console/job_papers.py",
    "commands/console/trial.py",
    "warcmill/web/views/jobs/form.py",
    "warcmill/web/views/jobs/trial.py",
    "warcmill/pulse/target_list.py",
    "warcmill/web/views/jobs/targets.py",
    # Its JSON is text in a page; what programs get is of warcmill/scripts/answers.py and the book of tasks.
    "warcmill/web/views/scripts.py",
    # What a step answers is for the page's own script.
    "warcmill/web/views/script_editor.py",
    "warcmill/scripts/debugger.py",
    # The requests are those of warcmill/crawl/control/messages.py.
    "warcmill/crawl/launch/intake.py",
    # They print answers of warcmill/audit/answers/ and warcmill/pulse/reported_jobs.py.
    "commands/files.py",
    "commands/health.py",
    "commands/jobs.py",
    "commands/pulse.py",
    "commands/reconcile.py",
    "commands/status.py",
    # Slips at the destination and extracts: their own tests hold their bytes.
    "warcmill/formats/sip/pronom.py",
    "warcmill/extracts/cdx.py",
    # Lists and documents of versions, and decisions: their own tests hold their bytes.
    "warcmill/versions/hidden_list.py",
    "warcmill/versions/inputs.py",
    "warcmill/versions/publication.py",
    "warcmill/versions/segments.py",
    "warcmill/extracts/text.py",
    # Rows of dumps, and pages made of them: their own tests hold their bytes.
    "warcmill/formats/pypi/data_sets.py",
    "warcmill/formats/pypi/dump.py",
    "warcmill/formats/pypi/lives.py",
    "warcmill/formats/pypi/projects.py",
    "warcmill/extracts/distributions.py",
    "warcmill/formats/pypi/simple_pages.py",
    "warcmill/pypi/carried.py",
    "warcmill/pypi/journal.py",
    # Lists of seeds, payloads of URIs, calls of an index, questions to a process: their own tests hold their bytes.
    "warcmill/scripts/walled/asking.py",
    "warcmill/scripts/folder.py",
    "warcmill/scripts/taskbook.py",
    "warcmill/scripts/task.py",
    "warcmill/clients/package_index.py",
    "warcmill/formats/seeds.py",
    "warcmill/crawl/extract/package_index.py",
    "warcmill/crawl/fetch/exchange.py",
    "warcmill/crawl/visit/redirects.py",
    # By what scans and folds know launches again; it may be lost.
    "warcmill/launches/discovery.py",
    "warcmill/versions/index_inputs.py",
    # The fields of a CDXJ line, written again for Parquet.
    "warcmill/formats/index/columns.py",
    # The files of tokens and of actions, and the configuration of pywb.
    "warcmill/web/access.py",
    "warcmill/web/actions.py",
    "warcmill/replay/pywb.py",
    # Acknowledgements of a server, and the lines that it gets: their own tests hold their bytes.
    "warcmill/index/sinks.py",
    "warcmill/index/provisional_captures.py",
    # The place of a reader, for its group's next one.
    "warcmill/clients/bus/spool.py",
    # What servers get, and what they have acknowledged.
    "warcmill/clients/solr.py",
    "warcmill/index/sink_solr.py",
    "warcmill/index/sink_cdx.py",
    # The documents of warcmill/documents/desk.py, for servers.
    "warcmill/clients/w3act.py",
    "warcmill/documents/sinks.py",
    # What a worker process answers to its starter, and a scan's process to the command that shows it.
    "tasks/logs.py",
    "warcmill/base/worker.py",
    "warcmill/extracts/text_worker.py",
    # The documents of a WACZ, whose form is its specification's.
    "warcmill/formats/wacz.py",
    "warcmill/package/wacz_originals.py",
    "warcmill/package/wacz_pages.py",
    # The crawler's own files: crawl.log, journal, database, and why a record or a robots.txt is refused.
    "warcmill/crawl/launch/checkpoint.py",
    "warcmill/crawl/job/text.py",
    "warcmill/crawl/launch/folders.py",
    "warcmill/crawl/launch/leader.py",
    "warcmill/crawl/launch/reports.py",
    "warcmill/crawl/control/control.py",
    "warcmill/crawl/logs/statistics.py",
    "warcmill/crawl/frontier/crew.py",
    "warcmill/crawl/frontier/dump.py",
    "warcmill/crawl/frontier/journal.py",
    "warcmill/crawl/frontier/outbox.py",
    "warcmill/formats/logs/crawllog.py",
    "warcmill/crawl/policies/robots.py",
    # What a browser is asked, and the words of its script; what another engine gets of a page that it asks for.
    "warcmill/crawl/beside/service.py",
    "warcmill/crawl/render/page.py",
    # The value of a digest over which two readers differ; the finding has no text of this module.
    "warcmill/formats/warc/declared_digests.py",
    # A request of a spider as it waits, its items, in the names that it has given them, and what it remembers.
    "warcmill/spiders/items.py",
    "warcmill/spiders/memory.py",
    "warcmill/spiders/requests.py",
    # Scrapy Cluster's log lines, and what a spider puts into a queue of its own.
    "warcmill/scutils/log_factory.py",
    "warcmill/scutils/redis_queue.py",
    # The messages of Scrapy Cluster, which docs/from-scrapy-cluster.md has.
    "commands/request.py",
    "warcmill/requests/migration.py",
    "warcmill/requests/sender.py",
    "warcmill/requests/rest.py",
    "warcmill/requests/monitor.py",
    "warcmill/requests/answers.py",
    "warcmill/requests/plugins/names.py",
    "warcmill/requests/plugins/runners.py",
    # What roles of one version share, in a file or in Redis, and the lines of the control socket.
    "warcmill/requests/accounts/__init__.py",
    "warcmill/requests/accounts/file.py",
    "warcmill/requests/accounts/over_redis.py",
    "warcmill/crawl/control/calls.py",
    # A rate in the column of a centre, as the job's folder has it.
    "warcmill/clusters/centre.py",
    "warcmill/clusters/news.py",
    "warcmill/clusters/recovery.py",
    "warcmill/clusters/scopes.py",
    # A file of the job's own folder, which this version alone reads.
    "warcmill/scripts/delivery.py",
    "warcmill/crawl/control/sites.py",
    "warcmill/requests/serving/feed.py",
    "warcmill/crawl/books/books.py",
    "warcmill/crawl/visit/admission.py",
    "warcmill/crawl/frontier/queues.py",
    "warcmill/crawl/frontier/redis.py",
    "warcmill/crawl/frontier/table.py",
    "warcmill/crawl/logs/logs.py",
    "warcmill/formats/warc/records.py",
}
CHECKS = (
    "commands/doctor.py", "tasks/config/proofs.py", "tasks/config/services.py",
    "warcmill/audit/health.py", "warcmill/audit/health_services.py",
)  # fmt: skip
# Where BadInput refuses a file, so that its text is the `why` of an item.
REFUSING = ("warcmill/files/", "warcmill/formats/warc/", "warcmill/output/", "warcmill/stores/")


def listed(kind: str) -> list[str]:
    """The stored texts of a kind."""
    return [line for line in (DATA / f"{kind}.txt").read_text("utf-8").splitlines() if not line.startswith("#")]


def names() -> Iterator[str]:
    """The names that are wire: of errors, findings, and the table of steps as Python has it, since rows derive some."""
    yield from classes("warcmill/errors.py")
    yield from (f"acceptable: {kind}" for kind in gaps.ACCEPTABLE)
    yield from (f"mended: {kind}" for kind in gaps.CLOSED_BY_RUNS)
    for row in chain.ROWS:
        word, column, scan = row.word or "-", row.column or "-", row.scan or "-"
        yield f"{row.task} | {row.marker} | word {word} | column {column} | scan {scan}"


@pytest.mark.parametrize("kind", [*KINDS, "checks", "names"])
def test_texts_that_are_wire_keep_their_bytes(kind: str) -> None:
    asked = {json.dumps(row.name) for row in SERVICES if row.prove is None}
    sources = {"names": [set(names())], "checks": [asked, *(checks(module) for module in CHECKS)]}
    now = set[str]().union(*(sources.get(kind) or [texts(place) for place in KINDS[kind]]))
    stored = listed(kind)
    gone = [f"is wire and must keep its bytes, but is gone: {text}" for text in sorted(set(stored) - now)]
    new = [f"is new; add it to tests/data/wire/{kind}.txt: {text}" for text in sorted(now - set(stored))]
    assert not gone + new, "\n".join(gone + new)
    assert stored == sorted(set(stored)), f"sort tests/data/wire/{kind}.txt, each text once"


def test_every_module_that_makes_claims_gaps_notices_or_json_is_looked_at() -> None:
    known = {place.module for places in KINDS.values() for place in places} | NONE_OF_ITS_OWN
    folders = ("warcmill", "commands", "tasks", "targets")
    modules = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")}
    made = {module: makes_wire(module, refuses=module.startswith(REFUSING)) for module in sorted(modules - known)}
    unlisted = {module: calls for module, calls in made.items() if calls}
    assert not unlisted, f"name them in tests/unit/test_wire.py: {unlisted}"
    assert not NONE_OF_ITS_OWN - modules
    assert not {module for module in modules if module.startswith("warcmill/markers/facts/")} - known, "keys are wire"


def test_no_part_of_a_module_that_makes_claims_gaps_or_notices_is_skipped() -> None:
    places = [place for some in KINDS.values() for place in some]
    modules = {place.module: [other for other in places if other.module == place.module] for place in places}
    calls = {module: overlooked(some, refuses=module.startswith(REFUSING)) for module, some in modules.items()}
    assert not {module: some for module, some in calls.items() if some}


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_has_one_place_for_each_kind(kind: str) -> None:
    modules = [place.module for place in KINDS[kind]]
    assert modules == list(dict.fromkeys(modules))
