"""Pages that name publications as publishers do, in many forms: by `meta`, JSON-LD and microdata."""

from __future__ import annotations

import json
import random
from html import escape
from typing import Any

_NAMES = ("Anna Müller", "B. O'Neill", "Çağla Ünal", "李 明", "D & E")
_TITLES = ("Annual report", "Über Flüsse", "A <b>bold</b> plan", "Rivers & lakes — 2026", "Rapport “annuel”")
_HOUSES = ("Ministry of Rivers", "Verlag Beispiel & Söhne", "University of Example")
_DATES = ("2026-11-21", "2026", "2026-11-21T08:17:36Z")
_ISBNS = ("978-0-306-40615-7", "0-306-40615-2")
_TYPES = ("Book", "Report", "ScholarlyArticle", "Article", "DigitalDocument", "Thesis", "CreativeWork")


class _Page:
    def __init__(self, chosen: random.Random, number: int) -> None:
        self._chosen, self._number = chosen, number
        self._made = 0

    def title(self) -> str:
        self._made += 1
        return f"{self._chosen.choice(_TITLES)} {self._number}-{self._made}"

    def pick(self, values: tuple[str, ...]) -> str:
        return self._chosen.choice(values)

    def file(self) -> str:
        place = self.pick(("", "/files/", "../", "http://files.example/", "//cdn.example/"))
        return f"{place}n{self._number}{self.pick(('.pdf', '.epub', '.PDF?x=1&y=2', '.docx'))}"

    def meta(self, name: str, value: str) -> str:
        """A `meta`, however it is spelled."""
        text = escape(value)
        key = self.pick((name, name.upper(), name.capitalize()))
        return self.pick((
            f'<meta name="{key}" content="{text}">', f"<META CONTENT=\"{text}\" NAME='{key}' />",
            f'<meta  name = {key}\n content="{text}">', f'<meta content="  {text}\n" name="{key}" lang="en">',
        ))  # fmt: skip

    def citation(self) -> str:
        found = [self.meta("citation_title", self.title()), self.meta("citation_pdf_url", self.file())]
        found += [self.meta("citation_author", self.pick(_NAMES)) for _ in range(self._chosen.randint(0, 3))]
        found.append(self.meta("citation_publication_date", self.pick(_DATES)))
        found.append(self.meta("citation_isbn", self.pick(_ISBNS)))
        return "\n".join(found)

    def dublin_core(self) -> str:
        prefix = self.pick(("DC.", "dcterms.", "DCTERMS."))
        links = '<link rel="schema.DC" href="http://purl.org/dc/elements/1.1/">'
        links += '<link rel="schema.DCTERMS" href="http://purl.org/dc/terms/">'
        values = {"title": self.title(), "creator": self.pick(_NAMES), "publisher": self.pick(_HOUSES)}
        return links + "".join(
            f'<meta name="{prefix}{key}" content="{escape(value)}">' for key, value in values.items()
        )

    def og(self) -> str:
        return f'<meta property="og:title" content="{escape(self.title())}"><meta property="og:type" content="article">'

    def json_ld(self) -> str:
        person: Any = {"@type": "Person", "name": self.pick(_NAMES)}
        node: dict[str, Any] = {
            "@type": self.pick((f"{_TYPES[0]}", *_TYPES)), "name": self.title(), "author": [person, self.pick(_NAMES)],
            "publisher": {"@type": "Organization", "name": self.pick(_HOUSES)}, "datePublished": self.pick(_DATES),
            "isbn": self.pick(_ISBNS), "encoding": {"@type": "MediaObject", "contentUrl": self.file()},
        }  # fmt: skip
        form = self._chosen.randint(0, 3)
        context = {"@context": "https://schema.org"}
        whole: Any = {**context, **node}
        if form == 1:
            whole = [{**context, **node}, {**context, "@type": "WebSite", "name": "A site"}]
        elif form == 2:
            node["author"], node["@type"] = {"@id": "#anna"}, [node["@type"], "Product"]
            whole = {**context, "@graph": [node, {"@id": "#anna", **person}]}
        elif form == 3:
            whole = {**context, "@type": "WebPage", "mainEntity": node}
        text = json.dumps(whole, ensure_ascii=self._chosen.random() < 0.5, indent=self._chosen.choice((None, 2)))
        text = text.replace("</", r"<\/")
        return f'<script type="application/ld+json">{text}</script>'

    def microdata(self) -> str:
        author = self.pick((
            '<span itemprop="author">{}</span>',
            '<p itemprop=author itemscope itemtype="http://schema.org/Person">by <b itemprop="name">{}</b></p>',
            '<meta itemprop="author" content="{}">',
        )).format(escape(self.pick(_NAMES)))  # fmt: skip
        house = '<div itemprop="publisher" itemscope itemtype="https://schema.org/Organization">'
        return f"""<div itemscope itemtype="{self.pick(("http", "https"))}://schema.org/{self.pick(_TYPES)}">
            <{self.pick(("h2", "span", "em"))} itemprop="name">{escape(self.title())}
            </em></span></h2>{author}
            {house}<i itemprop="name">{escape(self.pick(_HOUSES))}</i></div>
            <time itemprop="datePublished" datetime="{self.pick(_DATES)}">lately</time>
            <{self.pick(("a", "link"))} itemprop="url" href="{escape(self.file())}"></a>
            <span itemprop="isbn">{self.pick(_ISBNS)}</span></div>"""

    def html(self) -> str:
        kinds = (self.citation, self.dublin_core, self.og, self.json_ld, self.microdata)
        chosen = self._chosen.sample(kinds, self._chosen.randint(1, 3))
        heads = [make() for make in chosen if make != self.microdata]
        bodies = [self.microdata() for make in chosen if make == self.microdata]
        title = escape(f"Page {self._number} – {self.title()}")
        head, body = "".join(heads), "".join(bodies)
        return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


def pages(number: int, seed: int = 23) -> dict[str, bytes]:
    """So many pages by their URLs, the same each time."""
    chosen = random.Random(seed)
    return {f"http://pages.example/a/p{at}.html": _Page(chosen, at).html().encode() for at in range(number)}
