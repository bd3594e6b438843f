"""The names that a configuration may use: a table of built-in ones, and the plugins of installed packages.

Entry points are read only if a configuration mentions a name that is not built in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from gate.errors import ConfigError, closest, some_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Mapping[str, str], Generic[T]):
    """Names and the objects behind them, imported on loading. As a mapping, it holds only the built-in names.

    A built-in name always wins: a plugin of the same name is ignored.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        builtin: Mapping[str, str],
        *,
        base: str = "",
        words: Sequence[str] = (),
    ) -> None:
        """Make a registry.

        Args:
            noun: the word for a registered object in errors: ``"metric"``.
            group: the group of entry points, ``"agent_gate.metrics"``.
            builtin: name → ``"module:attribute"``.
            base: the class, as ``"module:attribute"``, that a plugin must derive from or be an instance of; empty: any
                callable will do.
            words: allowed words that name no object, such as ``none``, for the hint.
        """
        self.noun = noun
        self.group = group
        self._builtin = dict(builtin)
        self._base = base
        self._own = frozenset({*builtin, *words})
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> str:
        return self._builtin[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builtin)

    def __len__(self) -> int:
        return len(self._builtin)

    def names(self) -> list[str]:
        """Return the built-in names, then the further ones that installed packages offer, without importing any."""
        return [*self, *sorted({entry.name for entry in self._entries()} - self._builtin.keys())]

    def is_known(self, name: str) -> bool:
        """True if the name is built in or offered by an installed package."""
        return name in self._builtin or name in self._loaded or bool(self._offers(name))

    def load(self, name: str, *, where: str = "") -> T:
        """Return the object behind a name.

        Args:
            name: the name, as written in the configuration.
            where: the place in the configuration, for errors.

        Raises:
            ConfigError: the name is unknown, two packages offer it, or the package that offers it cannot be imported.
        """
        if name not in self._loaded:
            built_in = self._builtin.get(name)
            if built_in is None:
                self._loaded[name] = self._plugin(name, where)
            else:
                found = _attribute(built_in)
                self._loaded[name] = found[name] if isinstance(found, Mapping) else found
        return cast(T, self._loaded[name])

    def unknown(self, name: str, *, where: str = "") -> ConfigError:
        """Return the error for an unknown name, with the nearest known one, and its package if it is a plugin."""
        offered = {entry.name: _package(entry) for entry in self._entries()}
        near = closest(name, {*self._own, *offered}, cutoff=0.5)
        if near is None:
            own = [f"{other} ({package})" for other, package in sorted(offered.items()) if other not in self._builtin]
            hint = "known: " + ", ".join([some_of(sorted(self._own)), *own])
        elif near in self._own:
            hint = f"did you mean {near!r}?"
        else:
            hint = f"did you mean {near!r}, of {offered[near]}?"
        return ConfigError(f"unknown {self.noun} {name!r}", where=where, hint=hint)

    def _plugin(self, name: str, where: str) -> Any:
        found = self._offers(name)
        if not found:
            raise self.unknown(name, where=where)
        packages = sorted({_package(entry) for entry in found})
        if len(found) > 1:
            hint = "uninstall one of them"
            raise ConfigError(f"{self.noun} {name!r} is offered by {' and '.join(packages)}", where=where, hint=hint)
        what = f"{self.noun} {name!r} of the package {packages[0]}"
        try:
            plugin = found[0].load()
        except (Exception, SystemExit) as error:  # a plugin's code may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise ConfigError(f"{what} cannot be imported: {said}", where=where) from error
        if not self._fits(plugin):
            wanted = f"not a {self._base.rpartition(':')[2]}" if self._base else "nothing that can be called"
            raise ConfigError(f"{what} is {wanted}", where=where, hint=f"see {found[0].value}")
        return plugin

    def _fits(self, plugin: Any) -> bool:
        if not self._base:
            return callable(plugin)
        base = _attribute(self._base)
        return isinstance(plugin, base) or (isinstance(plugin, type) and issubclass(plugin, base))

    def _offers(self, name: str) -> list[EntryPoint]:
        return [entry for entry in self._entries() if entry.name == name]

    def _entries(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # weight: needed only for a name that is not built in

        return list(entry_points(group=self.group))


def _attribute(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value
