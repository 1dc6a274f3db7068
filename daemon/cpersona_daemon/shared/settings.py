"""Every CPERSONA_* setting once: name, kind, range, default and meaning, and where a value came from.

The table drives parsing, `config show`, per-request overrides and the documentation. A value is taken
from the first that has it: command-line option, environment, config file, default. A malformed value
falls back to the default with a warning; values that contradict each other refuse to start.

Only the standard library is imported here, and only its light parts: the client reads this module too.

Contract: settings.order, settings.values.
"""

import os

PLACE = "place"  # where things live; read before a daemon can be found
CLIENT = "client"  # read by the command line alone
DAEMON = "daemon"  # fixed when the daemon starts
RETRIEVAL = "retrieval"  # may travel with one request as an override

DEFAULT, CONFIG, ENVIRONMENT, OPTION = "default", "config", "environment", "option"
MASK = "***"
LARGEST_NUMBER = 10**15  # of a whole number: far beyond any use, and what is worked out from it still fits into 64 bits
_SHOWN = 80


class Setting:
    """One row of the table. ``kind`` is bool, int, float, text, path, address or choice; ranges are inclusive.

    ``secret`` marks a value that opens something to whoever reads it: all of a text, the user name, password and query
    of an address. Whatever shows a value, or sends or keeps it elsewhere, takes ``shown`` or ``open_part`` of it.
    """

    __slots__ = ("name", "kind", "default", "scope", "low", "high", "choices", "clamp", "secret", "meaning")

    def __init__(self, name, kind, default, scope, meaning, low=None, high=None, choices=(), clamp=False, secret=False):
        self.name, self.kind, self.default, self.scope, self.meaning = name, kind, default, scope, meaning
        self.low, self.high, self.choices, self.clamp, self.secret = low, high, choices, clamp, secret

    @property
    def variable(self):
        return "CPERSONA_" + self.name.upper()

    @property
    def range_text(self):
        """The values that are taken, in words a person can act on."""
        if self.kind == "bool":
            return "true or false"
        if self.choices:
            return " | ".join(self.choices)
        if self.kind in ("int", "float"):
            noun = "a whole number" if self.kind == "int" else "a number"
            if self.low is not None and self.high is not None:
                return f"{noun} from {self.low:g} to {self.high:g}"
            return noun if self.low is None else f"{noun}, at least {self.low:g}"
        return {"text": "text", "address": "an address"}.get(self.kind, "a path")

    def shown(self, value):
        """Return what may be shown of a value, and told to any peer: secrets are masked."""
        if not self.secret or not value:
            return value
        return masked_address(value) if self.kind == "address" else "(set)"

    def open_part(self, value):
        """Return a value without what is secret of it, None when nothing that could be used is left."""
        if not self.secret or not value:
            return value
        return address_without_secrets(value) if self.kind == "address" else None


def masked_address(address):
    """Return an address whose user name, password and query are masked.

    One that was not written as addresses are (a password with an unescaped /, ? or #) is masked more than less.
    """
    parts = _address_parts(address)
    if parts is None:
        return MASK  # what it is cannot be told, so it may be a key
    scheme, place, behind = parts
    if "@" in behind:
        return f"{scheme}://{MASK}"
    _, user, host = place.rpartition("@")
    return f"{scheme}://{MASK + user if user else ''}{host}{behind[0] + MASK if behind[1:] else ''}"


def address_without_secrets(address):
    """Return an address without user name, password, query and fragment; None when it cannot be told which part is which."""
    parts = _address_parts(address)
    if parts is None:
        return None
    scheme, place, behind = parts
    host, slash, path = place.partition("/")
    if "@" in behind or "@" in path:
        return None
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _address_parts(address):
    """Return (scheme, what stands before the query or fragment, these), or None for what is no address."""
    scheme, mark, rest = address.partition("://")
    cut = min((at for at in map(rest.find, "?#") if at >= 0), default=len(rest))
    return (scheme, rest[:cut], rest[cut:]) if mark else None


