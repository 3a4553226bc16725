"""Started by path as a function's snapshot: snapshot.py PARENT_PID SOCKET HANDLER [--own-runtime]

Imports the handler's module once, then forks a process for each request that comes on the socket: what SnapStart
does with a machine's memory, done with a process. Imports nothing of this project, as `launch.py`. Linux only.

A request is one message, the environment of the new process as a JSON object, and the descriptor of its output; it is
answered by {"pid": …} when the process is there, before another request comes. {"pid": …, "code": …} tells of its end.
"""

import gc
import importlib
import json
import os
import selectors
import socket
import sys
from typing import Any

# Beside this file, which is where a script's imports are looked for first.
from launch import die_with, run_handler, set_up

MOST_BYTES = 1 << 20


def import_module_of(handler: str) -> None:
    """An import that fails is left to the processes, which report it as the runtime does.

    Not AWS's client: its native part reads the address of the Runtime API when it is loaded.
    """
    module = handler.rpartition(".")[0].replace("/", ".")
    try:
        importlib.import_module(module)
    except BaseException as error:
        sys.stderr.write(f"The snapshot does without {module}: {type(error).__name__}\n")
    # What is there now is there for good: a collection that visited it would copy every page of it.
    gc.collect()
    gc.freeze()


class Requests:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def serve(self) -> tuple[dict[str, str], int] | None:
        """Returns in every forked process, with its environment and output; in this one at the end: None."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._connection:
                    self._reap(int(key.fd), key.data)
                    continue
                message, descriptors, _, _ = socket.recv_fds(self._connection, MOST_BYTES, 1)
                if not message:
                    return None
                if not self._fork():
                    return json.loads(message), descriptors[0]
                os.close(descriptors[0])

    def _fork(self) -> bool:
        """False in the new process."""
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            for key in list(self._selector.get_map().values()):
                os.close(key.fd)  # the socket, and what tells of the end of the others
            self._selector.close()
            self._connection.detach()
            return False
        # Here too: the gateway may signal the group before the new process has run a single step.
        os.setpgid(pid, pid)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        self._tell(pid=pid)
        return True

    def _reap(self, descriptor: int, pid: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        self._tell(pid=pid, code=os.waitstatus_to_exitcode(status))

    def _tell(self, **answer: Any) -> None:
        self._connection.send(json.dumps(answer).encode())


def main(parent: int, descriptor: int, handler: str, *options: str) -> None:
    die_with(parent)
    set_up(handler)
    import_module_of(handler)
    snapshot = os.getpid()
    given = Requests(socket.socket(fileno=descriptor)).serve()
    if given is None:
        return
    environment, output = given
    die_with(snapshot)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    run_handler(own_runtime="--own-runtime" in options)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
