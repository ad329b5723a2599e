"""The configuration of a crawl: `file` reads a job's folder, `text` writes one, `job` has its values."""
