"""The parts of `exactrank.workbench.compare`: divisions of data, contenders, fits in processes, results, tables and the report."""
