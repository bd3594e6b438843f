"""Real frameworks, servers and tools, each as released, in environments of their own: `make connectors`."""
