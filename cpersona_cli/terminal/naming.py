"""What `--json` calls a row: its number is `ref` (mem:12, ep:3) and the key that its owner gave it is `id`, in every
answer.

The contract's answers name the number `id` where they store and list, and the key `msg_id` there and `id` elsewhere.
`call` answers as the contract does.
"""

# The key under which a method answers the number of a row that it touched -> the kind of that row.
_TOUCHED = {
    "update_memory": ("updated_id", "mem"),
    "delete_memory": ("deleted_id", "mem"),
    "lock_memory": ("locked_id", "mem"),
    "unlock_memory": ("unlocked_id", "mem"),
    "archive_episode": ("episode_id", "ep"),
    "delete_episode": ("deleted_id", "ep"),
}
_LISTS = {"list_memories": "memories", "list_episodes": "episodes"}


def named(method: str, params: dict, response: dict) -> dict:
    """Return an answer to a method with these parameters under the names of the command line."""
    if method == "store":
        return stored(params.get("id"), response)
    if method in _LISTS and isinstance(response.get(_LISTS[method]), list):
        return {**response, _LISTS[method]: [_listed(row) for row in response[_LISTS[method]]]}
    if method in _TOUCHED:
        key, kind = _TOUCHED[method]
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
