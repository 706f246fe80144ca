"""Sets options that connections of the stack don't have: before connecting, of a listener, and of a connection, twice each."""

import socket
import sys

IP_TTL = (socket.IPPROTO_IP, socket.IP_TTL)
WINDOW_CLAMP = (socket.IPPROTO_TCP, 10)
PRIORITY = (socket.SOL_SOCKET, 12)


def main():
    far, near = sys.argv[1:]
    for _ in range(2):
        s = socket.socket()
        s.setsockopt(*IP_TTL, 16)
        s.connect((far, 5001))
        try:
            s.setsockopt(*WINDOW_CLAMP, 10000)
        except OSError as error:
            print(error.errno)
        udp = socket.socket(type=socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 9)
        listener = socket.create_server((near, 0))
        listener.setblocking(False)
        try:
            listener.accept()
        except BlockingIOError:
            listener.setsockopt(*PRIORITY, 3)


main()
