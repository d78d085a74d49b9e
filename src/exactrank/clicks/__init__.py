"""Click logs: what was shown at which rank and clicked, how likely each rank is looked at, and grades that training can use."""
