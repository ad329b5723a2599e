"""The archive over HTTP: search here, replay in a pywb beside it. It reads the rest, and changes nothing."""
