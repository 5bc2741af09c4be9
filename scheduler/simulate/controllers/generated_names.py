"""Names and hashes of objects that have none yet: as Kubernetes gives them, but the same in every run."""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

import msgspec

from scheduler.api.read_only import plain

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of random names: k8s.io/apimachinery/pkg/util/rand."""

_DRAWN: Final = 5
MAX_PREFIX: Final = 63 - _DRAWN
"""Characters that come before the random ones: k8s.io/apiserver/pkg/storage/names."""


def random_name(prefix: str, index: int, kind: str) -> str:
    """Return the name that `generateName` gives the first, second … object with a prefix.

    `kind`: of its controller. One of another kind may have the same name, and has to make pods of other names.
    """
    return prefix[:MAX_PREFIX] + _letters(f"{kind}{prefix}{index}")


def claim_name(pod: str, claim: str) -> str:
    """Return the name of the ResourceClaim that is made for a pod. It is not cut short, so that no other pod has it."""
    prefix = f"{pod}-{claim}-"
    return prefix + _letters(f"{prefix}0")


def _letters(seed: str) -> str:
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big")
    letters = []
    for _ in range(_DRAWN):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def random_names(prefix: str, kind: str) -> Iterator[str]:
    """Yield such names without end, each once: of five thousand, some would be the same."""
    seen: set[str] = set()
    for index in count():
        name = random_name(prefix, index, kind)
        if name not in seen:
            seen.add(name)
            yield name


def hash_of(template: Mapping[str, Any]) -> str:
    """Return what stands for a template in labels, in the form that controllers give it."""
    number = int.from_bytes(
        hashlib.blake2b(msgspec.json.encode(template, enc_hook=plain), digest_size=4).digest(), "big"
    )
    return "".join(_LETTERS[int(digit)] for digit in f"{number}")  # rand.SafeEncodeString
