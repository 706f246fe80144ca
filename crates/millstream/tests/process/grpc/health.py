"""A gRPC server with the health service: `health.py PORT STATES PEERS [CERT KEY]`.

Each line of the file STATES is the name of a service and its state, as `mill.Test SERVING`; that of the whole server is `-`.
Without that file the server lacks the service. PEERS gets a line with the address of each caller.
"""
import os
import sys
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PORT, STATES, PEERS, *SECRETS = sys.argv[1:]


def messages():
    """HealthCheckRequest and HealthCheckResponse of grpc.health.v1."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="health.proto", package="grpc.health.v1", syntax="proto3")
    question = file.message_type.add(name="HealthCheckRequest")
    question.field.add(name="service", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    answer = file.message_type.add(name="HealthCheckResponse")
    states = answer.enum_type.add(name="ServingStatus")
    for number, name in enumerate(["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]):
        states.value.add(name=name, number=number)
    answer.field.add(
        name="status",
        number=1,
        type=kinds.TYPE_ENUM,
        label=kinds.LABEL_OPTIONAL,
        type_name=".grpc.health.v1.HealthCheckResponse.ServingStatus",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    names = ["HealthCheckRequest", "HealthCheckResponse"]
    return [factory.GetPrototype(pool.FindMessageTypeByName(f"grpc.health.v1.{name}")) for name in names]


REQUEST, RESPONSE = messages()


def check(request, context):
    with open(PEERS, "a") as peers:
        peers.write(context.peer() + "\n")
    with open(STATES) as file:
        states = dict(line.split() for line in file)
    state = states.get(request.service or "-")
    if state is None:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
    return RESPONSE(status=RESPONSE.ServingStatus.Value(state))


class Service(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == "/mill.Test/Unary":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: PORT.encode())
        if details.method == "/grpc.health.v1.Health/Check" and os.path.exists(STATES):
            return grpc.unary_unary_rpc_method_handler(
                check,
                request_deserializer=REQUEST.FromString,
                response_serializer=RESPONSE.SerializeToString,
            )
        return None


server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
server.add_generic_rpc_handlers((Service(),))
if SECRETS:
    certificate, key = (open(name, "rb").read() for name in SECRETS)
    server.add_secure_port(f"127.0.0.1:{PORT}", grpc.ssl_server_credentials([(key, certificate)]))
else:
    server.add_insecure_port(f"127.0.0.1:{PORT}")
server.start()
server.wait_for_termination()
