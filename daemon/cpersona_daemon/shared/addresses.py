"""An address without what it may hold of secrets. Standard library only: the client reads this module too."""

MASK = "***"


def masked_address(address: str) -> str:
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


def address_without_secrets(address: str) -> str | None:
    """Return an address without user name, password, query and fragment.

    None when it cannot be told which part is which.
    """
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
