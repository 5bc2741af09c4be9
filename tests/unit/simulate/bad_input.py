"""Files that cannot be simulated: what is in each, and what is said of it. `f` stands for the path of the file."""

import gzip
from typing import Final, NamedTuple

PODS: Final = "kind: Pod\nmetadata: {name: p}\nspec: "
NODES: Final = "kind: Node\nmetadata: {name: n}\n"
NO_KIND: Final = "not a Kubernetes object: it has no kind"
NO_QUANTITY: Final = "not a quantity such as 500m or 1.5Gi"
DEEP: Final = "nested too deeply"


class Bad(NamedTuple):
    """A file, and the lines that are told."""

    what: str
    content: str | bytes
    problems: tuple[str, ...]


def bad(what: str, content: str | bytes, *problems: str) -> Bad:
    return Bad(what, content, problems)


def of_pod(what: str, spec: str, *problems: str) -> Bad:
    return Bad(f"pod: {what}", PODS + spec, tuple(f"f:3: {problem}" for problem in problems))


def of_node(what: str, rest: str, *problems: str) -> Bad:
    return Bad(f"node: {what}", NODES + rest, tuple(f"f:3: {problem}" for problem in problems))


def requests(amount: str) -> str:
    return f"{{containers: [{{name: c, resources: {{requests: {{cpu: {amount}}}}}}}]}}"


REQUEST: Final = "spec.containers[0].resources.requests"


def bomb(levels: int, width: int = 9) -> str:
    """A few hundred bytes that stand for `width` to the power of `levels` values."""
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(["kind: Pod", "a0: &a0 [x, x]", *lines])


FILES: Final = (
    bad("nothing", "", "f: there is nothing in it"),
    bad("white space", " \n\n", "f: there is nothing in it"),
    bad("empty documents", "---\n---\n", "f: there is nothing in it"),
    bad("a byte order mark only", b"\xef\xbb\xbf", "f: there is nothing in it"),
    bad("nothing, packed", gzip.compress(b""), "f: there is nothing in it"),
    bad("half of a packed file", gzip.compress(b"kind: Pod" * 99)[:30], "f: packed by gzip, but its end is missing"),
    bad(
        "a broken packed file",
        b"\x1f\x8b\x08\x00" + b"\xff" * 50,
        "f: packed by gzip, but cannot be unpacked: Error -3 while decompressing data: invalid block type",
    ),
    bad("bytes", bytes(range(128, 256)), "f: not a text: byte 0 is not UTF-8"),
    bad("a zero byte", "kind: Pod\0", "f: not a text: character 0x00 at position 9"),
    bad("an escape sequence", "kind: \x1b[31mPod", "f: not a text: character 0x1b at position 6"),
    *(
        bad(
            encoding,
            "kind: Pod".encode(encoding),
            "f: not UTF-8: it looks like UTF-16, which PowerShell's > writes: have it written as UTF-8",
        )
        for encoding in ("utf-16", "utf-16-le", "utf-16-be")
    ),
    bad("a surrogate in UTF-8", b"kind: \xed\xa0\x80", "f: not a text: byte 6 is not UTF-8"),
)

