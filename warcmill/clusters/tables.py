"""The tables of a group's centre, and their version. Writes to PostgreSQL.

    about     the group, and the version of the tables
    clusters  the jobs of the group
    writers   the processes of each that write journals, with the place up to which these were read; '' is the job's own
    hosts     the hosts, each with its cluster and the rule that says so, its addresses, and its URIs by status
    uris      the URIs, by host and digest
    visits    the visits of each, with the WARC that has what came
    sites     what persons want of sites: which are suspended, and their rates
    journals  the names of the stages that a launch's journals were closed for
    orders    changes that wait for a cluster, and what became of each
    scopes    the editions of the group's scope

A row of `uris` is locked by the row of its host: who changes it holds that one. Times are of UTC.
"""

from __future__ import annotations

from typing import Any

from warcmill.clients.postgresql import Postgresql
from warcmill.errors import BadConfig, Busy, Conflict, NotReady

VERSION = 4
STATUSES = ("scheduled", "suspended", "parsed", "failed", "removed")
"""The columns of `hosts` that count; each is a status in lower case."""

_TABLES = """
CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL);

-- `read` is of the journal in bytes; `tail` its last bytes before that, by which it is told from another journal.
CREATE TABLE clusters (
  cluster text PRIMARY KEY, added timestamptz NOT NULL DEFAULT now(), launch text NOT NULL DEFAULT '',
  stage text NOT NULL DEFAULT '', journal int NOT NULL DEFAULT 0, read bigint NOT NULL DEFAULT 0,
  log_read bigint NOT NULL DEFAULT 0, tail bytea NOT NULL DEFAULT '', groups bigint NOT NULL DEFAULT 0,
  changes bigint NOT NULL DEFAULT 0, refused bigint NOT NULL DEFAULT 0, behind bigint NOT NULL DEFAULT 0,
  updated timestamptz, updater text NOT NULL DEFAULT ''
);

CREATE TABLE hosts (
  host text PRIMARY KEY, surt text NOT NULL, cluster text NOT NULL REFERENCES clusters,
  added timestamptz NOT NULL DEFAULT now(), scheduled bigint NOT NULL DEFAULT 0, suspended bigint NOT NULL DEFAULT 0,
  parsed bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0, removed bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX hosts_by_surt ON hosts (surt text_pattern_ops);

CREATE TABLE uris (
  host text NOT NULL, digest bytea NOT NULL, cluster text NOT NULL, crawl text NOT NULL, uri text NOT NULL, key text,
  status text NOT NULL, hops text, via text, source text, download_at timestamptz, download_started timestamptz,
  download_finished timestamptz, last_update timestamptz NOT NULL, http_status int, hash text, address text,
  launch text NOT NULL, journal int NOT NULL, PRIMARY KEY (host, digest)
) WITH (fillfactor = 80);
CREATE INDEX uris_by_status ON uris (host, status, digest);
CREATE INDEX uris_that_wait ON uris (cluster, last_update) WHERE status = 'Scheduled';

CREATE TABLE visits (
  host text NOT NULL, digest bytea NOT NULL, finished timestamptz NOT NULL, status text NOT NULL, http_status int,
  hash text, address text, warc text, warc_offset bigint, cluster text NOT NULL, launch text NOT NULL,
  journal int NOT NULL, PRIMARY KEY (host, digest, finished)
);

CREATE TABLE journals (
  cluster text NOT NULL, launch text NOT NULL, journal int NOT NULL, stage text NOT NULL,
  PRIMARY KEY (cluster, launch, journal)
);

CREATE TABLE sites (
  cluster text NOT NULL REFERENCES clusters, site text NOT NULL, is_suspended boolean NOT NULL, rate jsonb,
  PRIMARY KEY (cluster, site)
);

-- `load` and `part` are of an order that is a part of a file, or was made once under a name; `given` and `last_...` say
-- how far one for a prefix is.
-- `last_host` of one for what was visited is its host.
CREATE TABLE orders (
  number bigserial PRIMARY KEY, cluster text NOT NULL REFERENCES clusters, verb text NOT NULL, subject jsonb NOT NULL,
  uris int NOT NULL DEFAULT 0, made timestamptz NOT NULL DEFAULT now(), state text NOT NULL DEFAULT 'waiting',
  reason text NOT NULL DEFAULT '', ended timestamptz, load text, part int, given int NOT NULL DEFAULT 0,
  last_host text NOT NULL DEFAULT '', last_digest bytea NOT NULL DEFAULT '', UNIQUE (load, cluster, part)
);
CREATE INDEX orders_that_wait ON orders (cluster, number) WHERE state = 'waiting';
"""


