"""The spider that is meant by FILE or PROJECT[:NAME], and its settings as Scrapy reads them. Imports their code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from scrapy import Spider
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.conf import feed_process_params_from_cli
from scrapy.utils.project import get_project_settings
from scrapy.utils.spider import iter_spider_classes

from warcmill.errors import BadConfig
from warcmill.requests.serving.scope import LINK_SPIDER
from warcmill.spiders.names import leave_out_parts, resolve

_CFG, _MODULE = "scrapy.cfg", "SCRAPY_SETTINGS_MODULE"
_COMMAND = "cmdline"  # their priority of what a command sets: above the project and the spider
_THEIR_FAULTS = (Exception, SystemExit)  # while their code is imported: an exit there is no end of a spider
_THEIRS = "crawling.spiders"  # Scrapy Cluster's package, whose spiders import each other from it


class ScrapyProject(NamedTuple):
    """A spider and the settings of its project."""

    spider: type[Spider]
    settings: Settings
    arguments: Mapping[str, str]


class CommandLine(NamedTuple):
    """The options of a command, as those of Scrapy: `-a` and `-s` are NAME=VALUE, `-o` and `-O` files for items."""

    arguments: Sequence[str] = ()
    settings: Sequence[str] = ()
    append: Sequence[str] = ()
    overwrite: Sequence[str] = ()


_NO_WORDS = CommandLine()


def find(meant: str, words: CommandLine = _NO_WORDS) -> ScrapyProject:
    """Find a spider: in a file of Python, or by name in the folder of a project. BadConfig with what is wrong."""
    path, colon, name = meant.rpartition(":") if not Path(meant).exists() and ":" in meant else (meant, "", "")
    place = Path(path).absolute()
    if place.is_dir():
        found, settings = _of_project(place, name if colon else "")
    elif place.is_file():
        found, settings = _of_file(place, name)
    else:
        raise BadConfig("spider", f"{path} is neither a file nor a folder of a Scrapy project")
    if found.name == LINK_SPIDER:
        raise BadConfig("spider", f"{found.name!r} is our own crawler, which needs no spider; give this another name")
    settings.setdict(_named("-s", words.settings), _COMMAND)
    try:
        if words.append or words.overwrite:
            feeds = feed_process_params_from_cli(settings, list(words.append), overwrite_output=list(words.overwrite))
            settings.set("FEEDS", feeds, _COMMAND)
    except UsageError as error:
        raise BadConfig("-o", str(error)) from error
    return ScrapyProject(found, settings, _named("-a", words.arguments))


def _of_file(path: Path, name: str) -> tuple[type[Spider], Settings]:
    if path.suffix not in (".py", ".pyw"):
        raise BadConfig("spider", f"{path} is not a file of Python")
    settings = _settings(path.parent)
    resolve(settings)
    sys.path.insert(0, str(path.parent))
    module = _imported(path)
    return _one(list(iter_spider_classes(module)), name, str(path)), settings


def _imported(path: Path) -> ModuleType:
    """The module of a file. One that stands alone may import as if it were in Scrapy Cluster's package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadConfig("spider", f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    if not (path.parent / "__init__.py").exists():
        importlib.import_module(_THEIRS)
        module.__package__ = _THEIRS
        module.__spec__ = None
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except _THEIR_FAULTS as error:
        raise BadConfig("spider", f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _of_project(folder: Path, name: str) -> tuple[type[Spider], Settings]:
    if not (folder / _CFG).is_file():
        raise BadConfig("spider", f"{folder} has no {_CFG}, so it is not a Scrapy project")
    sys.path.insert(0, str(folder))
    settings = _settings(folder)
    resolve(settings)
    try:
        loader = SpiderLoader.from_settings(settings)
        found = [loader.load(one) for one in loader.list()]
    except _THEIR_FAULTS as error:
        raise BadConfig("spider", f"the spiders of {folder} cannot be imported: {error!r}") from error
    return _one(found, name, str(folder)), settings


def _settings(folder: Path) -> Settings:
    """The settings of the project that a folder is in; without a project Scrapy's own."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        settings = get_project_settings()
        leave_out_parts(settings)
        return settings
    except _THEIR_FAULTS as error:
        raise BadConfig("spider", f"the settings of {folder} cannot be read: {error!r}") from error
    finally:
        os.chdir(before)


def _one(found: Sequence[type[Spider]], name: str, where: str) -> type[Spider]:
    if not found:
        raise BadConfig("spider", f"{where} has no spider: no class of scrapy.Spider with a name")
    names = sorted(str(one.name) for one in found)
    if name:
        found = [one for one in found if one.name == name]
        if not found:
            raise BadConfig("spider", f"{where} has no spider {name!r}; it has {', '.join(names)}")
    if len(found) > 1:
        raise BadConfig(
            "spider", f"{where} has {len(found)} spiders; name one, as in {where}:{names[0]}: {', '.join(names)}"
        )
    return found[0]


def _named(option: str, words: Sequence[str]) -> dict[str, str]:
    found = {}
    for one in words:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise BadConfig(option, f"{one!r} is not NAME=VALUE")
        found[name] = value
    return found
