"""Pages of launches and of what they brought: launch, pages, captures."""
