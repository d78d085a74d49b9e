"""Tab-separated tables are read and written as comma-separated ones."""

import numpy as np

import exactrank as er


def test_a_table_with_tabs_is_the_one_with_commas(tmp_path):
    rows = [("query_id", "relevance", "bm25", "shop"), ("q1", 2, 0.5, "a,b"), ("q1", 0, 0.25, "c"), ("q2", 1, 1e-3, "c")]
    for suffix, delimiter in ((".tsv", "\t"), (".csv", ",")):
        text = "\n".join(delimiter.join(f'"{cell}"' if isinstance(cell, str) else str(cell) for cell in row) for row in rows)
        (tmp_path / f"table{suffix}").write_text(text + "\n")
    tabs, commas = er.read(tmp_path / "table.tsv"), er.read(tmp_path / "table.csv")
    assert tabs.checksum == commas.checksum
    assert tabs.levels == {"shop": ("a,b", "c")}
    er.write(tabs, tmp_path / "copy.tsv")
    assert b'\t"a,b"' in (tmp_path / "copy.tsv").read_bytes()
    assert er.read(tmp_path / "copy.tsv").checksum == tabs.checksum
    assert np.array_equal(tabs.y, [2, 0, 1])
