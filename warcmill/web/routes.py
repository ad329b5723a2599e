"""The one table of the pages. Pure.

A new page is a row, a view and a template. A view is a plain function of what is served and what was asked; it runs
in a thread, and may raise: BadInput is 400, NotReady and Unavailable are 503.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from warcmill.web.access import Role
from warcmill.web.handover import page
from warcmill.web.request import Answer, Asked
from warcmill.web.served import Served
from warcmill.web.views import documents, line, packages, script_editor, scripts, search
from warcmill.web.views.groups import cluster_orders, clusters
from warcmill.web.views.jobs import archive_site, desk, form, job, steering, targets, trial, watch
from warcmill.web.views.launches import captures, launch, pages, quality

GET, POST = ("GET", "HEAD"), ("POST",)
LARGEST_FORM = 16_384  # bytes
LARGEST_LIST = 24 << 20  # of a form with a list of addresses
LARGEST_TARGET = 1 << 20  # of a form with the addresses of a target
LARGEST_DECISION = 1 << 17  # of a form with the fields of a document
LARGEST_SCRIPT = 1 << 20  # of a form with the text of a script
LARGEST_ORDER = 1 << 19  # of an order in JSON
LARGEST_LOAD = 1 << 23  # of a file of URLs
FORM_TYPE = "application/x-www-form-urlencoded"  # as browsers send ours; others name a charset of their own
JSON, TEXT = "application/json", "text/plain"


class Route(Struct, frozen=True):
    """A row. `path`: as Starlette matches it. `role`: the least that may ask. `menu`: its word there, '' without one.

    `of_groups`, `of_documents`: the menu has its word only where luigi.cfg has a group of clusters, or [documents].

    `template`: '' for what is never a page: its answer is sent as JSON. `is_signed`: a post needs a form's token.
    `body`: the most bytes of a form, as it is sent: `%0A` is three. Only of who has the role is one read. `files`: the
    most files in it, which are in memory. `takes`: the media types that may be posted; all but a form come from
    programs, and need no form's token. `in_json`: a refusal is JSON, too, whoever asks. `poster`: the least that may
    post, where that is more than `role`.

    `upload`: a form has a file, which is streamed to the folder of files. It gets the fields before the file, and the
    name that the browser sent, and returns the name that the file gets; or BadInput: then no byte of it is kept.
    """

    path: str
    methods: tuple[str, ...]
    role: Role
    view: Callable[[Served, Asked], Answer]
    template: str = ""
    menu: str = ""
    of_groups: bool = False
    of_documents: bool = False
    is_signed: bool = True
    body: int = LARGEST_FORM
    files: int = 0
    takes: tuple[str, ...] = (FORM_TYPE,)
    in_json: bool = False
    poster: Role = Role.NOBODY
    upload: Callable[[Served, Mapping[str, str], str], str] | None = None
    frames: bool = False

    def least(self, method: str) -> Role:
        """The least role that may do this."""
        return max(self.role, self.poster) if method in POST else self.role


ROUTES = (
    Route("/", GET, Role.READER, line.home, "home.html", "Archive"),
    Route("/search", GET, Role.READER, search.search, "search.html", "Search"),
    Route("/capture", GET, Role.READER, search.capture),
    Route("/captures", GET, Role.READER, captures.history, "captures.html"),
    Route("/record", GET, Role.READER, captures.record, "record.html"),
    Route("/hide", GET + POST, Role.CURATOR, captures.hide, "hide.html"),
    Route("/status", GET, Role.READER, line.line_status, "status.html", "Status"),
    Route("/launches/{job}/{launch_id}", GET, Role.READER, launch.launch, "launch.html"),
    Route("/launches/{job}/{launch_id}/pages", GET, Role.READER, pages.listed, "pages.html"),
    Route("/launches/{job}/{launch_id}/compare", GET, Role.READER, pages.compared, "compare.html", frames=True),
    Route("/launches/{job}/{launch_id}/make-pages", GET + POST, Role.CURATOR, job.action("pages"), "action.html"),
    Route("/launches/{job}/{launch_id}/wacz", GET + POST, Role.CURATOR, job.action("wacz"), "action.html"),
    Route("/launches/{job}/{launch_id}/chosen", POST, Role.CURATOR, pages.wacz_of_chosen, body=LARGEST_SCRIPT),
    Route(
        "/launches/{job}/{launch_id}/quality",
        GET + POST,
        Role.READER,
        quality.report,
        "quality.html",
        poster=Role.CURATOR,
    ),
    Route("/launches/{job}/{launch_id}/quality/{name}", GET, Role.READER, quality.picture),
    Route("/launches/{job}/{launch_id}/check", GET + POST, Role.CURATOR, job.action("check"), "action.html"),
    Route("/launches/{job}/{launch_id}/patch", GET + POST, Role.CURATOR, job.action("patch"), "action.html"),
    Route("/launches/{job}/{launch_id}/files", GET, Role.READER, launch.launch_files, "files.html"),
    Route("/launches/{job}/{launch_id}/reports/{stage}/{name:path}", GET, Role.READER, launch.log_slice, "log.html"),
    Route("/archive-a-site", GET + POST, Role.CURATOR, archive_site.page, "archive_site.html", "Archive a site"),
    Route("/new-job", GET + POST, Role.CURATOR, form.new, "job_form.html", body=LARGEST_LIST, files=1),
    Route("/jobs", GET, Role.READER, desk.all_jobs, "jobs.html", "Jobs"),
    Route("/calendar", GET, Role.READER, desk.calendar, "calendar.html"),
    Route("/jobs-at-once", GET + POST, Role.CURATOR, desk.at_once, "jobs_at_once.html"),
    Route("/jobs/{job}", GET, Role.READER, job.job, "job.html"),
    Route("/jobs/{job}/edit", GET + POST, Role.CURATOR, form.edit, "job_form.html", body=LARGEST_LIST, files=1),
    Route("/jobs/{job}/papers", GET + POST, Role.CURATOR, form.texts, "job_texts.html", body=LARGEST_LIST),
    Route("/jobs/{job}/history", GET + POST, Role.CURATOR, form.history, "job_history.html"),
    Route("/jobs/{job}/rename", GET + POST, Role.CURATOR, desk.rename, "rename.html"),
    Route("/jobs/{job}/delete", GET + POST, Role.OPERATOR, job.action("delete"), "action.html"),
    Route("/jobs/{job}/trial/{action_id}", GET, Role.CURATOR, trial.page, "trial.html"),
    Route("/jobs/{job}/trial/{action_id}/pictures/{number}", GET, Role.CURATOR, trial.picture),
    Route("/jobs/{job}/targets", GET + POST, Role.READER, targets.page, "targets.html", poster=Role.CURATOR),
    Route(
        "/jobs/{job}/targets/{target}", GET + POST, Role.CURATOR, targets.edit, "target_form.html", body=LARGEST_TARGET
    ),
    Route("/jobs/{job}/new-target", GET + POST, Role.CURATOR, targets.new, "target_form.html", body=LARGEST_TARGET),
    Route(
        "/jobs/{job}/import-targets",
        GET + POST,
        Role.CURATOR,
        targets.import_list,
        "import_targets.html",
        body=LARGEST_LIST,
        files=1,
    ),
    Route("/jobs/{job}/export-targets", GET, Role.CURATOR, targets.export),
    Route("/jobs/{job}/start", GET + POST, Role.CURATOR, job.action("start"), "action.html"),
    Route("/jobs/{job}/watch", GET, Role.READER, watch.watch, "watch.html"),
    Route("/jobs/{job}/queue", GET, Role.READER, watch.queue, "queue.html"),
    Route("/jobs/{job}/leave-out", GET + POST, Role.CURATOR, steering.leave_out, "leave_out.html"),
    Route("/jobs/{job}/limits", GET + POST, Role.CURATOR, steering.limits, "limits.html"),
    Route("/jobs/{job}/pause", GET + POST, Role.CURATOR, job.action("pause"), "action.html"),
    Route("/jobs/{job}/resume", GET + POST, Role.CURATOR, job.action("resume"), "action.html"),
    Route("/jobs/{job}/checkpoint", GET + POST, Role.CURATOR, job.action("checkpoint"), "action.html"),
    Route("/jobs/{job}/stop", GET + POST, Role.CURATOR, job.action("stop"), "action.html"),
    Route("/jobs/{job}/retry", GET + POST, Role.CURATOR, job.action("retry"), "action.html"),
    Route("/jobs/{job}/scripts/{name}", GET, Role.READER, script_editor.page, "script.html"),
    Route("/jobs/{job}/scripts/{name}/step", POST, Role.CURATOR, script_editor.step, body=LARGEST_SCRIPT),
    Route("/jobs/{job}/scripts/{name}/try", POST, Role.CURATOR, script_editor.tried, body=LARGEST_SCRIPT),
    Route(
        "/jobs/{job}/scripts/{name}/save",
        POST,
        Role.CURATOR,
        script_editor.save,
        "script_conflict.html",
        body=LARGEST_SCRIPT,
    ),
    Route("/jobs/{job}/new-script", GET + POST, Role.CURATOR, scripts.create, "new_script.html"),
    Route("/jobs/{job}/tasks", GET, Role.READER, scripts.tasks, "tasks.html"),
    Route("/jobs/{job}/results", GET, Role.READER, scripts.results, "results.html"),
    Route("/jobs/{job}/scripts/{name}/set", GET + POST, Role.CURATOR, scripts.set_row, "set_script.html"),
    Route("/jobs/{job}/scripts/{name}/run", GET + POST, Role.CURATOR, job.action("run script"), "action.html"),
    Route("/jobs/{job}/scripts/{name}/delete", GET + POST, Role.OPERATOR, job.action("delete script"), "action.html"),
    Route("/jobs/{job}/scripts/{name}/tasks", GET, Role.READER, scripts.tasks, "tasks.html"),
    Route("/jobs/{job}/scripts/{name}/tasks/{key}", GET, Role.READER, scripts.task, "task.html"),
    Route("/jobs/{job}/scripts/{name}/tasks/{key}/again", GET + POST, Role.CURATOR, job.action("again"), "action.html"),
    Route("/jobs/{job}/scripts/{name}/results", GET, Role.READER, scripts.results, "results.html"),
    Route("/scan", GET + POST, Role.OPERATOR, job.action("scan"), "action.html"),
    Route("/launches/{job}/{launch_id}/accept", GET + POST, Role.OPERATOR, job.action("accept"), "action.html"),
    Route("/launches/{job}/{launch_id}/close", GET + POST, Role.OPERATOR, job.action("close"), "action.html"),
    Route("/actions/{action_id}", GET, Role.CURATOR, job.taken, "taken.html"),
    Route("/files/{action_id}", GET, Role.CURATOR, page.download),
    Route("/import", GET + POST, Role.CURATOR, page.import_file, "import.html", upload=page.name_for_import),
    Route("/groups", GET, Role.READER, clusters.all_groups, "groups.html", "Clusters", of_groups=True),
    Route("/groups/{group}", GET, Role.READER, clusters.group, "group.html"),
    Route("/groups/{group}/clusters/{cluster}", GET, Role.READER, clusters.cluster, "cluster.html"),
    Route("/groups/{group}/hosts/{host:path}", GET, Role.READER, clusters.host, "host.html"),
    Route("/groups/{group}/uri", GET, Role.READER, clusters.uri, "uri.html"),
    Route("/groups/{group}/uri/history", GET, Role.READER, cluster_orders.history, in_json=True),
    Route(
        "/groups/{group}/uris",
        GET + POST,
        Role.READER,
        cluster_orders.uris,
        is_signed=False,
        body=LARGEST_ORDER,
        takes=(JSON,),
        poster=Role.CURATOR,
        in_json=True,
    ),
    Route(
        "/groups/{group}/orders",
        GET + POST,
        Role.READER,
        cluster_orders.orders,
        "orders.html",
        body=LARGEST_ORDER,
        takes=(FORM_TYPE, JSON),
        poster=Role.CURATOR,
    ),
    Route("/groups/{group}/orders/{number}", GET, Role.READER, cluster_orders.order, "order.html"),
    Route(
        "/groups/{group}/load",
        POST,
        Role.CURATOR,
        cluster_orders.load,
        is_signed=False,
        body=LARGEST_LOAD,
        takes=(TEXT,),
        in_json=True,
    ),
    Route(
        "/documents",
        GET + POST,
        Role.READER,
        documents.documents,
        "documents.html",
        "Documents",
        of_documents=True,
        poster=Role.CURATOR,
    ),
    Route(
        "/documents/{id}",
        GET + POST,
        Role.READER,
        documents.document,
        "document.html",
        body=LARGEST_DECISION,
        poster=Role.CURATOR,
    ),
    Route("/as-of/{serial}/simple/", GET, Role.READER, packages.all_projects),
    Route("/as-of/{serial}/simple/{project}/", GET, Role.READER, packages.project),
    Route("/as-of/{serial}/files/{project}/{filename}", GET, Role.READER, packages.file),
    Route("/packages/provides/{module}", GET, Role.READER, packages.provides),
    Route("/packages/requires/{filename}", GET, Role.READER, packages.requires),
    Route("/packages/required-by/{project}", GET, Role.READER, packages.required_by),
    Route("/sign-in", GET + POST, Role.NOBODY, search.sign_in, "sign_in.html", is_signed=False),
    Route("/sign-out", POST, Role.READER, search.sign_out, is_signed=False),
    Route("/static/{name}", GET, Role.NOBODY, search.static),
    Route("/metrics", GET, Role.READER, search.metrics),
    Route("/healthz", GET, Role.NOBODY, search.health),
)
