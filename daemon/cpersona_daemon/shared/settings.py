"""The effective settings: which value is in force, and where it came from.

A value is taken from the first that has it: command-line option, environment, config file, default. A malformed value
falls back to the default with a warning; values that contradict each other refuse to start. The settings themselves
stand in ``settings_table``.

Only the light parts of the standard library are imported here: the client reads this module too.

Contract: settings.order, settings.values.
"""

import os

from .settings_table import BY_MODE, BY_NAME, DAEMON, RETRIEVAL, SCOPED, TABLE, Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

DEFAULT, CONFIG, ENVIRONMENT, OPTION = "default", "config", "environment", "option"
LARGEST_NUMBER = 10**15  # of a whole number: far beyond any use, and what is worked out from it still fits into 64 bits
INSTEAD = "; using "  # in a warning, between what is wrong with a value and what is taken in its place
_SHOWN = 80
_EXPECTED = tuple(s for s in TABLE if s.expected)
_CONFIG_BYTES = 1 << 20  # no settings need more

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class BadValue(ValueError):
    """A value outside the setting's range; the message says what is taken instead."""


def parse(setting: Setting, raw: "Any") -> "Any":
    """Return the value that ``raw`` (text, or a value from a config file or request) stands for.

    Values are trimmed, but for verbatim ones, and case-folded; empty means the default. Raises BadValue.
    """
    if isinstance(raw, bool):
        text = "true" if raw else "false"
    elif isinstance(raw, (int, float, str)):
        text = str(raw)
        text = text if setting.kind == "verbatim" else text.strip()
    else:
        raise BadValue(f"{setting.variable} takes {setting.range_text}, not {type(raw).__name__}")
    if text == "":
        # An empty project is a value of its own: the global pool.
        return "" if setting.name == "project" else setting.default
    try:
        return _PARSERS[setting.kind](setting, text)
    except ValueError as error:
        shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
        raise BadValue(f"{setting.variable}={shown} is {str(error) or 'not ' + setting.range_text}") from None


# Each takes a setting and a trimmed text that is not empty. Raises ValueError, which says what the value is; '' where
# it is no more than out of the setting's range.


def _text(setting: Setting, text: str) -> str:
    return text


def _bool(setting: Setting, text: str) -> bool:
    folded = text.lower()
    if folded not in _TRUE + _FALSE:
        raise ValueError
    return folded in _TRUE


def _choice(setting: Setting, text: str) -> str:
    folded = text.lower()
    if folded not in setting.choices and not setting.expected:
        raise ValueError
    return folded


def _whole(setting: Setting, text: str) -> float:
    try:
        value = int(text.lower())
    except ValueError:
        raise ValueError from None
    if value > LARGEST_NUMBER:
        raise ValueError(f"above {LARGEST_NUMBER}, the largest number that is taken")
    return _within(setting, value)


def _real(setting: Setting, text: str) -> float:
    try:
        value = float(text.lower())
    except ValueError:
        raise ValueError from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError
    return _within(setting, value)


def _within(setting: Setting, value: float) -> float:
    """Return a number within the setting's range, brought into it where the setting says so."""
    low, high = setting.low, setting.high
    inside = value if low is None else max(value, low)
    inside = inside if high is None else min(inside, high)
    if inside != value and not setting.clamp:
        raise ValueError
    return inside


_PARSERS: "dict[str, Callable[[Setting, str], Any]]" = {
    "text": _text,
    "verbatim": _text,
    "path": _text,
    "address": _text,
    "bool": _bool,
    "choice": _choice,
    "int": _whole,
    "float": _real,
}