SYNTAX: Final = (
    bad("a word", "hello", f"f:1: {NO_KIND}"),
    bad("null in JSON", "[null]", f"f:1: {NO_KIND}"),
    bad("a list", "- a\n- b\n", f"f:1: {NO_KIND}"),
    bad("an empty mapping", "{}", f"f:1: {NO_KIND}"),
    bad("an empty kind", "kind: ''", f"f:1: {NO_KIND}"),
    bad("a number as kind", "kind: 1", f"f:1: {NO_KIND}"),
    bad(
        "a number without end",
        "kind: Pod\na: .inf",
        "f:1: a number that is too large, .inf or .nan: JSON has none of them",
    ),
    bad("braces", '{"a":' * 100_000, "f:1:1001: nested too deeply"),
    bad("bombs", bomb(9), "f:8:25: aliases stand for more than 4000000 bytes"),
    bad(
        "a bomb of text",
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 50 + "]",
        "f:2:161: aliases stand for more than 4000000 bytes",
    ),
    bad(
        "a bomb of merged mappings",
        "a: &a {" + ", ".join(f"k{n}: v" for n in range(9000)) + "}\nb: [" + "{<<: *a}, " * 90 + "]",
        "f:2:330: aliases stand for more than 4000000 bytes",
    ),
    bad(
        "two documents, one broken", "kind: Pod\n---\na: b: c", "f:3:5: mapping values are not allowed in this context"
    ),
    bad("a broken end", '{"kind": "Pod"} }', "f:1:17: did not find expected <document start>"),
    bad("NaN in JSON", '{"kind": "Pod", "a": NaN}', "f:1: a: unknown field", "f:1: metadata.name: Required value"),
)

LISTS: Final = (
    bad("items that are a mapping", "kind: List\nitems: {}", "f:2: items: expected a list"),
    bad("an item that is a number", '{"kind": "List", "items": [3]}', f"f:1: items[0]: {NO_KIND}"),
    bad("an item without a kind", '{"kind": "List", "items": [{}]}', f"f:1: items[0]: {NO_KIND}"),
    bad(
        "a list in a list",
        '{"kind": "List", "items": [{"kind": "List", "items": [3]}]}',
        f"f:1: items[0]: items[0]: {NO_KIND}",
    ),
    bad(
        "two bad items",
        "kind: NodeList\nitems:\n- {}\n- metadata: 1\n",
        "f:3: items[0]: metadata.name: Required value",
        "f:4: items[1]: metadata: expected object, got int",
    ),
    bad("lists in lists", '{"kind": "List", "items": [' * 5000 + "]}" * 5000, f"f:1:2701: {DEEP}"),
    bad(
        "the same pod twice",
        "kind: PodList\nitems: [{metadata: {name: p}}, {metadata: {name: p}}]",
        "f:2: items[1]: Pod default/p is there twice, first at f:1: items[0]",
    ),
    bad(
        "the same node twice",
        "kind: NodeList\nitems: [{metadata: {name: n}}, {metadata: {name: n}}]",
        "f:2: items[1]: Node n is there twice, first at f:1: items[0]",
    ),
)

