"""Click logs: what was shown at which rank and clicked, how likely each rank is looked at, and grades that training can use."""

from exactrank.clicks.files import read_clicks, write_clicks
from exactrank.clicks.interleaving import interleave, preference
from exactrank.clicks.log import ClickColumns, Clicks
from exactrank.clicks.propensities import Propensities
from exactrank.clicks.simulate import simulate_clicks

__all__ = ["ClickColumns", "Clicks", "Propensities", "interleave", "preference", "read_clicks", "simulate_clicks", "write_clicks"]