class Settings:
    """The effective settings, read as attributes; immutable. ``origin(name)`` says where one came from.

    What nobody set follows the recall mode where its row has a default by mode.

    An attribute is a row's name and has the type of its kind: bool, int, float, or str for every other kind.
    """

    __slots__ = ("_values", "_origins", "warnings")

    _values: "dict[str, Any]"
    _origins: dict[str, str]
    warnings: tuple[str, ...]

    def __init__(self, values: "dict[str, Any]", origins: dict[str, str], warnings: "Iterable[str]" = ()) -> None:
        unset = {s.name: s.default_in(values["recall_mode"]) for s in BY_MODE if s.name not in origins}
        object.__setattr__(self, "_values", values | unset)
        object.__setattr__(self, "_origins", origins)
        object.__setattr__(self, "warnings", tuple(warnings))

    def __getattr__(self, name: str) -> "Any":
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("settings are immutable; use with_overrides()")

    def origin(self, name: str) -> str:
        return self._origins.get(name, DEFAULT)

    def is_set(self, name: str) -> bool:
        """Tell whether a person set this value; a set number wins over a measured or declared one."""
        return self.origin(name) != DEFAULT

    def carried(self, scope: str) -> "dict[str, Any]":
        """Return the set values of one scope as a plain map."""
        return {n: self._values[n] for n in SCOPED[scope] if self.is_set(n)}

    def with_overrides(self, overrides: "Mapping[str, Any] | None") -> "Settings":
        """Return these settings with some retrieval values replaced for one request.

        Raises BadValue for an unknown, malformed or non-retrieval name.
        """
        if not overrides:
            return self
        values, origins = dict(self._values), dict(self._origins)
        for name, raw in overrides.items():
            setting = BY_NAME.get(name)
            if setting is None:
                raise BadValue(f"there is no setting {name!r}; `cpersona config show` lists them")
            if setting.scope != RETRIEVAL:
                raise BadValue(
                    f"{setting.variable} cannot change for one request; set it and run `cpersona daemon restart`"
                )
            values[name], origins[name] = parse(setting, raw), OPTION
            if setting.by_mode and not str(raw).strip():
                del origins[name]
        changed = Settings(values, origins, self.warnings)
        problems = changed.conflicts()
        if problems:
            raise BadValue(problems[0])
        return changed

    def conflicts(self) -> list[str]:
        """Return what contradicts itself in these values, a sentence each; the daemon refuses to start on any."""
        out = [
            f"{s.variable}={self._values[s.name]}: {s.expected} ({s.range_text})"
            for s in _EXPECTED
            if self._values[s.name] not in s.choices
        ]
        if self.socket_group and not self.acl_file:
            out.append("CPERSONA_SOCKET_GROUP needs CPERSONA_ACL_FILE: without it nobody but the owner may ask")
        out += self._conflicts_of_services() + self._conflicts_of_vectors()
        for name in ("reconstruct_default_count", "reconstruct_forced_count"):
            if self._values[name] > self.reconstruct_max_count:
                most = self.reconstruct_max_count
                out.append(
                    f"{BY_NAME[name].variable}={self._values[name]} is above CPERSONA_RECONSTRUCT_MAX_COUNT={most}"
                )
        if self.cosine_floor >= self.cosine_ceil:
            out.append(
                f"CPERSONA_COSINE_FLOOR={self.cosine_floor:g} is not below CPERSONA_COSINE_CEIL={self.cosine_ceil:g}"
            )
        if self.decay_floor > self.decay_ceil:
            out.append(f"CPERSONA_DECAY_FLOOR={self.decay_floor:g} is above CPERSONA_DECAY_CEIL={self.decay_ceil:g}")
        return out

    def _conflicts_of_services(self) -> list[str]:
        out = []
        if self.embedding_mode == "http" and not self.embedding_url:
            out.append("CPERSONA_EMBEDDING_MODE=http needs CPERSONA_EMBEDDING_URL")
        elif self.embedding_mode == "http" and not self.embedding_model:
            from .addresses import speaks_openai  # few have such a service

            if speaks_openai(self.embedding_api, self.embedding_url):
                out.append(
                    "an embedding service that is asked as OpenAI's is needs CPERSONA_EMBEDDING_MODEL; one of the other"
                    " shape at such an address needs CPERSONA_EMBEDDING_API=native"
                )
        for name in ("embedding_api_key", "rerank_api_key"):
            if self._values[name] and self._values[name + "_file"]:
                variable = BY_NAME[name].variable
                out.append(f"{variable} and {variable}_FILE are both set; remove one of them")
        return out

    def _conflicts_of_vectors(self) -> list[str]:
        if self.vector_search_mode != "remote" or (self.embedding_mode == "http" and not self.embedding_url):
            return []
        path = self.embedding_url.partition("?")[0].partition("#")[0]
        if self.embedding_mode == "http" and path.endswith("/embed"):
            return []
        return [
            (
                "CPERSONA_VECTOR_SEARCH_MODE=remote asks the embedding service: it needs CPERSONA_EMBEDDING_MODE=http"
                " and a CPERSONA_EMBEDDING_URL whose path ends in /embed"
            )
        ]

    def digest(self) -> str:
        """Return a short digest of everything that is not at its default, places aside.

        It goes to any peer, who could try guesses against it: of secrets it holds what may be shown of them.
        """
        parts = [
            f"{s.name}={s.shown(self._values[s.name])}"
            for s in TABLE
            if s.scope in (DAEMON, RETRIEVAL)
            and (
                # One that is set holds in a mode that a single request asks for, too.
                self.is_set(s.name) if s.by_mode else self._values[s.name] != s.default
            )
        ]
        return f"{_crc32(chr(10).join(parts).encode()):08x}"


