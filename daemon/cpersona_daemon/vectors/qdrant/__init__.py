"""Vectors searched by Qdrant: a server or a cluster of it, or its engine inside this process."""
