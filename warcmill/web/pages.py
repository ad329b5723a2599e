"""The pages as HTML: values in, text out. Every text from outside is escaped; nothing in a page is a script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from urllib.parse import urlencode

from warcmill.base.printable import printable
from warcmill.versions.search import MOST, Answer, Found
from warcmill.web.asked import PAGES, Search

MARKS = ("\x02", "\x03")  # around a word in a line of text: no page's text keeps them
STYLE = """\
body { font: 16px/1.45 sans-serif; color: #1c1c1c; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 0; font-weight: normal; }
form { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: 1.5rem; }
input, button { font: inherit; padding: .35rem .5rem; }
input { flex: 1; min-width: 8rem; } input[name=q] { flex: 1 1 100%; }
ol { list-style: none; padding: 0; } li { margin-bottom: 1.3rem; } p { margin: .15rem 0; overflow-wrap: anywhere; }
.url { color: #2d6a3e; font-size: .9rem; } .none { color: #8a1f11; } mark { background: #fff1a8; }
nav { display: flex; gap: 1rem; }
"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="style.css"></head>
<body>
<h1>Search the archive</h1>
{body}
</body>
</html>
"""


def home(search: Search) -> str:
    """The form alone."""
    return _page("Search the archive", _form(search))


def results(search: Search, answer: Answer) -> str:
    """The form, what was found, and the ways to the pages before and after."""
    shown = "\n".join(map(_result, answer.best))
    parts = (_form(search), f"<p>{_count(search, answer)}</p>", f"<ol>\n{shown}\n</ol>", _ways(search, answer))
    return _page(f"{search.words} - search the archive", "\n".join(parts))


def problem(title: str, why: str) -> str:
    """Why there is no answer."""
    return _page(title, f'<p class="none">{_text(title)}: {_text(why)}</p>\n<p><a href="./">A new search</a></p>')


def when(time: str) -> str:
    """14 digits, as people write a time."""
    return f"{time[:4]}-{time[4:6]}-{time[6:8]} {time[8:10]}:{time[10:12]}:{time[12:]} UTC"


def way_to(found: Found) -> str:
    """The address of a capture, below this server."""
    return "capture?" + urlencode({"time": found.time, "url": found.url})


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=_text(title), body=body)


def _text(text: str) -> str:
    """A text from outside: markup is escaped, and so is what turns or hides the letters around it."""
    return escape(printable(text))


def _form(search: Search) -> str:
    fields = (
        ("q", search.words, "words, or “a phrase”"),
        ("site", search.site, "site"),
        ("from", search.first, "from 2016-10-19"),
        ("to", search.last, "to 2016-11"),
    )
    inputs = "\n".join(
        f'<input name="{name}" value="{escape(value)}" placeholder="{hint}" aria-label="{hint}">'
        for name, value, hint in fields
    )
    return f'<form action="search">\n{inputs}\n<button>Search</button>\n</form>'


def _count(search: Search, answer: Answer) -> str:
    if not answer.captures:
        return "Nothing was found."
    first, last = search.skipped + 1, search.skipped + len(answer.best)
    shown = f", {first:,} to {last:,} are shown" if answer.captures > len(answer.best) else ""
    return f"{answer.captures:,} {'capture' if answer.captures == 1 else 'captures'} found{shown}."


def _result(found: Found) -> str:
    title = _text(found.title.strip() or found.url)
    return (
        f'<li><h2><a href="{escape(way_to(found))}" rel="noreferrer">{title}</a></h2>\n'
        f'<p class="url">{_text(found.url)} <time>{when(found.time)}</time></p>\n<p>{_marked(found.line)}</p></li>'
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


def _ways(search: Search, answer: Answer) -> str:
    ways = list(_links(search, answer))
    return f"<nav>{' '.join(ways)}</nav>" if ways else ""


def _links(search: Search, answer: Answer) -> Iterator[str]:
    if search.page > 1:
        yield _link(search, search.page - 1, "The page before")
    if search.skipped + MOST < answer.captures and search.page < PAGES:
        yield _link(search, search.page + 1, "The next page")


def _link(search: Search, page: int, label: str) -> str:
    fields = {"q": search.words, "site": search.site, "from": search.first, "to": search.last, "page": str(page)}
    address = "search?" + urlencode({name: value for name, value in fields.items() if value})
    return f'<a href="{escape(address)}">{label}</a>'
