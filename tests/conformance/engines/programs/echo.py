"""Answers each connection to the port ``echo`` with what it says first."""

import os
import socket
import threading

PORT = "PAI_CONTAINER_HOST_echo_PORT_LIST"

server = socket.create_server(("", int(os.environ[PORT])))


def answer(connection: socket.socket) -> None:
    with connection:
        connection.sendall(connection.recv(100))


print("listening", flush=True)
while True:
    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()
