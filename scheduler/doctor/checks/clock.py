"""Whether the clocks agree: tokens and certificates depend on them, and Leases show them to people."""

from typing import Final

from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, unknown, warning

MAX_SECONDS: Final = 5.0
"""The API server shows whole seconds, and the answer takes its time."""

NTP: Final = "see that the machine follows a time server (chrony, systemd-timesyncd)"


async def of_this_machine(facts: Facts, _: Cluster) -> list[Finding]:
    """This machine's clock, compared with the API server's."""
    ahead = facts.server.ahead
    if ahead is None:
        return [unknown("the API server shows no time")]
    if abs(ahead) > MAX_SECONDS:
        return [warning(f"this machine's clock is {_apart(-ahead)} the API server's", NTP)]
    return [ok(f"this machine's clock is {_apart(-ahead)} the API server's")]


async def of_the_leader(facts: Facts, _: Cluster) -> list[Finding]:
    """The leader's clock: it writes its time into the Lease, and the API server adds its own."""
    if not known(facts.config).election.leader_elect:
        return []
    lease = known(facts.lease)
    written = [each.time for each in lease.metadata.managed_fields or () if each.time is not None]
    if lease.spec.renew_time is None or not written or not lease.spec.holder_identity:
        return [unknown("the Lease does not show the leader's time")]
    ahead = (lease.spec.renew_time - max(written)).total_seconds() - 0.5
    if abs(ahead) > MAX_SECONDS:
        return [warning(f"the leader's clock is {_apart(ahead)} the API server's", f"on its node: {NTP}")]
    return [ok(f"the leader's clock is {_apart(ahead)} the API server's")]


def _apart(seconds: float) -> str:
    if abs(seconds) < 1.5:
        return "within a second of"
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"