OBJECTS: Final = (
    bad("a pod without a name", "kind: Pod", "f:1: metadata.name: Required value"),
    bad("a number as name", "kind: Pod\nmetadata: {name: 1}", "f:2: metadata.name: expected str, got int"),
    bad("a list as metadata", "kind: Pod\nmetadata: []", "f:2: metadata: expected object, got array"),
    bad(
        "labels that are no texts",
        "kind: Node\nmetadata: {name: n, labels: {a: 1}}",
        "f:2: metadata.labels[a]: expected str, got int",
    ),
    bad(
        "labels that are a list",
        "kind: Node\nmetadata: {name: n, labels: [a]}",
        "f:2: metadata.labels: expected object | null, got array",
    ),
    of_pod("a text as spec", "hello", "spec: expected object, got str"),
    of_pod("a text as priority", "{priority: high}", "spec.priority: expected int, got str"),
    of_pod(
        "a huge priority",
        "{priority: 2147483648}",
        "spec.priority: Invalid value: 2147483648: does not fit into 32 bits",
    ),
    of_pod(
        "containers that are a mapping", "{containers: {name: c}}", "spec.containers: expected array | null, got object"
    ),
    of_pod("a container that is a text", "{containers: [c]}", "spec.containers[0]: expected object, got str"),
    of_pod(
        "requests that are a list",
        "{containers: [{resources: {requests: [cpu]}}]}",
        f"{REQUEST}: expected object | null, got array",
    ),
    of_pod("a list as amount", requests("[1]"), f"{REQUEST}[...]: expected int | float | str, got array"),
    of_pod("a word as amount", requests("many"), f'{REQUEST}[cpu]: Invalid value: "many": {NO_QUANTITY}'),
    Bad(
        "pod: half a character in YAML",
        PODS + requests('"\\ud800"'),
        ("f:3:62: found invalid Unicode character escape code, while parsing a quoted scalar",),
    ),
    of_pod(
        "an escape sequence as amount",
        requests('"\\e[31m1"'),
        f'{REQUEST}[cpu]: Invalid value: "\\u001b[31m1": {NO_QUANTITY}',
    ),
    of_pod(
        "a negative amount", requests("-1"), f"{REQUEST}[cpu]: Invalid value: -1: must be greater than or equal to 0"
    ),
    of_pod(
        "an amount of 100,000 digits",
        requests("'" + "9" * 100_000 + "x'"),
        f'{REQUEST}[cpu]: Invalid value: "{"9" * 100}…": {NO_QUANTITY}',
    ),
    Bad(
        "pod: an exponent of 100,000 digits",
        PODS + requests("1e" + "9" * 100_000),
        ("f:1: a number that is too large, .inf or .nan: JSON has none of them",),
    ),
    of_pod(
        "a port that is none",
        "{containers: [{ports: [{hostPort: 70000}]}]}",
        "spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 0 and 65535",
    ),
    of_pod(
        "an operator of a toleration",
        "{tolerations: [{operator: Exist}]}",
        'spec.tolerations[0].operator: Unsupported value: "Exist": supported values: "Equal", "Exists"',
    ),
    of_pod(
        "an effect of a toleration",
        "{tolerations: [{key: a, effect: NoShedule}]}",
        'spec.tolerations[0].effect: Unsupported value: "NoShedule": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    of_pod("a text as nodeSelector", "{nodeSelector: gpu}", "spec.nodeSelector: expected object | null, got str"),
    of_pod("true in a nodeSelector", "{nodeSelector: {gpu: true}}", "spec.nodeSelector[gpu]: expected str, got bool"),
    of_pod(
        "overhead that is no quantity",
        "{overhead: {cpu: 1x}}",
        f'spec.overhead[cpu]: Invalid value: "1x": {NO_QUANTITY}',
    ),
    of_pod(
        "all at once",
        "{priority: 2147483648, overhead: {cpu: a}, tolerations: [{key: a, effect: b}]}",
        "spec.priority: Invalid value: 2147483648: does not fit into 32 bits",
        f'spec.overhead[cpu]: Invalid value: "a": {NO_QUANTITY}',
        'spec.tolerations[0].effect: Unsupported value: "b": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    of_node(
        "capacity that is no quantity",
        "status: {capacity: {cpu: 4 cores}}",
        f'status.allocatable[cpu]: Invalid value: "4 cores": {NO_QUANTITY}',
    ),
    of_node("taints that are a mapping", "spec: {taints: {key: a}}", "spec.taints: expected array | null, got object"),
    of_node("a taint without a key", "spec: {taints: [{effect: NoSchedule}]}", "spec.taints[0].key: Required value"),
    of_node("a taint without an effect", "spec: {taints: [{key: a}]}", "spec.taints[0].effect: Required value"),
    of_node(
        "a taint of a wrong effect",
        "spec: {taints: [{key: a, effect: Never}]}",
        'spec.taints[0].effect: Unsupported value: "Never": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
    bad("a volume without a name", NODES + "---\nkind: PersistentVolume\n", "f:4: metadata.name: Required value"),
    bad(
        "a claim with a list as spec",
        NODES + "---\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: []\n",
        "f:4: spec: expected object, got array",
    ),
    bad(
        "a service that is a text",
        NODES + "---\nkind: Service\nmetadata: hello\n",
        "f:4: metadata.name: Required value",
    ),
)

BAD_INPUT: Final = (*FILES, *SYNTAX, *LISTS, *OBJECTS)
