"""LETOR text: the native parser equals the slow twin, any block size and thread count; bad lines are explained."""

import gzip
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.data.files import write_stream
from exactrank.data.formats import letor
from exactrank.data.formats.base import ReadOptions
from tests.reference import letor as reference

NUMBERS = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32).map(repr),
    st.floats(-1e30, 1e30).map(repr),
    st.floats(-1e9, 1e9).map(lambda x: f"{x:.12f}"),
    st.sampled_from(
        [
            "0",
            "-0.0",
            "+1",
            "1.",
            ".5",
            "1e5",
            "1E-3",
            "2.5e+2",
            "1e-400",
            "0e999",
            "0.1234567890123456789012345678901234567890",
            "123456789012345678901234567890",
        ]
    ),
)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
ENDS = st.sampled_from(["\n", "\r\n", " \n", "\t\r\n", "\n\n", "\n  \n", "\n# only a comment\n"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t #:", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
COMMENTS = st.one_of(
    st.just(""),
    st.builds("#docid = {} inc = 1".format, WORDS),
    st.builds("# docid={}".format, WORDS),
    st.builds("# {}".format, WORDS),
    st.builds("#{} {}".format, WORDS, WORDS),
    st.sampled_from(["#", "# ", "#docid =", "# docid = # 2"]),
)


@st.composite
def lines(draw):
    ids = draw(st.lists(st.integers(0, 12), unique=True, max_size=6).map(sorted))
    blank = draw(BLANKS)
    features = [f"{i}:{draw(NUMBERS)}" for i in ids]
    qid = draw(st.one_of(st.integers(0, 3).map(str), WORDS))
    return (
        draw(st.sampled_from(["", " "]))
        + blank.join([draw(NUMBERS), f"qid:{qid}", *features])
        + draw(st.sampled_from([" ", ""]))
        + draw(COMMENTS)
        + draw(ENDS)
    )


def parsed(text, **options):
    """What the native parser makes of text fed in pieces of the given size."""
    size, threads = options.get("size", 7), options.get("threads", 1)
    parser = _core.LetorParser(options.get("missing", False), True, -1, -1, options.get("expected", 0), threads)
    for at in range(0, len(text), size):
        parser.feed(np.frombuffer(text[at : at + size], np.uint8))
    parser.finish()
    return parser, parser.take()


@settings(max_examples=120)
@given(
    text=st.lists(lines(), min_size=1, max_size=12).map("".join),
    size=st.integers(1, 300),
    final=st.booleans(),
    expected=st.integers(0, 3000),
)
def test_parser_equals_twin(text, size, final, expected):
    text = text.encode() if final else text.rstrip("\n").encode()
    rows = reference.parse(text)
    X, first = reference.matrix(rows)
    parser, (x, y, query, comments, comment, docid) = parsed(text, size=size, expected=expected)
    assert parser.first_feature == first or X.shape[1] == 0
    np.testing.assert_array_equal(x, X)
    assert y.tolist() == [row[0] for row in rows]
    assert [parser.query_names()[q] for q in query] == [row[1] for row in rows]
    if comments is None:
        assert all(row[3] is None for row in rows)
    else:
        text_of = [comments[a:b].tobytes() for a, b in zip(*comment, strict=True)]
        assert text_of == [row[3] or b"" for row in rows]
        docid_of = [comments[a:b].tobytes().decode() for a, b in zip(*docid, strict=True)]
        assert docid_of == [reference.docid(row[3]) for row in rows]


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), threads=st.integers(2, 4))
def test_threads_give_the_same_bits(seed, threads):
    """Text long enough for many pieces, whose widest line and whose feature 0 come at any place."""
    rng = np.random.default_rng(seed)
    rows = [f"{rng.integers(5)} qid:{i // 7 % 50} " + " ".join(f"{j}:{rng.normal():.6f}" for j in range(1, 20)) for i in range(3000)]
    for special in ("1 qid:x 0:5 3:1 # zero", "0 qid:y 45:2", "0 qid:y 90:2"):
        if rng.random() < 0.7:
            rows.insert(int(rng.integers(len(rows))), special)
    text = "\n".join(rows).encode()
    first, (x1, y1, q1, *_) = parsed(text, size=1 << 22)
    second, (x2, y2, q2, *_) = parsed(text, size=1 << 22, threads=threads)
    assert (x1.tobytes(), y1.tobytes(), q1.tobytes(), first.query_names()) == (
        x2.tobytes(),
        y2.tobytes(),
        q2.tobytes(),
        second.query_names(),
    )
    np.testing.assert_array_equal(x1, reference.matrix(reference.parse(text))[0])


