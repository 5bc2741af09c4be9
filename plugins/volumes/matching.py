"""The volume that a claim would get on each node: the smallest that fits, over columns.

A volume suits a claim either on all nodes that can reach it, or on none. So the suitable volumes are sorted, smallest
first, and a node gets the first that it can reach and that no other claim of the pod has taken. Volumes are grouped by
their node affinity: of each group, the first few are enough.

Rule: component-helpers, storage/volume/pv_helpers.go (FindMatchingVolume) at v0.36.3.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from plugins.shared.node_matching import matching_any
from plugins.volumes.assume import AssumeCache
from plugins.volumes.index import (
    PersistentVolumeIndex,
    VolumeCandidate,
    candidate_of,
    is_bound_to_claim,
    kind_of,
    storage_of,
)
from plugins.volumes.scoring import UNKNOWN
from scheduler import framework as fw
from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.selectors import SelectorTerm
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim

NONE: Final = -1
"""In a column of choices: no volume."""

_LAST: Final = 2**31 - 1
"""A rank after all candidates."""

Choices = npt.NDArray[np.int64]
"""For each row the number of a candidate, or NONE."""

Ranks = npt.NDArray[np.int32]
"""For each row some ranks in the order of the candidates."""


class _Chosen(NamedTuple):
    """One claim's choice on each row."""

    numbers: Choices
    candidates: Sequence[VolumeCandidate]
    sizes: fw.Int64Column
    """Bytes of each, and UNKNOWN."""
    places: Ranks
    """For each row, where in `candidates` its volume is; after the last if it has none."""


