"""The CEL environment of expressions over devices: libraries, functions and the variable `device`."""

from typing import Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from plugins.dynamic_resources.cel.lists import LIST_FUNCTIONS
from plugins.dynamic_resources.cel.network import NETWORK_FUNCTIONS
from plugins.dynamic_resources.cel.urls import URL_FUNCTIONS
from plugins.dynamic_resources.cel.values import VALUE_FUNCTIONS

_LIBRARIES: Final = ("bindings", "lists", "optional", "sets", "two-var-comprehensions")

ENVIRONMENT: Final = cel.NewEnv(
    config=cel.NewEnvConfigFromYaml("name: device\nextensions:\n" + "".join(f"- name: {n}\n" for n in _LIBRARIES)),
    variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
    extensions=[ext_strings.ExtStrings()],
    functions=[*VALUE_FUNCTIONS, *NETWORK_FUNCTIONS, *URL_FUNCTIONS, *LIST_FUNCTIONS],
)
