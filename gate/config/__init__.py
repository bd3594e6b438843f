"""Configuration: gate.yaml → what to run and by which criteria, under the base commit's rules if there is one.

`pipeline`, `action` and `commands` import it.
"""

FILE_NAME = "gate.yaml"
"""Name of the configuration file, unless another is given."""
