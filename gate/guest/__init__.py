"""Code that runs in the user's interpreter: standard library only, imports nothing of the gate."""
