"""Loadmaster's image, built by the engine from the Dockerfile as users build it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from tests.controlplane.build import cache_directory
from tests.image.base import PATH, make_stand_in
from tests.image.locks import PROJECT
from tests.kind.engine import UNREACHABLE, Engine, EngineError

REPOSITORY: Final = "localhost/loadmaster"
BASE: Final = "docker.io/library/python:3.12-slim"
STAND_IN: Final = "localhost/python-stand-in:3.12"
BUILDER: Final = "localhost/python-with-pip-settings:3.12"
BUILD_SECONDS: Final = 900
CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"
PIP_SETTINGS: Final = ("cert", "index-url", "extra-index-url", "trusted-host", "timeout", "default-timeout", "proxy")
"""Those of this machine that pip in the build needs too."""


def build(engine: Engine) -> str:
    """Build the image; return its name, whose tag is another for another content. Raises EngineError, ImageError."""
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    newest = f"{REPOSITORY}:{version}"
    build_as(engine, newest, PROJECT)
    identity = engine("image", "inspect", "--format={{.Id}}", newest).strip().removeprefix("sha256:")
    engine("tag", newest, f"{newest}-{identity[:12]}")
    return f"{newest}-{identity[:12]}"


def build_as(engine: Engine, name: str, source: Path) -> None:
    """Build the image of a source tree, which may be that of an earlier release. Raises EngineError, ImageError."""
    base = find_base(engine)
    builder = make_builder(engine, base)
    takes_builder = "ARG BUILDER" in (source / "Dockerfile").read_text()
    arguments = {"BASE": base, "BUILDER": builder} if takes_builder else {"BASE": builder}
    options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
    # The machine's network, as a proxy or an index may be reached only from there.
    engine("build", "--network=host", *options, f"--tag={name}", str(source), timeout=BUILD_SECONDS)


def find_base(engine: Engine) -> str:
    """The Dockerfile's base image if it can be had, otherwise the stand-in, made if need be."""
    try:
        engine.pull(BASE)
    except EngineError as error:
        if not any(said in str(error) for said in UNREACHABLE):
            raise
    else:
        return BASE
    if not engine.has(STAND_IN):
        print(f"No registry has {BASE} for us: a stand-in is made of Debian's packages.", file=sys.stderr)
        cache = cache_directory().with_name("kind")
        cache.mkdir(parents=True, exist_ok=True)
        changes = [f"--change=ENV PATH={PATH}", '--change=CMD ["python3"]']
        engine("import", *changes, str(make_stand_in(cache)), STAND_IN, timeout=BUILD_SECONDS)
    return STAND_IN


def make_builder(engine: Engine, base: str) -> str:
    """The base image with this machine's settings of pip and certificates; the base image itself if there are none."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    settings = pip_settings(listing.stdout)
    if not settings:
        return base
    context = cache_directory().with_name("kind") / "builder"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir(parents=True)
    lines = [f"FROM {base}", "COPY pip.conf /etc/pip.conf"]
    if certificates := settings.get("cert"):
        shutil.copyfile(certificates, context / "certificates.crt")
        lines.append(f"COPY certificates.crt {CERTIFICATES}")
        settings["cert"] = CERTIFICATES
    (context / "pip.conf").write_text("".join(["[global]\n", *(f"{key} = {settings[key]}\n" for key in settings)]))
    (context / "Dockerfile").write_text("\n".join([*lines, ""]))
    engine("build", f"--tag={BUILDER}", str(context))
    return BUILDER


def pip_settings(listing: str) -> dict[str, str]:
    """What `pip config list` tells, as far as it matters in a container; of the environment before that of a file.

    >>> pip_settings("global.cert='/etc/a.crt'\\nglobal.find-links='/opt/wheels'\\n:env:.index-url='https://b/simple'\\n")
    {'cert': '/etc/a.crt', 'index-url': 'https://b/simple'}
    """
    found: dict[str, str] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in PIP_SETTINGS:
            found[name] = value[1:-1]
    return found
