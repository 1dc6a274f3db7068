"""Numbers, bounds and error codes of the wire.

The client's hot path reads this module, so it must stay free of imports. The envelopes are Structs in
``rpc/envelopes.py`` for the daemon, and plain maps of the same names for the client.

Contract: wire.frames, wire.bounds, exit.status.
"""

PROTOCOL = 1
CAPABILITIES = ("pipelining", "deadlines", "idempotency", "overrides", "progress")

# A frame is a 4-byte big-endian length and one msgpack map of that many bytes.
LENGTH_BYTES = 4
MAX_FRAME_BYTES = 32 * 1024 * 1024
MAX_HELLO_BYTES = 64 * 1024
MAX_NESTING = 64
MAX_VALUE_NESTING = 58  # of a source or metadata, which stand some levels deep in an answer
MAX_VALUES = 500_000  # values of one request, keys included: each takes many times its bytes once it is decoded
PARTIAL_FRAME_SECONDS = 10.0
HELLO_SECONDS = 10.0
DEFAULT_DEADLINE_MS = 30_000

# Bounds at which the daemon answers `busy` instead of growing.
MAX_CONNECTIONS = 512
MAX_IN_FLIGHT = 1024
MAX_IN_FLIGHT_PER_CONNECTION = 128
# Bytes that the requests under way take once decoded: a connection that holds as many is not read further, and a large
# request above the bound for all is answered `busy`. One request alone is always taken.
MAX_HELD_BYTES_PER_CONNECTION = 64 * 1024 * 1024
MAX_HELD_BYTES = 256 * 1024 * 1024

MAX_KEY_LENGTH = 256  # characters of an idempotency key
LONG_BYTES = 1_200  # of a text; what is longer has passages: about a window of the builtin model
MAX_REFS = 20  # refs that one get_contents may name
MAX_IDS = 100  # keys that one find_ids may name

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOTHING = 3
EXIT_UNREACHABLE = 4
EXIT_DENIED = 5
EXIT_RETRY = 6
EXIT_CRITICAL = 7
EXIT_INTERRUPTED = 130

# code -> (exit status, may be retried, what to do next). Response frames carry the code beside the
# contract's answer, so that the answer itself keeps exactly the shape the contract gives it.
ERRORS = {
    "refused": (EXIT_FAILED, False, "see `cpersona COMMAND --help` for what it takes"),
    "invalid_params": (EXIT_FAILED, False, "see `cpersona COMMAND --help` for the parameters"),
    "key_used": (
        EXIT_FAILED,
        False,
        "send it under an idempotency key of its own; a key is used again only for the very same request",
    ),
    "unknown_method": (EXIT_FAILED, False, "see `cpersona call --help` for the methods"),
    "internal": (EXIT_FAILED, False, "see `cpersona daemon logs`"),
    "storage": (EXIT_FAILED, True, "mend what it names, then try again; `cpersona doctor` looks at every file"),
    "full": (EXIT_FAILED, True, "free some disk space, then try again"),
    "read_only": (EXIT_FAILED, True, "let the daemon's user write to it, then try again; reading goes on"),
    "corrupt": (EXIT_FAILED, False, "run `cpersona health`, and restore a backup if the database is damaged"),
    "newer_schema": (EXIT_UNREACHABLE, False, "upgrade cpersona, or point CPERSONA_DB_PATH at another database"),
    "settings": (EXIT_UNREACHABLE, False, "run `cpersona config show` and correct the value"),
    "embedding": (EXIT_FAILED, True, "check the embedding backend with `cpersona daemon status`"),
    "rerank": (EXIT_FAILED, True, "check the reranker with `cpersona doctor`"),
    "vectors": (EXIT_FAILED, True, "check the vector service with `cpersona doctor`"),
    "unreachable": (EXIT_UNREACHABLE, True, "run `cpersona daemon start` and read what it says"),
    "no_database": (
        EXIT_UNREACHABLE,
        False,
        "name another one with --db FILE or CPERSONA_DB_PATH; `cpersona store` makes a new one",
    ),
    "protocol": (EXIT_UNREACHABLE, False, "run `cpersona daemon restart` so that both sides are the same version"),
    "permission_denied": (EXIT_DENIED, False, "ask for a grant in the file that CPERSONA_ACL_FILE names"),
    "timed_out": (EXIT_RETRY, True, "try again, or allow more time"),
    "busy": (EXIT_RETRY, True, "try again in a moment"),
    "shutting_down": (EXIT_RETRY, True, "try again; the next call starts a new daemon"),
}

OWNER = "owner"  # the name of who owns the socket, where no file of grants names its clients

# How a row is refused by its ref: with an agent given, a row that is missing, another agent's or locked is one refusal
# that tells nothing apart. A client may find out for the row's owner which it is.
NOT_OWNED = "{ref} does not exist or belongs to another agent"
NOT_EDITABLE = "{ref} does not exist, belongs to another agent or is locked"