def write(tmp_path, text, name="data.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_interleaved_queries_are_grouped_and_scores_go_back(tmp_path):
    data = er.read(write(tmp_path, "1 qid:9 1:1\n0 qid:2 1:2\n2 qid:9 1:3 #b\n1 qid:2 1:4\n"))
    assert data.qid.tolist() == [9, 2]
    assert data.X[:, 0].tolist() == [1, 3, 2, 4]
    assert data.ungroup(data.X[:, 0]).tolist() == [1, 2, 3, 4]
    assert data.group(np.arange(4)).tolist() == [0, 2, 1, 3]
    assert data.docid.tolist() == ["", "b", "", ""]


@settings(max_examples=30)
@example(text="0 qid:0\n0 qid:0 5:16777216\n0 qid:0 5:16777217\n")
@given(text=st.lists(lines(), min_size=1, max_size=12).map("".join))
def test_stream_equals_read_and_text_reads_back(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    data = er.read(write(folder, text))
    er.write(data, folder / "again.txt")
    again = er.read(folder / "again.txt", n_features=data.n_features or None)
    np.testing.assert_array_equal(data.X, again.X)
    assert data.y.tolist() == again.y.tolist()
    assert [str(q) for q in data.qid] == [str(q) for q in again.qid]
    assert (data.comment.tolist() if data.comment else []) == (
        again.comment.tolist() if again.comment else ([""] * len(data.y) if data.comment else [])
    )


def test_streaming_in_small_blocks_equals_reading(tmp_path, monkeypatch):
    rows = "".join(f"{i % 3} qid:{i % 4} 1:{i} {'9:2 ' if i == 80 else ''}# d{i}\n" for i in range(100))
    path = write(tmp_path, rows)
    whole = er.read(path)
    monkeypatch.setattr(letor, "TEXT_BLOCK", 64)
    stream = letor.LetorFormat().stream(path, ReadOptions())
    blocks = list(stream.blocks)
    assert len(blocks) > 5
    assert stream.feature_names == whole.feature_names
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), whole.ungroup(whole.X))
    assert np.concatenate([b.qid for b in blocks]).tolist() == [i % 4 for i in range(100)]


def test_a_byte_order_mark_is_skipped(tmp_path):
    for text in (b"1 qid:1 1:2", b"1 qid:1 1:2\n0 qid:1 1:3\n"):
        assert er.read(write(tmp_path, b"\xef\xbb\xbf" + text)).X[0, 0] == 2
        assert er.read(write(tmp_path, text)).X[0, 0] == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_reading_in_small_blocks_equals_reading_at_once(tmp_path, monkeypatch, threads, packed):
    text = "".join(f"{i % 3} qid:{i // 4} 1:{i} 3:0.5 # d{i}\n" for i in range(200)).encode()
    path = write(tmp_path, gzip.compress(text) if packed else text)
    whole = er.read(path, threads=1)
    monkeypatch.setattr(letor, "TEXT_BLOCK", 100)
    blockwise = er.read(path, threads=threads)
    np.testing.assert_array_equal(blockwise.X, whole.X)
    assert blockwise.qid.tolist() == whole.qid.tolist() == list(range(50))
    assert blockwise.docid.tolist() == [f"d{i}" for i in range(200)]