def _s(*args, **kw):
    return Setting(*args, **kw)


TABLE = (
    # Where things live
    _s("db_path", "path", "", PLACE, "the database file; empty means cpersona/cpersona.db in the XDG data directory"),
    _s("socket", "path", "", PLACE, "the daemon's socket; empty means a place that follows from the database"),
    # The command line
    _s("agent", "text", "default", CLIENT, "the agent whose memory a command means"),
    _s(
        "project",
        "text",
        None,
        CLIENT,
        "the project axis of a command; unset means no filter on reads and the global pool on writes",
    ),
    _s("channel", "text", "", CLIENT, "the channel axis of a command"),
    _s("token", "text", "", CLIENT, "the token that names this client to a daemon with an access file", secret=True),
    # The daemon's life
    _s(
        "idle_timeout",
        "float",
        3600.0,
        DAEMON,
        "seconds without work after which the daemon leaves; 0 means never",
        low=0,
    ),
    _s(
        "log_level",
        "choice",
        "info",
        DAEMON,
        "how much the log tells; memory content appears only at debug",
        choices=("debug", "info", "warning", "error"),
    ),
    _s(
        "acl_file",
        "path",
        "",
        DAEMON,
        "JSON file of clients and grants; empty means the socket's owner may do everything",
    ),
    _s(
        "export_dir", "path", "", DAEMON, "directory that export and import are confined to; empty means no confinement"
    ),
    _s("max_import_bytes", "int", 0, DAEMON, "largest file that import reads; 0 means no limit", low=0),
    # Embedding
    _s(
        "embedding_mode",
        "choice",
        "builtin",
        DAEMON,
        "who turns text into vectors",
        choices=("builtin", "http", "none"),
    ),
    _s("embedding_url", "address", "", DAEMON, "address of the http embedding service", secret=True),
    _s("embedding_timeout_secs", "float", 30.0, DAEMON, "seconds that the http embedding service may take", low=0.1),
    # Writing
    _s(
        "max_content_length",
        "int",
        16_000,
        DAEMON,
        "characters that a memory keeps; the rest is cut and said to be",
        low=1,
    ),
    _s(
        "max_metadata_length",
        "int",
        8_000,
        DAEMON,
        "characters of serialised source or metadata that a store may carry",
        low=1,
    ),
    _s("max_profile_length", "int", 2_000, DAEMON, "characters that a profile keeps", low=1),
    _s(
        "future_timestamp_mode",
        "choice",
        "warn",
        DAEMON,
        "what happens to a timestamp more than 300 s ahead of the clock",
        choices=("warn", "reject", "off"),
    ),
    # Retrieval
    _s(
        "recall_mode",
        "choice",
        "blend",
        RETRIEVAL,
        "how what the channels find is scored; rrf, rsf and cascade are those of the memory protocol",
        choices=("blend", "rrf", "rsf", "cascade"),
    ),
    _s("recall_library_max_limit", "int", 10_000, RETRIEVAL, "largest limit that the library accepts", low=1),
    _s("recall_depth_floor", "int", 0, RETRIEVAL, "least number of rows that each channel hands to the fusion", low=0),
    _s(
        "max_memories",
        "int",
        10_000,
        RETRIEVAL,
        "the vector scan window: the newest rows that vector search considers",
        low=1,
    ),
    _s("vector_reach", "int", 0, RETRIEVAL, "rows beyond the window, up to this position, form the far list", low=0),
    _s(
        "vector_far_limit",
        "int",
        0,
        RETRIEVAL,
        "rows of the far list that may vote; 0 means as many as the near list",
        low=0,
    ),
    _s("vector_min_similarity", "float", 0.3, RETRIEVAL, "similarity threshold of the vector channel", low=-1, high=1),
    _s("vector_search_mode", "choice", "local", RETRIEVAL, "where vectors are searched", choices=("local",)),
    _s(
        "rrf_threshold_factor",
        "float",
        0.5,
        RETRIEVAL,
        "share of the threshold that is the vector floor under rrf and rsf",
        low=0,
    ),
    _s("rrf_k", "int", 60, RETRIEVAL, "the constant of reciprocal rank fusion", low=1),
    _s(
        "fts_enabled",
        "bool",
        True,
        RETRIEVAL,
        "whether the full-text index is asked; false leaves the substring search alone",
    ),
    _s("fused_gate_enabled", "bool", True, RETRIEVAL, "whether a calibrated gate replaces the heuristic minimum"),
    _s("autocut_enabled", "bool", True, RETRIEVAL, "whether a similarity-ordered list is cut at its largest gap"),
    _s("autocut_min_results", "int", 3, RETRIEVAL, "rows that a list must have before autocut looks at it", low=1),
    _s("autocut_min_gap_ratio", "float", 0.15, RETRIEVAL, "least gap that cuts, as a share of the first score", low=0),
    _s("prior_far_weight", "float", 1.0, RETRIEVAL, "weight of a vote from the far list", low=0, high=1, clamp=True),
    _s("prior_age_rate", "float", 0.0, RETRIEVAL, "rate of the age weight per hour; 0 means off", low=0),
    _s("prior_age_floor", "float", 0.3, RETRIEVAL, "least value of the age weight", low=0, high=1),
    _s("prior_age_anchor", "choice", "newest", RETRIEVAL, "what age is measured from", choices=("newest", "now")),
    _s(
        "version_order",
        "bool",
        False,
        RETRIEVAL,
        "whether of two memories that say nearly the same the newer goes first for a question about now and the older for one about the past",
    ),
    _s("confidence_enabled", "bool", False, RETRIEVAL, "whether each row carries a confidence value"),
    _s(
        "confidence_ordering",
        "choice",
        "fusion",
        RETRIEVAL,
        "legacy lets confidence order and gate",
        choices=("fusion", "legacy"),
    ),
    _s(
        "decay_rate",
        "float",
        0.005,
        RETRIEVAL,
        "confidence: time decay per hour, before it is scaled by the store's span",
        low=0,
    ),
    _s("decay_floor", "float", 0.3, RETRIEVAL, "confidence: least value of the time decay", low=0, high=1),
    _s("decay_ceil", "float", 0.5, RETRIEVAL, "confidence: largest floor that recalls can earn", low=0, high=1),
    _s("min_time_range_hours", "float", 24.0, RETRIEVAL, "confidence: least time span of a store, in hours", low=0),
    _s(
        "reference_hours",
        "float",
        168.0,
        RETRIEVAL,
        "confidence: the time span for which the decay rate is meant, in hours",
        low=0.001,
    ),
    _s("recall_boost", "float", 0.02, RETRIEVAL, "confidence: what a recall adds to the decay floor", low=0),
    _s("boost_decay_rate", "float", 0.002, RETRIEVAL, "confidence: how fast that addition fades, per hour", low=0),
    _s("resolved_decay_factor", "float", 0.3, RETRIEVAL, "confidence: factor of a resolved episode", low=0, high=1),
    _s(
        "recent_recall_penalty",
        "float",
        0.7,
        RETRIEVAL,
        "confidence: factor of a row recalled a moment ago",
        low=0,
        high=1,
    ),
    _s("recent_recall_window_min", "float", 5.0, RETRIEVAL, "confidence: how long a moment ago is, in minutes", low=0),
    _s("cosine_floor", "float", 0.20, RETRIEVAL, "confidence: cosine that counts as no similarity", low=-1, high=1),
    _s("cosine_ceil", "float", 0.75, RETRIEVAL, "confidence: cosine that counts as full similarity", low=-1, high=1),
    _s(
        "episode_penalty_enabled",
        "bool",
        False,
        RETRIEVAL,
        "whether memories before the latest episode are weighed down",
    ),
    _s("episode_decay_rate", "float", 0.01, RETRIEVAL, "episode penalty per hour before the boundary", low=0),
    _s("episode_decay_floor", "float", 0.5, RETRIEVAL, "least factor of the episode penalty", low=0, high=1),
    _s("recall_preview_chars", "int", 500, RETRIEVAL, "code points of a row that recall shows; 0 means all", low=0),
    _s("degraded_advisory", "bool", True, RETRIEVAL, "whether an answer says that vector search was missing"),
    # Calibration
    _s(
        "calibrate_on_model_change",
        "bool",
        True,
        DAEMON,
        "whether a start with another model, dimension or scoring recalibrates",
    ),
    _s(
        "calibrate_floor", "float", 0.05, DAEMON, "least similarity threshold that a calibration may set", low=0, high=1
    ),
    _s(
        "calibrate_temporal_window_min",
        "float",
        30.0,
        DAEMON,
        "minutes within which two memories count as related",
        low=0,
    ),
    _s(
        "fused_gate_sample_queries",
        "int",
        40,
        DAEMON,
        "memories used as queries when a gate is measured",
        low=1,
        high=1000,
    ),
    _s("fused_gate_calibration_draws", "int", 5, DAEMON, "draws whose median is the gate", low=1, high=99),
    # Reconstruct
    _s(
        "reconstruct_default_count",
        "int",
        10,
        RETRIEVAL,
        "items that a reconstruct returns when none are asked for",
        low=0,
    ),
    _s("reconstruct_max_count", "int", 10, RETRIEVAL, "most items that a reconstruct returns", low=1),
    _s(
        "reconstruct_forced_count",
        "int",
        0,
        RETRIEVAL,
        "items that every reconstruct returns whatever is asked; 0 means none is forced",
        low=0,
    ),
    _s(
        "reconstruct_adjacency_seconds",
        "float",
        60.0,
        RETRIEVAL,
        "seconds within which memories of one source belong together",
        low=0,
    ),
    _s("reconstruct_quote_chars", "int", 800, RETRIEVAL, "characters up to which a head is quoted whole", low=1),
    _s("reconstruct_full_quotes", "int", 5, RETRIEVAL, "items whose head may be quoted up to that length", low=0),
    _s("reconstruct_tail_quote_chars", "int", 400, RETRIEVAL, "characters of a head after those", low=1),
)
_CONFIG_BYTES = 1 << 20  # no settings need more

