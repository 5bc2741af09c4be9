"""What is read is bounded in bytes before it is parsed: all of it comes by way of scheduler.files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MAY = {
    ("scheduler/files/reading.py", "FileIO"): "is that way",
    ("scheduler/files/reading.py", "os.open"): "likewise",
    ("scheduler/files/generated/__init__.py", "read_text"): "are files of the program itself",
    ("scheduler/files/unpacking.py", "zlib.decompressobj"): "is the way for what is packed",
    (
        "scheduler/replay/trace/gzip_members.py",
        "zlib.decompressobj",
    ): "divides a stream, whose members are bounded both ways",
    ("scheduler/config/effective.py", "open"): "writes",
    ("scheduler/commands/recording.py", "open"): "writes",
    ("scheduler/commands/replaying.py", "open"): "writes",
    ("scheduler/serve/port/own_certificate.py", "os.open"): "writes",
    ("scheduler/__main__.py", "open"): "writes",
    ("scheduler/__main__.py", "os.open"): "writes",
    ("scheduler/plugin_loading/trial.py", "os.open"): "is the null device, for what plugins write",
    ("scheduler/plugin_loading/trial.py", "stdin"): "is what the program itself sends to its child",
    ("scheduler/config/documents.py", "stdin"): "is given to scheduler.files",
    ("scheduler/config/yaml_reader.py", "yaml.parse"): "parses a text, and bounds what aliases stand for",
    ("scheduler/kube/identity/kubeconfig.py", "yaml.load"): "parses a text, and bounds what mappings are merged into",
    ("scheduler/serve/page/pages.py", "read_bytes"): "are files of the program itself",
    ("scheduler/kube/identity/tls_files.py", "load_cert_chain"): "are files that were just written, of what was read",
    ("scheduler/serve/port/tls.py", "load_cert_chain"): "likewise",
}

NAMES = {"open", "FileIO", "load_cert_chain"}
"""Of functions that read files, whatever they belong to; of the methods of a path, see below."""

QUALIFIED = {
    "os.open", "os.read", "zlib.decompress", "zlib.decompressobj", "gzip.open", "gzip.decompress", "gzip.GzipFile",
    "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "yaml.load", "yaml.safe_load", "yaml.load_all",
    "yaml.safe_load_all", "yaml.parse", "yaml.compose", "yaml.scan", "json.load", "np.load", "np.fromfile", "mmap.mmap",
}  # fmt: skip


def readers(source: str) -> Iterator[str]:
    """The calls in a program that may read something from outside."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "stdin" and ast.unparse(node) == "sys.stdin":
            yield "stdin"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rpartition(".")[2]
        if called in QUALIFIED:
            yield called
        elif last in ("open", "read_text", "read_bytes") and called != "open":
            if is_of_a_path(node):
                yield last
        elif last in NAMES:
            yield last
        elif any(each.arg in ("cafile", "capath") for each in node.keywords):
            yield "cafile"


def is_of_a_path(call: ast.Call) -> bool:
    """Whether a method is that of a path: it is given a mode or an encoding, or nothing at all."""
    first = call.args[0] if call.args else None
    return first is None or (isinstance(first, ast.Constant) and first.value in ("r", "rb", "rt", "utf-8"))


def test_nothing_else_reads_files() -> None:
    found = {
        (str(path.relative_to(ROOT)), reader)
        for room in ("scheduler", "plugins")
        for path in (ROOT / room).rglob("*.py")
        for reader in readers(path.read_text())
    }

    assert found == MAY.keys()


@pytest.mark.parametrize(
    ("line", "reader"),
    [
        ("open(path)", "open"),
        ("Path(path).open('rb')", "open"),
        ("path.open()", "open"),
        ("path.read_text()", "read_text"),
        ("file.read_bytes()", "read_bytes"),
        ("io.FileIO(path)", "FileIO"),
        ("os.open(path, os.O_RDONLY)", "os.open"),
        ("gzip.open(path)", "gzip.open"),
        ("gzip.decompress(data)", "gzip.decompress"),
        ("zlib.decompressobj()", "zlib.decompressobj"),
        ("yaml.safe_load(text)", "yaml.safe_load"),
        ("sys.stdin.read()", "stdin"),
        ("ssl.create_default_context(cafile=path)", "cafile"),
        ("context.load_cert_chain(path)", "load_cert_chain"),
    ],
)
def test_a_reader_is_seen_however_it_reads(line: str, reader: str) -> None:
    assert list(readers(line)) == [reader]


@pytest.mark.parametrize(
    "line",
    [
        "await watches.open(resources)",
        "listener.open(*address)",
        "listener.open('127.0.0.1', port)",
        "kind.read_text(text, into)",
        "file.open('x', encoding='utf-8')",
        "read(path, MAX_BYTES)",
    ],
)
def test_what_reads_no_file_is_none(line: str) -> None:
    assert list(readers(f"async def f():\n    {line}\n")) == []
