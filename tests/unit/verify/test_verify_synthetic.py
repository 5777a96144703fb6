"""The model of our own: the same bytes everywhere, whole for others' readers, not flat."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from statistics import fmean, pstdev

import pytest
from gguf import GGUFReader

from llamawright.verify import synthetic
from llamawright.verify.gguf_header import read_header
from llamawright.verify.gguf_writer import Element, Tensor, gguf_bytes
from llamawright.verify.synthetic import Normal, even_importance, synthetic_model, write_synthetic

MIB = 1 << 20
LARGEST_BLOCK = 256
# A change of these bytes changes every figure that was measured: measure again, then pin again.
PINNED = "a29a26a13c148edaab10bdc8f8ca533b9a973bc0db7e980f3721364f159ed961"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_synthetic(tmp_path_factory.mktemp("model") / "synthetic.gguf")


@pytest.fixture(scope="module")
def reader(model: Path) -> GGUFReader:
    return GGUFReader(model)


def test_the_bytes_are_those_that_were_measured() -> None:
    assert hashlib.sha256(synthetic_model()).hexdigest() == PINNED


def test_another_seed_gives_another_model_of_the_same_size() -> None:
    ours, other = synthetic_model(), synthetic_model(seed=6)
    assert len(ours) == len(other)
    assert ours != other
    assert other == synthetic_model(seed=6)


def test_it_is_small(model: Path) -> None:
    assert model.stat().st_size < 3 * MIB


def test_our_own_reader_of_heads_takes_it(model: Path) -> None:
    header = read_header(model)
    assert (header.architecture, header.layers) == ("llama", synthetic.LAYERS)
    assert 0 < header.embeddings < header.weights


def test_rows_divide_by_the_blocks_of_every_type(reader: GGUFReader) -> None:
    matrices = [t for t in reader.tensors if len(t.shape) > 1]
    assert len(matrices) == 7 * synthetic.LAYERS + 2
    assert all(int(t.shape[0]) % LARGEST_BLOCK == 0 for t in matrices)
    assert {t.tensor_type.name for t in matrices} == {"F16"}


def test_norms_stay_in_single_precision_around_one(reader: GGUFReader) -> None:
    norms = [t for t in reader.tensors if len(t.shape) == 1]
    assert len(norms) == 2 * synthetic.LAYERS + 1
    assert {t.tensor_type.name for t in norms} == {"F32"}
    assert all(0.9 < fmean(t.data.tolist()) < 1.1 for t in norms)


def test_each_product_keeps_the_deviation_that_it_should(reader: GGUFReader) -> None:
    strengths = {
        "attn_q": synthetic.ATTENTION_SHARPNESS,
        "attn_output": synthetic.ATTENTION_STRENGTH,
        "ffn_down": synthetic.FEED_STRENGTH,
        "output": synthetic.LOGIT_STRENGTH,
    }
    for tensor in reader.tensors:
        name = tensor.name.removesuffix(".weight").rpartition(".")[2]
        if name in strengths:
            seen = pstdev(tensor.data.astype(float).flatten().tolist())
            assert seen * int(tensor.shape[0]) ** 0.5 == pytest.approx(strengths[name], rel=0.02)


def test_no_two_matrices_are_alike(reader: GGUFReader) -> None:
    beginnings = [t.data.tobytes()[:64] for t in reader.tensors]
    assert len(set(beginnings)) == len(beginnings)


def test_every_byte_and_letter_is_a_token_and_none_is_there_twice(reader: GGUFReader) -> None:
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    scores = reader.fields["tokenizer.ggml.scores"].contents()
    assert len(tokens) == len(set(tokens)) == len(kinds) == len(scores) == 320
    assert tokens[:4] == ["<unk>", "<s>", "</s>", "<0x00>"]
    assert [k for k in kinds if k == synthetic.BYTE] == [synthetic.BYTE] * 256
    assert kinds[-1] == synthetic.NORMAL
    assert "▁" in tokens
    embeddings = next(t for t in reader.tensors if t.name == "token_embd.weight")
    assert int(embeddings.shape[1]) == len(tokens)


def test_deviates_are_a_normal_distribution() -> None:
    numbers = struct.unpack("<20000e", Normal(deviation=2.0).halves("x", 20000, seed=1))
    assert fmean(numbers) == pytest.approx(0, abs=0.05)
    assert pstdev(numbers) == pytest.approx(2, rel=0.02)
    within = sum(abs(n) < 2 for n in numbers) / len(numbers)
    assert within == pytest.approx(0.683, abs=0.02)
    assert len(set(numbers)) == 256


def test_single_and_half_precision_are_the_same_choices() -> None:
    normal = Normal(deviation=0.5, mean=1.0)
    halves = struct.unpack("<100e", normal.halves("x", 100, seed=1))
    singles = struct.unpack("<100f", normal.singles("x", 100, seed=1))
    assert halves == pytest.approx(singles, abs=1e-3)


def test_every_matrix_has_an_importance(tmp_path: Path, reader: GGUFReader) -> None:
    path = tmp_path / "importance.gguf"
    path.write_bytes(even_importance())
    there = {t.name: t for t in GGUFReader(path).tensors}
    for tensor in reader.tensors:
        if len(tensor.shape) > 1:
            sums = there[f"{tensor.name}.in_sum2"]
            assert int(sums.shape[0]) == int(tensor.shape[0])
            assert set(sums.data.flatten().tolist()) == {1.0}
            assert there[f"{tensor.name}.counts"].data.flatten().tolist() == [1.0]


def test_values_of_every_kind_are_read_back_by_the_public_reader(tmp_path: Path) -> None:
    values = (
        ("general.architecture", "llama"), ("a.flag", True), ("a.count", 7), ("a.share", 0.5),
        ("a.words", ("one", "zwei ▁")), ("a.numbers", (1, -2)), ("a.shares", (0.25, -1.0)),
    )  # fmt: skip
    tensor = Tensor(name="t", shape=(3, 1), element=Element.F32, data=struct.pack("<3f", 1, 2, 3))
    second = Tensor(name="u", shape=(2,), element=Element.F16, data=struct.pack("<2e", 4, 5))
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes(values, (tensor, second)))
    reader = GGUFReader(path)
    assert {k: reader.fields[k].contents() for k, _ in values} == {
        k: list(v) if isinstance(v, tuple) else v for k, v in values
    }
    assert [t.data.flatten().tolist() for t in reader.tensors] == [[1, 2, 3], [4, 5]]
    assert path.stat().st_size % 32 == 0


def test_data_that_does_not_fill_its_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="t: 8 bytes, 12 by its shape"):
        Tensor(name="t", shape=(3,), element=Element.F32, data=bytes(8))
