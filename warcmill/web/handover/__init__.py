"""Files that pages hand over and take in: WACZ that are downloaded, and uploads that are imported."""
