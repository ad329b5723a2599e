"""One launch of a job: opened, crawled, checkpointed and closed; repaired, after a kill. Writes to its folders."""
