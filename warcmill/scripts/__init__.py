"""Scripts: pages of Python that crawl, as pyspider has them. A script is a crawl and a spider of its job's frontier.

api/       what a script imports, under pyspider's names; it knows nothing else of ours
walled/    the processes in which scripts run, shut off from network, files and environment; and who asks them
"""
