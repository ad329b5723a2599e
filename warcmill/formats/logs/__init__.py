"""The logs of a crawl: Heritrix's crawl.log and job.log, their counts, and the zip that keeps them. Pure."""
