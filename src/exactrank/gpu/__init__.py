"""Lists of any length on the GPU: rankings, measures and the forces between documents, without padding and to the same bits every time."""
