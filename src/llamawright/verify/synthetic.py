"""A tiny llama model of our own: seeded, the same bytes on every machine, a second to prove.

Upstream's kernels differ by quantisation. A real model has one; of this one the artifact's own
quantiser makes the others in a moment, and a run of it costs little more than starting the
program. Rows of 256 and 512 numbers divide by the blocks of every type.

The weights are normal deviates, scaled so that a deviation shows:

* A row's deviates are divided by the root of its length, so each product has the variance of
  its input: nothing vanishes or overflows in half precision.
* The attention and the feed-forward of each layer add about as much to the stream as the
  embedding holds, so a layer that is 5 % off turns the last vector by 1 to 2 %.
* Queries times keys deviate by half a nat: the attention is no mere mean over all positions, and
  does not enlarge what rounding does to them.
* The last product makes logits with a deviation of ``LOGIT_STRENGTH`` nats: neither flat,
  where everything agrees, nor so peaked that only the first token counts.

Text becomes one token for each byte or letter: nobody speaks this language, and nobody has to.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from llamawright.verify.gguf_writer import Element, Tensor, Value, gguf_bytes

SYNTHETIC_NAME = "llamawright-synthetic"
SEED = 5
LAYERS = 2
WIDTH = 256
HEADS = 4
KEY_HEADS = 2
HEAD_WIDTH = WIDTH // HEADS
INNER = 512
CONTEXT = 512

ATTENTION_SHARPNESS = 0.7
ATTENTION_STRENGTH = 1.5
FEED_STRENGTH = 1.2
LOGIT_STRENGTH = 4.0
NORM_SPREAD = 0.1

UNKNOWN, BEGIN, END = 0, 1, 2
LETTERS = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,;:!?'-"
# Types of tokens, by llama.cpp's numbers.
NORMAL, UNKNOWN_TYPE, CONTROL, BYTE = 1, 2, 3, 6
DEVIATES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """Normal deviates as half-precision numbers, from the bits of a hash.

    A byte chooses one of 256 equally likely values: no generator of random numbers and no
    rounding of a library decides what the file holds. ``mean`` moves all of them.
    """

    deviation: float
    mean: float = 0.0

    def halves(self, label: str, count: int, *, seed: int) -> bytes:
        """Return ``count`` numbers, always the same for one label and seed."""
        table = struct.pack(f"<{DEVIATES}e", *self._values())
        chosen = _bits(label, count, seed=seed)
        data = bytearray(2 * count)
        data[0::2] = chosen.translate(table[0::2])
        data[1::2] = chosen.translate(table[1::2])
        return bytes(data)

    def singles(self, label: str, count: int, *, seed: int) -> bytes:
        """Return the same in single precision."""
        values = self._values()
        chosen = _bits(label, count, seed=seed)
        return struct.pack(f"<{count}f", *(values[byte] for byte in chosen))

    def _values(self) -> list[float]:
        """Return the middles of 256 equal shares; rounded, so that no last bit differs."""
        normal = NormalDist(0, 1)
        middles = (normal.inv_cdf((i + 0.5) / DEVIATES) for i in range(DEVIATES))
        return [round(self.mean + self.deviation * middle, 6) for middle in middles]


def synthetic_model(*, seed: int = SEED) -> bytes:
    """Return the model as a GGUF file in half precision, less than 3 MB."""
    tensors = [_matrix("token_embd", WIDTH, len(_vocabulary()), seed=seed, strength=WIDTH**0.5)]
    for layer in range(LAYERS):
        tensors += _layer(f"blk.{layer}", seed=seed)
    tensors.append(_norm("output_norm", seed=seed))
    tensors.append(_matrix("output", WIDTH, len(_vocabulary()), seed=seed, strength=LOGIT_STRENGTH))
    return gguf_bytes((*_shape(), *_tokenizer()), tensors)


def write_synthetic(path: Path, *, seed: int = SEED) -> Path:
    """Write the model and return its path."""
    path.write_bytes(synthetic_model(seed=seed))
    return path


def even_importance() -> bytes:
    """Return an importance matrix that calls every number of every row equally important.

    The smallest types cannot be made without one (``llama-quantize --imatrix``).
    """
    rows = {f"blk.{n}.{name}": width for n in range(LAYERS) for name, width in _MATRICES}
    tensors: list[Tensor] = []
    for name, width in (*rows.items(), ("output", WIDTH), ("token_embd", WIDTH)):
        ones = struct.pack(f"<{width}f", *([1.0] * width))
        sums = f"{name}.weight.in_sum2"
        tensors.append(Tensor(name=sums, shape=(width, 1), element=Element.F32, data=ones))
        one = struct.pack("<f", 1.0)
        count = f"{name}.weight.counts"
        tensors.append(Tensor(name=count, shape=(1, 1), element=Element.F32, data=one))
    values: tuple[tuple[str, Value], ...] = (
        ("general.type", "imatrix"),
        ("imatrix.datasets", ("none: every number counts the same",)),
        ("imatrix.chunk_count", 1),
        ("imatrix.chunk_size", CONTEXT),
    )
    return gguf_bytes(values, tensors)


# The matrices of a layer and the length of their rows.
_MATRICES = (
    ("attn_q", WIDTH), ("attn_k", WIDTH), ("attn_v", WIDTH), ("attn_output", WIDTH),
    ("ffn_gate", WIDTH), ("ffn_up", WIDTH), ("ffn_down", INNER),
)  # fmt: skip


def _layer(name: str, *, seed: int) -> list[Tensor]:
    keys = KEY_HEADS * HEAD_WIDTH
    sharp = ATTENTION_SHARPNESS
    plan = (
        ("attn_q", WIDTH, WIDTH, sharp), ("attn_k", WIDTH, keys, sharp),
        ("attn_v", WIDTH, keys, 1.0), ("attn_output", WIDTH, WIDTH, ATTENTION_STRENGTH),
        ("ffn_gate", WIDTH, INNER, 1.0), ("ffn_up", WIDTH, INNER, 1.0),
        ("ffn_down", INNER, WIDTH, FEED_STRENGTH),
    )  # fmt: skip
    return [
        _norm(f"{name}.attn_norm", seed=seed),
        _norm(f"{name}.ffn_norm", seed=seed),
        *(_matrix(f"{name}.{n}", w, rows, seed=seed, strength=s) for n, w, rows, s in plan),
    ]


def _matrix(name: str, width: int, rows: int, *, seed: int, strength: float) -> Tensor:
    """Return a matrix whose product has ``strength`` times the deviation of its input."""
    normal = Normal(deviation=strength / width**0.5)
    data = normal.halves(name, width * rows, seed=seed)
    return Tensor(name=f"{name}.weight", shape=(width, rows), element=Element.F16, data=data)


def _norm(name: str, *, seed: int) -> Tensor:
    data = Normal(mean=1.0, deviation=NORM_SPREAD).singles(name, WIDTH, seed=seed)
    return Tensor(name=f"{name}.weight", shape=(WIDTH,), element=Element.F32, data=data)


def _bits(label: str, count: int, *, seed: int) -> bytes:
    return hashlib.shake_256(f"{seed}:{label}".encode()).digest(count)


def _shape() -> tuple[tuple[str, Value], ...]:
    return (
        ("general.architecture", "llama"),
        ("general.name", SYNTHETIC_NAME),
        ("general.file_type", 1),
        ("general.quantization_version", 2),
        ("llama.vocab_size", len(_vocabulary())),
        ("llama.context_length", CONTEXT),
        ("llama.embedding_length", WIDTH),
        ("llama.block_count", LAYERS),
        ("llama.feed_forward_length", INNER),
        ("llama.attention.head_count", HEADS),
        ("llama.attention.head_count_kv", KEY_HEADS),
        ("llama.attention.layer_norm_rms_epsilon", 1e-5),
        ("llama.rope.dimension_count", HEAD_WIDTH),
        ("llama.rope.freq_base", 10000.0),
    )


def _vocabulary() -> tuple[tuple[str, int], ...]:
    """Return every token with its type: three special ones, all bytes, and the letters."""
    special = (("<unk>", UNKNOWN_TYPE), ("<s>", CONTROL), ("</s>", CONTROL))
    return (
        *special,
        *((f"<0x{byte:02X}>", BYTE) for byte in range(256)),
        *((letter, NORMAL) for letter in LETTERS),
    )


def _tokenizer() -> tuple[tuple[str, Value], ...]:
    tokens = _vocabulary()
    return (
        ("tokenizer.ggml.model", "llama"),
        ("tokenizer.ggml.tokens", tuple(token for token, _ in tokens)),
        ("tokenizer.ggml.scores", tuple(-float(i) for i in range(len(tokens)))),
        ("tokenizer.ggml.token_type", tuple(kind for _, kind in tokens)),
        ("tokenizer.ggml.bos_token_id", BEGIN),
        ("tokenizer.ggml.eos_token_id", END),
        ("tokenizer.ggml.unknown_token_id", UNKNOWN),
    )
