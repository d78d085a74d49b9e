"""All targets by name."""

from tests.fuzz import caches, models, notation, tables, text
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {target.name: target for module in (text, tables, caches, models, notation) for target in module.TARGETS}
