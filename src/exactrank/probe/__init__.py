"""Questions about models and losses: is it optimal, are its forces a slope, how smooth is the measure around it, which features matter."""
