"""What an optimizer may ask of the thing it optimises: so far its value, and its profile along a ray."""
