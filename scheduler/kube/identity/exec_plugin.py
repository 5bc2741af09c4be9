"""Credentials from a program that a kubeconfig names: `users[…].user.exec`.

The program may hang, print without end, or print anything. So it gets EXEC_SECONDS and MAX_OUTPUT bytes, in a process
group of its own that is killed when either is used up, and what it prints is never logged: it may have secrets. Its
error output, such as where to log in, is shown on a terminal, as kubectl does. Elsewhere the error names a command that
shows it.

Rule: plugin/pkg/client/auth/exec in client-go 0.36.3, which has no time limit. The program runs again when its
credentials have expired, or after a 401; without an expiry only after a 401.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.processes import ending
from scheduler.framework.errors import ConfigError

EXEC_SECONDS: Final = 30.0
"""For one run. Plugins of cloud providers ask a server, which takes a second or two."""

MAX_OUTPUT: Final = 1 << 20
"""Bytes that it may print."""

MAX_INFO: Final = 128 << 10
"""Bytes of KUBERNETES_EXEC_INFO: Linux takes no longer variable."""

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """A plugin's credentials: a token, a client certificate with its key, or both."""

    token: str
    certificate: str
    """PEM; empty if there is none."""
    key: str
    expires: float | None
    """Seconds since 1970; None if it does not say."""

    def __repr__(self) -> str:  # a secret must not get into a log by accident
        return f"ExecCredential(expires={self.expires})"


class ExecPlugin:
    """One plugin, as the kubeconfig describes it."""

    def __init__(
        self, config: Mapping[str, Any], directory: Path, cluster: Mapping[str, Any] | None = None, by_hand: str = ""
    ) -> None:
        """`directory`: the kubeconfig's. `cluster`: what the plugin learns of it, if it may. `by_hand`: a command.

        Raises ConfigError.
        """
        command, version = config.get("command"), config.get("apiVersion")
        if not isinstance(command, str) or not command:
            raise ConfigError(["users[…].user.exec.command: required"])
        if version not in API_VERSIONS:
            raise ConfigError([f"users[…].user.exec.apiVersion: need one of {', '.join(API_VERSIONS)}"])
        if config.get("interactiveMode") == "Always":
            raise ConfigError(["users[…].user.exec.interactiveMode: Always, but it gets no terminal here"])
        if not isinstance(config.get("provideClusterInfo", False), bool):
            raise ConfigError(["users[…].user.exec.provideClusterInfo: expected true or false"])
        self._name = command
        # A path is relative to the kubeconfig, a plain name is looked up in PATH.
        self._command = str(directory / command) if os.sep in command else command
        self._version = version
        self._arguments = _texts(config.get("args"), "args")
        self._environment = _environment(config.get("env"))
        self._hint = _text(config.get("installHint"), "installHint")
        self._by_hand = by_hand
        spec = {"interactive": False} if cluster is None else {"interactive": False, "cluster": cluster}
        self._info = _bounded({"apiVersion": version, "kind": "ExecCredential", "spec": spec})

    async def run(self) -> ExecCredential:
        """Run it once. Raises ConfigError if it fails, takes too long, or gives no credentials."""
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                output = await self._output()
        except TimeoutError as error:
            raise self._problem(f"took more than {EXEC_SECONDS:g} s and was ended") from error
        return self._read(output)

    async def _output(self) -> bytes:
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": self._info}
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *self._arguments,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if is_terminal else asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise self._problem(f"cannot be run: {text}{self._hint and f'. {self._hint}'}") from error
        try:
            output = await self._read_all(process)
            code = await process.wait()
        finally:
            await _end(process)
        if code:
            why = "" if is_terminal else f"; to see why, run on a terminal: {self._by_hand}"
            raise self._problem(f"ended {ending(code)}{why}")
        return output

    async def _read_all(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        output = bytearray()
        while chunk := await process.stdout.read(1 << 16):
            output += chunk
            if len(output) > MAX_OUTPUT:
                raise self._problem(f"printed more than {MAX_OUTPUT} bytes and was ended")
        return bytes(output)

    def _read(self, output: bytes) -> ExecCredential:
        try:
            found = _decoder.decode(output)
        except Unreadable:
            # Without the cause: its text may quote what was printed.
            raise self._problem("printed no ExecCredential in JSON") from None
        if (found.kind, found.api_version) != ("ExecCredential", self._version):
            raise self._problem(f"printed no ExecCredential of {self._version}")
        status = found.status
        if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._problem("gave neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._problem("gave only a certificate or a key, not both")
        expires = None if status.expiration_timestamp is None else self._seconds(status.expiration_timestamp)
        return ExecCredential(status.token, status.client_certificate_data, status.client_key_data, expires)

    def _seconds(self, timestamp: str) -> float:
        try:
            moment = datetime.fromisoformat(timestamp)
            if moment.tzinfo is None:
                raise ValueError
            return moment.timestamp()
        except (ValueError, OverflowError):
            raise self._problem("gave an expirationTimestamp that is no time") from None

    def _problem(self, text: str) -> ConfigError:
        return ConfigError([f"users[…].user.exec: {self._name!r} {text}"])


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await process.wait()


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Printed(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


_decoder: Decoder[_Printed] = Decoder(_Printed)


def _bounded(info: Mapping[str, Any]) -> str:
    """Return it as JSON: what anchors of YAML stand for may be without end."""
    parts, size = list[str](), 0
    for part in json.JSONEncoder(separators=(",", ":"), default=str).iterencode(info):
        parts.append(part)
        size += len(part)
        if size > MAX_INFO:
            raise ConfigError([f"users[…].user.exec.provideClusterInfo: more than {MAX_INFO} bytes about the cluster"])
    return "".join(parts)


def _text(value: Any, name: str) -> str:
    if value is not None and not isinstance(value, str):
        raise ConfigError([f"users[…].user.exec.{name}: expected a text"])
    return " ".join((value or "").split())


def _texts(value: Any, name: str) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError([f"users[…].user.exec.{name}: expected a list of texts"])
    return value


def _environment(value: Any) -> dict[str, str]:
    try:
        return {str(each["name"]): str(each["value"]) for each in value or ()}
    except (TypeError, KeyError) as error:
        raise ConfigError(["users[…].user.exec.env: expected a list of names and values"]) from error
