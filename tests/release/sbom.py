"""What is in the wheel's environment and in the image, as CycloneDX: for scanners, and for people who must know.

The wheel itself pins nothing, so its list has what requirements.lock installs for it, with the lock's hashes. The
image's list is read from its files: Python's packages, Debian's of dpkg's list, and Python itself, which neither has.
"""

import hashlib
import re
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.image.locks import hashes
from tests.image.locks import version as version_of
from tests.release.dist import HOME, ROOT, ReleaseError, version

LOCK: Final = ROOT / "requirements.lock"
REPOSITORY: Final = "ghcr.io/loadmaster/loadmaster"
"""Where the released image is."""

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, HOME)


def of_wheel(out: Path, epoch: int) -> Path:
    """Write the list of the wheel and the libraries that are locked for it."""
    purl = PackageURL("pypi", name="loadmaster", version=version())
    return _write(
        out / f"loadmaster-{version()}.cdx.json", _ours(ComponentType.APPLICATION, purl), list(_locked()), epoch
    )


def of_image(out: Path, root: Path, epoch: int) -> Path:
    """Write the list of the image that is unpacked in `root`. Raises ReleaseError if it is none."""
    debian = list(_debian(root))
    if not debian:
        raise ReleaseError(f"{root}: no unpacked image: it has no packages in var/lib/dpkg/status")
    architecture = next(purl.qualifiers["arch"] for each in debian if (purl := each.purl) and purl.name == "libc6")
    found = [*debian, *_distributions(root), *_interpreters(root), *_systems(root)]
    where = {"repository_url": REPOSITORY, "tag": version(), "arch": architecture}
    subject = _ours(ComponentType.CONTAINER, PackageURL("oci", name="loadmaster", qualifiers=where))
    return _write(out / f"loadmaster-{version()}-image-{architecture}.cdx.json", subject, found, epoch)


def _write(path: Path, subject: Component, parts: list[Component], epoch: int) -> Path:
    """Write a list that is valid, and the same each time. Raises ReleaseError with what the schema says against it."""
    from cyclonedx.validation.json import JsonStrictValidator  # its grammars take seconds to load

    bom = Bom(
        components=parts,
        metadata=BomMetaData(component=subject, timestamp=datetime.fromtimestamp(epoch, UTC)),
        serial_number=uuid.uuid5(_NAMESPACE, _digest(path.name, parts)),
    )
    bom.register_dependency(subject, parts)
    text = str(JsonV1Dot6(bom).output_as_string(indent=2)) + "\n"
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseError(f"{path.name}: {wrong}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _digest(name: str, parts: list[Component]) -> str:
    return hashlib.sha256("\n".join([name, *sorted(str(each.purl) for each in parts)]).encode()).hexdigest()


def _ours(kind: ComponentType, purl: PackageURL) -> Component:
    return Component(
        name="loadmaster",
        version=version(),
        type=kind,
        bom_ref="loadmaster-itself",
        purl=purl,
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        external_references=[ExternalReference(type=ExternalReferenceType.VCS, url=XsUri(HOME))],
    )


def _locked() -> Iterator[Component]:
    """Each of the lock's lines, with a hash for each file that pip may take. Without what only builds."""
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tools = {canonicalize_name(Requirement(line).name) for line in described["build-system"]["requires"]}
    for line, known in hashes(LOCK).items():
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) in tools:
            continue
        component = _python_package(requirement.name, version_of(requirement))
        component.external_references.add(
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/project/{canonicalize_name(requirement.name)}/{component.version}/"),
                comment=str(requirement.marker) if requirement.marker else None,
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in known],
            )
        )
        yield component


def _distributions(root: Path) -> Iterator[Component]:
    for library in sorted(root.glob("opt/loadmaster/lib/python3.*/site-packages")):
        for distribution in metadata.distributions(path=[str(library)]):
            component = _python_package(distribution.name, distribution.version)
            if "License-Expression" in distribution.metadata:
                component.licenses.add(LicenseFactory().make_from_string(distribution.metadata["License-Expression"]))
            yield component


def _python_package(name: str, version_: str) -> Component:
    purl = PackageURL("pypi", name=canonicalize_name(name), version=version_)
    return Component(name=purl.name, version=version_, bom_ref=str(purl), purl=purl)


def _debian(root: Path) -> Iterator[Component]:
    status = root / "var/lib/dpkg/status"
    if not status.is_file():
        return
    release = _os_release(root)
    for paragraph in status.read_text().strip().split("\n\n"):
        fields = HeaderParser().parsestr(paragraph)
        if not fields["Status"].endswith(" installed"):
            continue
        qualifiers = {"arch": fields["Architecture"], "distro": f"{release['ID']}-{release.get('VERSION_ID', '')}"}
        name, version_ = fields["Package"], fields["Version"]
        purl = PackageURL("deb", release["ID"], name, version_, qualifiers)
        yield Component(name=name, version=version_, bom_ref=str(purl), purl=purl)


def _interpreters(root: Path) -> Iterator[Component]:
    """Python: the base image builds it from source, so that no package names it."""
    for config in root.glob("opt/loadmaster/pyvenv.cfg"):
        (found,) = re.findall(r"^version = (\S+)$", config.read_text(), re.MULTILINE)
        purl = PackageURL("generic", name="python", version=found)
        cpe = f"cpe:2.3:a:python:python:{found}:*:*:*:*:*:*:*"  # what vulnerabilities of Python are listed under
        yield Component(name="python", version=found, bom_ref=str(purl), purl=purl, cpe=cpe)


def _systems(root: Path) -> Iterator[Component]:
    release = _os_release(root)
    yield Component(
        name=release["ID"],
        version=release.get("VERSION_ID"),
        type=ComponentType.OPERATING_SYSTEM,
        bom_ref="operating-system",
    )


def _os_release(root: Path) -> dict[str, str]:
    lines = (root / "etc/os-release").read_text().splitlines()
    return {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines if "=" in line)}
