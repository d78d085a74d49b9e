"""Methods compared on the same queries (`compare`) and tuned (`tune`): divisions, contenders, fits in processes, results, the report."""
