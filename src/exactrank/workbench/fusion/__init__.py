"""The parts of `exactrank.workbench.fuse`: normalisation, exact search, certificate, resampling."""
