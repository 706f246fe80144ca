"""WebSockets over HTTP/2: `websocket.py serve PORT` is a server of HTTP/1.1 behind, `websocket.py ask PORT` a client.

What goes through a tunnel is bytes to the proxy, so frames of WebSockets are not made.
"""
import base64
import hashlib
import socket
import struct
import sys
import threading

import h2.config
import h2.connection
import h2.events
import h2.settings

ENABLE_CONNECT_PROTOCOL = 8
CANCEL = 8


def answer_to(key):
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    return base64.b64encode(digest).decode()


def handle(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1)
    lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    path = lines[0].split()[1]
    # Keys differ in case.
    key = next(line.split(": ", 1)[1] for line in lines if line.lower().startswith("sec-websocket-key"))
    assert fields["upgrade"] == "websocket" and fields["connection"] == "upgrade", fields
    assert fields["sec-websocket-version"] == "13" and len(base64.b64decode(key)) == 16, fields
    if path == "/plain":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
        return connection.close()
    accepted = "wrong" if path == "/wrong" else answer_to(key)
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        + f"Sec-WebSocket-Accept: {accepted}\r\nSec-WebSocket-Protocol: chat\r\n\r\n".encode()
    )
    while piece := connection.recv(65536):
        if piece.endswith(b"break"):
            # A reset instead of an end.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return connection.close()
        connection.sendall(piece)
    connection.sendall(b"bye")
    connection.close()


def serve(port):
    listener = socket.create_server(("127.0.0.1", int(port)))
    print("serving", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=handle, args=(connection,), daemon=True).start()


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=20)
        config = h2.config.H2Configuration(validate_outbound_headers=False, header_encoding="utf-8")
        self.protocol = h2.connection.H2Connection(config)
        self.protocol.initiate_connection()
        self.heads, self.content, self.ended, self.reset = {}, {}, set(), {}
        self.flush()
        self.until(lambda: self.protocol.remote_settings.get(ENABLE_CONNECT_PROTOCOL) == 1)

    def flush(self):
        self.socket.sendall(self.protocol.data_to_send())

    def turn(self):
        data = self.socket.recv(65536)
        assert data, "the connection is closed"
        for event in self.protocol.receive_data(data):
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.ResponseReceived):
                self.heads[stream] = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                self.content[stream] = self.content.get(stream, b"") + event.data
                self.protocol.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended.add(stream)
            elif isinstance(event, h2.events.StreamReset):
                self.reset[stream] = event.error_code
        self.flush()

    def until(self, holds):
        while not holds():
            self.turn()

    def ask(self, path, connect=True):
        stream = self.protocol.get_next_available_stream_id()
        opening = [(":method", "CONNECT"), (":protocol", "websocket")] if connect else [(":method", "GET")]
        opening += [(":scheme", "http"), (":path", path), (":authority", "a.example")]
        if connect:
            opening += [("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat"), ("origin", "http://a")]
        self.protocol.send_headers(stream, opening, end_stream=not connect)
        self.flush()
        self.until(lambda: stream in self.heads)
        return stream

    def send(self, stream, data):
        while data:
            room = min(
                self.protocol.local_flow_control_window(stream), self.protocol.max_outbound_frame_size, len(data)
            )
            if room == 0:
                self.turn()
                continue
            self.protocol.send_data(stream, data[:room])
            self.flush()
            data = data[room:]

    def end(self, stream):
        self.protocol.end_stream(stream)
        self.flush()
        self.until(lambda: stream in self.ended or stream in self.reset)


def ask(port):
    client = Client(port)
    streams = [client.ask("/echo") for _ in range(3)]
    for stream in streams:
        head = client.heads[stream]
        assert head[":status"] == "200" and head["sec-websocket-protocol"] == "chat", head
        assert not head.keys() & {"sec-websocket-accept", "upgrade", "connection", "content-length"}, head
    # Small messages wait for each other.
    for number in range(30):
        stream = streams[number % 3]
        before = len(client.content.get(stream, b""))
        client.send(stream, b"message %d" % number)
        client.until(lambda: len(client.content.get(stream, b"")) >= before + len(b"message %d" % number))
    # A request between them, and much more than a window.
    usual = client.ask("/values", connect=False)
    client.until(lambda: usual in client.ended)
    assert client.content[usual] == b"usual", client.content[usual]
    much = bytes(range(256)) * 8000
    for stream in streams:
        before = client.content[stream]
        client.send(stream, much)
        client.end(stream)
        assert client.content[stream] == before + much + b"bye", len(client.content[stream])
        assert stream not in client.reset, client.reset
    for path, status in [("/wrong", "502"), ("/plain", "501"), ("/values", "501"), ("/index.html", "501"), ("/none", "404")]:
        stream = client.ask(path)
        assert client.heads[stream][":status"] == status, (path, client.heads[stream])
        client.until(lambda: stream in client.ended or stream in client.reset)
    broken = client.ask("/echo")
    client.send(broken, b"break")
    client.until(lambda: broken in client.reset)
    assert client.reset[broken] == CANCEL, client.reset
    left = client.ask("/echo")
    client.protocol.reset_stream(left)
    client.flush()
    last = client.ask("/values", connect=False)
    assert client.heads[last][":status"] == "200"
    print("all is well")


{"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2])
