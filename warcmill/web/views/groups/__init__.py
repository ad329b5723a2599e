"""The views of groups of clusters, and of their orders."""
