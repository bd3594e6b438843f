"""One judge for every metric that asks a model: `client` asks it, `prompt` words a question and reads the answer."""
