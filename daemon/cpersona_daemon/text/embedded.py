"""The text that stands for a row when it is embedded.

Contract: episode.archive, store.embeds.
"""

import re

_COMMIT = re.compile(r"\n\ncommit (?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


def memory_text(content: str) -> str:
    """Return what is embedded for a memory: its content without the id that ends a commit's note.

    The id is there for the words to find. As a string of pieces without meaning it would take a short note's
    cosine with a paraphrase down by a fifth.
    """
    return _COMMIT.sub("", content)


def episode_text(summary: str, keywords: str) -> str:
    """Return what is embedded for an episode: the summary, and the keywords on a second line when there are any."""
    return f"{summary}\n{keywords}" if keywords.strip() else summary
