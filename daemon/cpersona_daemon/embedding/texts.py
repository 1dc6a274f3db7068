"""The text that stands for a row when it is embedded.

Contract: contracts.md §2 (archive_episode), §12.
"""


def episode_text(summary: str, keywords: str) -> str:
    """Return what is embedded for an episode: the summary, and the keywords on a second line when there are any."""
    return f"{summary}\n{keywords}" if keywords.strip() else summary
