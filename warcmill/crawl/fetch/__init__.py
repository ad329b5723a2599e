"""One request and its answer over HTTP/1.1, within limits: `http.Fetcher`. Only `wire` connects to web servers."""
