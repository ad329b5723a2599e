"""Publications: the properties of document files, and the facts of the pages that name them or link to them.

`kinds` decides by bytes which bodies are documents. `pdf`, `zipped` and `older` read one, by PDFium or by code of this
room; `page` reads a page by lexbor. Run them in a process of its own, under limits, as extracts/harvest_worker.py does:
"""
