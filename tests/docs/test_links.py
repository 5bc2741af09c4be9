"""Links lead to files and headings that are there, and every page is in the site's list."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.pages import ROOT, anchors, links, pages

NAV: Final = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
PAGES: Final = pages()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not leads_somewhere(page, link)]

    assert broken == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link to this repository has its file and heading; others are not followed."""
    if re.match(r"[a-z]+:", link):
        return True
    name, _, anchor = link.partition("#")
    target = (page.parent / name) if name else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_the_site_lists_every_page() -> None:
    listed = set(re.findall(r"[\w/.-]+\.md", NAV))
    there = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}

    assert there - listed == set(), "add them to `nav` in docs/site/mkdocs.yml"
    assert listed - there == {"index.md"}
