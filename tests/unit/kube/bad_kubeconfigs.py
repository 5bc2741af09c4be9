"""Kubeconfig files of no use: what is in each, and what is said of it. `f` stands for its path."""

import copy
from typing import Any, Final, NamedTuple

import yaml

SECRET: Final = "hunter2"
V1: Final = "client.authentication.k8s.io/v1"
PEM: Final = "expected a PEM file in base64"
GOOD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "main",
    "contexts": [{"name": "main", "context": {"cluster": "main", "user": "me"}}],
    "clusters": [{"name": "main", "cluster": {"server": "https://127.0.0.1:9"}}],
    "users": [{"name": "me", "user": {"token": SECRET}}],
}


class Bad(NamedTuple):
    """A file, and the lines that are told."""

    what: str
    content: bytes
    problems: tuple[str, ...]


def raw(what: str, content: str | bytes, *problems: str) -> Bad:
    return Bad(
        what, content if isinstance(content, bytes) else content.encode(), tuple(f"f: {each}" for each in problems)
    )


def changed(what: str, change: dict[str, Any], *problems: str) -> Bad:
    return raw(what, yaml.safe_dump({**GOOD, **change}), *problems)


def without(key: str, *problems: str) -> Bad:
    rest = {name: value for name, value in GOOD.items() if name != key}
    return raw(f"no {key}", yaml.safe_dump(rest), *problems)


def of(key: str, what: str, content: Any, *problems: str) -> Bad:
    """A change of the cluster, the context or the user."""
    whole = copy.deepcopy(GOOD)
    entry = whole[f"{key}s"][0]
    entry[key] = {**entry[key], **content} if isinstance(content, dict) else content
    path = f"{key}s[{entry['name']}].{key}"
    return raw(f"{key}: {what}", yaml.safe_dump(whole, allow_unicode=True), *(f"{path}{each}" for each in problems))


def cluster(what: str, field: str, value: Any, problem: str) -> Bad:
    return of("cluster", what, {field: value}, f".{field}: {problem}")


def server(what: str, url: Any, problem: str) -> Bad:
    return cluster(f"server {what}", "server", url, problem)


def user(what: str, field: str, value: Any, problem: str, **more: Any) -> Bad:
    """A user with this field, and with others that are right."""
    return of("user", what, {field: value, **more}, f".{field}: {problem}")


def program(what: str, problem: str, **fields: Any) -> Bad:
    """A user whose credentials a program gives."""
    content = {"exec": {"apiVersion": V1, **fields}}
    return of("user", f"a program: {what}", content)._replace(problems=(f"f: users[…].user.exec{problem}",))


NO_URL: Final = "not the URL of a server: "
BEGINS: Final = "begins with none of http://, https://"

FILES: Final = (
    raw("empty", "", "not a kubeconfig: expected a mapping, got nothing"),
    raw("a number", "42", "not a kubeconfig: expected a mapping, got a number"),
    raw("a word", SECRET, "not a kubeconfig: expected a mapping, got a text"),
    raw("a list", "- a", "not a kubeconfig: expected a mapping, got a list"),
    raw("bytes", bytes(range(256)), "not a text: byte 128 is not UTF-8"),
    raw("UTF-16", "kind: Config".encode("utf-16"), "not a text: byte 0 is not UTF-8"),
    raw("packed", b"\x1f\x8b\x08\x00", "not a text: byte 1 is not UTF-8"),
    raw("a tab", "a:\n\tb", "not YAML: found character '\\t' that cannot start any token in line 2, column 1"),
    raw("a zero byte", "a: \0", "not YAML: character 0x00 at position 3"),
    raw("an escape sequence", "a: \x1b[31m", "not YAML: character 0x1b at position 3"),
    raw("no anchor", "a: *b", "not YAML: found undefined alias 'b' in line 1, column 4"),
    raw("two documents", "a: b\n---\na: b\n", "not YAML: but found another document in line 2, column 1"),
    raw(
        "a Python tag",
        "!!python/object/apply:os.system [ls]",
        "not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object/apply:os.system' "
        "in line 1, column 1",
    ),
    raw("deep lists", "[" * 100_000, "not a kubeconfig: nested too deeply"),
    raw("deep mappings", "{a: " * 5_000, "not a kubeconfig: nested too deeply"),
    raw("a date that is none", "current-context: 2020-13-45", "not YAML: a number or a date that cannot be read"),
    raw("a number of 5,000 digits", "a: " + "9" * 5_000, "not YAML: a number or a date that cannot be read"),
    raw("a list in itself", "contexts: &a [*a]", "contexts[0]: expected a mapping, got a list"),
    raw(
        "a bomb",
        "a0: &a0 [x, x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)),
        "current-context: it has none: --context names one",
    ),
    raw(
        "a bomb of merged mappings",
        "l0: &l0 {"
        + ", ".join(f"k{i}: v" for i in range(50))
        + "}\n"
        + "\n".join(f"l{i}: &l{i} {{<<: [{', '.join([f'*l{i - 1}'] * 10)}]}}" for i in range(1, 9)),
        "not YAML: merged mappings have more than 100000 entries in line 5, column 5",
    ),
    raw("another kind", "kind: Pod", "not a kubeconfig: its kind is another one than Config"),
    raw("a list as kind", "kind: [Config]", "not a kubeconfig: its kind is another one than Config"),
    raw("too long", b"#" * ((4 << 20) + 1), "not a kubeconfig: larger than 4194304 bytes"),
)

