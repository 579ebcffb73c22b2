"""Data in partitions, larger than memory or on several machines: Dask."""
