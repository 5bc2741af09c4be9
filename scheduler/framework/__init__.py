"""All that a plugin author imports: `from scheduler import framework as fw`. The names are those in `exported`.

They are loaded when the first one is used, since numpy and the structs of all objects come with them: a command that
only asks a running scheduler needs `scheduler.framework.errors` alone, and ends before the rest would be loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler.framework.exported import *  # noqa: F403
else:

    def _exported() -> dict[str, Any]:
        found = vars(import_module(f"{__name__}.exported"))
        return {name: value for name, value in found.items() if not name.startswith("_")}

    def __getattr__(name: str) -> Any:
        """Find the names that are not there yet, and put all of them here."""
        if name == "__all__":
            return sorted(_exported())
        if not name.startswith("_"):
            exported = _exported()
            globals().update(exported)
            if name in exported:
                return exported[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_exported()})