def test_gzip_crlf_and_strange_bytes_are_fine(tmp_path):
    text = b"2 qid:1 1:0.5\t2:1 # docid = caf\xe9\xff \r\n\r\n0 qid:1 2:3   \r\n1 qid:2 1:7"
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(text))
    data = er.read(path, threads=2)
    assert data.X.tolist() == [[0.5, 1], [0, 3], [7, 0]]
    assert data.docid[0].encode("utf-8", "surrogateescape") == b"caf\xe9\xff"
    er.write(data, tmp_path / "again.txt.gz")
    assert b"# docid = caf\xe9\xff" in gzip.decompress((tmp_path / "again.txt.gz").read_bytes())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 qid:1 1:2\nx qid:1 1:2\n", 2, "grade 'x' is not a finite number; expected e.g. '2 qid:7 1:0.5'"),
        ("nan qid:1 1:2\n", 1, "grade 'nan' is not a finite number"),
        ("inf qid:1 1:2\n", 1, "grade 'inf'"),
        ("1e999 qid:1 1:2\n", 1, "grade '1e999'"),
        ("1\n", 1, "no query id"),
        ("1 1:2\n", 1, "no query id after the grade.*found '1:2'"),
        ("1 qid: 1:2\n", 1, "no query id"),
        ("1 qid:1 1:2\n1 qid:2 2:3\n1 3:4", 3, "no query id"),
        ("1 qid:1 2:2 2:3\n", 1, "feature id 2 is repeated"),
        ("1 qid:1 3:2 2:3\n", 1, "feature id 2 comes after a larger one"),
        ("1 qid:1 -1:2\n", 1, "'-1:2' is not a feature"),
        ("1 qid:1 a:2\n", 1, "'a:2' is not a feature"),
        ("1 qid:1 1.5:2\n", 1, "'1.5:2' is not a feature"),
        ("1 qid:1 5\n", 1, "'5' is not a feature"),
        ("1 qid:1 1:2\n1 qid:1 1099511627776:1\n", 2, "feature id 1099511627776 would need"),
        ("1 qid:1 3000000000:1\n", 1, "renumber the features"),
        ("1 qid:1 99999999999999999999999:1\n", 1, "not a feature"),
        ("1 qid:1 1:\n", 1, "value of '1:' is not a number"),
        ("1 qid:1 1:x\n", 1, "value of '1:x' is not a number"),
        ("1 qid:1 1:1,5\n", 1, "value of '1:1,5' is not a number"),
        ("1 qid:1 1:1e39\n", 1, "fits float32"),
        ("1 qid:1 1:0x10\n", 1, "not a number"),
        ("1 qid:1 1:nan\n", 1, r"missing or infinite; pass keep_missing=True \(--missing keep\)"),
        ("1 qid:1 1:-inf\n", 1, "missing or infinite"),
        ("1 qid:1 1:NULL\n", 1, "missing or infinite"),
        ("1 qid:1 1:1:2\n", 1, "not a number"),
        (b"a\x00b qid:1\n", 1, "grade 'a\x00b' is not"),
        (b"\xff\xfe qid:1\n", 1, r"grade '\\xff\\xfe'"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_bad_lines_are_explained(tmp_path, text, line, message, threads):
    path = write(tmp_path, text)
    with pytest.raises(er.errors.DataError, match=rf"data\.txt:{line}: .*{message}"):
        er.read(path, threads=threads)


def test_the_first_bad_line_of_a_long_file_is_named(tmp_path):
    rows = [f"{i % 3} qid:{i // 9} " + " ".join(f"{j}:{i}" for j in range(1, 30)) for i in range(20_000)]
    rows[15_321] = "1 qid:3 1:oops"
    rows[17_000] = "bad"
    with pytest.raises(er.errors.DataError, match=r"data\.txt:15322: value of '1:oops'"):
        er.read(write(tmp_path, "\n".join(rows)), threads=2)


def test_missing_values_are_kept_when_asked(tmp_path):
    path = write(tmp_path, "1 qid:1 1:nan 2:NULL 3:1\n0 qid:1 1:-inf 2:2 3:Infinity\n")
    data = er.read(path, keep_missing=True)
    assert np.isnan(data.X).tolist() == [[True, True, False], [True, False, True]]
    assert er.describe(data).missing_values == {"1": 2, "2": 1, "3": 1}


def test_feature_ids_from_zero_or_one(tmp_path):
    late_zero = write(tmp_path, "1 qid:1 1:5 3:6\n1 qid:1 0:7 2:8\n")
    assert er.read(late_zero).X.tolist() == [[0, 5, 0, 6], [7, 0, 8, 0]]
    assert er.read(late_zero).feature_names == ("0", "1", "2", "3")
    first = write(tmp_path, "1 qid:1 1:5 2:6\n", "one.txt")
    assert er.read(first).X.tolist() == [[5, 6]]
    assert er.read(first, first_feature=0).X.tolist() == [[0, 5, 6]]
    assert er.read(first, n_features=4).X.tolist() == [[5, 6, 0, 0]]
    with pytest.raises(er.errors.DataError, match=r"feature id 2 lies outside 1\.\.1"):
        er.read(first, n_features=1)
    with pytest.raises(er.errors.DataError, match="feature id 0 lies below first_feature=1"):
        er.read(late_zero, first_feature=1)
    with pytest.raises(er.errors.DataError, match="must be 0 or 1"):
        er.read(first, first_feature=2)


def test_wide_and_sparse_text_is_taken_while_it_is_worth_it(tmp_path):
    data = er.read(write(tmp_path, "1 qid:1 100000:1\n0 qid:1 5:2\n"))
    assert data.n_features == 100_000
    assert np.count_nonzero(data.X) == 2


def test_another_extensions_errors_are_not_ours(tmp_path):
    """DuckDB, once imported, must not turn what we raise into an error of its own."""
    code = "import duckdb, exactrank as er, sys\ntry:\n    er.read(sys.argv[1], n_features=2**62)\nexcept MemoryError:\n    print('ours')"
    result = subprocess.run([sys.executable, "-c", code, write(tmp_path, "1 qid:1 1:1\n")], capture_output=True, text=True, check=False)
    assert result.stdout == "ours\n", result.stderr


def test_absurd_numbers_of_features(tmp_path):
    path = write(tmp_path, "1 qid:1 1:1\n0 qid:1 5:2\n")
    with pytest.raises(MemoryError):
        er.read(path, n_features=2**62)
    for absurd in (0, -1, 2**63, 1.5, True, "3"):
        with pytest.raises(er.errors.DataError, match="n_features must be a positive whole number"):
            er.read(path, n_features=absurd)
    for absurd in (2, -1, 1.0, True, "1"):
        with pytest.raises(er.errors.DataError, match="first_feature must be 0 or 1"):
            er.read(path, first_feature=absurd)


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(er.errors.DataError, match="not a regular file"):
        er.read(tmp_path / "pipe.txt")


def test_no_documents(tmp_path):
    for text, message in (("", "is empty"), ("\n \n", "no documents"), ("# only a comment\n", "no documents")):
        with pytest.raises(er.errors.DataError, match=message):
            er.read(write(tmp_path, text))


@pytest.mark.parametrize("threads", [1, 2])
def test_truncated_gzip(tmp_path, threads):
    rng = np.random.default_rng(0)
    whole = gzip.compress("".join(f"1 qid:1 1:{x}\n" for x in rng.normal(size=20_000)).encode())
    for cut in (len(whole) // 2, len(whole) - 3):
        path = write(tmp_path, whole[:cut], "data.txt.gz")
        with pytest.raises(er.errors.DataError, match=r"data\.txt\.gz: the gzip stream is damaged or cut short"):
            er.read(path, threads=threads)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    with pytest.raises(er.errors.DataError):
        er.read(write(tmp_path, bytes(damaged), "data.txt.gz"), threads=threads)


def test_numbers_are_rounded_as_python_does():
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(size=2000) * 10.0 ** rng.integers(-40, 38, 2000), rng.normal(size=2000)])
    texts = [f"{v:.{d}{f}}" for v, d, f in zip(values, rng.integers(0, 25, 4000), rng.choice(list("egf"), 4000), strict=True)]
    texts = [t for t in texts if abs(float(t)) < 3.4e38]
    _, (x, *_) = parsed("".join(f"0 qid:1 1:{t}\n" for t in texts).encode(), size=1 << 20)
    with np.errstate(under="ignore"):
        assert x[:, 0].tobytes() == np.array([np.float32(float(t)) for t in texts]).tobytes()
    assert math.isfinite(x.sum())


