"""Stands in the place of a forked kernel: run by path, it asks the server for one, passes signals on to it, and ends
when and as the kernel does. The kernel ends when this process is killed, by whomever: the server sees the socket close.
"""

import json
import os
import signal
import socket
import sys

name, connection_file = sys.argv[1:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(f"\0{name}")
folder = os.getcwd()  # noqa: PTH109  # to import pathlib takes as long as all the rest
server.send(json.dumps([connection_file, folder]).encode())
kernel = int(server.recv(64))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.killpg(kernel, number))
sys.exit(int(server.recv(64) or 1))
