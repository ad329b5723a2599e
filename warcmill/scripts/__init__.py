"""Scripts: pages of Python that crawl, as pyspider has them. A script is a crawl and a spider of its job's frontier.

api/       what a script imports, under pyspider's names; it knows nothing else of ours
worker     the process in which scripts run; `walls` shuts it off from network, files and environment
asking     asks such processes, from the loop of a crawl
"""