# What the version before had not: whose a host is, and why. `edition` grows with each change, so that clusters are told
# what is new. `moving`: it `leaves` a cluster, or arrives at its own. And the scope of all.
_SECOND = """
CREATE SEQUENCE host_editions;
ALTER TABLE hosts ADD COLUMN edition bigint NOT NULL DEFAULT nextval('host_editions'),
  ADD COLUMN rule text NOT NULL DEFAULT '', ADD COLUMN forbidden boolean NOT NULL DEFAULT false,
  ADD COLUMN since timestamptz NOT NULL DEFAULT now(), ADD COLUMN moving text, ADD COLUMN leaves text,
  ADD COLUMN addresses text[] NOT NULL DEFAULT '{}', ADD COLUMN resolved timestamptz, ADD COLUMN due timestamptz,
  ADD COLUMN misses int NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX hosts_by_edition ON hosts (edition);
CREATE INDEX hosts_by_address ON hosts USING gin (addresses);
CREATE INDEX hosts_that_move ON hosts (host) WHERE moving IS NOT NULL;
CREATE INDEX hosts_by_due ON hosts (cluster, due) WHERE due IS NOT NULL;
ALTER TABLE uris ADD COLUMN payload text;
ALTER TABLE clusters ADD COLUMN reached timestamptz, ADD COLUMN retired timestamptz,
  ADD COLUMN why text NOT NULL DEFAULT '', ADD COLUMN rules text NOT NULL DEFAULT '';

-- `keys` are those of crawl.toml, as JSON. A cluster has the edition `scope`, 0 for its own; `scope_note` is what was
-- found when it was looked at last.
CREATE TABLE scopes (
  edition int PRIMARY KEY, made timestamptz NOT NULL DEFAULT now(), who text NOT NULL, why text NOT NULL,
  made_from text NOT NULL, surts bytea NOT NULL, exclude bytea NOT NULL, keys text NOT NULL
);
ALTER TABLE clusters ADD COLUMN scope int NOT NULL DEFAULT 0, ADD COLUMN scope_note text NOT NULL DEFAULT '';
"""

# The orders for a URI are found at once: those that name it among others, it alone or its site, or a prefix.
_THIRD = """
CREATE INDEX orders_by_uris ON orders USING gin ((subject -> 'uris') jsonb_path_ops) WHERE verb <> 'take';
CREATE INDEX orders_by_name ON orders USING hash ((coalesce(subject ->> 'uri', subject ->> 'site')))
  WHERE coalesce(subject ->> 'uri', subject ->> 'site') IS NOT NULL;
CREATE INDEX orders_by_prefix ON orders (number) WHERE subject ? 'prefix';
"""

