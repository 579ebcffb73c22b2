"""What good and bad rows look like: densities, their slopes, and fits of their parameters."""
