"""Checks of matrices in HDF5 and Zarr files before they are read."""
