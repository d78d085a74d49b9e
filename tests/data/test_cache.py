"""The .xr cache: it gives back what was put in, and a file that is damaged or forged is always noticed."""

import copy
import functools
import json
import mmap
import operator
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import exactrank as er
from exactrank.data.files import read_with
from exactrank.data.formats import cache, cache_footer
from exactrank.data.formats.base import Block, ReadOptions, Stream, stream_of
from exactrank.data.formats.cache_footer import SECTIONS
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.preferences import Preferences
from tests.data.forged_cache import arrays_of, cache_bytes, footer_of, forged, outcomes


def example(**changes):
    rng = np.random.default_rng(4)
    arguments = {
        "qid": rng.integers(0, 9, 60),
        "docid": [f"d{i}é" for i in range(60)],
        "sample_weight": rng.random(60),
        "feature_names": ["bm25", "age", "clicks"],
        **changes,
    }
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[5, 1] = np.nan
    return er.RankingData.from_arrays(X, rng.integers(-1, 4, 60) / 2, **arguments)


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
    er.write(data, tmp_path / "data.xr")
    again = er.read(tmp_path / "data.xr")
    assert_same(data, again)
    assert again.X.flags.writeable is False
    if qid.dtype.kind not in "OU":
        assert again.qid.dtype == data.qid.dtype


@pytest.mark.parametrize("block", [1, 7, 60])
def test_interleaved_blocks_are_grouped_on_disk(tmp_path, block):
    data = example()
    assert data.order is not None
    rows = Block(data.ungroup(data.X), data.ungroup(data.y), data.ungroup(np.repeat(data.qid, data.sizes)))
    blocks = [Block(rows.X[i : i + block], rows.y[i : i + block], rows.qid[i : i + block]) for i in range(0, 60, block)]
    with open(tmp_path / "data.xr", "w+b") as file:
        cache.CacheFormat().write(file, Stream(data.feature_names, iter(blocks)))
    again = er.read(tmp_path / "data.xr")
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.order, data.order)