class Matching:
    """Chooses volumes for the claims of one pod, claim by claim, and no volume twice."""

    def __init__(
        self, index: PersistentVolumeIndex, volumes: AssumeCache[PersistentVolume], nodes: fw.NodeColumns, rows: fw.Rows
    ) -> None:
        self._index = index
        self._assumed = {volume.name: candidate_of(volume) for volume in volumes.assumed()}
        self._nodes = nodes
        self._rows = rows
        self._prebound: dict[str, VolumeCandidate | None] = {}
        self._chosen: list[_Chosen] = []

    def volume(self, number: int) -> PersistentVolume:
        """Return the volume behind a number that was chosen."""
        return next(
            candidate.volume for chosen in self._chosen for candidate in chosen.candidates if candidate.number == number
        )

    def sizes(self) -> Iterator[tuple[fw.Int64Column, Ranks]]:
        """Yield for each claim the bytes of its candidates, ending with UNKNOWN, and for each row which it has."""
        for chosen in self._chosen:
            yield chosen.sizes, chosen.places

    def choose(self, claim: PersistentVolumeClaim) -> Choices:
        """Return for each row the volume that the claim would get there. Raises AttemptFailed for a wrong selector."""
        selector = _selector_of(claim)
        key = claim.metadata.uid
        if key not in self._prebound:  # two volumes of the pod may use the same claim
            self._prebound[key] = next(self._prebound_to(claim), None)
        prebound = self._prebound[key]
        chosen = self._best(claim, selector) if prebound is None else self._prefer(prebound, claim, selector)
        self._chosen.append(chosen)
        return chosen.numbers

    def _prefer(self, prebound: VolumeCandidate, claim: PersistentVolumeClaim, selector: Selector | None) -> _Chosen:
        """Choose the volume that names the claim where it can be reached, or another where it is taken."""
        numbers = np.where(self._reaches(prebound.terms), np.int64(prebound.number), np.int64(NONE))
        has_it = numbers != NONE
        taken = self._is_taken(numbers) & has_it
        if not taken.any():
            return _Chosen(numbers, (prebound,), _sizes_of((prebound,)), np.where(has_it, 0, 1).astype(np.int32))
        best = self._best(claim, selector)
        last = len(best.candidates)
        others = np.where(taken & (best.numbers != NONE), best.places, last + 1)
        places = np.where(has_it & ~taken, last, others).astype(np.int32)
        candidates = (*best.candidates, prebound)
        return _Chosen(np.where(taken, best.numbers, numbers), candidates, _sizes_of(candidates), places)

    def _prebound_to(self, claim: PersistentVolumeClaim) -> Iterator[VolumeCandidate]:
        """Volumes that name the claim, and that it can use. Their access modes and labels are not checked."""
        for candidate in self._index.prebound_to(claim):
            if candidate.name not in self._assumed and _can_hold(candidate, claim):
                yield candidate
        for candidate in self._assumed.values():
            if is_bound_to_claim(candidate.volume, claim) and _can_hold(candidate, claim):
                yield candidate

    def _usable(self, claim: PersistentVolumeClaim, selector: Selector | None) -> Sequence[VolumeCandidate]:
        free = self._index.free(claim.class_name, kind_of(claim), _requested(claim))
        if selector is not None:
            free = [candidate for candidate in free if selector.matches(candidate.volume.metadata.labels)]
        return [candidate for candidate in free if candidate.name not in self._assumed] if self._assumed else free

    def _best(self, claim: PersistentVolumeClaim, selector: Selector | None) -> _Chosen:
        """The first suitable volume that each row can reach and that is not taken."""
        depth = len(self._chosen) + 1  # with this many of the same affinity, one is always left
        ordered = self._usable(claim, selector)
        anywhere: list[int] = []
        by_label: defaultdict[str, list[dict[str, int]]] = defaultdict(lambda: [{} for _ in range(depth)])
        by_terms: defaultdict[tuple[SelectorTerm, ...], list[int]] = defaultdict(list)
        for rank, candidate in enumerate(ordered):
            if candidate.label is not None:
                key, values = candidate.label
                layers = by_label[key]
                for value in values:
                    for layer in layers:
                        if value not in layer:
                            layer[value] = rank
                            break
            elif candidate.terms is not None:
                _add(by_terms[candidate.terms], rank, depth)
            else:
                _add(anywhere, rank, depth)
                if len(anywhere) == depth:
                    break  # later ones are larger, and these can be reached everywhere
        options = [
            *(self._by_value(key, layer) for key, layers in by_label.items() for layer in layers if layer),
            *(self._where(self._reaches(terms), ranks) for terms, ranks in by_terms.items()),
            *([self._where(None, anywhere)] if anywhere else []),
        ]
        if not options:
            nowhere = np.zeros(len(self._rows), np.int32)
            return _Chosen(np.full(len(self._rows), NONE, np.int64), (), _sizes_of(()), nowhere)
        return self._first_free(options[0] if len(options) == 1 else np.concatenate(options, axis=1), ordered)

    def _by_value(self, key: str, ranks: Mapping[str, int]) -> Ranks:
        """One rank per row, by the value of a label."""
        values = self._nodes.label_values(key)
        by_code = np.full(len(values), _LAST, np.int32)
        if 4 * len(ranks) < len(values):
            for value, rank in ranks.items():
                by_code[self._nodes.label_code(key, value)] = rank
        else:
            by_code[:] = [ranks.get(value, _LAST) for value in values]
        by_code[0] = _LAST  # stands for nodes without the label, and for values that no node has
        found: Ranks = by_code[self._nodes.label_codes(key)[self._rows], np.newaxis]
        return found

    def _where(self, reaches: fw.BoolColumn | None, ranks: Sequence[int]) -> Ranks:
        found = np.empty((len(self._rows), len(ranks)), np.int32)
        found[:] = ranks
        if reaches is not None:
            found[~reaches] = _LAST
        return found

    def _first_free(self, ranks: Ranks, ordered: Sequence[VolumeCandidate]) -> _Chosen:
        numbers = np.array([candidate.number for candidate in ordered] + [NONE], np.int64)
        sizes = _sizes_of(ordered)
        if not self._chosen:
            first = np.minimum(ranks.min(axis=1), len(ordered))
            return _Chosen(numbers[first], ordered, sizes, first)
        ranks = np.minimum(np.sort(ranks, axis=1), len(ordered))
        places = np.full(len(self._rows), len(ordered), np.int32)
        for column in range(ranks.shape[1] - 1, -1, -1):
            numbers_at_rank = numbers[ranks[:, column]]
            usable = (numbers_at_rank != NONE) & ~self._is_taken(numbers_at_rank)
            places[usable] = ranks[usable, column]
        return _Chosen(numbers[places], ordered, sizes, places)

    def _is_taken(self, numbers: Choices) -> fw.BoolColumn:
        taken = np.zeros(len(self._rows), np.bool_)
        for chosen in self._chosen:
            taken |= chosen.numbers == numbers
        return taken

    def _reaches(self, terms: tuple[SelectorTerm, ...] | None) -> fw.BoolColumn:
        if terms is None:
            return np.ones(len(self._rows), np.bool_)
        return matching_any(terms, self._nodes, self._rows)


def by_size(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Sort claims by request: the smallest come first, and get the smallest volumes."""
    return sorted(claims, key=_requested)


def _sizes_of(candidates: Sequence[VolumeCandidate]) -> fw.Int64Column:
    return np.array([candidate.size for candidate in candidates] + [UNKNOWN], np.int64)


def _add(ranks: list[int], rank: int, depth: int) -> None:
    if len(ranks) < depth:
        ranks.append(rank)


def _requested(claim: PersistentVolumeClaim) -> int:
    resources = claim.spec.resources
    return storage_of(None if resources is None else resources.requests)


def _can_hold(candidate: VolumeCandidate, claim: PersistentVolumeClaim) -> bool:
    volume = candidate.volume
    return (
        candidate.capacity >= _requested(claim)
        and volume.class_name == claim.class_name
        and volume.metadata.deletion_timestamp is None
        and candidate.kind[1:] == kind_of(claim)[1:]
    )


def _selector_of(claim: PersistentVolumeClaim) -> Selector | None:
    if claim.spec.selector is None:
        return None
    try:
        return parse_label_selector(claim.spec.selector)
    except ValueError as error:
        raise fw.AttemptFailed(f"error creating internal label selector for claim: {claim}: {error}") from error
