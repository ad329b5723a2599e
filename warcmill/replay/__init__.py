"""Replay: pywb, which shows a capture as it was crawled."""
