"""The text that stands for a row when it is embedded.

Contract: episode.archive, store.embeds, git.paths.
"""

from ..shared import commit_notes


def memory_text(content: str) -> str:
    """Return what is embedded for a memory: its content without the paths and the id that end a commit's note.

    They are there for the words to find. As strings of pieces without meaning they would take a short note's
    cosine with a paraphrase down by a fifth. A note without a message is embedded as it is.
    """
    return commit_notes.parts(content)[0] or content


def episode_text(summary: str, keywords: str) -> str:
    """Return what is embedded for an episode: the summary, and the keywords on a second line when there are any."""
    return f"{summary}\n{keywords}" if keywords.strip() else summary
