"""The real HDFS of this process, for the tests that ask for it."""

from tests.support.hdfs import hdfs

__all__ = ["hdfs"]
