"""Kubeconfig files: merged as kubectl merges them, and checked.

All problems of the files are reported at once, each with its path. No value is shown that might be a secret.

    ~/.kube/config: clusters[main].cluster.server: expected the URL of a server, got a number

Unsupported settings are errors: ignoring one could contact another server, or act as another user, than kubectl would.
Rules: tools/clientcmd/loader.go and validation.go in client-go 0.36.3.
"""

import base64
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

from scheduler.files.reading import TooLarge, chunks, read
from scheduler.framework.errors import ConfigError

MAX_BYTES: Final = 4 << 20
"""Of a file: thousands of clusters."""

MAX_MERGED: Final = 100_000
"""Entries that mappings may take over from others."""

PIPE_SECONDS: Final = 5.0
"""For each part of one that comes through a pipe; a scheduler at work reads its kubeconfig again each minute."""

MAX_PROBLEMS: Final = 20
MAX_NEAR: Final = 5
"""The known names, listed where another one is unknown."""

_TYPES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}

Content = Mapping[str, Any]
Problems = Iterator[str]

_LISTS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""List → the field of each entry in addition to its name."""

_TEXTS: Final = {
    "cluster": ("certificate-authority", "tls-server-name", "proxy-url"),
    "context": ("cluster", "user", "namespace"),
    "user": ("token", "tokenFile", "client-certificate", "client-key", "username", "password"),
}
_FILES: Final = {
    "cluster": ("certificate-authority",),
    "context": (),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
"""Their contents may stand in the kubeconfig instead, under the name with `-data`; not those of `tokenFile`."""

PROXY_SCHEMES: Final = ("http", "https", "socks5")
"""As client-go has them."""

_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


class Entry(NamedTuple):
    """A file's entry for a cluster, a context or a user."""

    place: str
    directory: Path
    """Absolute. Other files are named relative to it."""

    content: Content
    is_there: bool
    """Whether there is more than a name, which will do for what is not in use."""


@dataclass(slots=True)
class Kubeconfig:
    """Several files merged: of entries with the same name, the first one counts."""

    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {key: {} for key in _LISTS})
    """List → name → what is there."""

    current_context: str = ""


def read_kubeconfig(paths: str) -> Kubeconfig:
    """Read the files, separated as in KUBECONFIG. Raises ConfigError for anything that is not a kubeconfig."""
    read, problems = Kubeconfig(), list[str]()
    is_any = False
    for name in filter(None, paths.split(os.pathsep)):
        path = Path(os.path.expanduser(name))  # unlike the method of Path, it takes an unknown home as a name
        try:
            content = _content(path)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            problems += error.problems
            continue
        is_any = True
        problems += _taken(read, path, content)
    if not is_any and not problems:
        problems.append(f"{paths}: no such kubeconfig file")
    if problems:
        raise ConfigError(_limited(problems))
    return read


class Context(NamedTuple):
    """Whom to ask, and as whom."""

    cluster: Entry
    user: Entry | None
    """None for no user in particular."""

    namespace: str


def read_context(paths: str, name: str | None = None) -> Context:
    """Return a context, by default the current one. Raises ConfigError for problems of it, or of any entry."""
    read = read_kubeconfig(paths)
    problems = list(_problems(read, paths, name))
    if problems:
        raise ConfigError(_limited(problems))
    content = read.entries["contexts"][name or read.current_context].content
    user = content.get("user")
    return Context(
        read.entries["clusters"][content["cluster"]],
        read.entries["users"][user] if user else None,
        content.get("namespace") or "default",
    )


