"""Expressions over devices against cel-go with what Kubernetes adds to it: `python -m tests.conformance.selectors`.

Generated expressions are evaluated for a generated device by the oracle, as kube-scheduler's allocator does, and by us.
Each must match, not match, or fail in both. What an API server would not store is left out, and so is what
docs/differences.md names: MISSING. `--record` keeps cases that run without Go.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from plugins.dynamic_resources.allocation.selectors import Expression, SelectorError, view_of
from scheduler.api.decoding import convert
from scheduler.api.devices import Device
from tests.conformance.readings import compare

Json = dict[str, Any]
RECORDED: Final = Path(__file__).parent / "selectors" / "generated.jsonl.gz"

DRIVER: Final = "gpu.example.com"
MISSING: Final = re.compile(r"string\((ip|cidr)|transformMap|format\.[a-z]|\d+u\b")
"""What docs/differences.md says is not there."""

_IPS: Final = (
    "10.0.0.1", "127.0.0.1", "0.0.0.0", "255.255.255.255", "169.254.1.1", "224.0.0.1", "224.0.1.1", "::", "::1",
    "ff02::1",
    "fe80::1", "2001:db8::abcd", "2001:DB8::1", "::ffff:1.2.3.4", "::1.2.3.4", "fe80::1%eth0", "1.2.3", "01.2.3.4", "",
    "1:2:3:4:5:6:7::", "1::2::3", "x", "10.0.0.1/8", "ff12::1", "febf::", "fec0::1", "192.168.0.255",
)  # fmt: skip
_CIDRS: Final = (
    "10.0.0.0/8", "10.1.2.3/8", "0.0.0.0/0", "::/0", "2001:db8::/32", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/+8",
    "10.0.0.0", "10.1.0.0/16", "::1/128", "::ffff:1.2.3.4/120", "fe80::1%e/64", "/8", "10.0.0.0/", "192.168.0.0/24",
)  # fmt: skip
_URLS: Final = (
    "https://example.com:80/", "https://[::1]:80/a?b=c&b=d", "/path",
    "https://example.com/path with spaces/?q r=1+2", "https://u:p@Example.com", "HTTP://x/%zz", "http://a:b/",
    "http://h%41/", "x", "", "*", ":x", "mailto:a@b", "//host/p", "http://[fe80::1%25en0]/", "http://[1.2.3.4]/",
    "http://a:1:2/", "ftp://a:1:2/", "/a%2Fb!c", "/a#b", "http://h/?a=1;b=2&c", "http://h?x", "http://é.com/é",
    "http://h/%C3%A9?%41=%42&&=e", "https://h/?", "http://[::1", "///p", "http://h/#%zz",
)  # fmt: skip
_TEXTS: Final = (
    "",
    "a",
    "abc",
    "aab",
    "A100",
    "H100-80GB",
    "123 abc 456",
    "hé€𝄞x",
    "gpu-0,gpu-1",
    "  x ",
    "true",
    "1.5",
)
_PATTERNS: Final = (
    "a*", "[0-9]+", "[0-9]*", "(a)(b)", "a|b", "^a", "c$", "(?i)ABC", "x", "", "(", "a)(b", "[", r"\\d{2}", r"\\bA",
    "é|€", ".", "a{2}", "(a(b)?)+", "[^a]*", "a*?", "(?:a|b)c?",
)  # fmt: skip
_NUMBERS: Final = ("0", "1", "-1", "2", "7", "9223372036854775807", "1.5", "-0.5", "2.0")
_VERSIONS: Final = ("1.2.3", "2.0.0-rc.1", "v1.0.0", "1.0", "01.2.3", "1.2.3+b", "")
_QUANTITIES: Final = ("1Gi", "40Gi", "500m", "1e3", "-1", "x", "9223372036854775808", "0")


class _Writer:
    """Writes expressions, mostly of the types that a function takes."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def device(self) -> Json:
        dice = self.dice
        attributes: Json = {
            "model": {"string": dice.choice(_TEXTS)},
            "address": {"string": dice.choice(_IPS)},
            "network": {"string": dice.choice(_CIDRS)},
            "cores": {"int": dice.randint(-3, 70)},
            "fast": {"bool": dice.random() < 0.5},
            "driver": {"version": dice.choice(("1.2.3", "2.0.0-rc.1"))},
            "fabric.example.com/rail": {"string": dice.choice(("r1", "r2"))},
        }
        kept = {name: value for name, value in attributes.items() if dice.random() < 0.85}
        return {"name": "gpu-0", "attributes": kept, "capacity": {"memory": {"value": dice.choice(("40Gi", "80Gi"))}}}

    def truth(self, depth: int = 3) -> str:
        return self._choose(
            depth,
            [lambda d: self.dice.choice(("true", "false", self._attribute("fast"), "device.allowMultipleAllocations"))],
            [
                lambda d: f"!({self.truth(d)})",
                lambda d: f"({self.truth(d)} {self.dice.choice(('&&', '||', '=='))} {self.truth(d)})",
                lambda d: f"({self.number(d)} {self._order()} {self.number(d)})",
                lambda d: f"({self.text(d)} {self._order()} {self.text(d)})",
                lambda d: f"({self.ip(d)} == {self.ip(d)})",
                lambda d: f"({self.cidr(d)} == {self.cidr(d)})",
                lambda d: f"isIP({self._ip_text(d)})",
                lambda d: f"isCIDR({self._cidr_text(d)})",
                lambda d: f"ip.isCanonical({self._ip_text(d)})",
                lambda d: f"{self.ip(d)}.{self._of_ip()}()",
                lambda d: f"{self.cidr(d)}.containsIP({self.dice.choice((self.ip, self._ip_text))(d)})",
                lambda d: f"{self.cidr(d)}.containsCIDR({self.dice.choice((self.cidr, self._cidr_text))(d)})",
                lambda d: f"{self.numbers(d)}.isSorted()",
                lambda d: f"{self.texts(d)}.isSorted()",
                lambda d: f"({self.number(d)} in {self.numbers(d)})",
                lambda d: f"({self.texts(d)} == {self.texts(d)})",
                lambda d: f"({self.numbers(d)} == {self.numbers(d)})",
                lambda d: f"sets.{self._of_sets()}({self.numbers(d)}, {self.numbers(d)})",
                lambda d: f"sets.{self._of_sets()}({self.texts(d)}, {self.texts(d)})",
                lambda d: f"{self.texts(d)}.{self._quantifier()}(t, t {self._order()} {self.text(d)})",
                lambda d: (
                    f"{self.numbers(d)}.{self.dice.choice(('all', 'exists', 'existsOne'))}(i, n, i {self._order()} n)"
                ),
                lambda d: (
                    f'device.attributes["{DRIVER}"].{self.dice.choice(("all", "exists"))}(k, v, k != {self.text(d)})'
                ),
                lambda d: f"{self.text(d)}.matches({self._pattern()})",
                lambda d: f"{self.text(d)}.{self.dice.choice(('startsWith', 'endsWith', 'contains'))}({self.text(d)})",
                lambda d: f"{self.quantity(d)}.{self.dice.choice(('isLessThan', 'isGreaterThan'))}({self.quantity(d)})",
                lambda d: f"isURL({self._quoted(_URLS)})",
                lambda d: f"({self.text(d)} in url({self._quoted(_URLS)}).getQuery())",
                lambda d: f"isQuantity({self._quoted(_QUANTITIES)})",
                lambda d: f"isSemver({self._quoted(_VERSIONS)})",
                lambda d: f"semver({self._quoted(_VERSIONS)}).isLessThan({self._attribute('driver')})",
                lambda d: f'has(device.attributes["{DRIVER}"].{self.dice.choice(("model", "fast", "none"))})',
                lambda d: f"cel.bind(b, {self.truth(d)}, b || {self.truth(d)})",
                lambda d: f"optional.of({self.number(d)}).hasValue()",
                lambda d: f"{self.texts(d)}.{self.dice.choice(('first', 'last'))}().hasValue()",
            ],
        )

    def number(self, depth: int) -> str:
        return self._choose(
            depth,
            [lambda d: self.dice.choice((self._digit(), self._attribute("cores")))],
            [
                lambda d: f"({self.number(d)} {self.dice.choice('+-*/%')} {self.number(d)})",
                lambda d: f"{self.numbers(d)}.{self.dice.choice(('sum', 'min', 'max', 'size'))}()",
                lambda d: f"{self.numbers(d)}.{self.dice.choice(('indexOf', 'lastIndexOf'))}({self.number(d)})",
                lambda d: f"{self.texts(d)}.{self.dice.choice(('indexOf', 'lastIndexOf'))}({self.text(d)})",
                lambda d: f"{self.text(d)}.{self.dice.choice(('indexOf', 'lastIndexOf'))}({self.text(d)})",
                lambda d: (
                    f"{self.text(d)}.{self.dice.choice(('indexOf', 'lastIndexOf'))}({self.text(d)}, {self.number(d)})"
                ),
                lambda d: f"{self.ip(d)}.family()",
                lambda d: f"{self.cidr(d)}.prefixLength()",
                lambda d: f"{self.texts(d)}.size()",
                lambda d: f"{self.text(d)}.size()",
                lambda d: f"{self.numbers(d)}.{self.dice.choice(('first', 'last'))}().orValue({self.number(d)})",
                lambda d: f"({self.truth(d)} ? {self.number(d)} : {self.number(d)})",
            ],
        )

    def text(self, depth: int) -> str:
        return self._choose(
            depth,
            [lambda d: self.dice.choice((self._quoted(_TEXTS), self._attribute("model"), "device.driver"))],
            [
                lambda d: f"{self.text(d)}.find({self._pattern()})",
                lambda d: f"({self.text(d)} + {self.text(d)})",
                lambda d: f"url({self._quoted(_URLS)}).get{self._of_url()}()",
                lambda d: f"{self.text(d)}.{self.dice.choice(('lowerAscii', 'upperAscii', 'trim'))}()",
                lambda d: f"{self.texts(d)}.join({self._quoted(('', ',', '-'))})",
                lambda d: f"{self.texts(d)}.{self.dice.choice(('min', 'max'))}()",
                lambda d: f"{self.text(d)}.replace({self.text(d)}, {self.text(d)})",
                lambda d: f"'%s-%d'.format([{self.text(d)}, {self.number(d)}])",
                lambda d: f"{self.text(d)}.substring({self.number(d)})",
            ],
        )

    def texts(self, depth: int) -> str:
        return self._choose(
            depth,
            [lambda d: f"[{', '.join(self._quoted(_TEXTS) for _ in range(self.dice.randint(1, 4)))}]"],
            [
                lambda d: f"{self.text(d)}.findAll({self._pattern()})",
                lambda d: f"{self.text(d)}.findAll({self._pattern()}, {self.number(d)})",
                lambda d: f"url({self._quoted(_URLS)}).getQuery()[{self._quoted(('b', 'q r', 'A', 'c', 'x'))}]",
                lambda d: f"{self.text(d)}.split({self._quoted((',', ' ', ''))})",
                lambda d: f"{self.text(d)}.split({self._quoted((',', 'a', ''))}, {self.number(d)})",
                lambda d: f"{self.texts(d)}.{self.dice.choice(('sort', 'distinct', 'reverse'))}()",
                lambda d: f"{self.texts(d)}.filter(t, t {self._order()} {self.text(d)})",
                lambda d: f"{self.texts(d)}.map(t, t + {self.text(d)})",
                lambda d: f"{self.texts(d)}.transformList(i, t, t + {self.text(d)})",
                lambda d: f"[{self.texts(d)}, {self.texts(d)}].flatten()",
                lambda d: f"({self.texts(d)} + {self.texts(d)})",
            ],
        )

    def numbers(self, depth: int) -> str:
        return self._choose(
            depth,
            [
                lambda d: f"[{', '.join(self._digit() for _ in range(self.dice.randint(1, 4)))}]",
            ],
            [
                lambda d: f"lists.range({self.number(d)} % 5)",
                lambda d: f"{self.numbers(d)}.slice({self.number(d)} % 3, {self.number(d)} % 4)",
                lambda d: f"{self.numbers(d)}.{self.dice.choice(('sort', 'distinct', 'reverse'))}()",
                lambda d: f"{self.numbers(d)}.sortBy(n, -n)",
                lambda d: f"{self.numbers(d)}.filter(n, n {self._order()} {self.number(d)})",
                lambda d: f"{self.numbers(d)}.transformList(i, n, n + i)",
                lambda d: f"{self.numbers(d)}.transformList(i, n, i {self._order()} n, n * 2)",
                lambda d: f"[{self.numbers(d)}, {self.numbers(d)}].flatten()",
            ],
        )

    def ip(self, depth: int) -> str:
        return f"ip({self._ip_text(depth)})" if self.dice.random() < 0.7 else f"{self.cidr(depth)}.ip()"

    def cidr(self, depth: int) -> str:
        made = f"cidr({self._cidr_text(depth)})"
        return made if self.dice.random() < 0.7 else f"{made}.masked()"

    def quantity(self, depth: int) -> str:
        made = self.dice.choice((f"quantity({self._quoted(_QUANTITIES)})", f'device.capacity["{DRIVER}"].memory'))
        return made if self.dice.random() < 0.7 else f"{made}.add({self.dice.choice((self.number(0), made))})"

    def _ip_text(self, depth: int) -> str:
        return self.dice.choice((self._quoted(_IPS), self._quoted(_IPS), self._attribute("address")))

    def _cidr_text(self, depth: int) -> str:
        return self.dice.choice((self._quoted(_CIDRS), self._quoted(_CIDRS), self._attribute("network")))

    def _attribute(self, name: str) -> str:
        return f'device.attributes["{DRIVER}"].{name}'

    def _pattern(self) -> str:
        return f"'{self.dice.choice(_PATTERNS)}'"

    def _quoted(self, texts: tuple[str, ...]) -> str:
        return f"'{self.dice.choice(texts)}'"

    def _order(self) -> str:
        return self.dice.choice(("<", "<=", ">", ">=", "==", "!="))

    def _of_ip(self) -> str:
        return self.dice.choice(
            ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")
        )

    def _digit(self) -> str:
        return self.dice.choice(("0", "1", "-1", "2", "7"))

    def _quantifier(self) -> str:
        return self.dice.choice(("all", "exists", "exists_one"))

    def _of_url(self) -> str:
        return self.dice.choice(("Scheme", "Host", "Hostname", "Port", "EscapedPath"))

    def _of_sets(self) -> str:
        return self.dice.choice(("contains", "intersects", "equivalent"))

    def _choose(self, depth: int, leaves: list[Any], others: list[Any]) -> str:
        made: str = self.dice.choice(leaves if depth <= 0 else others)(depth - 1)
        return made


