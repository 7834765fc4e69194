"""A component of `group-advantage` on the wire protocol (harness/engine/host/process/PROTOCOL.md).

It shares nothing with _serve.py, as a program in another language would not. Its argument says
how it behaves: `right` as it should, anything else badly.
"""

import json
import struct
import sys
import time

from bad import right

answered = -1  # the number of the request in flight


def receive():
    """The texts of the next message and its tensors as flat lists, or None at the end."""
    prefix = sys.stdin.buffer.read(8)
    if len(prefix) < 8:
        return None
    global answered
    answered += 1
    header = json.loads(sys.stdin.buffer.read(int.from_bytes(prefix, "little")))
    texts = header.pop("__metadata__")
    data = sys.stdin.buffer.read(max([e["data_offsets"][1] for e in header.values()], default=0))
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        code = {"F32": "f", "F64": "d", "I64": "q"}[entry["dtype"]]
        size = struct.calcsize(f"<{code}")
        tensors[name] = list(struct.unpack(f"<{(end - begin) // size}{code}", data[begin:end]))
    return texts, tensors


def send(texts, name=None, numbers=()):
    header = {"__metadata__": {"number": str(answered), **texts}}
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    if name:
        offsets = [0, len(data)]
        header[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": offsets}
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack("<Q", len(text)) + text + data)
    sys.stdout.buffer.flush()


def main(behaviour):
    if behaviour == "exits":
        sys.exit("there is no model here")
    if behaviour == "silent":
        time.sleep(600)
    while True:
        request = receive()
        if request is None or request[0]["kind"] == "stop":
            return
        texts, tensors = request
        if texts["kind"] == "load":
            if behaviour == "greets":
                print("Welcome to component 1.0!", flush=True)
            if behaviour == "refuses":
                send({"kind": "refused", "problem": "import-raised", "message": "no licence"})
                return
            send({"kind": "loaded", "autograd": "false"})
            continue
        epsilon = json.loads(texts["options"])["epsilon"]
        advantages = right(tensors["rewards"], tensors["groups"], epsilon)
        if len(advantages) > 2 and behaviour != "right":
            misbehave(behaviour, advantages)
        else:
            send({"kind": "returned"}, "advantages", advantages)


def misbehave(behaviour, advantages):
    if behaviour == "prints":
        print("a line for people, not for the harness", flush=True)
        send({"kind": "returned"}, "advantages", advantages)
    elif behaviour == "hangs":
        time.sleep(600)
    elif behaviour == "leaves":
        sys.exit(3)
    elif behaviour == "raises":
        send({"kind": "raised", "type": "Exception", "message": "three rewards", "traceback": ""})
    elif behaviour == "stops-half-way":
        sys.stdout.buffer.write(struct.pack("<Q", 1000) + b'{"__metadata__"')
        sys.exit(0)
    elif behaviour == "promises-too-much":
        sys.stdout.buffer.write(struct.pack("<Q", 1 << 60))
        sys.stdout.buffer.flush()
        time.sleep(600)
    elif behaviour in ("promises-gigabytes", "promises-terabytes"):
        count = 1 << (29 if behaviour == "promises-gigabytes" else 40)
        entry = {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}
        texts = {"number": str(answered), "kind": "returned"}
        text = json.dumps({"__metadata__": texts, "advantages": entry}).encode()
        sys.stdout.buffer.write(struct.pack("<Q", len(text)) + text)
        sys.stdout.buffer.flush()
        time.sleep(600)
    elif behaviour == "answers-twice":
        send({"kind": "returned"}, "advantages", advantages)
        send({"kind": "returned"}, "advantages", advantages)
    elif behaviour == "answers-the-last":
        send({"kind": "returned", "number": str(answered - 1)}, "advantages", advantages)
    elif behaviour == "answers-nothing":
        send({"kind": "returned", "number": ""}, "advantages", advantages)
    elif behaviour == "another-kind":
        send({"kind": "thanks"})
    elif behaviour == "another-name":
        send({"kind": "returned"}, "advantage", advantages)
    else:
        raise ValueError(behaviour)


main(sys.argv[1])
