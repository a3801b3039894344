"""The first of ours that runs in a sandbox: takes the runner's modules out of one file instead of one file each.

Owns that way of finding them. A call to a file costs a sandbox far more than a host, and each module takes eight. The
file holds code for one version of Python; any other finds none of that name and goes by the sources beside it. Must
never load what the kit did not bring.
"""

import marshal
import sys
from types import CodeType, ModuleType

PACKAGE = "runner"
FOLDER = __file__.rpartition("/")[0]
_Spec = type(sys.__spec__)
"""importlib.machinery's ModuleSpec, without the import of it."""


class Bundle:
    """Finder and loader of the package. `codes`: marshalled code by module, which is taken out once."""

    def __init__(self, codes: dict[str, bytes]) -> None:
        self._codes = codes

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        return _Spec(name, self, is_package=name == PACKAGE) if name in self._codes else None  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        code: CodeType = marshal.loads(self._codes.pop(module.__name__))
        exec(code, module.__dict__)


def bundle_name() -> str:
    """Of the file for this Python."""
    return f"{PACKAGE}.{sys.implementation.cache_tag}"


def take_bundle() -> None:
    try:
        with open(f"{FOLDER}/{bundle_name()}", "rb", 0) as file:
            sys.meta_path.insert(0, Bundle(marshal.loads(file.read())))  # type: ignore[arg-type]
    except FileNotFoundError:
        pass


def main() -> None:
    take_bundle()
    __import__(f"{PACKAGE}.runner", fromlist=["main"]).main()
