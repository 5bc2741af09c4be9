"""The tree of shares: quota, usage, and available amounts, with the arithmetic of Kueue's capacity tree.

A share offers its parent what it is guaranteed, less what it does not lend; its parent holds what it uses beyond that.
A maximum, which Kueue does not have, includes what the shares below keep for themselves.
Each root has accounts for the resources that it and the shares below it name.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from scheduler.api.pods.requests import PODS
from scheduler.api.quota.quota_amounts import MAX
from scheduler.framework.shares import ShareLack


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One declared share; every mapping is by resource, and a resource without a limit has none."""

    name: str
    parent: str = ""
    """Empty for a root."""

    minimum: Mapping[str, int] = {}
    maximum: Mapping[str, int] = {}
    borrowing_limit: Mapping[str, int] = {}
    lending_limit: Mapping[str, int] = {}
    weight: float = 1.0
    priority: int = 0


class _Account:
    """One resource of one share."""

    __slots__ = ("borrowable", "kept", "limit", "local", "parent", "quota", "reserved", "usage")

    def __init__(self, parent: "_Account | None") -> None:
        self.parent = parent
        self.quota = 0
        """Guaranteed to the whole subtree."""

        self.local = 0
        """Of the quota, what the parent does not see."""

        self.kept = 0
        """Kept by the shares below for themselves; not a part of the quota here."""

        self.borrowable: int | None = None
        """Beyond the quota; None: without limit."""

        self.limit: int | None = None
        """The most that may be used of the parent's, beyond the local part; None: without limit."""

        self.usage = 0
        self.reserved = 0
        """The part of the usage that no pod holds yet, there or below."""

    @property
    def lent(self) -> int:
        """The part of the quota that the parent has too."""
        return self.quota - self.local

    @property
    def at_parent(self) -> int:
        """The part of the usage that counts against the parent."""
        return max(0, self.usage - self.local)

    @property
    def held(self) -> int:
        """The usage as it would be without reservations."""
        return self.usage - self.reserved

    @property
    def held_at_parent(self) -> int:
        return max(0, self.held - self.local)


