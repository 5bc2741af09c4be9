import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.image.locks import PROJECT, locked
from tests.release import sbom
from tests.release.dist import ReleaseError, version

EPOCH = 1_700_000_000
STATUS = """\
Package: libc6
Status: install ok installed
Architecture: arm64
Version: 2.41-12

Package: perl-base
Status: purge ok not-installed
Architecture: arm64
Version: 5.40.1-6
"""


def listed(path: Path) -> dict[str, dict[str, Any]]:
    """The components by their purl, or by name where they have none."""
    return {each.get("purl", each["name"]): each for each in json.loads(path.read_text())["components"]}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    files = {
        "var/lib/dpkg/status": STATUS,
        "etc/os-release": 'ID=debian\nVERSION_ID="13"\n',
        "opt/loadmaster/pyvenv.cfg": "home = /usr/local/bin\nversion = 3.12.9\n",
        "opt/loadmaster/lib/python3.12/site-packages/Some_Library-1.5.dist-info/METADATA": (
            "Metadata-Version: 2.4\nName: Some_Library\nVersion: 1.5\nLicense-Expression: MIT\n"
        ),
    }
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path / "root"


def test_the_list_of_the_wheel_has_each_library_of_the_lock_with_all_its_hashes(tmp_path: Path) -> None:
    path = sbom.of_wheel(tmp_path, EPOCH)

    names = {each["name"] for each in listed(path).values()}
    hashes = re.findall(r'"content": "([0-9a-f]{64})"', path.read_text())
    assert names == {each.name for each in locked(sbom.LOCK)} - {"setuptools"}
    assert set(hashes) < set(re.findall(r"sha256:([0-9a-f]{64})", (PROJECT / "requirements.lock").read_text()))
    assert len(hashes) > 10 * len(names)


def test_a_library_that_is_locked_in_two_versions_is_listed_with_both_the_same_each_time(tmp_path: Path) -> None:
    first, second = (sbom.of_wheel(tmp_path / name, EPOCH).read_text() for name in "ab")

    references = [each["bom-ref"] for each in json.loads(first)["components"]]
    assert len([each for each in references if each.startswith("pkg:pypi/numpy@")]) == 2
    assert first == second


def test_the_list_of_an_image_has_packages_of_python_and_debian_and_python_and_debian(
    image: Path, tmp_path: Path
) -> None:
    found = listed(sbom.of_image(tmp_path, image, EPOCH))

    assert found.keys() == {
        "debian",
        "pkg:deb/debian/libc6@2.41-12?arch=arm64&distro=debian-13",
        "pkg:generic/python@3.12.9",
        "pkg:pypi/some-library@1.5",
    }
    assert found["pkg:pypi/some-library@1.5"]["licenses"] == [{"license": {"id": "MIT"}}]


def test_the_list_of_an_image_is_named_after_its_architecture_and_says_what_it_is_of(
    image: Path, tmp_path: Path
) -> None:
    path = sbom.of_image(tmp_path, image, EPOCH)

    about = json.loads(path.read_text())["metadata"]["component"]
    assert path.name == f"loadmaster-{version()}-image-arm64.cdx.json"
    assert about["purl"] == f"pkg:oci/loadmaster?arch=arm64&repository_url={sbom.REPOSITORY}&tag={version()}"


def test_the_same_contents_give_the_same_list(image: Path, tmp_path: Path) -> None:
    first = sbom.of_image(tmp_path / "a", image, EPOCH).read_text()

    assert sbom.of_image(tmp_path / "b", image, EPOCH).read_text() == first


def test_a_directory_without_an_image_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=f"^{re.escape(str(tmp_path))}: no unpacked image"):
        sbom.of_image(tmp_path, tmp_path, EPOCH)
