"""Words that this project has dropped, and what it says instead, in names, docstrings, comments and pages.

They were private to it or bookish: a reader who knows Kubernetes and plain English had to learn them.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]

INSTEAD: Final = {
    "anew": "again",
    "as far as": "if, where, up to",
    "belongs? into": "belong in",
    "beside|besides": "next to, in addition, except",
    "but for": "except, apart from",
    "carried on": "continued",
    "he|him|his|himself": "they, the caller, the author",
    "heed|heeds|heeded|unheeded": "respect, consider, use",
    "judge|judges|judged|judging|judgement": "evaluate, check, decide",
    "lest": "so that … not",
    "nobody": "no user, no pod, none",
    "rests|rested": "is avoided, is cordoned off",
    "somebody|anybody|everybody": "a user, others, all",
    r"(?<!make )(?<!makes )(?<!making )(?<!made )room|rooms": "package; space, capacity",
    "tell|tells|telling|told": "say, report, show, distinguish",
    "that (?:in|on|of|by|for) which|those which": "the one in which, the ones that",
    "what is (?:no|none)": "anything but",
    "whoever|whomever|whichever": "anyone who, the caller, any",
}
DROPPED: Final = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
NO_BEGINNING: Final = re.compile(r"(?:What|Who|Whose|Of what|Where)\b(?!-)(?![^.]*\?)")
"""A docstring says what a thing is: "The nodes that …", not "What nodes …". Questions may begin so."""

ONLY_A_PRONOUN: Final = re.compile(r'"""\w+ (?:all|both|it|that|them|these|this|those)\."""')
"""A docstring names what the function or class is about: "Writes statuses.", not "Writes them."."""

SOURCES: Final = ("scheduler", "plugins")
PAGES: Final = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "charts/**/*.md")


def test_names_and_docstrings_and_comments_use_plain_words() -> None:
    found = [
        problem for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py")) for problem in in_code(path)
    ]

    assert found == []


def test_pages_use_plain_words() -> None:
    found = [problem for page in PAGES for path in sorted(ROOT.glob(page)) for problem in in_page(path)]

    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        '"""What fits."""',
        "x = 1  # told again",
        "def tell_all(): ...",
        "class Room: ...",
        'def f():\n    """Done anew."""',
        'def f():\n    """Writes them."""',
        "# an answer of somebody",
    ],
)
def test_a_dropped_word_is_found(code: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(code)

    assert len(list(in_code(path))) == 1


def in_code(path: Path) -> Iterator[str]:
    """Yield a line for each dropped word in the docstrings, comments and names of a module."""
    code = path.read_text()
    for line, name in names(path, ast.parse(code)):
        for word in re.findall(r"[A-Z]?[a-z]+", re.sub("make_room|room_made|room_not_made", "", name)):
            if DROPPED.fullmatch(word):
                yield problem(path, line, f"{word} in the name {name}")
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        is_docstring = (
            token.type == tokenize.STRING
            and '"""' in token.string[:4]
            and token.line.lstrip()[:4].lstrip("rf")[:3] == '"""'
        )
        if token.type == tokenize.COMMENT or is_docstring:
            yield from in_text(path, token.start[0], token.string)
        if is_docstring and ONLY_A_PRONOUN.fullmatch(token.string):
            yield problem(path, token.start[0], f"only a pronoun: {token.string}")
        if is_docstring and NO_BEGINNING.match(token.string.lstrip('rf"')):
            yield problem(
                path, token.start[0], f"a docstring that begins with {token.string.lstrip('rf' + chr(34))[:30]!r}"
            )


def names(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines, its own included."""
    yield 1, path.stem
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case _:
                pass


def in_page(path: Path) -> Iterator[str]:
    """Yield a line for each dropped word in the prose of a page; code is left out."""
    text = re.sub(
        r"^```.*?^```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", " ", code.group()), path.read_text(), flags=re.M | re.S
    )
    yield from in_text(path, 1, text)


def in_text(path: Path, line: int, text: str) -> Iterator[str]:
    for found in DROPPED.finditer(text):
        yield problem(path, line + text.count("\n", 0, found.start()), found.group())


def problem(path: Path, line: int, found: str) -> str:
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{place}:{line}: {found}"