ENTRIES: Final = (
    without("current-context", "current-context: it has none: --context names one; there is 'main'"),
    changed(
        "no context", {"current-context": ""}, "current-context: it has none: --context names one; there is 'main'"
    ),
    changed("a number as context", {"current-context": 42}, "current-context: expected a text, got a number"),
    changed("a list as context", {"current-context": ["a"]}, "current-context: expected a text, got a list"),
    changed("another context", {"current-context": "other"}, "there is no context 'other'; there is 'main'"),
    without("contexts", "there is no context 'main'"),
    without("clusters", "contexts[main].context.cluster: there is no cluster 'main'"),
    without("users", "contexts[main].context.user: there is no user 'me'"),
    *(
        changed(f"{key} that are {what}", {key: value}, f"{key}: expected a list, got {what}")
        for key in ("contexts", "clusters", "users")
        for what, value in (("a number", 1), ("a text", SECRET), ("a mapping", {"a": SECRET}))
    ),
    *(
        changed(f"{key} with {what}", {key: [value]}, f"{key}[0]{problem}")
        for key in ("contexts", "clusters", "users")
        for what, value, problem in (
            ("a text", SECRET, ": expected a mapping, got a text"),
            ("nothing", None, ": expected a mapping, got nothing"),
            ("a number as name", {"name": 7}, ".name: expected a text, got a number"),
            ("no name", {"a": SECRET}, ".name: expected a text, got nothing"),
        )
    ),
    *(
        of(key, what, value, f": expected a mapping, got {what}")
        for key in ("context", "cluster", "user")
        for what, value in (("a text", SECRET), ("a list", [SECRET]), ("nothing", None))
    ),
    of("context", "an unknown user", {"user": "nobody"}, ".user: there is no user 'nobody'; there is 'me'"),
    of("context", "an unknown cluster", {"cluster": "x"}, ".cluster: there is no cluster 'x'; there is 'main'"),
    of("context", "no cluster", {"cluster": None}, ".cluster: required"),
    of("context", "a number as user", {"user": 7}, ".user: expected a text, got a number"),
    of("context", "a list as namespace", {"namespace": ["a"]}, ".namespace: expected a text, got a list"),
    changed(
        "many contexts",
        {"current-context": "x", "contexts": [{"name": f"c{i}", "context": {}} for i in range(8)]},
        "there is no context 'x'; there are 'c0', 'c1', 'c2', 'c3', 'c4' and 3 more",
    ),
    changed(
        "many mistakes",
        {"users": [SECRET] * 30},
        *(f"users[{i}]: expected a mapping, got a text" for i in range(20)),
    )._replace(
        problems=(*(f"f: users[{i}]: expected a mapping, got a text" for i in range(20)), "and 10 more problems")
    ),
)

CLUSTERS: Final = (
    server("a number", 42, "expected the URL of a server, got a number"),
    server("a list", ["a"], "expected the URL of a server, got a list"),
    server("true", True, "expected the URL of a server, got true or false"),
    server("nothing", None, "required"),
    server("empty", "", "required"),
    server("a bare name", "example.com", f"{NO_URL}'example.com'"),
    server("of another scheme", "ftp://a", f"'ftp://a' {BEGINS}"),
    server("without a scheme", "//a", f"{NO_URL}'//a'"),
    server("without a host", "https://", f"{NO_URL}'https://'"),
    server("a large port", "https://a:99999", f"{NO_URL}'https://a:99999': Port out of range 0-65535"),
    server("half an address", "https://[::1", f"{NO_URL}'https://[::1': Invalid IPv6 URL"),
    server("a space", "https://a b", f"{NO_URL}'https://a b'"),
    server("two lines", "https://a\nb", f"{NO_URL}'https://a\\nb'"),
    server("a zero byte", "https://a\0b", f"{NO_URL}'https://a\\x00b'"),
    server("an umlaut", "https://käse.invalid", f"{NO_URL}'https://käse.invalid'"),
    cluster("no such authority", "certificate-authority", "no.pem", "no.pem: No such file or directory"),
    cluster("a directory as authority", "certificate-authority", "/", "/: Is a directory"),
    cluster("a number as authority", "certificate-authority", 7, "expected a text, got a number"),
    cluster("an authority that is none", "certificate-authority-data", "bm90aGluZw==", PEM),
    cluster("an authority not in base64", "certificate-authority-data", SECRET, PEM),
    cluster("an umlaut in base64", "certificate-authority-data", "ä", PEM),
    cluster("a list as authority", "certificate-authority-data", [SECRET], "expected a text, got a list"),
    cluster("a word for skipping", "insecure-skip-tls-verify", "maybe", "expected true or false, got a text"),
    cluster("a number as name", "tls-server-name", 7, "expected a text, got a number"),
    cluster("a proxy that is none", "proxy-url", "nonsense", f"{NO_URL}'nonsense'"),
    cluster("a proxy of another kind", "proxy-url", "socks4://a", f"'socks4://a' {BEGINS}, socks5://"),
    cluster("a password for a proxy", "proxy-url", f"socks4://me:{SECRET}@a", f"'socks4://…@a' {BEGINS}, socks5://"),
    cluster("an odd password for a proxy", "proxy-url", f"http://me:{SECRET}/@a", f"{NO_URL}'http://…@a'"),
    cluster("a number as proxy", "proxy-url", 7, "expected a text, got a number"),
)

