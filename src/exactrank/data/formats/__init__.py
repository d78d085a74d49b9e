"""File formats, one per file: each is a class with `read`, `stream` and `write`, listed in `exactrank.data.files`."""
