"""The backend of a GPU: kernels for rankings, measures, forces, line searches and trees on lists of any length, without padding."""