class _Loader(yaml.SafeLoader):
    """Bounds what merged mappings (`<<`) have together: a few lines of them can stand for billions of entries."""

    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        before = len(node.value)
        super().flatten_mapping(node)
        self.merged += len(node.value) - before
        if self.merged > MAX_MERGED:
            problem = f"merged mappings have more than {MAX_MERGED} entries"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _content(path: Path) -> Mapping[Any, Any]:
    """Raises ConfigError, FileNotFoundError."""
    try:
        data = read(path, MAX_BYTES, PIPE_SECONDS)
    except FileNotFoundError:
        raise
    except TooLarge as error:
        raise ConfigError([f"{path}: not a kubeconfig: {error}"]) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError([f"{path}: cannot be read: {reason}"]) from error
    try:
        content = yaml.load(data.decode(), _Loader)
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path}: not a text: byte {error.start} is not UTF-8"]) from error
    except yaml.YAMLError as error:
        raise ConfigError([f"{path}: not YAML: {yaml_problem(error)}"]) from error
    except RecursionError as error:
        raise ConfigError([f"{path}: not a kubeconfig: nested too deeply"]) from error
    except ValueError as error:  # a number of 5,000 digits, a date that is none
        raise ConfigError([f"{path}: not YAML: a number or a date that cannot be read"]) from error
    if not isinstance(content, dict):
        raise ConfigError([f"{path}: not a kubeconfig: expected a mapping, got {_what(content)}"])
    return content


def _taken(read: Kubeconfig, source: Path, content: Mapping[Any, Any]) -> Problems:
    if content.get("kind") not in (None, "", "Config"):
        yield f"{source}: not a kubeconfig: its kind is another one than Config"
        return
    current = content.get("current-context")
    if current is not None and not isinstance(current, str):
        yield f"{source}: current-context: expected a text, got {_what(current)}"
    elif current and not read.current_context:
        read.current_context = current
    for key, inner in _LISTS.items():
        listed = content.get(key)
        if listed is not None and not isinstance(listed, list):
            yield f"{source}: {key}: expected a list, got {_what(listed)}"
            continue
        for index, entry in enumerate(listed or ()):
            path = f"{source}: {key}[{index}]"
            if not isinstance(entry, dict):
                yield f"{path}: expected a mapping, got {_what(entry)}"
            elif not isinstance(entry.get("name"), str):
                yield f"{path}.name: expected a text, got {_what(entry.get('name'))}"
            else:
                path = f"{source}: {key}[{entry['name']}].{inner}"
                found = entry.get(inner)
                if found is None or isinstance(found, dict):
                    read.entries[key].setdefault(
                        entry["name"], Entry(path, source.absolute().parent, found or {}, is_there=found is not None)
                    )
                else:
                    yield f"{path}: expected a mapping, got {_what(found)}"


def _problems(read: Kubeconfig, paths: str, wanted: str | None) -> Problems:
    name = wanted or read.current_context
    if not name:
        yield f"{paths}: current-context: it has none: --context names one{_near('', read.entries['contexts'])}"
        return
    found = read.entries["contexts"].get(name)
    if found is None:
        yield f"{paths}: there is no context {name!r}{_near(name, read.entries['contexts'])}"
        return
    yield from _typed(found, "context")
    path, context = found.place, found.content
    if not found.is_there:
        return
    for key in ("cluster", "user"):
        inner = context.get(key)
        if key == "cluster" and not inner:
            yield f"{path}.cluster: required"
        if not isinstance(inner, str) or not inner:
            continue
        entry = read.entries[f"{key}s"].get(inner)
        if entry is None:
            yield f"{path}.{key}: there is no {key} {inner!r}{_near(inner, read.entries[f'{key}s'])}"
        else:
            yield from _typed(entry, key)
            if entry.is_there:
                yield from (_of_cluster if key == "cluster" else _of_user)(entry.place, entry.content)


def _typed(entry: Entry, kind: str) -> Problems:
    path, directory, content, is_there = entry
    if not is_there:
        yield f"{path}: expected a mapping, got nothing"
    for key in _TEXTS[kind]:
        if content.get(key) is not None and not isinstance(content[key], str):
            yield f"{path}.{key}: expected a text, got {_what(content[key])}"
    for key in _FILES[kind]:
        name, data = content.get(key), content.get(f"{key}-data")
        if data and (problem := _pem_problem(data)):
            yield f"{path}.{key}-data: {problem}"
        elif isinstance(name, str) and name and not data and (problem := _file_problem(directory / name)):
            yield f"{path}.{key}: {name}: {problem}"


def _pem_problem(value: Any) -> str:
    if not isinstance(value, str):
        return f"expected a text, got {_what(value)}"
    return "" if b"-----BEGIN " in decoded(value) else "expected a PEM file in base64"