def test_comments_and_docids_survive(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 qid:1 1:1 # docid = A\xff inc = 1\n0 qid:2 1:1\n0 qid:1 1:1 # B\n")
    data = er.read(tmp_path / "a.txt")
    er.write(data, tmp_path / "a.xr")
    assert_same(data, er.read(tmp_path / "a.xr"))


def test_no_features(tmp_path):
    data = er.RankingData.from_arrays(None, [1, 0], qid=[1, 1])
    er.write(data, tmp_path / "a.xr")
    assert er.read(tmp_path / "a.xr").X.shape == (2, 0)


@pytest.fixture(scope="module")
def file_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache") / "data.xr"
    er.write(example(), path)
    return path.read_bytes()


def covered(content):
    """Offsets of bytes that mean something: all but the padding between sections."""
    offsets = np.zeros(len(content), bool)
    footer = cache.PREAMBLE.unpack_from(content)
    offsets[: cache.PREAMBLE.size + cache.CHECKSUM.size] = True
    offsets[12:16] = True
    offsets[footer[2] :] = True
    for section in cache._footer(content).sections.values():
        offsets[section.place] = True
    return np.flatnonzero(offsets)


@settings(max_examples=100)
@given(data=st.data())
def test_any_flipped_bit_is_noticed(file_bytes, data, tmp_path_factory):
    at = data.draw(st.sampled_from(covered(file_bytes).tolist()))
    damaged = bytearray(file_bytes)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.getbasetemp() / "damaged.xr"
    path.write_bytes(damaged)
    with pytest.raises(er.errors.DataError, match=r"damaged\.xr: "):
        er.read(path)


@settings(max_examples=50)
@given(data=st.data())
def test_any_truncation_is_noticed(file_bytes, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "short.xr"
    path.write_bytes(file_bytes[: data.draw(st.integers(0, len(file_bytes) - 1))])
    with pytest.raises(er.errors.DataError, match=r"short\.xr"):
        er.read(path)


@pytest.fixture(params=[64, 512, cache.BLOCK])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(cache, "BLOCK", request.param)
    monkeypatch.setattr(cache_footer, "BLOCK", request.param)
    monkeypatch.setattr(cache, "SMALL_FILE", 0)  # mapped, as a large file is
    return request.param


def test_a_part_is_verified_by_blocks_and_by_them_alone(tmp_path, small_blocks):
    data = example(qid=np.arange(60) // 10)
    er.write(data, path := tmp_path / "a.xr")
    content = path.read_bytes()
    at = {name: entry["offset"] for name, entry in footer_of(content)["sections"].items()}
    rows = slice(20, 40)  # of the queries 2 and 3
    texts = np.cumsum([0, *(len(text.encode()) for text in data.docid.tolist())])
    used = {"X": (20 * 12, 40 * 12), "docid.text": (texts[20], texts[40])}
    for name, (start, stop) in used.items():
        size = np.prod(footer_of(content)["sections"][name]["shape"]) * (4 if name == "X" else 1)
        covered_blocks = range(start // small_blocks * small_blocks, min(size, -(-stop // small_blocks) * small_blocks))
        for byte in range(size):
            damaged = bytearray(content)
            damaged[at[name] + byte] ^= 1
            path.write_bytes(damaged)
            if byte in covered_blocks:
                with pytest.raises(er.errors.DataError, match=f"section '{name}' is damaged"):
                    read_with(path, ReadOptions(verify=slice(2, 4)))
            else:
                np.testing.assert_array_equal(read_with(path, ReadOptions(verify=slice(2, 4))).X[rows], data.X[rows])


def test_without_verify_the_features_of_a_file_are_not_read(file_bytes, tmp_path):
    damaged = bytearray(file_bytes)
    damaged[cache.X_OFFSET + 9] ^= 1
    (tmp_path / "a.xr").write_bytes(damaged)
    er.read(tmp_path / "a.xr", verify=False)
    with pytest.raises(er.errors.DataError, match=r"section 'X' is damaged \(checksum of the block at byte 4096\)"):
        er.read(tmp_path / "a.xr")
    start = file_bytes.index(example().y.tobytes())
    damaged[start] ^= 1
    (tmp_path / "a.xr").write_bytes(damaged)
    with pytest.raises(er.errors.DataError, match="section 'y' is damaged"):
        er.read(tmp_path / "a.xr", verify=False)


@pytest.mark.parametrize("checksums", [5, [], [1, 2], [-1], ["1"], [1.5]])
def test_a_section_has_one_checksum_per_block(tmp_path, checksums):
    path = tmp_path / "a.xr"
    path.write_bytes(forged(cache_bytes(example()), edit=lambda footer: footer["sections"]["y"].update(xxh3=checksums)))
    with pytest.raises(er.errors.DataError, match=r"section 'y' has (\d )?checksums"):
        er.read(path)


@pytest.mark.parametrize(("row", "code"), [(0, -1.0), (7, 2.0), (59, 0.5)])
def test_codes_that_no_level_has_are_refused(tmp_path, row, code):
    frame = pd.DataFrame({"query_id": np.arange(60) // 7, "relevance": np.arange(60) % 3, "x": 1.5, "color": ["red", "blue"] * 30})
    frame.loc[3, "color"] = None
    honest = cache_bytes(er.RankingData.from_frame(frame, er.data.Columns(features=("x", "color"))))
    path = tmp_path / "a.xr"
    path.write_bytes(forged(honest))
    assert er.read(path).to_frame()["color"].isna().sum() == 1
    X = arrays_of(honest)["X"].copy()
    X[row, 1] = code
    path.write_bytes(forged(honest, {"X": X}))
    with pytest.raises(er.errors.DataError, match=rf"X\[{row}, 1\] is {code:g}; 'color' has codes from 0 to 1, or NaN; convert the source"):
        er.read(path)
    path.write_bytes(forged(honest, {"offset": np.array([0.0, 1.0])}))
    with pytest.raises(er.errors.DataError, match=r"offset\[1\] is 1, but feature 'color' has levels"):
        er.read(path)


def test_other_versions_are_refused(file_bytes, tmp_path):
    fields = list(cache.PREAMBLE.unpack_from(file_bytes))
    fields[1] = 2
    preamble = cache.PREAMBLE.pack(*fields)
    content = preamble + cache.CHECKSUM.pack(cache._checksum(preamble)) + file_bytes[len(preamble) + 8 :]
    (tmp_path / "a.xr").write_bytes(content)
    with pytest.raises(er.errors.DataError, match="has cache format 2, but this version of exactrank reads 3; convert the source again"):
        er.read(tmp_path / "a.xr")


def test_odd_query_ids_are_refused(tmp_path):
    qid = np.empty(2, object)
    qid[:] = [("a", 1), ("b", 2)]
    data = er.RankingData.from_arrays([[1.0], [2.0]], [1, 0], qid=qid)
    with pytest.raises(er.errors.DataError, match="is a tuple"):
        er.write(data, tmp_path / "a.xr")
    assert not list(tmp_path.iterdir())


WHILE_IN_USE = """
import copy, os, sys
import numpy as np
import exactrank as er
from exactrank.data.formats import cache

path, how, cache.SMALL_FILE = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = copy.deepcopy(er.read(path)) if how == "truncate what was copied" else er.read(path)
before = data.X.copy(), data.y.copy(), data.docid.tolist()
if how == "replace":
    er.write(er.RankingData.from_arrays(np.zeros((9, 1)), np.zeros(9), group=[9]), path, force=True)
    assert er.read(path).n_documents == 9
else:
    os.truncate(path, 0)
again = data.X, data.y, data.docid.tolist()
assert all(np.array_equal(a, b, equal_nan=a is before[0]) for a, b in zip(before, again, strict=True))
"""


@pytest.mark.parametrize(
    ("how", "small_file"),
    [("replace", 0), ("replace", cache.SMALL_FILE), ("truncate", cache.SMALL_FILE), ("truncate what was copied", 0)],
)
def test_data_stays_whole_whatever_becomes_of_its_file(tmp_path, how, small_file):
    er.write(example(), tmp_path / "a.xr")
    arguments = [sys.executable, "-c", WHILE_IN_USE, str(tmp_path / "a.xr"), how, str(small_file)]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (child.returncode, child.stderr) == (0, "")


def test_a_large_file_is_mapped_and_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SMALL_FILE", 0)
    er.write(example(), tmp_path / "a.xr")
    data = er.read(tmp_path / "a.xr")
    for array in (data.X, data.y, data.indptr, data.order, data.sample_weight, data.docid.buffer, data.docid.start, data.docid.stop):
        owner = array
        while isinstance(owner, np.ndarray | memoryview):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        assert isinstance(owner, mmap.mmap)


def test_weights_that_are_all_zero_are_not_written(tmp_path):
    data = example(sample_weight=np.arange(60) % 2, qid=np.arange(60) % 2)
    with pytest.raises(er.errors.DataError, match="sample_weight is zero everywhere"):
        er.write(data.take_queries([0]), tmp_path / "a.xr")


@given(st.lists(st.text(max_size=5), max_size=8), st.lists(st.text(max_size=5), max_size=8))
def test_text_columns_concatenate(a, b):
    columns = [TextColumn.of(a), TextColumn.of(b)]
    assert TextColumn.concatenate(columns).tolist() == a + b
    assert columns[0].take(slice(1, None)).pack().tolist() == a[1:]


@given(st.lists(st.text(max_size=5), min_size=1, max_size=12), st.data())
def test_packed_strings_lie_one_after_the_other(strings, data):
    which = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactrank.data.formats.text_column.PACKED_AT_ONCE", 3)
        packed = TextColumn.of(strings).take(np.array(which, np.int64)).pack()
    assert packed.tolist() == [strings[i] for i in which]
    assert packed.start.tolist() == [0, *packed.stop.tolist()][: len(which)]
    assert len(packed.buffer) == sum(len(strings[i].encode()) for i in which)


def test_blocks_of_data_are_its_rows(monkeypatch):
    monkeypatch.setattr("exactrank.data.formats.base.BLOCK_CELLS", 30)
    data = example(query_weight=np.linspace(1, 2, 9))
    blocks = list(stream_of(data).blocks)
    assert len(blocks) == 6
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), data.ungroup(data.X))
    assert [d for b in blocks for d in b.docid] == [f"d{i}é" for i in range(60)]
    weight = np.repeat(data.query_weight, data.sizes)
    np.testing.assert_array_equal(np.concatenate([b.query_weight for b in blocks]), data.ungroup(weight))


# ---- forged files: the checksums are right, what they cover is not


def full_example(**changes):
    """Data with every section that a cache can have."""
    data = example(qid=np.array([f"q{i % 7}" for i in range(60)]), query_weight=np.linspace(1, 2, 7), **changes)
    offset = np.arange(data.n_features) * 1e9
    pairs = Preferences(np.array([0, 4, 30]), np.array([1, 5, 31]), np.array([1.0, 0.5, 2.0]))
    return replace(data, comment=TextColumn.of([f"about {i}" for i in range(60)]), offset=offset, preferences=pairs)


FULL, NUMBERED = cache_bytes(full_example(), columns=True), cache_bytes(example())
ARRAYS = arrays_of(FULL)
DTYPES = ["<f4", ">f4", "<f8", ">f8", "<i8", ">i8", "<u8", "<i4", "|u1", "|O", "O", "<U4", "|S8", "|V8", "<c16", "<f8,<f8", "(2,)<f8"]
DTYPES += ["<M8[ns]", "<M8[0s]", "<M8[xx]", "float64", "", "\n", "x" * 500, 8, None, True, ["<f8"], {"a": 1}]
SHAPES = [[], [0], [1], [-1], [59], [61], [60.0], [True], ["60"], [None], [[60]], [2**31, 2**33], [2**62, 4], [2**63], [2**64, 1]]
SHAPES += [[60, -3], [-60, -3], [60, 3, 1], [3, 60], [10**400], 60, "60", None, {}, [[[]]]]
OFFSETS = [-64, 0, 64, 4032, 4097, 2**40, 2**62, 2**63, 2**64, 4096.0, True, "4096", None, [], 10**400]
CHECKSUMS = [-1, 2**64, 1, 1.5, "1", None, True]


def section_forgeries():
    """Each field of each section in turn, wrong in every way."""
    for name in footer_of(FULL)["sections"]:
        for field, values in (("dtype", DTYPES), ("shape", SHAPES), ("offset", OFFSETS), ("xxh3", CHECKSUMS)):
            for number, value in enumerate(values):
                right = footer_of(FULL)["sections"][name]
                same_length = field == "shape" and name.endswith(".text") and value in ([0], [1], [59], [60], [61])
                if value != right[field] and not same_length:
                    yield f"{name}-{field}-{number}", forged(FULL, edit=lambda f, n=name, k=field, v=value: f["sections"][n].update({k: v}))
        if name not in ("order", "sample_weight", "query_weight", "offset", "columns"):
            yield f"{name}-gone", forged(FULL, {name: None})
        yield f"{name}-longer", forged(FULL, {name: np.concatenate([ARRAYS[name], ARRAYS[name][:1]])})
        yield f"{name}-shorter", forged(FULL, {name: ARRAYS[name][:-1]})
        other = footer_of(FULL)["sections"]["y" if name == "indptr" else "indptr"]["offset"]
        yield f"{name}-shared", forged(FULL, edit=lambda f, n=name, at=other: f["sections"][n].update(offset=at))
        yield f"{name}-more-keys", forged(FULL, edit=lambda f, n=name: f["sections"][n].update(more=1))
        yield f"{name}-no-entry", forged(FULL, edit=lambda f, n=name: f["sections"].update({n: []}))


def changed(name, at, value):
    """The array of a section with one entry changed."""
    array = ARRAYS[name].copy()
    array[at] = value
    return {name: array}


def content_forgeries():
    """Arrays of the right type and length that hold what they must not."""
    for name in ("y", "sample_weight", "query_weight"):
        for value in (np.nan, np.inf, -np.inf):
            yield f"{name} is {value}", forged(FULL, changed(name, 5, value))
    for name in ("sample_weight", "query_weight"):
        yield f"{name} is negative", forged(FULL, changed(name, 5, -1e-300))
        yield f"{name} is zero", forged(FULL, changed(name, slice(None), 0))
    for value in (np.nan, np.inf, -np.inf):
        yield f"offset is {value}", forged(FULL, changed("offset", 1, value))
    for value in (np.inf, -np.inf):
        yield f"X is {value}", forged(FULL, changed("X", (7, 1), value))
    for name in ("indptr", "qid.offsets", "docid.offsets", "comment.offsets"):
        last = ARRAYS[name][-1]
        for at, value in ((0, 1), (0, -1), (-1, last + 1), (-1, last - 1), (-1, 0), (3, -1), (3, last + 9), (3, -(2**63)), (3, 2**63 - 1)):
            yield f"{name}[{at}] is {value}", forged(FULL, changed(name, at, value))
        yield f"{name} falls", forged(FULL, {name: ARRAYS[name][::-1].copy()})
        yield f"{name} wraps", forged(FULL, changed(name, slice(1, 4), [2**63 - 1, -(2**63), -1]))
        yield f"{name} unsigned", forged(FULL, {name: ARRAYS[name].astype(np.uint64)})
    yield "indptr stands still", forged(FULL, changed("indptr", 3, ARRAYS["indptr"][2]))
    for value in (-1, 60, 2**63 - 1, -(2**63), ARRAYS["order"][6]):
        yield f"order has {value}", forged(FULL, changed("order", 5, value))
    for name, at, value in (("better", 0, -1), ("worse", 2, 60), ("worse", 2, 2**63 - 1), ("worse", 1, 4), ("worse", 0, 59)):
        yield f"pair with {name} {value}", forged(FULL, changed(f"pairs.{name}", at, value))
    for value in (np.nan, np.inf, -1.0):
        yield f"pair of weight {value}", forged(FULL, changed("pairs.weight", 1, value))
    yield "order repeats", forged(FULL, changed("order", slice(None), 0))
    yield "qid twice", forged(FULL, changed("qid.text", slice(None), ord("q")))


def query_id_forgeries():
    """Query ids of odd types and values."""
    count = len(arrays_of(NUMBERED)["qid"])
    odd = {"twice": np.zeros(count, np.int64), "nan": np.full(count, np.nan), "nat": np.full(count, "nat", "M8[D]")}
    odd |= {"complex": np.arange(count) * 1j, "text": np.arange(count).astype("U3"), "bytes": np.arange(count).astype("S3")}
    odd |= {"big-endian": np.arange(count, dtype=">i8"), "records": np.zeros(count, [("a", "<i8")]), "table": np.arange(count)[:, None]}
    for name, array in odd.items():
        yield f"qid-{name}", forged(NUMBERED, {"qid": array})
    few = cache_bytes(example(qid=np.arange(60) < 30))
    yield "qid-bool", forged(few, {"qid": np.array([0, 2], np.uint8)}, lambda f: f["sections"]["qid"].update(dtype="|b1"))
    yield "qid-both", forged(FULL, {"qid": np.arange(7)})


def footer_forgeries():
    """Footers that are no JSON, or other JSON."""
    honest = json.dumps(footer_of(FULL))
    texts = {"empty": b"", "null": b"null", "list": b"[]", "object": b"{}", "number": b"1", "cut": honest[:-1].encode()}
    texts |= {"more": honest.encode() + b"x", "not-utf8": honest.encode().replace(b"bm25", b"bm\xff5"), "utf16": honest.encode("utf-16")}
    texts |= {
        "deep": b"[" * 100_000,
        "deep-objects": b'{"a":' * 100_000,
        "nan": honest.replace('"xxh3": ', '"xxh3": NaN, "x": ', 1).encode(),
    }
    texts |= {"digits": honest.replace('"offset": ', '"offset": ' + "9" * 5000, 1).encode(), "null-byte": b"\x00" * 64}
    texts |= {"key-twice": honest.replace('"feature_names"', '"feature_names": [], "feature_names"').encode()}
    texts |= {"section-twice": honest.replace('"sections": {', '"sections": {"y": {}, ').encode()}
    for name, text in texts.items():
        yield f"footer-{name}", forged(FULL, footer=text)
    names = ([], ["a", "b"], list("abcd"), ["a", "b", 3], ["a", "b", None], ["a", ["b"], "c"], "abc", {"a": 1, "b": 2, "c": 3}, None, 3)
    for number, value in enumerate(names):
        yield f"names-{number}", forged(FULL, edit=lambda f, v=value: f.update(feature_names=v))
    for number, value in enumerate((None, [], {}, "y", 1)):
        yield f"sections-{number}", forged(FULL, edit=lambda f, v=value: f.update(sections=v))
    yield "unknown key", forged(FULL, edit=lambda f: f.update(more=1))
    yield "unknown section", forged(FULL, {"z\n[b]": np.zeros(3)})
    yield "no names", forged(FULL, edit=lambda f: f.pop("feature_names"))
    yield "no sections", forged(FULL, edit=lambda f: f.pop("sections"))
    yield "no documents", forged(FULL, {name: array[:0] for name, array in ARRAYS.items()})


def preamble_forgeries():
    """Preambles that place the footer elsewhere."""
    size = len(FULL)
    for field, values in (("offset", (0, 8, 4096, size, size + 1, 2**63, 2**64 - 1)), ("length", (0, 1, size, 2**63, 2**64 - 1))):
        for value in values:
            yield f"preamble-{field}-{value}", forged(FULL, preamble={field: value})
    yield "preamble-size", forged(FULL, preamble={"size": 2**64 - 1})
    yield "preamble-wraps", forged(FULL, preamble={"offset": 2**64 - 64, "length": size + 64})


FORGERIES = [section_forgeries, content_forgeries, query_id_forgeries, footer_forgeries, preamble_forgeries]


@pytest.mark.parametrize("forgeries", FORGERIES, ids=lambda f: f.__name__)
def test_no_forged_file_is_read(forgeries, tmp_path):
    files = dict(forgeries())
    named = {f"{number:05}": content for number, content in enumerate(files.values())}
    message = dict(zip(files, (outcome for _, outcome in sorted(outcomes(named, tmp_path).items())), strict=True))
    remedy = re.compile(r"DataError: \S+\.xr: [ -~]+; convert the source again")  # one line that can be printed
    assert {name: outcome for name, outcome in message.items() if not remedy.fullmatch(outcome)} == {}
    if forgeries is content_forgeries:
        assert [name for name in files if re.split(r"[\[ ]", name)[0] not in message[name].replace("grade", "y")] == []
    if forgeries is section_forgeries:
        assert len(files) > 900
        assert [name for name in files if repr(name.split("-")[0]) not in message[name] and "section '" not in message[name]] == []


def test_honest_files_pass_through_the_forge(tmp_path):
    same = {"full": forged(FULL), "numbered": forged(NUMBERED)}
    assert set(outcomes(same, tmp_path).values()) == {"read"}
    assert footer_of(same["full"])["sections"].keys() == {*SECTIONS} - {"qid"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["<f4", "<f8", "<i8", "|u1", "|b1", "<M8[D]"])
    | st.integers(-3, 100)
    | st.integers(64, 130).map(lambda n: 64 * n)
    | st.sampled_from([2**31, 2**32 + 1, 2**62, 2**63, 2**64]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["dtype", "shape", "offset", "xxh3"]), inner, max_size=4),
    max_leaves=5,
)


def paths(value, here=()):
    """Where every value of a JSON object stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, part in inner for path in [(*here, key), *paths(part, (*here, key))]]


def mutate(footer, draw):
    """Replace a value by a random one or by another of the footer, or remove it."""
    where = draw(st.sampled_from(paths(footer)))
    holder = functools.reduce(operator.getitem, where[:-1], footer)
    match draw(st.sampled_from(["remove", "other", "random"])):
        case "remove":
            del holder[where[-1]]
        case "other":
            holder[where[-1]] = copy.deepcopy(functools.reduce(operator.getitem, draw(st.sampled_from(paths(footer))), footer))
        case "random":
            holder[where[-1]] = draw(JSON)


def assert_sound(data):
    """All that native code relies on, by its definition."""
    documents, queries = len(data.y), len(data.qid)
    assert (data.X.dtype, data.y.dtype, data.indptr.dtype) == (np.float32, np.float64, np.int64)
    assert data.X.shape == (documents, len(data.feature_names))
    assert not np.isinf(data.X).any()
    assert np.isfinite(data.y).all()
    bounds = data.indptr.tolist()
    assert bounds == sorted(set(bounds))
    assert (bounds[0], bounds[-1], len(bounds)) == (0, documents, queries + 1)
    assert len(set(data.qid.tolist())) == queries
    assert data.order is None or sorted(data.order.tolist()) == list(range(documents))
    for weights, count in ((data.sample_weight, documents), (data.query_weight, queries)):
        assert weights is None or (len(weights) == count and np.isfinite(weights).all() and weights.min() >= 0 and weights.max() > 0)
    for column in (data.docid, data.comment):
        assert column is None or len(column) == documents
        assert column is None or sum(map(len, map(column.bytes_at, range(documents)))) <= len(column.buffer)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_footer_gives_sound_data_or_an_error(data, tmp_path_factory):
    honest = data.draw(st.sampled_from([FULL, NUMBERED]))
    path = tmp_path_factory.getbasetemp() / "forged.xr"
    path.write_bytes(forged(honest, edit=lambda footer: [mutate(footer, data.draw) for _ in range(data.draw(st.integers(1, 2)))]))
    try:
        assert_sound(er.read(path))
    except er.errors.DataError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
