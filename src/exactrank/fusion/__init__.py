"""The weights of a hybrid search (`fuse`): normalisation, exact search, certificate, resampling."""
