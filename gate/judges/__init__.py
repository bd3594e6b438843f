"""One judge for all metrics that use a model: `client` calls it, `prompt` words a question and reads the answer."""