@pytest.mark.parametrize("suffix", [".query", ".group"])
def test_query_sizes_beside_the_text(tmp_path, suffix):
    path = write(tmp_path, "# sizes are beside\n2 1:5 # d1\n0 1:6\n1 2:7\n", "rank.train")
    with pytest.raises(er.errors.DataError, match=r"rank\.train:2: no query id.*; or give the query sizes in rank\.train\.query"):
        er.read(path)
    write(tmp_path, "2\n1\n", f"rank.train{suffix}")
    data = er.read(path)
    assert data.indptr.tolist() == [0, 2, 3]
    assert data.X.tolist() == [[5, 0], [6, 0], [0, 7]]
    assert data.docid.tolist() == ["d1", "", ""]
    write_stream(letor.LetorFormat().stream(path, ReadOptions()), tmp_path / "all.txt")
    assert er.read(tmp_path / "all.txt").qid.tolist() == [0, 1]
    (tmp_path / "rank.train.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert er.read(tmp_path / "rank.train.gz").n_queries == 2
    write(tmp_path, "2\n2\n", f"rank.train{suffix}")
    with pytest.raises(er.errors.DataError, match="has 3 rows but the query sizes beside it add up to 4"):
        er.read(path)
    wrapping = [5 * 10**17] * 36 + [2**64 - 18 * 10**18 + 3]
    write(tmp_path, "\n".join(map(str, wrapping)), f"rank.train{suffix}")
    with pytest.raises(er.errors.DataError, match="add up to 18,446,744,073,709,551,619; they must agree"):
        er.read(path)
    for wrong in ("x", "0", "-1", "99999999999999999999"):
        write(tmp_path, f"2\n{wrong}\n", f"rank.train{suffix}")
        with pytest.raises(er.errors.DataError, match=f"'{wrong}' is not the size of a query"):
            er.read(path)


def test_query_ids_in_the_text_win(tmp_path):
    path = write(tmp_path, "2 qid:8 1:5\n0\tqid:9 1:6\n", "rank.train")
    write(tmp_path, "2\n", "rank.train.query")
    assert er.read(path).qid.tolist() == [8, 9]


def test_weights_have_no_place_in_text(tmp_path):
    data = er.RankingData.from_arrays([[1.0]], [1], qid=[1], sample_weight=[2.0])
    with pytest.raises(er.errors.IncompatibleError, match=r"no place for weights; write \.xr"):
        er.write(data, tmp_path / "out.txt")
    assert not list(tmp_path.iterdir())


def test_query_ids_that_text_cannot_hold(tmp_path):
    data = er.RankingData.from_arrays([[1.0]], [1], qid=["two words"])
    with pytest.raises(er.errors.DataError, match="'two words' cannot be written in LETOR text"):
        er.write(data, tmp_path / "out.txt")


def test_folds(tmp_path):
    for fold in (1, 2, 10):
        (tmp_path / f"Fold{fold}").mkdir()
        for part, text in (("train", "1 qid:1 1:1 2:2\n"), ("vali", "1 qid:2 1:1 3:2\n"), ("test", "1 qid:3 1:5\n")):
            write(tmp_path / f"Fold{fold}", text, f"{part}.txt")
    folds = er.read_folds(tmp_path)
    assert [f.name for f in folds] == ["Fold1", "Fold2", "Fold10"]
    assert {d.n_features for f in folds for d in (f.train, f.valid, f.test)} == {3}
    (tmp_path / "Fold2" / "vali.txt").unlink()
    with pytest.raises(er.errors.DataError, match=r"Fold2 has no vali\.txt"):
        er.read_folds(tmp_path)
    (alone,) = er.read_folds(tmp_path / "Fold1")
    assert (alone.name, alone.test.X.tolist()) == ("Fold1", [[5.0, 0.0, 0.0]])
    (tmp_path / "empty").mkdir()
    with pytest.raises(er.errors.DataError, match="holds neither folders named Fold1"):
        er.read_folds(tmp_path / "empty")
    with pytest.raises(er.errors.DataError, match="is a folder"):
        er.read(tmp_path)
