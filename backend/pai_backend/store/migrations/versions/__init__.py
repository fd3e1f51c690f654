"""The revisions, oldest first by file name."""
