"""What `--json` calls a row: its number is `ref` (mem:12, ep:3) and the key that its owner gave it is `id`, in every
answer.

The contract's answers name the number `id` where they store and list, and the key `msg_id` there and `id` elsewhere.
`call` answers as the contract does.
"""

from cpersona_daemon.shared import methods


def named(method: str, params: dict, response: dict) -> dict:
    """Return an answer to a method with these parameters under the names of the command line."""
    if method == "store":
        return stored(params.get("id"), response)
    row = methods.of(method)
    if row.listed and isinstance(response.get(row.listed), list):
        return {**response, row.listed: [_listed(one) for one in response[row.listed]]}
    if row.touched is not None:
        key, kind = row.touched
        if isinstance(response.get(key), int):
            return {**response, "ref": f"{kind}:{response[key]}"}
    return response


def stored(key: str | None, response: dict) -> dict:
    """Return store's answer with the ref of the row, and the caller's ``key`` where that row has it."""
    answer = {name: value for name, value in response.items() if name != "id"}
    if isinstance(response.get("id"), int):
        answer["ref"] = f"mem:{response['id']}"
        # A row that was found by its text has a key of its own, or none.
        if key and response.get("reason") != "duplicate content":
            answer["id"] = key
    return answer


def _listed(row: dict) -> dict:
    renamed = {name: value for name, value in row.items() if name not in ("id", "msg_id")}
    return {**renamed, "id": row["msg_id"]} if row.get("msg_id") else renamed
