"""Clusters: endless jobs of a group, each with a frontier of its own, and one PostgreSQL that sees every URI.

tables     the tables of a group's centre, and their version
following  the journal of a job, read on from a place
news       what groups of it say of each URI
centre     a connection to the centre: news in, numbers and rows out
looking    a URI, its history, and lists, as a person looks at them
lists      hosts, the URIs of one, orders, as pages show them
orders     changes that wait there, and how the running crawl is given them
updater    the process beside a cluster: news up, orders down
scopes     the one scope of a group, by editions, and the jobs that it is written into
recovery   rows of the centre made anew from journals; what a lost cluster had, ordered from it again
books      the centre beside the journals
"""
