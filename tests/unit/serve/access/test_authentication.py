"""Who asks: by certificate, by token, or nobody in particular."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

from scheduler.api.reviews import ANONYMOUS, TokenVerdict, User
from scheduler.framework.errors import ClusterError
from scheduler.serve.access import authentication
from scheduler.serve.access.authentication import Authentication, Unauthorized, bearer_token, user_of
from scheduler.serve.access.reviewed import MAX_KEPT
from tests.fakes import FakeClock
from tests.unit.serve.serving import FakeReviews

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_certificate(*names: tuple[ObjectIdentifier, str], until: datetime = NOW + timedelta(days=1)) -> bytes:
    """In DER, valid from a day ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(oid, text) for oid, text in names])
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW - timedelta(days=1)).not_valid_after(until)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


class Setup:
    def __init__(self, **users: User) -> None:
        self.clock = FakeClock()
        self.reviews = FakeReviews(users)
        self.authentication = Authentication(self.reviews, 10.0, self.clock)

    async def user(self, token: str) -> User:
        return await self.authentication.user(None, f"Bearer {token}")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("  BEARER abc  ", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer  abc", ""),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("", ""),
    ],
)
def test_a_bearer_token_is_read_as_kube_scheduler_reads_it(header: str, token: str) -> None:
    assert bearer_token(header) == token


async def test_without_a_token_nobody_in_particular_asks() -> None:
    setup = Setup()

    assert await setup.authentication.user(None, "Basic abc") == ANONYMOUS
    assert setup.reviews.tokens == []


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        (User(username="jane", groups=("devs",)), ("devs", "system:authenticated")),
        (User(username="jane", groups=("system:authenticated",)), ("system:authenticated",)),
        (User(username="system:anonymous", groups=("system:unauthenticated",)), ("system:unauthenticated",)),
    ],
)
async def test_who_is_known_is_in_the_group_of_all_who_are(user: User, groups: tuple[str, ...]) -> None:
    assert await Setup(t=user).user("t") == msgspec.structs.replace(user, groups=groups)


async def test_an_answer_is_kept_for_its_time() -> None:
    setup = Setup(t=User(username="jane"))

    for _ in range(3):
        await setup.user("t")
    asked = len(setup.reviews.tokens)
    setup.clock.advance(10.0)
    await setup.user("t")

    assert (asked, len(setup.reviews.tokens)) == (1, 2)


async def test_a_refusal_is_kept_too() -> None:
    setup = Setup()

    for _ in range(3):
        with pytest.raises(Unauthorized, match="invalid bearer token"):
            await setup.user("x")

    assert setup.reviews.tokens == ["x"]


async def test_an_api_server_that_is_away_is_asked_again() -> None:
    setup = Setup(t=User(username="jane"))
    setup.reviews.is_away = True

    with pytest.raises(Unauthorized, match="cannot ask about a token: connection refused"):
        await setup.user("t")
    setup.reviews.is_away = False

    assert (await setup.user("t")).username == "jane"


async def test_an_answer_with_an_error_is_not_kept() -> None:
    class Confused:
        asked = 0

        async def review_token(self, token: str, audience: str = "") -> TokenVerdict:
            self.asked += 1
            return TokenVerdict(error="the webhook is down")

    reviewer = Confused()
    known = Authentication(reviewer, 10.0, FakeClock())

    for _ in range(2):
        with pytest.raises(Unauthorized, match="the webhook is down"):
            await known.user(None, "Bearer t")

    assert reviewer.asked == 2


async def test_many_requests_with_one_token_ask_once() -> None:
    setup = Setup(t=User(username="jane"))
    setup.reviews.held = asyncio.Event()

    asking = [asyncio.create_task(setup.user("t")) for _ in range(50)]
    while setup.reviews.at_once < 4:  # noqa: ASYNC110  all that may
        await asyncio.sleep(0)
    setup.reviews.held.set()
    await asyncio.gather(*asking)

    assert len(setup.reviews.tokens) == 4


async def test_the_cache_is_bounded_and_has_no_token_in_it() -> None:
    setup = Setup(**{f"secret-{number}": User(username="jane") for number in range(2 * MAX_KEPT)})

    for token in setup.reviews.users:
        await setup.user(token)
    cache = setup.authentication._verdicts

    assert len(cache) == MAX_KEPT
    assert "secret" not in repr(vars(cache))


async def test_an_answer_that_does_not_come_is_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.serve.access.reviewed.MAX_SECONDS", 0.01)
    setup = Setup()
    setup.reviews.held = asyncio.Event()

    with pytest.raises(Unauthorized, match=r"no answer within 0.01 s") as raised:
        await setup.user("t")

    assert isinstance(raised.value.__cause__, ClusterError)
    assert setup.reviews.at_once == 0


def test_a_certificate_names_its_user_by_common_name_and_organizations_and_may_have_a_uid() -> None:
    names = (NameOID.ORGANIZATION_NAME, "devs"), (NameOID.COMMON_NAME, "jane"), (NameOID.ORGANIZATION_NAME, "ops")

    user, with_uid = (user_of(a_certificate(*names, *uid), NOW) for uid in ((), [(authentication.UID_OID, "1234")]))

    assert user is not None
    assert (user.username, user.uid, user.groups) == ("jane", "", ("devs", "ops"))
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
    assert with_uid is not None
    assert with_uid.uid == "1234"


def test_a_certificate_without_a_name_is_nobodys() -> None:
    assert user_of(a_certificate((NameOID.ORGANIZATION_NAME, "system:masters")), NOW) is None


@pytest.mark.parametrize(
    "certificate",
    [
        pytest.param(a_certificate((NameOID.COMMON_NAME, "jane"), until=NOW - timedelta(hours=1)), id="expired"),
        pytest.param(
            a_certificate((NameOID.COMMON_NAME, "jane"), (authentication.UID_OID, "1"), (authentication.UID_OID, "2")),
            id="two UIDs",
        ),
        pytest.param(b"no certificate", id="no certificate"),
    ],
)
def test_a_certificate_that_is_not_clear_is_refused(certificate: bytes) -> None:
    with pytest.raises(Unauthorized):
        user_of(certificate, NOW)


async def test_a_certificate_counts_before_a_token() -> None:
    setup = Setup(t=User(username="token"))
    issued = trustme.CA().issue_cert(common_name="jane", organization_name="devs")
    pem = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())

    user = await setup.authentication.user(pem.public_bytes(serialization.Encoding.DER), "Bearer t")

    assert (user.username, user.groups) == ("jane", ("devs", "system:authenticated"))