def cases(seeds: range) -> Iterator[Json]:
    """A case of twenty expressions for each seed."""
    for seed in seeds:
        writer = _Writer(seed)
        expressions = [writer.truth(writer.dice.choice((1, 1, 2, 2, 3))) for _ in range(20)]
        yield {"driver": DRIVER, "device": writer.device(), "expressions": expressions}


def ours(case: Json) -> list[str]:
    """What we make of a case: `true`, `false` or the error."""
    view = view_of(case["driver"], convert(case["device"], Device))
    answers = []
    for text in case["expressions"]:
        try:
            answers.append("true" if Expression(text).matches(view) else "false")
        except SelectorError as error:
            answers.append(str(error))
    return answers


def differences(case: Json, expected: list[Json]) -> list[str]:
    """A line for each expression that means something else to us."""
    found = []
    for text, theirs, mine in zip(case["expressions"], expected, ours(case), strict=True):
        if not theirs["stored"] or MISSING.search(text):
            continue
        said = theirs["error"] or str(theirs["matches"]).lower()
        if (mine if mine in ("true", "false") else "error") != ("error" if theirs["error"] else said):
            found.append(f"{text}\n    cel-go: {said}\n    ours:   {mine}")
    return found


if __name__ == "__main__":
    sys.exit(compare("selectors", cases, differences, RECORDED, 500))
