"""Pages of jobs: their list, form, and what a running crawl does."""