class ShareTree:
    """Valid shares, with their usage; `problems` has those of all others."""

    def __init__(self, shares: Sequence[Share]) -> None:
        self.problems: dict[str, str] = find_problems(shares)
        self._make([each for each in shares if each.name not in self.problems])
        if overfull := self._overfull():
            self.problems |= overfull
            _add_problems_of_ancestors(self.problems, self.shares)
            self._make([each for each in shares if each.name not in self.problems])

    def _make(self, shares: Sequence[Share]) -> None:
        self.shares: dict[str, Share] = {each.name: each for each in shares}
        self.children: dict[str, list[str]] = {name: [] for name in self.shares}
        for share in self.shares.values():
            if share.parent:
                self.children[share.parent].append(share.name)
        self.resources = {resource for share in self.shares.values() for resource in resources_of(share)}
        self._accounts: dict[str, dict[str, _Account]] = {}
        self._borrowers: dict[tuple[str, str], Mapping[str, int]] = {}
        """The answers of `borrowers` since usage or quotas changed: an attempt asks for the same several times."""
        self._heights = dict.fromkeys(self.shares, 0)
        below = self._from_roots()
        named = {name: resources_of(share) for name, share in self.shares.items()}
        for name in reversed(below):
            if parent := self.shares[name].parent:
                named[parent] |= named[name]
        for name in below:
            above = self._accounts.get(self.shares[name].parent)
            self._accounts[name] = (
                {each: _Account(None) for each in named[name]}
                if above is None
                else {each: _Account(account) for each, account in above.items()}
            )
        for name in reversed(below):
            for resource in self._accounts[name]:
                self._set_quota(name, resource)
            if parent := self.shares[name].parent:
                self._heights[parent] = max(self._heights[parent], self._heights[name] + 1)

    def _overfull(self) -> dict[str, str]:
        """Say of which shares those below keep more for themselves than the maximum."""
        return {
            name: f"the shares below it keep {kept} of {resource} for themselves, more than its maximum, {maximum}"
            for name, share in self.shares.items()
            for resource, maximum in share.maximum.items()
            if (kept := self._accounts[name][resource].kept) > maximum
        }

    def _from_roots(self) -> list[str]:
        """Return the names of all shares, each after its parent."""
        names = [name for name, share in self.shares.items() if not share.parent]
        for name in names:
            names.extend(self.children[name])
        return names

    def _set_quota(self, name: str, resource: str) -> None:
        """Set the quota of a share whose children have theirs."""
        self._borrowers.clear()
        share, account, accounts = self.shares[name], self._accounts[name][resource], self._accounts
        quota, kept = share.minimum.get(resource, 0), 0
        for child in self.children[name]:
            below = accounts[child][resource]
            quota += below.lent
            kept += below.local + below.kept
        quota, account.kept = _saturated(quota), _saturated(kept)
        account.quota = quota
        lending, maximum = share.lending_limit.get(resource), share.maximum.get(resource)
        if maximum is not None:
            maximum = max(0, maximum - account.kept)
        account.local = 0 if lending is None else max(0, quota - lending)
        limits = [share.borrowing_limit[resource]] if resource in share.borrowing_limit else []
        account.borrowable = min(limits if maximum is None else [*limits, maximum - quota], default=None)
        account.limit = None
        if account.borrowable is not None:
            account.limit = _saturated(quota - account.local + account.borrowable)
        if account.parent is None and maximum is not None:
            account.quota = min(quota, maximum)

    def put(self, share: Share) -> bool:
        """Take over another version of a share; return False, and change nothing, if not only its amounts differ."""
        before = self.shares.get(share.name)
        if before is None or before.parent != share.parent or problem_of(share):
            return False
        if resources_of(before) != resources_of(share) or self._is_below_maximum(share):
            return False
        self.shares[share.name] = share
        for resource in resources_of(share):
            name = share.name
            while name:
                account = self._accounts[name][resource]
                seen = account.lent, account.local + account.kept
                at_parent, held = account.at_parent, account.held_at_parent
                self._set_quota(name, resource)
                _add(account.parent, account.at_parent - at_parent, account.held_at_parent - held)
                if (account.lent, account.local + account.kept) == seen:
                    break
                name = self.shares[name].parent
        return True

    def _is_below_maximum(self, share: Share) -> bool:
        while share.parent:
            share = self.shares[share.parent]
            if share.maximum:
                return True
        return False

    def resources_of(self, name: str) -> Collection[str]:
        """Return the resources that the shares of the same tree name."""
        return self._accounts[name].keys()

    def limited(self, name: str, requests: Mapping[str, int], pods: int) -> dict[str, int]:
        """Return what so many pods ask for of those resources, one of which may be how many they are."""
        accounts = self._accounts.get(name, {})
        amounts = {each: amount for each, amount in requests.items() if each in accounts}
        if PODS in accounts:
            amounts[PODS] = pods
        return amounts

    def _account(self, name: str, resource: str) -> _Account:
        """Return a share's account; no share has one of a resource that none names."""
        return self._accounts[name].get(resource) or _Account(None)

    def add(self, name: str, amounts: Mapping[str, int]) -> None:
        """Add to the usage of a share, and to its ancestors' what exceeds its local quota.

        What no share names is not kept: anyone who creates pods invents names. Sums are exact, so what is added can be
        taken off again.
        """
        accounts = self._accounts[name]
        self._borrowers.clear()
        for resource, amount in amounts.items():
            account = accounts.get(resource)
            while account is not None and amount:
                if account.reserved:
                    _add(account, amount, amount)
                    break
                local, before = account.local, account.usage
                account.usage = after = before + amount
                amount = (after - local if after > local else 0) - (before - local if before > local else 0)
                account = account.parent

    def remove(self, name: str, amounts: Mapping[str, int]) -> None:
        self.add(name, {resource: -amount for resource, amount in amounts.items()})

    def reserve(self, name: str, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add to the usage of a share what its pods do not hold yet, or take it off: 1 or -1."""
        accounts = self._accounts[name]
        self._borrowers.clear()
        for resource, amount in amounts.items():
            _add(accounts.get(resource), sign * amount, 0)

    def held(self, name: str, resource: str) -> int:
        """Return the usage of a share as it would be without reservations."""
        return _saturated(self._account(name, resource).held)

    def usage(self, name: str, resource: str) -> int:
        """Return what counts against a share's quota: of a parent, what its children use beyond their local quotas."""
        return _saturated(self._account(name, resource).usage)

    def used_by_own_pods(self, name: str, resource: str) -> int:
        """Return what the pods of a share use of it themselves, without those of its children."""
        below = (self._account(each, resource) for each in self.children[name])
        return self._account(name, resource).usage - sum(each.at_parent for each in below)

    def held_by_own_pods(self, name: str, resource: str) -> int:
        """Return the same without reservations."""
        below = (self._account(each, resource) for each in self.children[name])
        return self._account(name, resource).held - sum(each.held_at_parent for each in below)

    def quota(self, name: str, resource: str) -> int:
        """Return the guarantee of a share and its descendants together, without what these do not lend."""
        return self._account(name, resource).quota

    def uses_more(self, name: str, resources: Iterable[str]) -> bool:
        """Say whether a share, with its descendants, uses more of some resources than it is guaranteed."""
        return any(self.usage(name, each) > self.quota(name, each) for each in resources)

    def holds_more(self, name: str, resources: Iterable[str]) -> bool:
        """Return the same for the usage of its pods: reservations cannot be given back."""
        accounts = self._accounts[name]
        for each in resources:  # asked for each candidate of a preemption
            account = accounts.get(each)
            if account is not None and account.usage - account.reserved > account.quota:
                return True
        return False

    def guarantees(self, name: str, amounts: Mapping[str, int]) -> bool:
        """Say whether a share is guaranteed these amounts in addition to what it uses."""
        return all(self.usage(name, each) + amount <= self.quota(name, each) for each, amount in amounts.items())

    def local(self, name: str, resource: str) -> int:
        """Return what a share does not lend of its quota: its parent sees nothing of it."""
        return self._account(name, resource).local

    def height(self, name: str) -> int:
        """Return how many levels there are below a share."""
        return self._heights[name]

    def holder(self, name: str, resource: str, amount: int) -> str:
        """Return the share, or the first of its ancestors, that is guaranteed so much more than it uses; else the root.

        Rule: FindHeightOfLowestSubtreeThatFits of Kueue.
        """
        while (parent := self.shares[name].parent) and self.usage(name, resource) + amount > self.quota(name, resource):
            amount -= max(0, self.local(name, resource) - self.usage(name, resource))
            name = parent
        return name

    def available(self, name: str, resource: str) -> int:
        """Return how much more a share may use; negative if too much is used."""
        local, least, account = 0, [MAX], self._account(name, resource)
        while account.parent is not None:
            local += max(0, account.local - account.usage)
            if account.limit is not None:
                least.append(local + account.limit - max(0, account.usage - account.local))
            account = account.parent
        return _saturated(min(*least, local + account.quota - account.usage))

    def potential(self, name: str, resource: str) -> int:
        """Return how much a share could use if nothing were used."""
        local, least, account = 0, [MAX], self._account(name, resource)
        while account.parent is not None:
            if account.borrowable is not None:
                least.append(local + account.quota + account.borrowable)
            local += account.local
            account = account.parent
        return _saturated(min(*least, local + account.quota))

    def fits(self, name: str, request: Mapping[str, int], *, only_named: bool = False) -> bool:
        """Say whether a share may use so much more; resources that are not asked for do not matter.

        With `only_named`, resources that no share of the tree names hold nothing up, either.
        """
        accounts = self._accounts.get(name)
        if accounts is None:
            return False
        for resource, rest in request.items():
            if rest <= 0:
                continue
            account = accounts.get(resource)
            if account is None:
                if only_named:
                    continue
                return False
            while (parent := account.parent) is not None:
                local, usage, limit = account.local, account.usage, account.limit
                held = 0
                if usage < local:
                    rest -= local - usage
                else:
                    held = usage - local
                if limit is not None and rest > limit - held:
                    return False
                account = parent
            if rest > account.quota - account.usage:
                return False
        return True

    def lacks(self, name: str, request: Mapping[str, int]) -> tuple[ShareLack, ...]:
        """Say what stands in the way of a request: by resource, from the share up to its root."""
        return tuple(
            lack
            for resource, amount in sorted(request.items())
            if amount > 0
            for lack in self._lacks(name, resource, amount)
        )

    def _lacks(self, name: str, resource: str, rest: int) -> Iterator[ShareLack]:
        while parent := self.shares[name].parent:
            account = self._account(name, resource)
            rest -= max(0, account.local - account.usage)
            if account.limit is not None:
                missing = rest - (account.limit - max(0, account.usage - account.local))
                if missing > 0:
                    yield ShareLack(name, resource, missing, is_limit=True)
            name = parent
        root = self._account(name, resource)
        if rest > root.quota - root.usage:
            missing = rest - root.quota + root.usage
            yield ShareLack(name, resource, missing, is_limit=False, borrowers=self.borrowers(name, resource))

    def borrowers(self, name: str, resource: str) -> Mapping[str, int]:
        """Return the leaves of a subtree that use more than they are guaranteed, and how much more; the most first.

        Only what others there are guaranteed: a share within what its parent is guaranteed borrows of that alone. What
        is reserved is not borrowed yet.
        """
        known = self._borrowers.get((name, resource))
        if known is not None:
            return known
        found = dict[str, int]()
        left = [(each, MAX) for each in self.children[name]]
        for each, most in left:
            account = self._account(each, resource)
            borrows = min(most, account.usage - account.quota)
            if borrows > 0 and self.children[each]:
                left += [(child, borrows) for child in self.children[each]]
            elif borrows > 0:
                found[each] = min(borrows, account.held - account.quota)
        holding = ((each, amount) for each, amount in found.items() if amount > 0)
        ordered = dict(sorted(holding, key=lambda item: (-item[1], item[0])))
        return self._borrowers.setdefault((name, resource), MappingProxyType(ordered))


def _add(account: _Account | None, usage: int, held: int) -> None:
    """Add to the usage from an account up, and to the part of it that pods hold."""
    while account is not None and (usage or held):
        at_parent, held_at_parent = account.at_parent, account.held_at_parent
        account.usage += usage
        account.reserved += usage - held
        usage, held = account.at_parent - at_parent, account.held_at_parent - held_at_parent
        account = account.parent


def find_problems(shares: Sequence[Share]) -> dict[str, str]:
    """Say of each share that cannot be used why: its name → one sentence."""
    problems: dict[str, str] = {}
    by_name: dict[str, Share] = {}
    for share in shares:
        if share.name in by_name:
            problems[share.name] = f'there are several shares with the name "{share.name}"'
        elif problem := problem_of(share):
            problems[share.name] = problem
        by_name[share.name] = share
    for share in by_name.values():
        if share.parent and share.parent not in by_name:
            problems.setdefault(share.name, f'its parent "{share.parent}" does not exist')
    _add_problems_of_ancestors(problems, by_name)
    problems |= _above_maxima(by_name, problems)
    _add_problems_of_ancestors(problems, by_name)
    return problems


def _above_maxima(by_name: Mapping[str, Share], problems: Mapping[str, str]) -> dict[str, str]:
    """Say which shares are guaranteed more than an ancestor may use."""
    least: dict[str, dict[str, tuple[int, str]]] = {"": {}}
    found: dict[str, str] = {}
    for name in by_name:
        path = list[str]()
        while name not in least and name not in problems:
            path.append(name)
            name = by_name[name].parent
        for each in reversed(path):
            share = by_name[each]
            above = least[share.parent]
            for resource, amount in share.minimum.items():
                if resource in above and amount > above[resource][0]:
                    maximum, ancestor = above[resource]
                    kind = f"minimum of {resource}, {amount}"
                    found[each] = f'its {kind}, is above the maximum of "{ancestor}", {maximum}'
            lower = {
                resource: (maximum, each)
                for resource, maximum in share.maximum.items()
                if resource not in above or maximum < above[resource][0]
            }
            least[each] = {**above, **lower} if lower else above
    return found


def _add_problems_of_ancestors(problems: dict[str, str], by_name: Mapping[str, Share]) -> None:
    sound: set[str] = set()
    for name in by_name:
        path: dict[str, None] = {}
        while name and name not in sound and name not in problems and name not in path:
            path[name] = None
            name = by_name[name].parent
        if name in path:
            names = list(path)
            circle = names[names.index(name) :]
            problems.update(dict.fromkeys(circle, f"its parents form a cycle: {' → '.join([*circle[:10], name])}"))
        if name in problems:
            for each in path:
                problems.setdefault(each, f'its ancestor "{name}" cannot be used')
        else:
            sound.update(path)


def resources_of(share: Share) -> set[str]:
    """Return the resources that a share names."""
    return {*share.minimum, *share.maximum, *share.borrowing_limit, *share.lending_limit}


def problem_of(share: Share) -> str:
    """Return the problem of a share, whatever the others are; empty if it has none."""
    limits = {
        "minimum": share.minimum,
        "maximum": share.maximum,
        "borrowing limit": share.borrowing_limit,
        "lending limit": share.lending_limit,
    }
    for kind, amounts in limits.items():
        for resource, amount in amounts.items():
            if not 0 <= amount <= MAX:
                return f"its {kind} of {resource} is {amount}: must be from 0 to {MAX}"
    for resource, maximum in share.maximum.items():
        if share.minimum.get(resource, 0) > maximum:
            return f"its minimum of {resource}, {share.minimum[resource]}, is above its maximum, {maximum}"
    return "" if share.weight >= 0 else f"its weight is {share.weight}: must not be negative"


def _saturated(number: int) -> int:
    return MAX if number > MAX else -MAX - 1 if number < -MAX - 1 else number
