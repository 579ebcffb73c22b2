"""What good and bad rows look like: densities, and the fits of their parameters."""