# What the version before had not: several writers of a job, each with its own journals and place. `at`: when the line
# was written that gave a URI its status, where there may be several; `wait`, `waits_at`: how it was deferred last, and
# when. `fault`: why the journals of a writer cannot be read; `strangers`: workers whose journals are in no root that
# the updater knows.
_FOURTH = """
CREATE TABLE writers (
  cluster text NOT NULL REFERENCES clusters ON DELETE CASCADE, writer text NOT NULL, launch text NOT NULL DEFAULT '',
  stage text NOT NULL DEFAULT '', journal int NOT NULL DEFAULT 0, read bigint NOT NULL DEFAULT 0,
  log_read bigint NOT NULL DEFAULT 0, tail bytea NOT NULL DEFAULT '', groups bigint NOT NULL DEFAULT 0,
  changes bigint NOT NULL DEFAULT 0, refused bigint NOT NULL DEFAULT 0, behind bigint NOT NULL DEFAULT 0,
  updated timestamptz, fault text NOT NULL DEFAULT '', PRIMARY KEY (cluster, writer)
);
INSERT INTO writers SELECT cluster, '', launch, stage, journal, read, log_read, tail, groups, changes, refused, behind,
  updated FROM clusters;
ALTER TABLE clusters DROP COLUMN launch, DROP COLUMN stage, DROP COLUMN journal, DROP COLUMN read, DROP COLUMN log_read,
  DROP COLUMN tail, DROP COLUMN groups, DROP COLUMN changes, DROP COLUMN refused, DROP COLUMN behind,
  DROP COLUMN updated, ADD COLUMN strangers text NOT NULL DEFAULT '';
ALTER TABLE uris ADD COLUMN writer text NOT NULL DEFAULT '', ADD COLUMN at float8,
  ADD COLUMN wait text, ADD COLUMN waits_at float8;
ALTER TABLE visits ADD COLUMN writer text NOT NULL DEFAULT '';
ALTER TABLE journals ADD COLUMN writer text NOT NULL DEFAULT '', DROP CONSTRAINT journals_pkey,
  ADD PRIMARY KEY (cluster, launch, writer, journal);
"""
_LATER = {2: _SECOND, 3: _THIRD, 4: _FOURTH}


async def make(db: Postgresql, group: str, jobs: tuple[str, ...]) -> bool:
    """Make the tables of a group, or those that a newer version has more, and the row of each of its jobs; False if all
    were there. Conflict when the database is another group's; Busy when an updater runs by an older version."""

    async def act(connection: Any) -> bool:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('warcmill-tables'))")
        is_new = await connection.fetchval("SELECT to_regclass('about') IS NULL")
        if is_new:
            await connection.execute(_TABLES)
            await connection.executemany("INSERT INTO about VALUES ($1, $2)", [("version", "1"), ("group", group)])
        for version in range(await _examine(connection, db, group) + 1, VERSION + 1):
            await _refuse_updaters(connection)
            await connection.execute(_LATER[version])
            await connection.execute("UPDATE about SET value = $1 WHERE name = 'version'", str(version))
            is_new = True
        added = await connection.fetch(
            "INSERT INTO clusters (cluster) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING cluster",
            [*jobs],
        )
        await connection.execute("INSERT INTO writers SELECT unnest($1::text[]), '' ON CONFLICT DO NOTHING", [*jobs])
        return bool(is_new or added)

    return await db.whole(act)


async def examine(db: Postgresql, group: str) -> None:
    """Refuse a centre without the tables of this group: NotReady; BadConfig when they are of a newer version."""

    async def act(connection: Any) -> None:
        if await connection.fetchval("SELECT to_regclass('about') IS NULL"):
            raise NotReady(f"the centre of group {group}", f"it has no tables yet: warcmill group {group} init")
        version = await _examine(connection, db, group)
        if version < VERSION:
            todo = f"warcmill group {group} init"
            why = f"its tables are of version {version}, and this Warcmill's are of {VERSION}: {todo}"
            raise NotReady(f"the centre of group {group}", why)

    await db.whole(act)


async def _refuse_updaters(connection: Any) -> None:
    """Keep updaters away until the transaction ends; Busy when one runs."""
    lock = "SELECT pg_try_advisory_xact_lock(hashtext('warcmill-updater'), hashtext($1))"
    for row in await connection.fetch("SELECT cluster, updater FROM clusters ORDER BY cluster"):
        if not await connection.fetchval(lock, row["cluster"]):
            why = "end it, and start it again after this, as the tables change"
            raise Busy(f"the updating of {row['cluster']}, by {row['updater']},", why)


async def _examine(connection: Any, db: Postgresql, group: str) -> int:
    """Refuse another group's tables, and newer ones; return their version."""
    about = {row["name"]: row["value"] for row in await connection.fetch("SELECT name, value FROM about")}
    version = about.get("version", "")
    if not version.isdigit() or int(version) > VERSION:
        why = f"its tables are of version {version or '?'}, and this Warcmill knows {VERSION}; install a newer one"
        raise BadConfig(db.place.key, why)
    if about.get("group") != group:
        why = f"its database has the tables of group {about.get('group')}, not of {group}; a group has a database alone"
        raise Conflict(db.place.key, why)
    return int(version)