def _crc32(data: bytes) -> int:
    """Return what zlib.crc32 returns. Few settings differ from their defaults, and zlib takes longer to load."""
    if len(data) > 1_000:
        import zlib

        return zlib.crc32(data)
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0xEDB88320 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def load(
    environ: "Mapping[str, str] | None" = None,
    options: "Mapping[str, Any] | None" = None,
    config: "Mapping[str, Any] | None" = None,
) -> Settings:
    """Read the effective settings from options, environment and config file; never raises.

    A malformed value keeps the default and leaves a warning in ``Settings.warnings``. ``config`` stands for what the
    config file would say.
    """
    environ = os.environ if environ is None else environ
    values = {s.name: s.default for s in TABLE}
    origins: dict[str, str] = {}
    warnings: list[str] = []
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (CONFIG, _config_file(environ, warnings) if config is None else config),
        (ENVIRONMENT, {s.name: environ[s.variable] for s in TABLE if s.variable in environ}),
        (OPTION, options or {}),
    ]
    for origin, layer in layers:
        _lay(layer, origin, values, origins, warnings)
    return Settings(values, origins, warnings)


def _lay(
    layer: "Mapping[str, Any]", origin: str, values: "dict[str, Any]", origins: dict[str, str], warnings: list[str]
) -> None:
    """Put the values of one origin over those that are there, and note what is wrong with them."""
    for name, raw in layer.items():
        setting = BY_NAME.get(name)
        if setting is None:
            warnings.append(f"the config file names {name!r}, which is no setting; `cpersona config show` lists them")
            continue
        if isinstance(raw, str) and not raw.strip() and setting.name != "project":
            continue
        try:
            values[name], origins[name] = parse(setting, raw), origin
        except BadValue as error:
            warnings.append(f"{error}{INSTEAD}{values[name]!r}")


def config_path(environ: "Mapping[str, str] | None" = None) -> str:
    """Return where the config file is looked for, whether or not it is there."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "cpersona", "config.toml")


def _config_file(environ: "Mapping[str, str]", warnings: list[str]) -> "dict[str, Any]":
    """Return what the config file sets, and leave in ``warnings`` why it, or nothing, could be read."""
    path = config_path(environ)
    if not os.path.lexists(path):
        return {}
    from . import files

    try:
        raw = files.read(path, _CONFIG_BYTES, follow=True)
    except FileNotFoundError:
        return {}
    except OSError as error:
        warnings.append(f"{path} cannot be read ({error.strerror}); its settings are left out")
        return {}
    import tomllib

    try:
        return {str(k).lower(): v for k, v in tomllib.loads(raw.decode("utf-8")).items()}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        warnings.append(f"{path} is not valid TOML ({error}); its settings are left out")
        return {}
