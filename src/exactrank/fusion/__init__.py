"""The weights of a hybrid search (`fuse`): normalization, exact search, certificate, resampling."""
