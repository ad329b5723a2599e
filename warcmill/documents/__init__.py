"""New publications in the archive, for a curator: their extraction from stored WARCs, and the check of it."""
