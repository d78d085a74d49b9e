"""All targets by name."""

from tests.fuzz import caches, fusions, judgments, models, notation, records, requests, tables, text
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (text, tables, judgments, caches, models, fusions, notation, records, requests)
    for target in module.TARGETS
}