BY_NAME = {s.name: s for s in TABLE}
SCOPED = {scope: tuple(s.name for s in TABLE if s.scope == scope) for scope in (PLACE, CLIENT, DAEMON, RETRIEVAL)}

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class BadValue(ValueError):
    """A value outside the setting's range; the message says what is taken instead."""


def parse(setting, raw):
    """Return the value that ``raw`` (text, or a value from a config file or request) stands for.

    Values are trimmed and case-folded, empty means the default. Raises BadValue.
    """
    if isinstance(raw, bool):
        text = "true" if raw else "false"
    elif isinstance(raw, (int, float, str)):
        text = str(raw).strip()
    else:
        raise BadValue(f"{setting.variable} takes {setting.range_text}, not {type(raw).__name__}")
    if text == "":
        # An empty project is a value of its own: the global pool.
        return "" if setting.name == "project" else setting.default
    shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
    bad = BadValue(f"{setting.variable}={shown} is not {setting.range_text}")
    if setting.kind in ("text", "path", "address"):
        return text
    folded = text.lower()
    if setting.kind == "bool":
        if folded not in _TRUE + _FALSE:
            raise bad
        return folded in _TRUE
    if setting.kind == "choice":
        if folded not in setting.choices:
            raise bad
        return folded
    try:
        value = int(folded) if setting.kind == "int" else float(folded)
    except ValueError:
        raise bad from None
    if value != value or value in (float("inf"), float("-inf")):
        raise bad
    if setting.kind == "int" and value > LARGEST_NUMBER:
        raise BadValue(f"{setting.variable}={shown} is above {LARGEST_NUMBER}, the largest number that is taken")
    if setting.clamp:
        return min(max(value, setting.low), setting.high)
    if (setting.low is not None and value < setting.low) or (setting.high is not None and value > setting.high):
        raise bad
    return value


