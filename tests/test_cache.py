"""The .xr cache: it gives back what was put in, and a damaged file is always noticed."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactrank as xr
from exactrank.data import cache
from exactrank.data.stream import Block, Stream, stream_of
from exactrank.data.text_column import TextColumn


def example(**changes):
    rng = np.random.default_rng(4)
    given = {
        "qid": rng.integers(0, 9, 60),
        "docid": [f"d{i}é" for i in range(60)],
        "sample_weight": rng.random(60),
        "feature_names": ["bm25", "age", "clicks"],
        **changes,
    }
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[5, 1] = np.nan
    return xr.RankingData.from_arrays(X, rng.integers(-1, 4, 60) / 2, **given)


def assert_same(a, b):
    for name in ("X", "y", "indptr", "sample_weight", "query_weight"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.qid.tolist() == b.qid.tolist()
    assert a.feature_names == b.feature_names
    np.testing.assert_array_equal(a.order, b.order)
    for name in ("docid", "comment"):
        assert (getattr(a, name) and getattr(a, name).tolist()) == (getattr(b, name) and getattr(b, name).tolist())


@pytest.mark.parametrize(
    "qid",
    [
        np.arange(60) // 7,
        np.array([f"q{i // 7}" for i in range(60)]),
        np.array(["2020-01-01", "2021-05-05"], dtype="datetime64[D]")[np.arange(60) % 2],
        np.arange(60) % 4 == 0,
        np.arange(60) % 5 / 4,
    ],
    ids=["int", "str", "date", "bool", "float"],
)
def test_round_trip(tmp_path, qid):
    data = example(qid=qid, query_weight=np.linspace(1, 2, len(set(qid.tolist()))))
    xr.write(data, tmp_path / "data.xr")
    again = xr.read(tmp_path / "data.xr")
    assert_same(data, again)
    assert again.X.flags.writeable is False
    if qid.dtype.kind not in "OU":
        assert again.qid.dtype == data.qid.dtype


@pytest.mark.parametrize("block", [1, 7, 60])
def test_interleaved_blocks_are_grouped_on_disk(tmp_path, block):
    data = example()
    assert data.order is not None
    rows = Block(data.ungrouped(data.X), data.ungrouped(data.y), data.ungrouped(np.repeat(data.qid, np.diff(data.indptr))))
    blocks = [Block(rows.X[i : i + block], rows.y[i : i + block], rows.qid[i : i + block]) for i in range(0, 60, block)]
    with open(tmp_path / "data.xr", "w+b") as file:
        cache.CacheFormat().write(file, Stream(data.feature_names, iter(blocks)))
    again = xr.read(tmp_path / "data.xr")
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.order, data.order)


def test_comments_and_docids_survive(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 qid:1 1:1 # docid = A\xff inc = 1\n0 qid:2 1:1\n0 qid:1 1:1 # B\n")
    data = xr.read(tmp_path / "a.txt")
    xr.write(data, tmp_path / "a.xr")
    assert_same(data, xr.read(tmp_path / "a.xr"))


def test_no_features(tmp_path):
    data = xr.RankingData.from_arrays(None, [1, 0], qid=[1, 1])
    xr.write(data, tmp_path / "a.xr")
    assert xr.read(tmp_path / "a.xr").X.shape == (2, 0)


@pytest.fixture(scope="module")
def file_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache") / "data.xr"
    xr.write(example(), path)
    return path.read_bytes()


def covered(content):
    """Offsets of bytes that mean something: all but the padding between sections."""
    offsets = np.zeros(len(content), bool)
    footer = cache.PREAMBLE.unpack_from(content)
    offsets[: cache.PREAMBLE.size + cache.CHECKSUM.size] = True
    offsets[12:16] = True
    offsets[footer[2] :] = True
    for entry in json.loads(content[footer[2] : footer[2] + footer[3]])["sections"].values():
        offsets[entry["offset"] : entry["offset"] + cache._size(entry)] = True
    return np.flatnonzero(offsets)


@settings(max_examples=300)
@given(data=st.data())
def test_any_flipped_bit_is_noticed(file_bytes, data, tmp_path_factory):
    at = data.draw(st.sampled_from(covered(file_bytes).tolist()))
    damaged = bytearray(file_bytes)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "damaged.xr"
    path.write_bytes(damaged)
    with pytest.raises(xr.DataError, match=r"damaged\.xr: "):
        xr.read(path)


@settings(max_examples=100)
@given(data=st.data())
def test_any_truncation_is_noticed(file_bytes, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "short.xr"
    path.write_bytes(file_bytes[: data.draw(st.integers(0, len(file_bytes) - 1))])
    with pytest.raises(xr.DataError, match=r"short\.xr"):
        xr.read(path)


def test_large_files_leave_bulk_to_verify(file_bytes, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "VERIFIED_WHOLE", 0)
    damaged = bytearray(file_bytes)
    damaged[cache.X_OFFSET + 9] ^= 1
    (tmp_path / "a.xr").write_bytes(damaged)
    xr.read(tmp_path / "a.xr")
    with pytest.raises(xr.DataError, match="section 'X' is damaged"):
        xr.read(tmp_path / "a.xr", verify=True)
    start = file_bytes.index(example().y.tobytes())
    damaged[start] ^= 1
    (tmp_path / "a.xr").write_bytes(damaged)
    with pytest.raises(xr.DataError, match="section 'y' is damaged"):
        xr.read(tmp_path / "a.xr")


def test_other_versions_are_refused(file_bytes, tmp_path):
    fields = list(cache.PREAMBLE.unpack_from(file_bytes))
    fields[1] = 2
    preamble = cache.PREAMBLE.pack(*fields)
    content = preamble + cache.CHECKSUM.pack(cache._checksum(preamble)) + file_bytes[len(preamble) + 8 :]
    (tmp_path / "a.xr").write_bytes(content)
    with pytest.raises(xr.DataError, match="has cache format 2 but this exactrank reads 1"):
        xr.read(tmp_path / "a.xr")


def test_odd_query_ids_are_refused(tmp_path):
    qid = np.empty(2, object)
    qid[:] = [("a", 1), ("b", 2)]
    data = xr.RankingData.from_arrays([[1.0], [2.0]], [1, 0], qid=qid)
    with pytest.raises(xr.DataError, match="is a tuple"):
        xr.write(data, tmp_path / "a.xr")
    assert not list(tmp_path.iterdir())


@given(st.lists(st.text(max_size=5), max_size=8), st.lists(st.text(max_size=5), max_size=8))
def test_text_columns_concatenate(a, b):
    columns = [TextColumn.of(a), TextColumn.of(b)]
    assert TextColumn.concatenated(columns).tolist() == a + b
    assert columns[0].take(slice(1, None)).packed().tolist() == a[1:]


def test_blocks_of_data_are_its_rows(monkeypatch):
    monkeypatch.setattr("exactrank.data.stream.BLOCK_CELLS", 30)
    data = example(query_weight=np.linspace(1, 2, 9))
    blocks = list(stream_of(data).blocks)
    assert len(blocks) == 6
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), data.ungrouped(data.X))
    assert [d for b in blocks for d in b.docid] == [f"d{i}é" for i in range(60)]
    weight = np.repeat(data.query_weight, np.diff(data.indptr))
    np.testing.assert_array_equal(np.concatenate([b.query_weight for b in blocks]), data.ungrouped(weight))
