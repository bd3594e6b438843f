"""One judge for every metric that asks a model."""
