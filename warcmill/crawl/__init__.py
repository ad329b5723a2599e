"""The built-in crawler: it fetches what a feed asks for and leaves what Heritrix leaves, WARCs and logs of a launch.

It knows formats, base, layout, the model and the engine's protocol; no store, marker, launch of the line or task, as
Heritrix knows none. This is its theory of operation.

Rooms
-----

Top down; each imports only from those below it, which setup.cfg holds:

    trial                some pages of a job, in a folder beside its launches
    engine | process     the `Engine` that the line drives; the process that it starts, one for a launch
    beside/              pages that another engine has rendered, each in a WARC of its own
    launch/              one launch: opened, crawled, checkpointed, closed, repaired after a kill
    visit/               the spider's loop, and one visit of a URI, from step to step
    job/                 a job's files, as values; `Live` is the job as it is now, since an edit replaces it
    logs/                lines of crawl.log, the other logs, figures
    books/ | control/    what is durable of a launch; the socket by which a launch is asked and steered
    extract/ | frontier/ links of a document; what waits and what was seen
    render/              a browser that opens a page, and the proxy by which it asks for all that it needs
    policies/            scope, traps, quotas, robots.txt, politeness, recrawl: pure judgements
    fetch/               names to addresses, connections, answers, cookies; the records of an exchange
    uri | durable        a URI and the table of its moves; files that outlive a power cut

One process, or many
--------------------

A launch is crawled by one process, or by workers on many machines. The steps below are the same; four things differ.

    frontier    `sqlite`, in the database of the books; or `redis`, which all workers share (`frontier.redis`)
    leader      the job's own process: it holds the lock, writes job.log, calls checkpoints and the end
    worker      each process with a root of its own: its WARCs, its crawl.log, its journal (`launch.worker`)
    crew        the workers as Redis knows them: signs of life, the job's files, orders, documents (`frontier.crew`)

With Redis a group is committed to WARC, crawl.log and journal first; then Redis hears it, by a number that it notes in
the same script; where it is far, groups follow each other unanswered, and leases are taken ahead (`frontier.far`). So
the journals are the only source, and rebuild an emptied Redis (`frontier.sender`, `frontier.outbox`). A worker without
a sign is *missing*, and its leases return after a while. Only a person declares one *dead*. A checkpoint and the end
wait until every living worker has closed its slice.

Feeds
-----

A launch gets its URIs from the seeds of its job, from `control` (a person adds some), or from a service that was handed
to `open_launch`, such as that of applications' requests. A service (`launch.launch.LaunchService`) brings audiences and
verbs of the control socket, and offers URIs. Nothing here knows which service it is: a launch without one reads its
seeds and ends. An endless job waits for more, and its next launch follows with the frontier as it is.

The way of a URI
----------------

 1. *Offered.* A seed, or a link of a page, is made a `Uri` and judged by the policies of offers: scope, traps,
    patterns, extensions, and those of others. The frontier takes it, unless its crawl has seen it. (`visit.offers`)
 2. *Leased.* `Spider` asks the frontier for as many URIs as it has workers free. A lease passes the gate of its queue,
    host and port: one at a time, unless the rate of the gate is another. (`visit.spider`, `frontier`)
 3. *Admitted.* The policies of leases are asked again: scope, expiry, quotas. Then its host has to have an address that
    may be connected to, its robots.txt has to allow it, and it has to be the turn of its host among those of the
    address. Else the visit ends here: refused, failed, or put back until a time. (`visit.admission`,
    `visit.robots_files`)
 4. *Fetched.* One request over a connection that is new or was kept. Every byte of both sides is in the `Exchange`: a
    long answer in a scratch file. A failure is tried again some times, with a wait that grows. (`fetch`)
 5. *Compared* with the history that the last visit left: new, the same bytes, or not modified. 429, 503 and 504 are
    kept, and asked again. (`visit.history`)
 -. *Rendered*, if the job or the URI asks for it: the page opens in a browser, which knows no network. Each request is
    made a `Uri`, judged as in steps 1 and 3 but not put back, answered by what its equal got, now or before in the
    launch, or by a fetch, and kept as an entry without a lease. (`visit.rendering`, `visit.sharing`, `render`)
 6. *Extracted.* Links of HTML, CSS, feeds, sitemaps, headers; of a large page in a worker process, under limits of time
    and memory, so that no page can stop the crawl. (`visit.extraction`, `extract`)
 7. *Offered* in turn: the links go through step 1, each with the hop that led to it. A redirect back into its own
    chain is another URI where something else would be sent, such as a cookie. (`visit.redirects`)
 8. *Kept.* The records, the line of crawl.log, what was found, cookies and the history are one entry. Entries are
    committed in groups: WARC synced, then crawl.log and journal, then one transaction. After a kill the files are cut
    to the lengths of the last transaction; so an entry is in all of them, or in none. (`books`)

Steps 3 to 8 are `visit.visit`, a straight line: each step takes values and returns one, and what ends a visit early is
an entry for step 8 all the same. A look-up, a robots.txt, what a browser or a spider asks for besides have no lease:
they go the same way, by `visit.fetching`, and are kept as entries of their own.

A room above docks here by two values, and is asked nothing else. Its *reader* (`visit.visit.PageReader`) is how links
and items are got from an answer, in steps 5 to 7. Its *audience* (`job.job.Audience`) is who asked for a URI: headers,
cookies, which links count, who gets which result. By default our own reader takes links, and nobody asked.

Calls go down. Up go those of plug-ins alone, which were handed down: the reporter, which hears of entries once they are
durable, and of what went wrong (`launch.reports` as `logs.lines.FaultListener`); the policies, built-in and others';
the spool, which a record is written from. Besides, the frontier calls the function that the books give it for a change.
tests/unit/crawl/test_trace.py holds this, and how many modules a URI passes.

Statuses
--------

`uri.MOVES` is the one table, and `Transitions.update` the one function that moves a URI:

    Created      made, not offered yet
    Scheduled    waits in the frontier: for its turn, or until its `not_before`
    Suspended    waits until somebody resumes it
    Downloading  leased: steps 3 to 5
    Parsing      answered: step 6
    Parsed       done; Scheduled once more when it is visited again
    Failed       done, without an answer: refused by a policy, or tried in vain
    Removed      taken out by somebody; not taken again

Who may touch what
------------------

*The event loop* runs the spider, all visits and the control socket. Long work there would hold up every host, so large
pages go to worker processes, long robots.txt to a thread, and waits are `await`.

*The thread of the database* alone touches SQLite and the files of the books. `Frontier.change` calls its function
there, in one transaction at a time.

*A visit* touches its own `Uri`, from its lease until its entry is kept. Jars, policies and figures are shared, and
touched on the loop alone.

*The process* of a launch holds the job's lock, and alone writes to its folders: WARCs, logs, `state`. It asks every
second if they are still those that it opened, and pauses while a disk is away. An error of a disk ends the launch; the
next start or stop cuts its files to its books. Nothing is fetched twice for it.

*The engine* reads job.log, the lock and the control socket, never the database of a launch that runs. It writes the
files of a job; a launch takes these edits between two leases.

A fault is one URI's or the launch's. A server or a page costs its own line in crawl.log; a disk or the books stop all,
since nothing that follows could be durable.
"""
