"""Registries: rankers, measures, formats, contenders, export targets and experiments by name.

Those of this library are listed by their location, and imported when they are used. Other packages add theirs by entry points of the
registry's group, e.g. in their pyproject.toml:

    [project.entry-points."exactrank.rankers"]
    my-ranker = "my_package.my_module:MyRanker"

No other package can replace a name of this library. If two packages claim a name, the first in alphabetical order gets it; a
`PluginWarning` names both. Listing names imports nothing. An entry point that cannot be imported is an error when it is used; the error
names the package.
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
    """Values by name: those of this library, and those of other packages by the ``group`` of entry points, if there is one.

    ``what`` is the word for a value in messages. In ``builtin`` a text is the location of a value, as ``package.module:name``. ``fits``
    tells whether the object of an entry point is such a value. Names with the same ``key`` are the same name.
    """

    def __init__(
        self,
        what: str,
        builtin: MutableMapping[str, T | str],
        group: str = "",
        fits: Callable[[object], bool] = bool,
        error: type[ExactRankError] = DataError,
        key: Callable[[str], str] = str,
    ) -> None:
        self.what, self.builtin, self.group, self.fits, self.error, self.key = what, builtin, group, fits, error, key

    def __iter__(self) -> Iterator[str]:
        return iter([*self.builtin, *(point.name for point in self._points().values())])

    def __len__(self) -> int:
        return len(self.builtin) + len(self._points())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self.key(name) in self.builtin or self.key(name) in self._points())

    def __getitem__(self, name: str) -> T:
        key = self.key(name)
        if key not in self.builtin:
            points = self._points()
            if key not in points:
                raise self.unknown(name, self)
            point = points[key]
            remedy = f"fix or uninstall the package {_package(point)}"
            plugin = load_entry_point(point, remedy)
            if key not in self.builtin:  # importing the plugin may have added it
                if not self.fits(plugin):
                    raise self.error(f"{point.name}: {point.value} is no {self.what}; {remedy}")
                return plugin  # type: ignore[no-any-return]
        value = self.builtin[key]
        if not isinstance(value, str):
            return value
        module, _, attribute = value.partition(":")
        return getattr(import_module(module), attribute)  # type: ignore[no-any-return]

    def unknown(self, name: str, choices: Iterable[str], ending: str = "") -> ExactRankError:
        """Return the error for a ``name`` that is not one of the ``choices``; its message lists them, with an ``ending``."""
        names = list(choices)
        return self.error(f"there is no {self.what} {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}{ending}")

    def _points(self) -> "dict[str, EntryPoint]":
        """Return the entry points of other packages, by the keys of their names."""
        from importlib.metadata import entry_points

        points: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self.group), key=_package) if self.group else ():
            key = self.key(point.name)
            if key in self.builtin:
                if getattr(self.builtin[key], "__module__", None) != point.module:  # otherwise it is the same object, imported before
                    self._warn(point, "exactrank")
            elif points.setdefault(key, point) is not point:
                self._warn(point, f"the package {_package(points[key])}")
        return points

    def _warn(self, point: "EntryPoint", owner: str) -> None:
        text = f"the package {_package(point)} adds a {self.what} {point.name!r}, but {owner} already has that name; it is ignored"
        warnings.warn(text, PluginWarning, stacklevel=4)


def lazy_getattr(package: str, modules: Mapping[str, str]) -> Callable[[str], type]:
    """Return the ``__getattr__`` of a package that imports classes when they are first used; ``modules`` are by name of class."""

    def import_class(name: str) -> type:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)  # type: ignore[no-any-return]

    return import_class


def load_entry_point(point: "EntryPoint", remedy: str) -> Any:
    """Return the object of an entry point. Importing it may raise any error, which is reported with the ``remedy``."""
    from exactrank._support.text import reason_of

    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise DataError(f"{point.name}: cannot import {point.value} ({reason_of(error)}); {remedy}") from None


def _package(point: "EntryPoint") -> str:
    return "" if point.dist is None else point.dist.name
