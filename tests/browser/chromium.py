"""The browser of this machine: Debian's Chromium, driven by Playwright."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

PROGRAMS: Final = ("chromium", "chromium-browser")
PACKAGES: Final = ("chromium", "fonts-dejavu-core")


_running: list[Browser] = []


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run it meanwhile; there is one, as Playwright wants. Skips the test if this machine has none."""
    if _running:
        yield _running[0]
        return
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine: sudo make browser-deps installs Debian's")
    # In a container there may be neither the namespaces that its sandbox needs, nor a /dev/shm of any size.
    flags = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        # Playwright would hide the scrollbars, which take room of what they scroll.
        browser = playwright.chromium.launch(
            executable_path=program, args=flags, ignore_default_args=["--hide-scrollbars"]
        )
        _running.append(browser)
        try:
            yield browser
        finally:
            _running.clear()
            browser.close()


def install() -> int:
    """Install Debian's packages; return the exit code."""
    if not shutil.which("apt-get"):
        print(f"There is no apt-get here. Install what your distribution calls {PACKAGES[0]}.", file=sys.stderr)
        return 1
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        code = subprocess.run(["apt-get", "--quiet", *command], env=environment, check=False).returncode
        if code:
            return code
    return 0
