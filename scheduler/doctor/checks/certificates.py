"""The expiry of certificates and tokens."""

import base64
import binascii
from typing import Any, Final

from scheduler.api.certificates import expires_at
from scheduler.api.decoding import Decoder
from scheduler.doctor.evidence.cluster import Cluster
from scheduler.doctor.evidence.facts import Facts, known
from scheduler.doctor.findings import Finding, ok, problem, warning
from scheduler.kube.identity.credentials import Credentials

_any: Final[Decoder[Any]] = Decoder(Any)

DAY: Final = 86_400.0
SOON: Final = 30 * DAY
VERY_SOON: Final = 3 * DAY

RENEWAL: Final = {
    "serving": "replace the Secret of tls.secretName; without one, the scheduler replaces its own by itself",
    "client": "replace the certificate in the scheduler's kubeconfig",
}


async def of_the_scheduler(facts: Facts, _: Cluster) -> list[Finding]:
    """The certificate of its port, and its own at the API server."""
    samples = known(facts.samples)
    names = "loadmaster_certificate_expiration_timestamp_seconds"
    findings = [
        remaining(
            f"the scheduler's {labels.get('certificate', '')} certificate",
            end - facts.server_now.timestamp(),
            RENEWAL.get(labels.get("certificate", ""), RENEWAL["client"]),
        )
        for labels, end in samples.of(names)
    ]
    return findings or [ok("the scheduler has no certificates that end")]


async def of_the_user(facts: Facts, _: Cluster, credentials: Credentials) -> list[Finding]:
    """Those by which the cluster is asked here: certificate, authority, token."""
    findings, now = list[Finding](), facts.server_now.timestamp()
    own = expires_at(credentials.identity.tls.certificate)
    if own is not None:
        findings.append(remaining("your certificate", own - now, "have a new kubeconfig made"))
    authorities = credentials.ssl_context.get_ca_certs(binary_form=True)
    # Several are those that the machine trusts: the kubeconfig has no authority of its own.
    end = expires_at(_pem(authorities[0])) if len(authorities) == 1 else None
    if end is not None:
        findings.append(remaining("the cluster's authority", end - now, "renew it: `kubeadm certs renew`"))
    end = token_end(credentials.identity.authorization or "")
    if end is not None and end < now:
        findings.append(problem("your token has ended", "have a new one made"))
    return findings


def remaining(what: str, left: float, advice: str) -> Finding:
    """Whether the time left, in seconds, is enough."""
    if left <= 0:
        return problem(f"{what} ended {-left / DAY:.0f} days ago", advice)
    if left < VERY_SOON:
        return problem(f"{what} ends in {left / 3600:.0f} hours", advice)
    if left < SOON:
        return warning(f"{what} ends in {left / DAY:.0f} days", advice)
    return ok(f"{what} ends in {left / DAY:.0f} days")


def token_end(authorization: str) -> float | None:
    """When a service account's token ends; None for other tokens."""
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    try:
        claims = _any.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, int | float) else None


def _pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
