"""Spiders of Scrapy in a launch of ours: their requests wait in our frontier, our fetcher makes them. The whole way.

    project     which spider is meant: a file, or a project and a name; its settings, as Scrapy reads them
    loop        the `Spider` of a launch that leases for a spider of Scrapy, and Scrapy's crawler beside it
    bridge      what is between both: visits that Scrapy has in hand, requests that are to be offered
    visit       one visit: admitted and fetched by us, its callback run by Scrapy, kept with what that found
    guard       the project's code while it runs: the page it is at, what it raises, what blocks the loop, what dies
    addon       what Scrapy is given: settings, scheduler, download handler, the outermost spider middleware
    memory      what a spider remembers: its cookies and spider.state, kept by the frontier
    items       an item as a line of results.jsonl, for the application that has asked for it
    requests    a request as it waits in the frontier, and back
    values      what is in its meta, likewise
    heard       settings of a project that our fetcher hears: retries and limits
    browsers    requests that ask for a browser
    names       modules that spiders of Scrapy Cluster import by its names

The way of a request
--------------------

 1. A callback yields it. Spider middlewares of the project see it, then ours, which makes a `Uri` of it. Those of
    `start()`, of a redirect, of an errback or an extension come by the scheduler.
 2. It is offered: with the entry of the page that it was found on, or, of many, some at a time before that.
 3. The loop leases it. Our policies, robots.txt and the turn of its host are asked: `crawl.visit.admission`.
 4. The scheduler hands it to Scrapy's engine; downloader middlewares of the project see it; our handler fetches it.
 5. The answer goes back through them to the callback. Items go to the pipelines.
 6. The engine has nothing left to do for it: its entry is kept, and the lease ends. Killed before that, all of it
    is done again. So pipelines may see an item twice, but no item is lost.
"""
