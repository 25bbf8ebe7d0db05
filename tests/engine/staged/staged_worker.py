"""What a worker process does: run tasks of staged queries that come as bytes.

A module of its own: a process that runs tasks imports no planner.
"""

from __future__ import annotations

import json
import pickle
from multiprocessing.connection import Connection
from pathlib import Path

from queryard.engine.staged.exchange import PieceLost
from queryard.engine.staged.file_exchange import FileExchange
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.task import TaskSpec


def serve(pipe: Connection, folder: Path, place: str) -> None:
    """Run the tasks that are sent, until the pipe is closed."""
    exchange = FileExchange(folder, place)
    nodes: dict[str, StagedNode] = {}
    while True:
        try:
            spec: TaskSpec = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        if spec.query not in nodes:
            instance = open_instance(int(spec.memory_bytes / 2), folder / place)
            nodes = {spec.query: StagedNode(instance, exchange)}
        try:
            pipe.send_bytes(b"done" + pickle.dumps(nodes[spec.query].run(spec)))
        except PieceLost as error:
            pipe.send_bytes(b"lost" + json.dumps(error.holders).encode())
        except BaseException as error:
            pipe.send_bytes(b"fail" + repr(error).encode())