def decoded(text: str) -> bytes:
    """Return the decoded bytes; empty if the text is not base64."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # also of a text that is not ASCII
        return b""


def _file_problem(path: Path) -> str:
    try:
        next(chunks(path, None), b"")
    except (OSError, ValueError) as error:
        return str(error.strerror if isinstance(error, OSError) else error)
    return ""


def _of_cluster(path: str, cluster: Content) -> Problems:
    server = cluster.get("server")
    if server is None or server == "":
        yield f"{path}.server: required"
    elif problem := _url_problem(server, ("http", "https")):
        yield f"{path}.server: {problem}"
    proxy = cluster.get("proxy-url")
    if isinstance(proxy, str) and proxy and (problem := _url_problem(proxy, PROXY_SCHEMES)):
        yield f"{path}.proxy-url: {problem}"
    skips = cluster.get("insecure-skip-tls-verify")
    if skips is not None and not isinstance(skips, bool):
        yield f"{path}.insecure-skip-tls-verify: expected true or false, got {_what(skips)}"


def _of_user(path: str, user: Content) -> Problems:
    for key in ("exec", "auth-provider"):
        if user.get(key) is not None and not isinstance(user[key], dict):
            yield f"{path}.{key}: expected a mapping, got {_what(user[key])}"
    if _is_either(user, "client-certificate") and not _is_either(user, "client-key"):
        yield f"{path}.client-key: required with a client-certificate"
    provider = user.get("auth-provider")
    if isinstance(provider, dict) and user.get("exec") is None and not user.get("token"):
        if provider.get("name") != "oidc":
            yield f"{path}.auth-provider: Kubernetes has only 'oidc' now: use exec, with the plugin of your provider"
        elif not id_token(user):
            yield f"{path}.auth-provider.config.id-token: required; kubectl gets one when it asks for anything"
    for key in _IMPERSONATION:
        if user.get(key):
            yield f"{path}.{key}: to act as another user is not supported here: take a context of that user's own"


def _is_either(user: Content, key: str) -> bool:
    return bool(user.get(key) or user.get(f"{key}-data"))


def id_token(user: Content) -> str:
    """Return the token of the provider `oidc`, which kubectl renews; empty if there is none."""
    provider = user.get("auth-provider")
    config = provider.get("config") if isinstance(provider, dict) else None
    token = config.get("id-token") if isinstance(config, dict) else None
    return token if isinstance(token, str) else ""


def _url_problem(url: Any, schemes: Sequence[str]) -> str:
    if not isinstance(url, str):
        return f"expected the URL of a server, got {_what(url)}"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError as error:  # a UnicodeError is one
        why = "" if "@" in url else f": {str(error)[:100]}"
        return f"not the URL of a server: {_without_password(url)!r}{why}"
    if parts.scheme and host and parts.scheme not in schemes:
        return f"{_without_password(url)!r} begins with none of {', '.join(f'{each}://' for each in schemes)}"
    if parts.scheme not in schemes or not host or not url.isascii() or not url.isprintable() or " " in url:
        return f"not the URL of a server: {_without_password(url)!r}"
    return ""


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.partition('//')[0]}//…@{after}"[:100] if at else url[:100]


def _near(name: str, entries: Iterable[str]) -> str:
    names = [each for each in entries if each != name]
    if not names:
        return ""
    more = f" and {len(names) - MAX_NEAR} more" if len(names) > MAX_NEAR else ""
    return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names[:MAX_NEAR]))}{more}"


def _what(value: Any) -> str:
    if value is None:
        return "nothing"
    return _TYPES.get(type(value), "something else")


def yaml_problem(error: yaml.YAMLError) -> str:
    """The problem and its place, without the line itself: it may have a token."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.character:#04x} at position {error.position}"
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{problem or type(error).__name__}{where}"


def _limited(problems: Sequence[str]) -> Sequence[str]:
    more = [f"and {len(problems) - MAX_PROBLEMS} more problems"] if len(problems) > MAX_PROBLEMS else []
    return [*problems[:MAX_PROBLEMS], *more]
