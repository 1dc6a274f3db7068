"""Every CPERSONA_* setting once: name, kind, range, default and meaning.

The table drives parsing, `config show`, per-request overrides and the documentation. Nothing is imported here: the
client reads this module too.

Contract: settings.order, settings.values.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Value = bool | int | float | str | None

PLACE = "place"  # where things live; read before a daemon can be found
CLIENT = "client"  # read by the command line alone
DAEMON = "daemon"  # fixed when the daemon starts
RETRIEVAL = "retrieval"  # may travel with one request as an override


class Setting:
    """One row of the table. ``kind`` is bool, int, float, text, verbatim (a text whose blanks count), path, address or
    choice; ranges are inclusive.

    ``expected`` is for a choice of which more are to come: why there is no other yet. Such a value keeps a daemon from
    starting, where any other malformed one gives way to the default.

    ``by_mode`` holds the default of each recall mode that has one of its own: ``default`` is that of the others.

    ``secret`` marks a value that opens something to whoever reads it: all of a text, the user name, password and query
    of an address. Whatever shows a value, or sends or keeps it elsewhere, takes ``shown`` or ``open_part`` of it.
    """

    __slots__ = (
        "name",
        "kind",
        "default",
        "scope",
        "low",
        "high",
        "choices",
        "clamp",
        "secret",
        "meaning",
        "expected",
        "by_mode",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        default: "Value",
        scope: str,
        meaning: str,
        low: float | None = None,
        high: float | None = None,
        choices: tuple[str, ...] = (),
        clamp: bool = False,
        secret: bool = False,
        expected: str = "",
        by_mode: "dict[str, Value] | None" = None,
    ) -> None:
        self.name, self.kind, self.default, self.scope, self.meaning = name, kind, default, scope, meaning
        self.low, self.high, self.choices, self.clamp, self.secret = low, high, choices, clamp, secret
        self.expected, self.by_mode = expected, by_mode or {}

    @property
    def variable(self) -> str:
        return "CPERSONA_" + self.name.upper()

    @property
    def range_text(self) -> str:
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
        return {"text": "text", "verbatim": "text", "address": "an address"}.get(self.kind, "a path")

    def default_in(self, mode: str) -> "Value":
        """Return the default under a recall mode."""
        return self.by_mode.get(mode, self.default)

    @property
    def default_text(self) -> str:
        """The default in words, with that of each mode that has one of its own."""
        own = [f"{_in_words(value)} under {mode}" for mode, value in self.by_mode.items()]
        return ", ".join([*own, f"else {_in_words(self.default)}"]) if own else _in_words(self.default)

    def shown(self, value: "Value") -> "Value":
        """Return what may be shown of a value, and told to any peer: secrets are masked."""
        if not self.secret or not value:
            return value
        if self.kind != "address":
            return "(set)"
        from .addresses import masked_address  # few clients have such a value

        return masked_address(str(value))

    def open_part(self, value: "Value") -> "Value":
        """Return a value without what is secret of it, None when nothing that could be used is left."""
        if not self.secret or not value:
            return value
        if self.kind != "address":
            return None
        from .addresses import address_without_secrets

        return address_without_secrets(str(value))


def _in_words(value: "Value") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return "unset" if value is None else str(value) or "empty"


TABLE = (
    # Where things live
    Setting(
        "db_path", "path", "", PLACE, "the database file; empty means cpersona/cpersona.db in the XDG data directory"
    ),
    Setting("socket", "path", "", PLACE, "the daemon's socket; empty means a place that follows from the database"),
    # The command line
    Setting("agent", "text", "default", CLIENT, "the agent whose memory a command means"),
    Setting(
        "project",
        "text",
        None,
        CLIENT,
        "the project axis of a command; unset means no filter on reads and the global pool on writes",
    ),
    Setting("channel", "text", "", CLIENT, "the channel axis of a command"),
    Setting(
        "token", "text", "", CLIENT, "the token that names this client to a daemon with an access file", secret=True
    ),
    Setting(
        "host",
        "text",
        "",
        CLIENT,
        "MACHINE or USER@MACHINE whose memories a command means, reached through ssh; empty means this machine",
    ),
    Setting(
        "host_command",
        "text",
        "cpersona",
        CLIENT,
        "what ssh runs on that machine, for a cpersona that is not on the PATH of its ssh commands",
    ),
    # The daemon's life
    Setting(
        "idle_timeout",
        "float",
        3600.0,
        DAEMON,
        "seconds without work after which the daemon leaves; 0 means never",
        low=0,
    ),
    Setting(
        "log_level",
        "choice",
        "info",
        DAEMON,
        "how much the log tells; memory content appears only at debug",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting(
        "acl_file",
        "path",
        "",
        DAEMON,
        "JSON file of clients and grants; empty means the socket's owner may do everything",
    ),
    Setting(
        "socket_group",
        "text",
        "",
        DAEMON,
        "group whose members may connect to the socket, by name or number; needs an access file, which says what each "
        "may do",
    ),
    Setting(
        "export_dir", "path", "", DAEMON, "directory that export and import are confined to; empty means no confinement"
    ),
    Setting("max_import_bytes", "int", 0, DAEMON, "largest file that import reads; 0 means no limit", low=0),
    # Embedding
    Setting(
        "embedding_mode",
        "choice",
        "builtin",
        DAEMON,
        "who turns text into vectors",
        choices=("builtin", "http", "none"),
    ),
    Setting("embedding_url", "address", "", DAEMON, "address of the http embedding service", secret=True),
    Setting(
        "embedding_timeout_secs", "float", 30.0, DAEMON, "seconds that the http embedding service may take", low=0.1
    ),
    Setting(
        "embedding_api",
        "choice",
        "auto",
        DAEMON,
        "how the http embedding service is asked; auto means openai for an address that ends with a version and "
        "embeddings (/v1/embeddings), else native",
        choices=("auto", "native", "openai"),
    ),
    Setting(
        "embedding_model",
        "text",
        "",
        DAEMON,
        "the model that the http embedding service is asked for, and what its vectors are known by where it names none",
    ),
    Setting(
        "embedding_api_key", "text", "", DAEMON, "key of the http embedding service, sent as a bearer", secret=True
    ),
    Setting(
        "embedding_api_key_file",
        "path",
        "",
        DAEMON,
        "file with the key of the http embedding service, and nothing else",
    ),
    Setting(
        "embedding_query_prefix",
        "verbatim",
        "",
        DAEMON,
        "what an http embedding model wants before a question, blanks and all; the builtin one wants nothing",
    ),
    Setting(
        "embedding_document_prefix",
        "verbatim",
        "",
        DAEMON,
        "what an http embedding model wants before a memory, blanks and all; with another one its vectors are others",
    ),
    # Reranking
    Setting(
        "rerank_url",
        "address",
        "",
        DAEMON,
        "address of a service that reads the question beside each of the best 20 rows under blend; empty means none",
        secret=True,
    ),
    Setting(
        "rerank_api",
        "choice",
        "auto",
        DAEMON,
        "how the reranker is asked: cohere (documents, top_n), tei (texts), auto tries them in this order",
        choices=("auto", "cohere", "tei"),
    ),
    Setting(
        "rerank_model", "text", "", DAEMON, "the model that the reranker is asked for; empty leaves it to the service"
    ),
    Setting("rerank_api_key", "text", "", DAEMON, "key of the reranker, sent as a bearer", secret=True),
    Setting("rerank_api_key_file", "path", "", DAEMON, "file with the key of the reranker, and nothing else"),
    Setting(
        "rerank_timeout_secs",
        "float",
        2.0,
        DAEMON,
        "seconds that the reranker may take; without its answer in time a recall answers as without a reranker",
        low=0.05,
        high=60,
    ),
    # Writing
    Setting(
        "max_content_length",
        "int",
        16_000,
        DAEMON,
        "characters that a memory keeps; the rest is cut and said to be",
        low=1,
    ),
    Setting(
        "max_metadata_length",
        "int",
        8_000,
        DAEMON,
        "characters of serialised source or metadata that a store may carry",
        low=1,
    ),
    Setting(
        "history_days",
        "float",
        30.0,
        DAEMON,
        "days that a row is kept as it was before it was changed or deleted; 0 keeps nothing, and removes what is kept",
        low=0,
        high=36_500,
    ),
    Setting("max_profile_length", "int", 2_000, DAEMON, "characters that a profile keeps", low=1),
    Setting(
        "future_timestamp_mode",
        "choice",
        "warn",
        DAEMON,
        "what happens to a timestamp more than 300 s ahead of the clock",
        choices=("warn", "reject", "off"),
    ),
    # Retrieval
    Setting(
        "recall_mode",
        "choice",
        "blend",
        RETRIEVAL,
        "how what the channels find is scored; rrf, rsf and cascade are those of the memory protocol",
        choices=("blend", "rrf", "rsf", "cascade"),
    ),
    Setting("recall_library_max_limit", "int", 10_000, RETRIEVAL, "largest limit that the library accepts", low=1),
    Setting(
        "recall_depth_floor", "int", 0, RETRIEVAL, "least number of rows that each channel hands to the fusion", low=0
    ),
    Setting(
        "max_memories",
        "int",
        10_000,
        RETRIEVAL,
        "the vector scan window: the newest rows that vector search considers",
        low=1,
    ),
    Setting(
        "vector_reach",
        "int",
        0,
        RETRIEVAL,
        "rows up to this position are compared: a blend scores them all alike, under rrf and rsf those beyond the "
        "window form the far list",
        low=0,
        by_mode={"blend": 250_000},
    ),
    Setting(
        "vector_far_limit",
        "int",
        0,
        RETRIEVAL,
        "rows of the far list that may vote; 0 means as many as the near list",
        low=0,
    ),
    Setting(
        "vector_min_similarity", "float", 0.3, RETRIEVAL, "similarity threshold of the vector channel", low=-1, high=1
    ),
    Setting(
        "vector_search_mode",
        "choice",
        "local",
        DAEMON,
        "where vectors are searched: by this daemon, by Qdrant, a server or its engine in a folder, or (remote) by the "
        "http embedding service, whose address ends in /embed and has /search, /index, /remove and /purge beside it",
        choices=("local", "qdrant", "remote"),
        expected="nothing of this name searches vectors",
    ),
    Setting(
        "qdrant_url",
        "address",
        "",
        DAEMON,
        "address of Qdrant, http or https with port 6333 unless it names one, or path: and a folder for its engine",
        secret=True,
    ),
    Setting("qdrant_api_key", "text", "", DAEMON, "key of Qdrant", secret=True),
    Setting("qdrant_api_key_file", "path", "", DAEMON, "file with the key of Qdrant, and nothing else"),
    Setting(
        "qdrant_collection",
        "text",
        "",
        DAEMON,
        "what the names of collections begin with; empty means cpersona- and the store's identity",
    ),
    Setting(
        "qdrant_exact",
        "bool",
        False,
        DAEMON,
        "whether Qdrant compares every vector in scope instead of following its graph",
    ),
    Setting(
        "rrf_threshold_factor",
        "float",
        0.5,
        RETRIEVAL,
        "share of the threshold that is the vector floor under rrf and rsf",
        low=0,
    ),
    Setting("rrf_k", "int", 60, RETRIEVAL, "the constant of reciprocal rank fusion", low=1),
    Setting(
        "fts_enabled",
        "bool",
        True,
        RETRIEVAL,
        "whether the full-text index is asked; false leaves the substring search alone",
    ),
    Setting("fused_gate_enabled", "bool", True, RETRIEVAL, "whether a calibrated gate replaces the heuristic minimum"),
    Setting("autocut_enabled", "bool", True, RETRIEVAL, "whether a similarity-ordered list is cut at its largest gap"),
    Setting("autocut_min_results", "int", 3, RETRIEVAL, "rows that a list must have before autocut looks at it", low=1),
    Setting(
        "autocut_min_gap_ratio", "float", 0.15, RETRIEVAL, "least gap that cuts, as a share of the first score", low=0
    ),
    Setting(
        "prior_far_weight", "float", 1.0, RETRIEVAL, "weight of a vote from the far list", low=0, high=1, clamp=True
    ),
    Setting("prior_age_rate", "float", 0.0, RETRIEVAL, "rate of the age weight per hour; 0 means off", low=0),
    Setting("prior_age_floor", "float", 0.3, RETRIEVAL, "least value of the age weight", low=0, high=1),
    Setting("prior_age_anchor", "choice", "newest", RETRIEVAL, "what age is measured from", choices=("newest", "now")),
    Setting(
        "tail_share",
        "float",
        0.25,
        RETRIEVAL,
        "what share of the best row's score under blend another row must reach; 0 lets every row follow that passes the"
        " gate",
        low=0.0,
        high=1.0,
    ),
    Setting(
        "version_order",
        "bool",
        False,
        RETRIEVAL,
        "whether of two memories that say nearly the same the newer goes first for a question about now and the older "
        "for one about the past",
        by_mode={"blend": True},
    ),
    Setting(
        "time_order",
        "bool",
        True,
        RETRIEVAL,
        "whether under blend a question that names a time (last week, in March) has memories that tell of it a few "
        "places further up",
    ),
    Setting(
        "fold_alike",
        "bool",
        True,
        RETRIEVAL,
        "whether under blend four or more memories of one source that say nearly the same are shown as one with a "
        "count",
    ),
    Setting(
        "block_reservation",
        "int",
        0,
        RETRIEVAL,
        "how many long rows beside the answer rrf, rsf and cascade show for their nearest passage, beyond the limit and"
        " without a score or a gate",
        low=0,
        high=2,
    ),
    Setting("confidence_enabled", "bool", False, RETRIEVAL, "whether each row carries a confidence value"),
    Setting(
        "confidence_ordering",
        "choice",
        "fusion",
        RETRIEVAL,
        "legacy lets confidence order and gate",
        choices=("fusion", "legacy"),
    ),
    Setting(
        "decay_rate",
        "float",
        0.005,
        RETRIEVAL,
        "confidence: time decay per hour, before it is scaled by the store's span",
        low=0,
    ),
    Setting("decay_floor", "float", 0.3, RETRIEVAL, "confidence: least value of the time decay", low=0, high=1),
    Setting("decay_ceil", "float", 0.5, RETRIEVAL, "confidence: largest floor that recalls can earn", low=0, high=1),
    Setting(
        "min_time_range_hours", "float", 24.0, RETRIEVAL, "confidence: least time span of a store, in hours", low=0
    ),
    Setting(
        "reference_hours",
        "float",
        168.0,
        RETRIEVAL,
        "confidence: the time span for which the decay rate is meant, in hours",
        low=0.001,
    ),
    Setting("recall_boost", "float", 0.02, RETRIEVAL, "confidence: what a recall adds to the decay floor", low=0),
    Setting("boost_decay_rate", "float", 0.002, RETRIEVAL, "confidence: how fast that addition fades, per hour", low=0),
    Setting(
        "resolved_decay_factor", "float", 0.3, RETRIEVAL, "confidence: factor of a resolved episode", low=0, high=1
    ),
    Setting(
        "recent_recall_penalty",
        "float",
        0.7,
        RETRIEVAL,
        "confidence: factor of a row recalled a moment ago",
        low=0,
        high=1,
    ),
    Setting(
        "recent_recall_window_min", "float", 5.0, RETRIEVAL, "confidence: how long a moment ago is, in minutes", low=0
    ),
    Setting(
        "cosine_floor", "float", 0.20, RETRIEVAL, "confidence: cosine that counts as no similarity", low=-1, high=1
    ),
    Setting(
        "cosine_ceil", "float", 0.75, RETRIEVAL, "confidence: cosine that counts as full similarity", low=-1, high=1
    ),
    Setting(
        "episode_penalty_enabled",
        "bool",
        False,
        RETRIEVAL,
        "whether memories before the latest episode are weighed down",
    ),
    Setting("episode_decay_rate", "float", 0.01, RETRIEVAL, "episode penalty per hour before the boundary", low=0),
    Setting("episode_decay_floor", "float", 0.5, RETRIEVAL, "least factor of the episode penalty", low=0, high=1),
    Setting(
        "recall_preview_chars", "int", 500, RETRIEVAL, "code points of a row that recall shows; 0 means all", low=0
    ),
    Setting("degraded_advisory", "bool", True, RETRIEVAL, "whether an answer says that vector search was missing"),
    # Calibration
    Setting(
        "calibrate_on_model_change",
        "bool",
        True,
        DAEMON,
        "whether a start with another model, dimension or scoring recalibrates",
    ),
    Setting(
        "calibrate_floor", "float", 0.05, DAEMON, "least similarity threshold that a calibration may set", low=0, high=1
    ),
    Setting(
        "calibrate_temporal_window_min",
        "float",
        30.0,
        DAEMON,
        "minutes within which two memories count as related",
        low=0,
    ),
    Setting(
        "fused_gate_sample_queries",
        "int",
        40,
        DAEMON,
        "memories used as queries when a gate is measured",
        low=1,
        high=1000,
    ),
    Setting("fused_gate_calibration_draws", "int", 5, DAEMON, "draws whose median is the gate", low=1, high=99),
    # Reconstruct
    Setting(
        "reconstruct_default_count",
        "int",
        10,
        RETRIEVAL,
        "items that a reconstruct returns when none are asked for",
        low=0,
    ),
    Setting("reconstruct_max_count", "int", 10, RETRIEVAL, "most items that a reconstruct returns", low=1),
    Setting(
        "reconstruct_forced_count",
        "int",
        0,
        RETRIEVAL,
        "items that every reconstruct returns whatever is asked; 0 means none is forced",
        low=0,
    ),
    Setting(
        "reconstruct_adjacency_seconds",
        "float",
        60.0,
        RETRIEVAL,
        "seconds within which memories of one source belong together",
        low=0,
    ),
    Setting("reconstruct_quote_chars", "int", 800, RETRIEVAL, "characters up to which a head is quoted whole", low=1),
    Setting("reconstruct_full_quotes", "int", 5, RETRIEVAL, "items whose head may be quoted up to that length", low=0),
    Setting("reconstruct_tail_quote_chars", "int", 400, RETRIEVAL, "characters of a head after those", low=1),
)

BY_NAME = {s.name: s for s in TABLE}
BY_MODE = tuple(s for s in TABLE if s.by_mode)
SCOPED = {scope: tuple(s.name for s in TABLE if s.scope == scope) for scope in (PLACE, CLIENT, DAEMON, RETRIEVAL)}
