"""What the site needs so that the pages are the same files as on GitHub: README as its home, links out of docs."""

import os
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

DOCS: Final = Path(__file__).parents[1]
ROOT: Final = DOCS.parent
VERSION: Final = os.environ.get("MIKE_DOCS_VERSION", "")
"""Of the pages; empty, unless mike builds them as those of a release."""
REVISION: Final = f"v{VERSION}" if VERSION else "main"
LINK: Final = re.compile(r"(\]\()([^()\s#]+)((?:#[^()\s]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    """Add README.md as the home."""
    text = re.sub(r"\]\(docs/", "](", (ROOT / "README.md").read_text(encoding="utf-8"))
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Let links to what is not in docs, and to folders, lead to the repository in the pages' version."""
    folder = (DOCS / page.file.src_uri).parent

    def target(found: re.Match[str]) -> str:
        link = found[2]
        if ":" in link:
            return found[0]
        path = ((ROOT if page.file.src_uri == "index.md" and not (DOCS / link).exists() else folder) / link).resolve()
        if path.is_relative_to(DOCS) and not path.is_dir():
            return found[0]
        return f"{found[1]}{config.repo_url.rstrip('/')}/blob/{REVISION}/{path.relative_to(ROOT)}{found[3]}"

    return LINK.sub(target, markdown)