class Settings:
    """The effective settings, read as attributes; immutable. ``origin(name)`` says where one came from."""

    __slots__ = ("_values", "_origins", "warnings")

    def __init__(self, values, origins, warnings=()):
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_origins", origins)
        object.__setattr__(self, "warnings", tuple(warnings))

    def __getattr__(self, name):
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        raise AttributeError("settings are immutable; use with_overrides()")

    def origin(self, name):
        return self._origins.get(name, DEFAULT)

    def is_set(self, name):
        """Tell whether a person set this value; a set number wins over a measured or declared one."""
        return self.origin(name) != DEFAULT

    def carried(self, scope):
        """Return the set values of one scope as a plain map."""
        return {n: self._values[n] for n in SCOPED[scope] if self.is_set(n)}

    def with_overrides(self, overrides):
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
        changed = Settings(values, origins, self.warnings)
        problems = changed.conflicts()
        if problems:
            raise BadValue(problems[0])
        return changed

    def conflicts(self):
        """Return what contradicts itself in these values, a sentence each; the daemon refuses to start on any."""
        out = []
        if self.embedding_mode == "http" and not self.embedding_url:
            out.append("CPERSONA_EMBEDDING_MODE=http needs CPERSONA_EMBEDDING_URL")
        for name in ("reconstruct_default_count", "reconstruct_forced_count"):
            if self._values[name] > self.reconstruct_max_count:
                out.append(
                    f"{BY_NAME[name].variable}={self._values[name]} is above CPERSONA_RECONSTRUCT_MAX_COUNT={self.reconstruct_max_count}"
                )
        if self.cosine_floor >= self.cosine_ceil:
            out.append(
                f"CPERSONA_COSINE_FLOOR={self.cosine_floor:g} is not below CPERSONA_COSINE_CEIL={self.cosine_ceil:g}"
            )
        if self.decay_floor > self.decay_ceil:
            out.append(f"CPERSONA_DECAY_FLOOR={self.decay_floor:g} is above CPERSONA_DECAY_CEIL={self.decay_ceil:g}")
        return out

    def digest(self):
        """Return a short digest of everything that is not at its default, places aside.

        It goes to any peer, who could try guesses against it: of secrets it holds what may be shown of them.
        """
        import zlib

        parts = [
            f"{s.name}={s.shown(self._values[s.name])}"
            for s in TABLE
            if s.scope in (DAEMON, RETRIEVAL) and self._values[s.name] != s.default
        ]
        return f"{zlib.crc32(chr(10).join(parts).encode()):08x}"


def load(environ=None, options=None):
    """Read the effective settings from options, environment and config file; never raises.

    A malformed value keeps the default and leaves a warning in ``Settings.warnings``.
    """
    environ = os.environ if environ is None else environ
    values = {s.name: s.default for s in TABLE}
    origins, warnings = {}, []
    layers = [
        (CONFIG, _config_file(environ, warnings)),
        (ENVIRONMENT, {s.name: environ[s.variable] for s in TABLE if s.variable in environ}),
        (OPTION, options or {}),
    ]
    for origin, layer in layers:
        for name, raw in layer.items():
            setting = BY_NAME.get(name)
            if setting is None:
                warnings.append(
                    f"the config file names {name!r}, which is no setting; `cpersona config show` lists them"
                )
                continue
            if isinstance(raw, str) and not raw.strip() and setting.name != "project":
                continue
            try:
                values[name], origins[name] = parse(setting, raw), origin
            except BadValue as error:
                warnings.append(f"{error}; using {values[name]!r}")
    return Settings(values, origins, warnings)


def config_path(environ=None):
    """Return where the config file is looked for, whether or not it is there."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "cpersona", "config.toml")


def _config_file(environ, warnings):
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
