"""The index of captures: CDXJ lines and their keys, ZipNum, and the columns of Common Crawl's URL index. Pure."""
