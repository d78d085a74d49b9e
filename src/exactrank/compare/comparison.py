"""A comparison as its user has it: the results, shown as text, Markdown, LaTeX, CSV, JSON and HTML, and written to a folder."""

import os
from pathlib import Path
from typing import Any

from exactrank.compare.records import FILES, RECORD, read_record, to_record, write_record
from exactrank.compare.report import report_html
from exactrank.compare.results import Results
from exactrank.compare.tables import long_table, result_tables
from exactrank.files import refuse_existing, whole_file
from exactrank.reasons import reason_of
from exactrank.text import encoded


class Comparison(Results):
    """Methods on data sets, and how they did: the values of `Results`, and ways to show them."""

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int = 120, *, colour: bool = False) -> str:
        """The tables as a terminal shows them."""
        return "\n".join(table.text(width, colour) for table in result_tables(self))

    def to_markdown(self) -> str:
        """The tables for a README or an issue."""
        return "\n".join(f"{table.section()}\n" for table in result_tables(self))

    def to_latex(self) -> str:
        """The tables for a paper, with booktabs."""
        return "\n".join(table.latex() for table in result_tables(self))

    def to_csv(self) -> str:
        """One row per data set, method and measure, for a spreadsheet; numbers with all their digits."""
        return long_table(self).csv()

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for ``json.dumps``."""
        record: dict[str, Any] = to_record(self)
        return record

    def write_report(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The report as one HTML file; ``force`` replaces a file that is there."""
        with whole_file(path, force=force) as file:
            file.write(encoded(report_html(self)))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """All of it to ``folder``: the record, the tables and the report; ``force`` replaces files of the same names.

        The record comes first. Where something cannot be shown the rest is written all the same, and an `OSError` tells of it.
        """
        target = Path(folder)
        for name in () if force else FILES:
            refuse_existing(target / name)
        write_record(target / RECORD, self)
        made = (Comparison.to_markdown, Comparison.to_latex, Comparison.to_csv, report_html)
        troubles = []
        for name, make in zip(FILES[1:], made, strict=True):
            try:
                content = encoded(make(self))
            except Exception as error:  # whatever the numbers did to it: what took hours to compute is not lost by it
                troubles.append(f"{name} could not be made ({reason_of(error)})")
                continue
            with whole_file(target / name, force=True) as file:
                file.write(content)
        if troubles:
            raise OSError(f"{target / RECORD} holds all results, but {'; '.join(troubles)}; please report this as a bug of exactrank")


def read_comparison(folder: str | os.PathLike[str]) -> Comparison:
    """The comparison in ``folder``, as `compare` left it."""
    return read_record(Comparison, Path(folder) / RECORD)
