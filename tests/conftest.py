"""Settings for all tests: examples are drawn anew in each run, without deadlines on a busy machine."""

from hypothesis import settings

settings.register_profile("exactrank", deadline=None, print_blob=True)
settings.load_profile("exactrank")
