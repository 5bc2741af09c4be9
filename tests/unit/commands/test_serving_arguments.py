"""The command line's options of the port: kube-scheduler's names, defaults and spellings."""

import argparse

import pytest

from scheduler.commands.serving_arguments import add_arguments, take_options
from scheduler.config.serving import ServingOptions


def options(*arguments: str) -> ServingOptions:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return take_options(vars(parser.parse_args(arguments)))


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    assert options() == ServingOptions(
        secure_port=10259,
        bind_address="0.0.0.0",
        authentication_tolerate_lookup_failure=True,
        authentication_token_webhook_cache_ttl=10.0,
        authorization_always_allow_paths=("/healthz", "/readyz", "/livez"),
        authorization_webhook_cache_authorized_ttl=10.0,
        authorization_webhook_cache_unauthorized_ttl=10.0,
    )


@pytest.mark.parametrize(
    ("argument", "field", "value"),
    [
        ("--secure-port=0", "secure_port", 0),
        ("--bind-address=::1", "bind_address", "::1"),
        ("--bind-address=", "bind_address", "0.0.0.0"),
        ("--authentication-skip-lookup", "authentication_skip_lookup", True),
        ("--authentication-tolerate-lookup-failure=false", "authentication_tolerate_lookup_failure", False),
        ("--authentication-token-webhook-cache-ttl=1m30s", "authentication_token_webhook_cache_ttl", 90.0),
        ("--authorization-always-allow-paths=/livez, /a/*", "authorization_always_allow_paths", ("/livez", "/a/*")),
        ("--authorization-always-allow-paths=", "authorization_always_allow_paths", ()),
        ("--tls-cipher-suites=A,B", "tls_cipher_suites", ("A", "B")),
    ],
)
def test_options_are_spelt_as_in_kube_scheduler(argument: str, field: str, value: object) -> None:
    assert getattr(options(argument), field) == value


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--secure-port=70000", "70000 is not between 0 and 65535"),
        ("--bind-address=everywhere", "does not appear to be an IPv4 or IPv6 address"),
        ("--authentication-token-webhook-cache-ttl=10", "not a duration: '10'"),
        ("--authentication-skip-lookup=perhaps", "not a boolean: 'perhaps'"),
    ],
)
def test_what_makes_no_sense_is_refused(argument: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(argument)

    assert said in capsys.readouterr().err
