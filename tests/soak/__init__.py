"""Training under random faults for as long as one likes: `make soak`."""
