"""The other sides of the paired benchmarks: the strongest program an expert would write. They import no JAX."""
