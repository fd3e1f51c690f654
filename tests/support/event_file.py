"""``event_file.py DIRECTORY``: what a training that TensorBoard shows has written: its loss, over ten steps."""

from __future__ import annotations

import sys
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

TAG = "loss"


def write(directory: str) -> None:
    """Write one file of events there."""
    writer = EventFileWriter(directory)
    for step in range(10):
        value = Summary.Value(tag=TAG, simple_value=1 / (step + 1))
        writer.add_event(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
