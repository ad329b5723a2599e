"""Runs spiders by Scrapy itself, at the same time: `plain_scrapy.py ARGUMENT "NAME FILE SITE"...`. Each leaves a folder
of its name."""

import importlib.util
import sys
from pathlib import Path

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings
from scrapy.utils.spider import iter_spider_classes

sys.path.insert(0, str(Path(__file__).parent / "spiders"))


def module_of(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = sys.modules[Path(path).stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argument, words):
    modules = {path: module_of(path) for path in {one.split(" ")[1] for one in words}}
    process = AsyncCrawlerProcess(Settings({"LOG_LEVEL": "ERROR"}))
    for name, path, site in (one.split(" ") for one in words):
        (kind,) = (one for one in iter_spider_classes(modules[path]) if one.name == name)
        own = {"FEEDS": {f"{name}/items.jsonl": {"format": "jsonlines"}}, "STATS_CLASS": "idiom_figures.KeptFigures"}
        crawler = process.create_crawler(kind)
        crawler.settings.setdict({**own, "FIGURES": name, "HTTPCACHE_DIR": f"{name}/cache"}, "cmdline")
        process.crawl(crawler, site=site, argument=argument)
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
