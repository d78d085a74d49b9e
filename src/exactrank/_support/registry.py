"""Things known by name: rankers, measures, formats, contenders, export targets and experiments, each in one registry.

Ours are listed by where they are, and imported when they are asked for. Other packages add theirs by entry points of the registry's
group, e.g. in their pyproject.toml:

    [project.entry-points."exactrank.rankers"]
    my-ranker = "my_package.my_module:MyRanker"

Another package never replaces a name of ours, and if two packages claim a name, the first in alphabetical order gets it; a `PluginWarning`
names both. Listing names imports nothing. What cannot be imported is an error when it is asked for, which names the package.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from exactrank._support.text import did_you_mean
from exactrank.errors import DataError, ExactRankError, PluginWarning

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Values by name: ``what`` they are called, our ``own``, and those of the ``group`` of entry points, if there is one.

    In ``own`` a text says where a value is, as ``package.module:name``. ``fits`` asks whether what an entry point names is one of these.
    Names with the same ``key`` are the same.
    """

    def __init__(
        self,
        what: str,
        own: MutableMapping[str, T | str],
        group: str = "",
        fits: Callable[[Any], bool] = bool,
        error: type[ExactRankError] = DataError,
        key: Callable[[str], str] = str,
    ) -> None:
        self.what, self.own, self.group, self.fits, self.error, self.key = what, own, group, fits, error, key

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *(point.name for point in self._points().values())])

    def __len__(self) -> int:
        return len(self.own) + len(self._points())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.key(name) in self.own or self.key(name) in self._points())

    def __getitem__(self, name: str) -> T:
        key = self.key(name)
        if key not in self.own:
            points = self._points()
            if key not in points:
                raise self.unknown(name, self)
            point = points[key]
            remedy = f"fix or uninstall the package {_package(point)}"
            theirs = load_entry_point(point, remedy)
            if key not in self.own:  # which importing it may have added
                if not self.fits(theirs):
                    raise self.error(f"{point.name}: {point.value} is no {self.what}; {remedy}")
                return theirs  # type: ignore[no-any-return]
        found = self.own[key]
        if not isinstance(found, str):
            return found
        module, _, attribute = found.partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]

    def unknown(self, name: str, known: Iterable[str], more: str = "") -> ExactRankError:
        """What to raise where ``name`` is none of those that are ``known``."""
        names = list(known)
        return self.error(f"there is no {self.what} {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}{more}")

    def _points(self) -> "dict[str, EntryPoint]":
        """The entry points of other packages, by the keys of their names."""
        from importlib.metadata import entry_points

        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self.group), key=_package) if self.group else ():
            key = self.key(point.name)
            if key in self.own:
                if getattr(self.own[key], "__module__", None) != point.module:  # else it is the same, and was imported before
                    self._warn(point, "exactrank")
            elif found.setdefault(key, point) is not point:
                self._warn(point, f"the package {_package(found[key])}")
        return found

    def _warn(self, point: "EntryPoint", owner: str) -> None:
        told = f"the package {_package(point)} adds a {self.what} {point.name!r}, but {owner} already has that name; it is ignored"
        warnings.warn(told, PluginWarning, stacklevel=4)


def lazy_getattr(package: str, modules: Mapping[str, str]) -> Callable[[str], type]:
    """The ``__getattr__`` of a package whose classes are imported when first used, each from the module named beside it."""

    def found(name: str) -> type:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)  # type: ignore[no-any-return]

    return found


def load_entry_point(point: "EntryPoint", remedy: str) -> Any:
    """What ``point`` names; importing a module of others may raise anything, which is reported with the ``remedy``."""
    from exactrank._support.text import reason_of

    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise DataError(f"{point.name}: cannot import {point.value} ({reason_of(error)}); {remedy}") from None


def _package(point: "EntryPoint") -> str:
    return "" if point.dist is None else point.dist.name
