"""A gRPC server, or a client that checks its answers: `peer.py serve PORT [CERT KEY]`, `peer.py ask ADDRESS [CA]`.

Messages are bytes without a schema, so nothing has to be compiled.
"""
import sys
import threading
from concurrent import futures

import grpc


def unary(request, context):
    metadata = dict(context.invocation_metadata())
    context.send_initial_metadata((("first", metadata.get("given", "none")),))
    context.set_trailing_metadata((("last", "behind"), ("raw-bin", b"\x00\xff")))
    if request == b"fail":
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
    if request == b"slow":
        threading.Event().wait(30)
    return request


def download(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def upload(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def echo(requests, context):
    for request in requests:
        yield request


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        return {
            "/mill.Test/Unary": grpc.unary_unary_rpc_method_handler(unary),
            "/mill.Test/Download": grpc.unary_stream_rpc_method_handler(download),
            "/mill.Test/Upload": grpc.stream_unary_rpc_method_handler(upload),
            "/mill.Test/Echo": grpc.stream_stream_rpc_method_handler(echo),
        }.get(details.method)


SIZES = [
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.max_send_message_length", 32 << 20),
]


def serve(port, *secrets):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), options=SIZES)
    server.add_generic_rpc_handlers((Service(),))
    if secrets:
        certificate, key = (open(name, "rb").read() for name in secrets)
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        server.add_secure_port(f"127.0.0.1:{port}", credentials)
    else:
        server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


def channel_to(address, authority):
    options = list(SIZES)
    if not authority:
        return grpc.insecure_channel(address, options)
    options.append(("grpc.ssl_target_name_override", "a.example"))
    credentials = grpc.ssl_channel_credentials(open(authority[0], "rb").read())
    return grpc.secure_channel(address, credentials, options)


def check(name, found, expected):
    if found != expected:
        print(f"{name}: {found!r} instead of {expected!r}")
        sys.exit(1)


def ask(address, *authority):
    channel = channel_to(address, authority)
    unary = channel.unary_unary("/mill.Test/Unary")
    answer, call = unary.with_call(b"a", metadata=(("given", "b"),), timeout=20)
    check("unary", answer, b"a")
    check("metadata before", dict(call.initial_metadata()).get("first"), "b")
    trailing = dict(call.trailing_metadata())
    check("metadata behind", (trailing["last"], trailing["raw-bin"]), ("behind", b"\x00\xff"))
    large = bytes(range(256)) * 40_000
    check("a large message", unary(large, timeout=20), large)
    check("an empty message", unary(b"", timeout=20), b"")
    for method, message, code in [
        ("Unary", b"fail", grpc.StatusCode.NOT_FOUND),
        ("Unary", b"slow", grpc.StatusCode.DEADLINE_EXCEEDED),
        ("None", b"", grpc.StatusCode.UNIMPLEMENTED),
    ]:
        try:
            channel.unary_unary(f"/mill.Test/{method}")(message, timeout=1)
            check("status", None, code)
        except grpc.RpcError as error:
            check("status", error.code(), code)
    download = channel.unary_stream("/mill.Test/Download")
    check("download", list(download(b"1000", timeout=20)), [b"%d" % n for n in range(1000)])
    upload = channel.stream_unary("/mill.Test/Upload")
    check("upload", upload((b"x" * 1000 for _ in range(1000)), timeout=20), b"1000000")
    # Each message waits for the answer to the one before: both directions are open at once.
    answered = threading.Semaphore(1)

    def messages():
        for number in range(100):
            answered.acquire()
            yield b"%d" % number

    echoed = []
    for message in channel.stream_stream("/mill.Test/Echo")(messages(), timeout=20):
        echoed.append(message)
        answered.release()
    check("echo", echoed, [b"%d" % n for n in range(100)])
    together = [unary.future(b"%d" % n, timeout=20) for n in range(500)]
    check("together", [one.result() for one in together], [b"%d" % n for n in range(500)])
    print("all is well")


{"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
