"""Decide which symbolic links in the engines' roots are followed, and why the others are not.

A job or a launch may be on another disk, behind a link. A link is followed only if all of this holds:
- it is at most `levels` below a root, where launches are searched;
- it leads to a folder strictly below one that `[warcmill] follow_links` names;
- that folder is in no root, and has no root in it;
- no second path leads to that folder.
The folder is opened by its real path, component by component from the named folder on. No component may
be a link, so a link that is changed meanwhile leads nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from warcmill.errors import NotFollowed
from warcmill.layout import NEVER_A_LAUNCH

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a root: its path on disk, the real path it leads to, and why it is not followed ('': it may be)."""

    path: str
    target: str = ""
    why: str = ""


class Links:
    """The rule for all roots. `roots`: each root that is a folder, and how many levels of it may be links."""

    def __init__(self, follow: Iterable[str] = (), roots: Mapping[str, int] | None = None) -> None:
        self._follow = tuple(os.path.realpath(folder) for folder in follow)
        self._roots = {os.path.realpath(base): levels for base, levels in (roots or {}).items()}

    def levels(self, base: str) -> int:
        """Return how many levels of a root may be links."""
        return self._roots.get(os.path.realpath(base), 0)

    def judge(self, path: str) -> Link:
        """Return the link at an absolute path, with the reason if it is not followed."""
        link = self._judge(path)
        return link if link.why else self._ways.get(_name(path), Link(path, link.target, "it came a moment ago"))

    def open(self, path: str) -> int:
        """Open the folder that the link at an absolute path leads to; return its descriptor, or raise NotFollowed."""
        now = self._judge(path)
        known = now if now.why else self.judge(path)
        if known.why or known.target != now.target:
            raise NotFollowed(path, known.why or "it leads elsewhere than a moment ago")
        return self._enter(now)

    def all(self) -> Iterator[Link]:
        """Yield every link of all roots, at the levels where links may be followed."""
        yield from self._ways.values()

    def _judge(self, path: str) -> Link:
        """Judge a link by itself: whether a second path leads to its folder is not checked."""
        try:
            target = os.path.realpath(path, strict=True)
        except OSError as error:
            return Link(path, "", f"a link that leads nowhere: {error.strerror}")
        if not os.path.isdir(target):
            return Link(path, target, f"a link to {target}, which is no folder; such links are never followed")
        if not any(_is_below(target, folder) for folder in self._follow):
            return Link(path, target, f"a link to {target}, which lies below no folder of [warcmill] follow_links")
        for root in self._roots:
            if target == root or _is_below(target, root) or _is_below(root, target):
                return Link(path, target, f"a link to {target}, which lies in the root {root}, or holds it")
        return Link(path, target)

    def _enter(self, link: Link) -> int:
        """Open the real path of a link, from the folder in `follow_links` on, through no other link."""
        allowed = max((folder for folder in self._follow if _is_below(link.target, folder)), key=len)
        descriptor = os.open(allowed, FOLDER)
        try:
            for name in os.path.relpath(link.target, allowed).split("/"):
                inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except OSError as error:
            os.close(descriptor)
            raise NotFollowed(link.path, f"{link.target} changed while it was opened: {error.strerror}") from error
        return descriptor

    @cached_property
    def _ways(self) -> dict[str, Link]:
        """Every link of all roots, by its real place; if two lead into one folder, both are refused."""
        links = {_name(link.path): link for root, levels in self._roots.items() for link in self._in(root, levels)}
        good = sorted((link for link in links.values() if not link.why), key=lambda link: f"{link.target}/")
        for place, link in enumerate(good):
            for other in good[place + 1 :]:
                if other.target != link.target and not _is_below(other.target, link.target):
                    break  # sorted: the content of a folder follows it directly
                for first, second in ((link, other), (other, link)):
                    why = f"two ways lead to {other.target}: this link and {second.path}; neither is read"
                    links[_name(first.path)] = Link(first.path, first.target, why)
        return links

    def _in(self, folder: str, levels: int) -> Iterator[Link]:
        """Yield the links in a folder and below it that may be followed. The store that lists it reports errors."""
        try:
            with os.scandir(folder) as listing:
                entries = [(entry.path, entry.is_symlink(), entry.is_dir(follow_symlinks=False)) for entry in listing]
        except OSError:
            return
        for path, is_link, is_folder in entries if levels else ():
            name = os.path.basename(path)
            if name.startswith(".") or (folder not in self._roots and NEVER_A_LAUNCH.fullmatch(name)):
                continue
            link = self._judge(path) if is_link else None
            if link:
                yield link
            if is_folder or (link and not link.why):
                yield from self._in(path, levels - 1)


def _name(path: str) -> str:
    """Return a link's real place, however the path to it is written."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_below(path: str, folder: str) -> bool:
    """True if a real path lies strictly below another."""
    return path.startswith(f"{folder.rstrip('/')}/") and path != folder
