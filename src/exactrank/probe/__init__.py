"""Questions about models and losses: is it optimal, do forces have a cost, how smooth is the measure around it, which features matter."""
