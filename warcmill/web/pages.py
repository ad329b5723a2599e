"""The pages as HTML: values in, text out. Every text from outside is escaped; nothing in a page is a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import urlencode

from warcmill.base.escapes import printable
from warcmill.versions.search import MOST, FoundDocument, SearchAnswer
from warcmill.web.archive import ShownCapture, ShownCaptures
from warcmill.web.http import PAGES, Search

MARKS = ("\x02", "\x03")  # around a word in a line of text: no page's text keeps them
STYLE = """\
body { font: 16px/1.45 sans-serif; color: #1c1c1c; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h1 a { color: inherit; text-decoration: none; }
h2 { font-size: 1.05rem; margin: 0; font-weight: normal; }
form { display: flex; flex-wrap: wrap; gap: .6rem; align-items: end; margin-bottom: 1.5rem; }
label { flex: 1 1 9rem; font-size: .85rem; color: #4a4a4a; } label:first-child { flex-basis: 100%; }
input, button { font: inherit; padding: .4rem .55rem; min-height: 2.6rem; box-sizing: border-box; }
input { display: block; width: 100%; font-size: 1rem; } button { padding: .4rem 1.2rem; font-size: 1rem; }
a:focus-visible, input:focus-visible, button:focus-visible { outline: 3px solid #1a5fb4; outline-offset: 1px; }
ol { list-style: none; padding: 0; } li { margin-bottom: 1.3rem; } p { margin: .15rem 0; overflow-wrap: anywhere; }
.url { color: #2d6a3e; font-size: .9rem; } time { color: #4a4a4a; white-space: nowrap; }
.none { color: #8a1f11; } mark { background: #fff1a8; }
nav { display: flex; gap: 1.5rem; margin: 2rem 0; }
"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="style.css"></head>
<body>
<h1><a href="./">Search the archive</a></h1>
<main>
{body}
</main>
</body>
</html>
"""


def home(search: Search, missing: Iterable[str]) -> str:
    """The form, and what is missing of the archive."""
    notes = "".join(f'\n<p class="none" role="note">{_text(one)}</p>' for one in missing)
    return _page("Search the archive", _form(search, focus=" autofocus") + notes)


def results(search: Search, answer: SearchAnswer) -> str:
    """The form, what was found, and the ways to the pages before and after."""
    shown = "\n".join(map(_result, answer.best))
    parts = (_form(search), f"<p>{_count(search, answer)}</p>", f"<ol>\n{shown}\n</ol>", _ways(search, answer.captures))
    return _page(f"{search.words} - search the archive", "\n".join(parts))


def captures(search: Search, found: ShownCaptures) -> str:
    """The form, and the captures of a URL by time, the newest first."""
    listed = found.last[search.skipped : search.skipped + MOST]
    shown = "\n".join(map(_captured, listed))
    count = _listed(search, found, len(listed))
    parts = (_form(search), f"<p>{count}</p>", f"<ol>\n{shown}\n</ol>", _ways(search, len(found.last)))
    return _page(f"{search.words} - search the archive", "\n".join(parts))


def problem(title: str, why: str, *, reader: bool = True) -> str:
    """Why there is no answer; for a reader, with a way to the form."""
    back = '\n<p><a href="./">A new search</a></p>' if reader else ""
    return _page(title, f'<p class="none" role="alert">{_text(title)}: {_text(why)}.</p>{back}')


def when(time: str) -> str:
    """14 digits, as people write a time."""
    return f"{time[:4]}-{time[4:6]}-{time[6:8]} {time[8:10]}:{time[10:12]}:{time[12:]} UTC"


def way_to(time: str, url: str) -> str:
    """The address of a capture, below this server."""
    return "capture?" + urlencode({"time": time, "url": url})


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=_text(title), body=body)


def _text(text: str) -> str:
    """A text from outside: markup is escaped, and so is what turns or hides the letters around it."""
    return escape(printable(text))


def _form(search: Search, focus: str = "") -> str:
    fields = (
        ("q", search.words, "Words, a “phrase”, or a URL", "", focus),
        ("site", search.site, "Site", "www.example.org", ""),
        ("from", search.first, "From", "2016-10-19", ""),
        ("to", search.last, "To", "2016-11", ""),
    )
    inputs = "\n".join(
        f'<label>{label} <input name="{name}" value="{escape(value)}" placeholder="{hint}"{focus}></label>'
        for name, value, label, hint, focus in fields
    )
    return f'<form action="search" role="search">\n{inputs}\n<button>Search</button>\n</form>'


def _count(search: Search, answer: SearchAnswer) -> str:
    if not answer.captures:
        return "Nothing was found: no capture has all of these words. Try fewer of them, or no site and no time."
    first, last = search.skipped + 1, search.skipped + len(answer.best)
    shown = f", {first:,} to {last:,} are shown" if answer.captures > len(answer.best) else ""
    many = f" Only the {answer.ranked:,} that the index has last were compared: add a word, a site or a time."
    found = f"{answer.captures:,} {'capture' if answer.captures == 1 else 'captures'} found{shown}."
    return found + (many if answer.ranked < answer.captures else "")


def _result(found: FoundDocument) -> str:
    title = _text(found.title.strip() or found.url)
    return (
        f'<li><h2><a href="{escape(way_to(found.time, found.url))}" rel="noreferrer"><bdi>{title}</bdi></a></h2>\n'
        f'<p class="url">{_text(found.url)} <time>{when(found.time)}</time></p>\n'
        f'<p dir="auto">{_marked(found.line)}</p></li>'
    )


def _listed(search: Search, found: ShownCaptures, shown: int) -> str:
    if not found.captures:
        return f"Nothing was found: no capture of {_text(search.url)} is in the archive, at these times."
    first = f", {search.skipped + 1:,} to {search.skipped + shown:,} are shown" if found.captures > shown else ""
    return (
        f"{found.captures:,} {'capture' if found.captures == 1 else 'captures'} of this URL{first}, the newest first."
    )


def _captured(one: ShownCapture) -> str:
    said = ", ".join(filter(None, (one.status, one.type)))
    return (
        f'<li><h2><a href="{escape(way_to(one.time, one.url))}" rel="noreferrer">{when(one.time)}</a></h2>\n'
        f'<p class="url">{_text(one.url)} <time>{_text(said)}</time></p></li>'
    )


def _marked(line: str) -> str:
    """A line of text with its marks as elements; each that is opened is closed."""
    begin, *rest = line.split(MARKS[0])
    return _text(_plain(begin)) + "".join(map(_mark, rest))


def _mark(piece: str) -> str:
    word, _, after = piece.partition(MARKS[1])
    return f"<mark>{_text(word)}</mark>{_text(_plain(after))}"


def _plain(text: str) -> str:
    return text.replace(MARKS[1], "")


def _ways(search: Search, captures: int) -> str:
    ways = list(_links(search, captures))
    return f"<nav>{' '.join(ways)}</nav>" if ways else ""


def _links(search: Search, captures: int) -> Iterator[str]:
    if search.page > 1:
        yield _link(search, search.page - 1, "The page before")
    if search.skipped + MOST < captures and search.page < PAGES:
        yield _link(search, search.page + 1, "The next page")


def _link(search: Search, page: int, label: str) -> str:
    fields = {"q": search.words, "site": search.site, "from": search.first, "to": search.last, "page": str(page)}
    address = "search?" + urlencode({name: value for name, value in fields.items() if value})
    return f'<a href="{escape(address)}">{label}</a>'
