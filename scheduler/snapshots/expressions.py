"""Aliases in CEL expressions over devices: `device.attributes["gpu.example.com"].model == "A100"`.

Each identifier and each literal text gets its alias, and comments go. A question about a part of a text, which aliases
do not keep, is answered for all known texts instead:

    .startsWith("A")  ─►  .matches("^(?:k3f90b1c|zz12m0p4)$"), where these stand for the known A100 and A30
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from cel_expr_python import cel

Name = Callable[[str], str]

MAX_KNOWN: Final = 1000
"""Texts that are remembered: an API server still accepts an expression with all of them."""

UNREADABLE: Final = "?"
"""Instead of an expression that cannot be compiled."""

_TEXT: Final = r"""(?P<text>"{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_TOKENS: Final = re.compile(
    rf"(?P<prefix>[rRbB]{{0,2}}){_TEXT}"
    r"|(?P<comment>//[^\n]*)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)[uU]?)"
    r"|(?P<word>[A-Za-z_]\w*|`[^`\n]*`)"
    r"|(?P<mark>[][(){}.,?:<>=!&|+*/%\s-])",
    re.DOTALL | re.ASCII,
)
_ASKED: Final = re.compile(
    rf"\s*\.\s*(?P<function>startsWith|endsWith|contains|matches)\s*\(\s*(?P<prefix>[rR]?){_TEXT}\s*\)", re.DOTALL
)
_ESCAPE: Final = re.compile(
    r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL
)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MATCHES: Final = cel.NewEnv(variables=dict.fromkeys(("text", "pattern"), cel.Type.STRING)).compile(
    "text.matches(pattern)"
)
"""The library's own regular expressions, which take time that grows with the text: a tenant writes the pattern."""


class Expressions:
    def __init__(self, name: Name) -> None:
        """`name` returns the alias of an identifier or a text."""
        self._name = name
        self._known: dict[str, str] = {}
        self._pattern = lru_cache(maxsize=1000)(self._made_pattern)

    def known(self, text: str) -> str:
        """Return the alias of a text of a slice, and remember it for expressions."""
        alias = self._name(text)
        if len(self._known) < MAX_KNOWN and text not in self._known:
            self._known[text] = alias
            self._pattern.cache_clear()
        return alias

    def rewritten(self, expression: str) -> str:
        """Return an expression that is true for the same devices, with aliases."""
        parts: list[str] = []
        at = 0
        while at < len(expression):
            if (asked := _ASKED.match(expression, at)) is not None:
                parts.append(f'.matches("{self._pattern(asked["function"], _content(asked))}")')
                at = asked.end()
            elif (token := _TOKENS.match(expression, at)) is not None:
                parts.append(self._of_token(token))
                at = token.end()
            else:
                return UNREADABLE
        return "".join(parts)

    def _of_token(self, token: re.Match[str]) -> str:
        if token["text"]:
            bytes_ = "b" if "b" in token["prefix"].lower() else ""
            return f'{bytes_}"{self._name(_content(token))}"'
        if token["word"]:
            return self._name(token["word"].strip("`"))
        return token["number"] or token["mark"] or ""

    def _made_pattern(self, function: str, asked: str) -> str:
        if function == "matches" and not isinstance(_matched("", asked), bool):
            return "("  # as little a pattern as what it stands for
        holds = _PREDICATES[function]
        found = sorted(alias for text, alias in self._known.items() if holds(text, asked))
        return f"^(?:{'|'.join(map(_literally, found)) or '[.]'})$"


def _matched(text: str, pattern: str) -> object:
    """Return True or False for a text that matches or not, or an error if the pattern is invalid."""
    return _MATCHES.eval(data={"text": text, "pattern": pattern}).value()


_PREDICATES: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
    "matches": lambda text, pattern: _matched(text, pattern) is True,
}


def _content(token: re.Match[str]) -> str:
    """Return the text that a literal stands for."""
    quoted = token["text"]
    marks = 3 if quoted[:3] in ('"""', "'''") else 1
    text = quoted[marks:-marks]
    return text if "r" in token["prefix"].lower() else _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xXuU" and len(escape) > 1:
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if len(escape) == 3:
        return chr(int(escape, 8))
    return _ESCAPES.get(escape, escape)


def _literally(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", lambda match: f"[{match[0]}]", text)
