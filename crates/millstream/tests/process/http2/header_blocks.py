"""Header blocks through Python's own HPACK: a line of JSON in, one out."""

import json
import sys

from hpack import Decoder, Encoder, HPACKError
from hpack.struct import HeaderTuple, NeverIndexedHeaderTuple

decoder, encoder = Decoder(), Encoder()


def decoded(one, block):
    """The fields of a block, as pairs of hexadecimal text; None if it is malformed."""
    try:
        fields = one.decode(bytes.fromhex(block), raw=True)
    except HPACKError:
        return None
    return [[name.hex(), value.hex()] for name, value in fields]


def encoded(size, fields, huffman):
    """A block of fields; those that are marked may be in no table."""
    if size != encoder.header_table_size:
        encoder.header_table_size = size
    kinds = {True: NeverIndexedHeaderTuple, False: HeaderTuple}
    pairs = [
        kinds[never](bytes.fromhex(name), bytes.fromhex(value))
        for name, value, never in fields
    ]
    return encoder.encode(pairs, huffman=huffman).hex()


for line in sys.stdin:
    task = json.loads(line)
    if task["task"] == "decode":
        answer = decoded(decoder, task["block"])
    elif task["task"] == "decode alone":
        answer = decoded(Decoder(), task["block"])
    else:
        answer = encoded(task["size"], task["fields"], task["huffman"])
    print(json.dumps(answer), flush=True)