NO_IMPERSONATION: Final = "to act as another user is not supported here: take a context of that user's own"
NO_OIDC_TOKEN: Final = ".auth-provider.config.id-token: required; kubectl gets one when it asks for anything"

KEY: Final = {"client-key": __file__}

USERS: Final = (
    user("a number as token", "token", 7, "expected a text, got a number"),
    user("a list as token", "token", [SECRET], "expected a text, got a list"),
    user("no such token", "tokenFile", "no", "no: No such file or directory"),
    user("a directory as token", "tokenFile", "/", "/: Is a directory"),
    user("no such certificate", "client-certificate", "no", "no: No such file or directory", **KEY),
    user("a certificate that is none", "client-certificate-data", SECRET, PEM, **KEY),
    user("a number as key", "client-key-data", 7, "expected a text, got a number"),
    user("a number as user name", "username", 7, "expected a text, got a number"),
    user("a list as password", "password", [SECRET], "expected a text, got a list"),
    user("a text as program", "exec", SECRET, "expected a mapping, got a text"),
    user("no key", "client-key", "", "required with a client-certificate", **{"client-certificate": __file__}),
    user(
        "a provider of old",
        "auth-provider",
        {"name": "gcp"},
        "Kubernetes has only 'oidc' now: use exec, with the plugin of your provider",
        token="",
    ),
    *(
        of("user", f"a provider without a token: {config}", {"token": "", "auth-provider": oidc}, NO_OIDC_TOKEN)
        for config in ({}, None, "text", {"id-token": 7})
        for oidc in ({"name": "oidc", "config": config},)
    ),
    *(
        user(f"somebody else: {key}", key, value, NO_IMPERSONATION)
        for key, value in (("as", "eve"), ("as-groups", ["system:masters"]), ("as-user-extra", {"a": ["b"]}))
    ),
    raw(
        "user: a token of two lines",
        yaml.safe_dump({**GOOD, "users": [{"name": "me", "user": {"token": f"{SECRET}\nb"}}]}),
        "the header Authorization would have characters that are not allowed",
    ),
    program("nothing", ".command: required"),
    program("a list", ".command: required", command=["a"]),
    program("no version", f".apiVersion: need one of {V1}, {V1}beta1", command="false", apiVersion=None),
    program("another version", f".apiVersion: need one of {V1}, {V1}beta1", command="false", apiVersion="v1"),
    program(
        "fails",
        ": 'false' ended with exit code 1; to see why, run on a terminal: loadmaster doctor --kubeconfig=f",
        command="false",
    ),
    program("is not there", ": '/no' cannot be run: No such file or directory", command="/no"),
    program("a directory", ": '/' cannot be run: Permission denied", command="/"),
    program("prints nonsense", ": 'echo' printed no ExecCredential in JSON", command="echo", args=[SECRET]),
    program("a text as arguments", ".args: expected a list of texts", command="a", args=SECRET),
    program("a text as env", ".env: expected a list of names and values", command="a", env=SECRET),
    program(
        "a terminal", ".interactiveMode: Always, but it gets no terminal here", command="a", interactiveMode="Always"
    ),
    program("a number as hint", ".installHint: expected a text", command="a", installHint=1),
    program("a word", ".provideClusterInfo: expected true or false", command="a", provideClusterInfo="yes"),
    program("a list of texts as env", ".env: expected a list of names and values", command="a", env=["A=B"]),
)

BAD_KUBECONFIGS: Final = (*FILES, *ENTRIES, *CLUSTERS, *USERS)
