"""The process that crawls one launch of a job of requests: `warcmill.crawl.process`, with their service.

python -m warcmill.requests.process ...      its words: see `python -m warcmill.crawl.process`
"""

from __future__ import annotations

import sys

from warcmill.crawl import process
from warcmill.requests.serving.service import RequestService

if __name__ == "__main__":
    sys.exit(process.main(sys.argv[1:], RequestService))
