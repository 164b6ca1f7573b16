"""Weight files as named arrays: safetensors, pickles, TensorFlow checkpoints and HDF5."""
