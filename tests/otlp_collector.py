# SPDX-License-Identifier: Apache-2.0
"""A scripted collector: it checks each request against the schema of OTLP, and records the spans."""
import base64
import json
from dataclasses import dataclass

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from backend import Backend, response
from proc import wait_until

IDS = ("traceId", "spanId", "parentSpanId")


@dataclass
class Span:
    message: object
    service: str

    @property
    def name(self):
        return self.message.name

    @property
    def kind(self):
        return self.message.kind

    @property
    def trace(self):
        return self.message.trace_id.hex()

    @property
    def id(self):
        return self.message.span_id.hex()

    @property
    def parent(self):
        return self.message.parent_span_id.hex()

    @property
    def failed(self):
        return self.message.status.code == 2

    @property
    def attributes(self):
        return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in self.message.attributes}


def parse(body):
    """The spans of a request. The JSON encoding of OTLP writes IDs as hexadecimal digits, that of Protocol Buffers as Base64;
    all else must be the schema's."""
    document = json.loads(body)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in IDS:
                    if key in span:
                        raw = bytes.fromhex(span[key])
                        assert len(raw) == (16 if key == "traceId" else 8) and any(raw)
                        span[key] = base64.b64encode(raw).decode()
    message = json_format.ParseDict(document, ExportTraceServiceRequest())
    spans = []
    for resource in message.resource_spans:
        [service] = [each.value.string_value for each in resource.resource.attributes if each.key == "service.name"]
        for scope in resource.scope_spans:
            assert scope.scope.name == "monkey"
            spans += [Span(each, service) for each in scope.spans]
    for each in spans:
        assert each.message.start_time_unix_nano <= each.message.end_time_unix_nano
    return spans


class Collector:
    """`reply(request)` returns the response; None: success. `context`: the collector uses TLS."""

    def __init__(self, reply=None, at=None, context=None):
        self.reply, self.spans, self.errors = reply, [], []
        self.context = context
        self.backend = Backend(self._receive, script=self._use_tls if context else None, at=at)
        self.address = self.backend.address

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.backend.stop()
        assert not self.errors

    @property
    def requests(self):
        return self.backend.requests

    def _use_tls(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as tls:
            self.backend._answer_all(tls, self.backend.connections)

    def _receive(self, request):
        reply = self.reply and self.reply(request)
        if reply is not None:
            return reply
        try:
            self.spans += parse(request.body)
        except Exception as e:
            self.errors.append(e)
            raise
        return response("{}", fields=[("Content-Type", "application/json")])

    def wait_for(self, n):
        return wait_until(lambda: len(self.spans) >= n and list(self.spans), f"{n} spans")
