"""The words of documents: bytes in, `Document` out. resiliparse reads HTML, pypdfium2 PDF.

`document.kind_of` sorts media types into kinds, `charset` decodes, `extract.document` extracts. Run it in a process of
its own, under limits, as extracts/text_worker.py does: payloads are hostile, and parsers of PDF are written in C++.
"""
