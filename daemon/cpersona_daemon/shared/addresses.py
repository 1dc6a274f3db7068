"""What an address says by itself, and what may be shown of it. Standard library only: the client reads this module
too.
"""

MASK = "***"
FOLDER = "path:"  # begins what is no address but a folder on this machine


def speaks_openai(api: str, url: str) -> bool:
    """Tell whether an embedding service is asked as OpenAI's is: so says ``api``, or under auto a path that ends with a
    version and embeddings, such as /v1/embeddings.

    A path without a version does not say it: services of this project's own shape have stood there.
    """
    if api != "auto":
        return api == "openai"
    path = url.partition("?")[0].partition("#")[0].rstrip("/")
    version = path.removesuffix("/embeddings").rpartition("/")[2]
    return path.endswith("/embeddings") and version[:1] == "v" and version[1:2].isdigit()


def masked_address(address: str) -> str:
    """Return an address whose user name, password and query are masked.

    One that was not written as addresses are (a password with an unescaped /, ? or #) is masked more than less.
    """
    if address.startswith(FOLDER):
        return address
    parts = _address_parts(address)
    if parts is None:
        return MASK  # what it is cannot be told, so it may be a key
    scheme, place, behind = parts
    if "@" in behind:
        return f"{scheme}://{MASK}"
    _, user, host = place.rpartition("@")
    return f"{scheme}://{MASK + user if user else ''}{host}{behind[0] + MASK if behind[1:] else ''}"


def address_without_secrets(address: str) -> str | None:
    """Return an address without user name, password, query and fragment.

    None when it cannot be told which part is which.
    """
    if address.startswith(FOLDER):
        return address
    parts = _address_parts(address)
    if parts is None:
        return None
    scheme, place, behind = parts
    host, slash, path = place.partition("/")
    if "@" in behind or "@" in path:
        return None
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _address_parts(address: str) -> tuple[str, str, str] | None:
    """Return (scheme, what stands before the query or fragment, these), or None for what is no address."""
    scheme, mark, rest = address.partition("://")
    cut = min((at for at in map(rest.find, "?#") if at >= 0), default=len(rest))
    return (scheme, rest[:cut], rest[cut:]) if mark else None
