"""The site of the pages: links to what is not in docs lead to the repository, as it was in the version of the pages."""

import importlib.util
from types import ModuleType, SimpleNamespace

import pytest

from tests.image.locks import PROJECT

CONFIG = SimpleNamespace(repo_url="https://github.example/loadmaster/")


def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", PROJECT / "docs/site/hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(markdown: str, page: str = "operations/port.md") -> str:
    return str(hooks().on_page_markdown(markdown, SimpleNamespace(file=SimpleNamespace(src_uri=page)), CONFIG))


@pytest.mark.parametrize(("version", "revision"), [("", "main"), ("0.2.0", "v0.2.0")])
def test_a_link_out_of_docs_leads_to_the_repository_at_the_version(
    version: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIKE_DOCS_VERSION", version)

    assert shown("[x](../../charts/README.md#a)") == (
        f"[x](https://github.example/loadmaster/blob/{revision}/charts/README.md#a)"
    )


@pytest.mark.parametrize("link", ["../image.md#tags", "metrics.md", "https://kubernetes.io/", "#here"])
def test_other_links_stay_as_they_are(link: str) -> None:
    assert shown(f"[x]({link})") == f"[x]({link})"
