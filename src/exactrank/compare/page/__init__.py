"""The parts of the HTML report of a comparison: what each section says, the charts, and the template with its style and script."""
