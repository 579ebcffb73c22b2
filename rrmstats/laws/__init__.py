"""What good and bad rows look like: densities, their slopes, and the fits of their parameters."""
