"""The exact trade-off of two measures: `xr.pareto` and `xr.tradeoff`."""
